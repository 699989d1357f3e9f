"""What is refused on any wire, and how that is said."""

VERSION = 1


class WireError(ValueError):
    """A message that is refused: what it was about, the value, the limit."""

    def __init__(self, what: str, value: object = None, limit: str = "") -> None:
        self.what, self.limit = what, limit
        self.value = "" if value is None else _short(value)
        shown = f": {self.value}" if self.value else ""
        wanted = f" (expected {limit})" if limit else ""
        super().__init__(f"{what}{shown}{wanted}")


class UnknownKind(WireError):
    """A message of a kind that this version does not know. It ends no connection."""


def _short(value: object, most: int = 80) -> str:
    text = value if isinstance(value, str) else repr(value)
    if not text.isprintable():  # nobody's value writes a line of its own into a log
        text = text.encode("unicode_escape").decode()
    return text if len(text) <= most else text[: most - 1] + "…"

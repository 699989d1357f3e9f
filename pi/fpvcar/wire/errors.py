"""Errors for rejected messages on any wire, and their texts."""

VERSION = 1


class WireError(ValueError):
    """Rejected message: its subject, the value, the limit."""

    def __init__(self, what: str, value: object = None, limit: str = "") -> None:
        self.what, self.limit = what, limit
        self.value = "" if value is None else _short(value)
        value_text = f": {self.value}" if self.value else ""
        limit_text = f" (expected {limit})" if limit else ""
        super().__init__(f"{what}{value_text}{limit_text}")


class UnknownKind(WireError):
    """Message of a kind unknown to this version. The connection stays open."""


def _short(value: object, most: int = 80) -> str:
    text = value if isinstance(value, str) else repr(value)
    if not text.isprintable():  # no value may start a line of its own in a log
        text = text.encode("unicode_escape").decode()
    return text if len(text) <= most else text[: most - 1] + "…"

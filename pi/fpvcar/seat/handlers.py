"""Handlers of page messages, declared where they are: message, right, rate limit.

    @handles(Limit, right=Right.GROWN_UP, act="sets the speed limit")
    def limit(self, session: Session, limit: Limit, now_s: float) -> None:

Hub.receive checks the right before it calls the handler. `make docs` prints the table of rights.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, get_args

from msgspec import structs

from fpvcar.drive.saved import DisplayName
from fpvcar.http.limits import TokenBucket
from fpvcar.http.rights import Right as Right
from fpvcar.seat.drive_socket import Session
from fpvcar.wire import up
from fpvcar.wire.down import Error

if TYPE_CHECKING:
    from fpvcar.seat.turns import Turns

CORE = tuple(kind for kind in get_args(up.Upward) if kind not in up.OF_FEATURES)
"""Messages that every car handles."""
P = TypeVar("P")
M = TypeVar("M", bound=up.Upward)
Method = Callable[[P, Session, M, float], None]
Handle = Callable[[Session, Any, float], None]


REFUSALS = {
    Right.DRIVER: Error("you may only watch", "", "", "enter the drive code", "watch_only"),
    Right.AT_THE_WHEEL: Error("not at the wheel", "", "", "take the wheel", "not_driver"),
    Right.RESUMES: Error("only the driver", "", "", "take the wheel", "not_driver"),
    Right.LOOKS: Error(
        "only the driver", "", "", "a grown-up can let viewers look around", "not_driver"
    ),
    Right.GROWN_UP: Error("only a grown-up", "", "", "enter the grown-up code", "grown_up_only"),
}
"""Errors for a page without the right; `act` completes the first words."""


class Declaration(NamedTuple):
    """Message, right and limit of a handler: the arguments of `handles`."""

    message: Any
    right: Right
    act: str
    limit: tuple[float, float] | None
    refused: Callable[..., None] | None


class Handler(NamedTuple):
    """Handler of one kind of message on one car. `may` is None if every page may send it."""

    may: Callable[[Session], bool] | None
    handle: Handle
    refuse: Handle


def handles(
    message: type[M],
    *,
    right: Right,
    act: str = "",
    limit: tuple[float, float] | None = None,
    refused: Method[P, M] | None = None,
) -> Callable[[Method[P, M]], Method[P, M]]:
    """Declare a method as the handler of a message. `act` completes "only a grown-up ...".

    `limit`: pushes a second and burst, of all pages and of all messages with an equal limit.
    `refused` is a method that is also called for a page without the right.
    """

    def declare(method: Method[P, M]) -> Method[P, M]:
        vars(method)["declaration"] = Declaration(message, right, act, limit, refused)
        return method

    return declare


def declared(kind: type) -> Iterator[tuple[Declaration, Callable[..., None]]]:
    """Yield the handlers of a class, with their declarations."""
    for method in vars(kind).values():
        if isinstance(declaration := getattr(method, "declaration", None), Declaration):
            yield declaration, method


def handlers_of(
    parts: Iterable[object], turns: "Turns", name: DisplayName, messages: Iterable[type] = CORE
) -> dict[type, Handler]:
    """Return the handlers of these parts by message.

    Raises TypeError for a message with two handlers, and for one of `messages` without any.
    """
    may: dict[Right, Callable[[Session], bool] | None] = {
        Right.ANYONE: None,
        Right.DRIVER: lambda session: session.rights.drive,
        Right.AT_THE_WHEEL: turns.at_the_wheel,
        Right.RESUMES: lambda session: session.rights.grown_up or turns.at_the_wheel(session),
        Right.LOOKS: lambda session: turns.at_the_wheel(session) or turns.sessions.viewers_look,
        Right.NAMES_CAR: lambda session: (
            session.rights.grown_up if name.chosen else session.rights.drive
        ),
        Right.GROWN_UP: lambda session: session.rights.grown_up,
    }
    buckets, handlers = dict[tuple[float, float], TokenBucket](), dict[type, Handler]()
    for part in parts:
        for declaration, method in declared(type(part)):
            if declaration.message in handlers:
                raise TypeError(f"{declaration.message.__name__} has two handlers")
            handle: Handle = method.__get__(part)
            if declaration.limit is not None:
                bucket = buckets.setdefault(declaration.limit, TokenBucket(*declaration.limit))
                handle = _limited(declaration, bucket, handle)
            refuse = _refusing(declaration, part, turns, name)
            handlers[declaration.message] = Handler(may[declaration.right], handle, refuse)
    if missing := [message.__name__ for message in messages if message not in handlers]:
        raise TypeError(f"no handler of {', '.join(missing)}")
    return handlers


def _limited(declaration: Declaration, bucket: TokenBucket, handle: Handle) -> Handle:
    kind, most = declaration.message.__struct_config__.tag, f"{bucket.rate:g} a second"
    error = Error("too many pushes", kind, most, "wait", "too_often")

    def limited(session: Session, message: up.Upward, now_s: float) -> None:
        if bucket.allow(now_s):
            handle(session, message, now_s)
        else:
            session.deny(error, now_s)

    return limited


def _refusing(declaration: Declaration, part: object, turns: "Turns", name: DisplayName) -> Handle:
    message, right, act, _, refused = declaration

    def refuse(session: Session, received: up.Upward, now_s: float) -> None:
        now, value = right, message.__struct_config__.tag
        if right is Right.NAMES_CAR:
            now = Right.GROWN_UP if name.chosen else Right.DRIVER
        elif right is Right.AT_THE_WHEEL:
            holder = turns.seat.holder
            value = f"{holder.name} drives" if holder else "the wheel is free"
        error = REFUSALS[now]
        what = f"{error.what} {act}".rstrip()
        session.deny(structs.replace(error, what=what, value=value), now_s)
        if refused is not None:
            refused(part, session, received, now_s)

    return refuse

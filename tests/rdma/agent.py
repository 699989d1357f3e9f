"""Messages of rdpipe to an agent: chain/agent_protocol.h."""

from collections.abc import Sequence

VERSION = 7
RDCP, SHELL, READ, WRITE, PASS = range(5)
SURE, STRAIGHT, THROUGH_SSH = range(3)
KEY = b"ab" * 32


def frame(verb: bytes, body: bytes = b"", hop: bytes = b"b") -> bytes:
    return verb + hop + b"%06x" % len(body) + body


def texts(*words: bytes) -> bytes:
    return b"".join(word + b"\0" for word in words)


def work(
    middle: int,
    *words: bytes,
    route: int = STRAIGHT,
    key_in: bytes = b"",
    key_out: bytes = b"",
    to: tuple[bytes, bytes] = (b"", b""),
    options_in: Sequence[bytes] = (),
    options_out: Sequence[bytes] = (),
) -> bytes:
    """Return the body of a `run`."""
    head = b"%d 0 %d %d %d" % (middle, route, len(options_in), len(options_out))
    return texts(head, key_in, key_out, *to, *options_in, *options_out, *words)

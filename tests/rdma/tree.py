"""The records of rdcp's two sides, as copy/tree.h has them, made by hand."""

import ctypes
import struct

START, TARGET, ENTER, LEAVE, FILE, LINK, HARD, XATTR, BODY, DATA = range(1, 11)
WHOLE, SUM, END, ANSWER, BYE = range(11, 16)
HAVE, SEND, ASK_SUM, PLACED, AGAIN, REFUSED = range(1, 7)
VERSION = 5
ATTRIBUTES = 40
HEADER = 16
_xxhash = ctypes.CDLL("libxxhash.so.0")
_xxhash.XXH64.restype = ctypes.c_uint64


class Hash128(ctypes.Structure):
    _fields_ = [("low", ctypes.c_uint64), ("high", ctypes.c_uint64)]


_xxhash.XXH3_128bits.restype = Hash128


def xxh3(data: bytes) -> bytes:
    """As a `whole` has it: 128 bits, big-endian, and zeros."""
    found = _xxhash.XXH3_128bits(data, ctypes.c_size_t(len(data)))
    return struct.pack(">QQ16x", found.high, found.low)


def sum_of(data: bytes) -> bytes:
    found = _xxhash.XXH64(data, ctypes.c_size_t(len(data)), ctypes.c_uint64(VERSION))
    return struct.pack("<I", found & 0xFFFFFFFF)


def record(
    kind: int, fixed: bytes = b"", name: bytes = b"", data: bytes = b""
) -> bytes:
    """`data` only of that kind: no sum is of it."""
    body = fixed + name
    head = struct.pack("<BBHI", kind, 0, len(name), len(body + data)) + sum_of(body)
    return head + sum_of(head) + body + data


def start(version: int = VERSION, boot_id: bytes = b"") -> bytes:
    return record(START, struct.pack("<Q", version) + boot_id)


def attributes(device: int = 0, inode: int = 0, mtime_ns: int = 0) -> bytes:
    return struct.pack("<IIIIQqq", 0o644, 0, 0, device, inode, mtime_ns, 0)


def enter(name: bytes, mode: int = 0o755) -> bytes:
    return record(ENTER, struct.pack("<I36x", mode), name)


def file_of(size: int, name: bytes = b"f", device: int = 0, inode: int = 0) -> bytes:
    fixed = attributes(device, inode) + struct.pack("<QQQ", size, size, 1)
    return record(FILE, fixed, name)


def body_of(data: bytes, number: int = 0, size: int | None = None) -> bytes:
    """The content of a file, and its hash."""
    fixed = struct.pack("<QQQ", len(data) if size is None else size, number, 0)
    pieces = [
        record(DATA, struct.pack("<Q", at), data=data[at : at + (256 << 10)])
        for at in range(0, len(data), 256 << 10)
    ]
    whole = record(WHOLE, struct.pack("<Q", 1) + xxh3(data))
    return record(BODY, attributes() + fixed) + b"".join(pieces) + whole


def end(errors: int = 0) -> bytes:
    return record(END, struct.pack("<Q", errors))


def records(stream: bytes) -> list[tuple[int, bytes]]:
    """Kind and body of each."""
    found, at = [], 0
    while at < len(stream):
        kind, _, _, length = struct.unpack_from("<BBHI", stream, at)
        found.append((kind, stream[at + HEADER : at + HEADER + length]))
        at += HEADER + length
    return found


def answers(stream: bytes) -> list[tuple[int, int, int, int]]:
    """Number, count, verdict, from."""
    return [
        struct.unpack("<QQQQ", body) for kind, body in records(stream) if kind == ANSWER
    ]

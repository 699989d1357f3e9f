"""A second implementation of the records of rdcp's two sides, as in copy/tree.h."""

import ctypes
import struct

START, TARGET, ENTER, LEAVE, FILE, LINK, BODY, DATA = range(1, 9)
WHOLE, BROKEN, END, ANSWER, BYE = range(9, 14)
HAVE, SEND, PLACED, AGAIN, REFUSED = range(1, 6)
VERSION = 8
HEAD = 80
START_OF_7 = bytes.fromhex("0100000000000000c7320d32acc042d20000000000000000")
"""First bytes of a stream of version 7."""
_xxhash = ctypes.CDLL("libxxhash.so.0")
_xxhash.XXH64.restype = ctypes.c_uint64


class Hash128(ctypes.Structure):
    _fields_ = [("low", ctypes.c_uint64), ("high", ctypes.c_uint64)]


_xxhash.XXH3_128bits.restype = Hash128


def xxh3(data: bytes) -> bytes:
    """Return the hash in the form of a `whole`: 128 bits, big-endian, and zeros."""
    found = _xxhash.XXH3_128bits(data, ctypes.c_size_t(len(data)))
    return struct.pack(">QQ16x", found.high, found.low)


def sum_of(data: bytes) -> bytes:
    found = _xxhash.XXH64(data, ctypes.c_size_t(len(data)), ctypes.c_uint64(VERSION))
    return struct.pack("<I", found & 0xFFFFFFFF)


def attributes(mode: int = 0, device: int = 0, inode: int = 0, mtime_ns: int = 0) -> bytes:
    return struct.pack("<IIQqq", mode, device, inode, mtime_ns, 0)


def numbers(*values: int) -> bytes:
    return struct.pack("<4Q", *values, *[0] * (4 - len(values)))


def record(
    kind: int,
    values: bytes = numbers(),
    name: bytes = b"",
    data: bytes = b"",
    of: bytes = attributes(),
) -> bytes:
    """Return a record. `values` are the four numbers, or a hash. The bytes of DATA have no sum."""
    head = struct.pack("<HHI", kind, len(name), len(data))
    behind = of + values
    head += sum_of(behind if kind == DATA else behind + data + name)
    return head + sum_of(head) + behind + data + name


def start(version: int = VERSION, boot_id: bytes = b"") -> bytes:
    return record(START, numbers(version), data=boot_id)


def enter(name: bytes, mode: int = 0o755) -> bytes:
    return record(ENTER, name=name, of=attributes(mode))


def file_of(size: int, name: bytes = b"f", device: int = 0, inode: int = 0) -> bytes:
    of = attributes(0o644, device, inode)
    return record(FILE, numbers(size, size), name, of=of)


def body_of(data: bytes, number: int = 0, size: int | None = None) -> bytes:
    """Return the content of a file, and its hash."""
    counts = numbers(len(data) if size is None else size, number)
    pieces = [
        record(DATA, numbers(at), data=data[at : at + (256 << 10)])
        for at in range(0, len(data), 256 << 10)
    ]
    whole = record(WHOLE, xxh3(data))
    return record(BODY, counts, of=attributes(0o644)) + b"".join(pieces) + whole


def end(errors: int = 0) -> bytes:
    return record(END, numbers(errors))


def records(stream: bytes) -> list[tuple[int, bytes, bytes]]:
    """Return kind, numbers and the bytes after the head of each record."""
    found, at = [], 0
    while at < len(stream):
        kind, name, length = struct.unpack_from("<HHI", stream, at)
        rest = at + HEAD + length + name
        found.append((kind, stream[at + HEAD - 32 : at + HEAD], stream[at + HEAD : rest]))
        at = rest
    return found


def answers(stream: bytes) -> list[tuple[int, int, int, int]]:
    """Return number, count, verdict and offset of each answer."""
    return [struct.unpack("<4Q", four) for kind, four, _ in records(stream) if kind == ANSWER]

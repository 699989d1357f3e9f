"""A second implementation of the records of base-station/rdma/records.h: for golden vectors, and
for peers that do things that rdsend and rdrecv never do."""

import ctypes
import hashlib
import hmac
import os
import socket
import struct
from dataclasses import dataclass

from cryptography.hazmat.primitives.ciphers.aead import AESGCM, ChaCha20Poly1305

HELLO, PROOF, DATA, CREDIT, HEARTBEAT, END, DONE, BYE, ABORT = range(1, 10)
SENDER, RECEIVER = 1, 2
TCP, RDMA = 1, 2
PLAIN, ENCRYPTED = range(2)
HEADER = struct.Struct("<HBBIQ")
HELLO_BODY = struct.Struct("<HBBBBBBII32s")
ENDING = struct.Struct("<QQ")
MAGIC = 0x4452
VERSION = 4
TAG = 16
_xxhash = ctypes.CDLL("libxxhash.so.0")
_xxhash.XXH3_64bits.restype = ctypes.c_uint64


def record(kind: int, body: bytes = b"", number: int = 0) -> bytes:
    return HEADER.pack(MAGIC, kind, 0, len(body), number) + body


@dataclass(frozen=True)
class Hello:
    role: int
    version: int = VERSION
    transport: int = TCP
    protection: int = PLAIN
    checksum: int = 1
    aes: int = 1
    chunk: int = 65536
    credits: int = 4
    nonce: bytes = bytes(32)

    def whole(self) -> bytes:
        body = HELLO_BODY.pack(
            self.version,
            self.role,
            self.transport,
            self.protection,
            self.checksum,
            self.aes,
            0,
            self.chunk,
            self.credits,
            self.nonce,
        )
        return record(HELLO, body)


def checksum(stream: bytes) -> int:
    """Return the checksum of a whole stream, as in its end record: XXH3 of 64 bits."""
    return int(_xxhash.XXH3_64bits(stream, ctypes.c_size_t(len(stream))))


def proof(key: bytes, role: int, sender: bytes, receiver: bytes) -> bytes:
    """Return the proof that `role` gives, over both complete hello records."""
    label = b"rdpipe4 sender" if role == SENDER else b"rdpipe4 receiver"
    text = label.ljust(16, b"\0") + sender + receiver
    return hmac.new(key, text, hashlib.sha256).digest()


def sealing_key(key: bytes, role: int, sender: bytes, receiver: bytes) -> bytes:
    """Return the key by HKDF-SHA-256 (RFC 5869), one block."""
    info = b"rdpipe4 seal sender" if role == SENDER else b"rdpipe4 seal receiver"
    extracted = hmac.new(sender + receiver, key, hashlib.sha256).digest()
    return hmac.new(extracted, info + b"\1", hashlib.sha256).digest()


@dataclass
class Seals:
    """Protection of the records of one direction: see handshake.h."""

    key: bytes
    """The key shared by both ends."""
    role: int
    """Role of the end that sends these records."""
    sender: bytes
    receiver: bytes
    """The complete hello records of both ends."""
    controls: int = 0

    def aes(self) -> bool:
        """Return true if both processors have AES instructions."""
        return bool(self.sender[22] and self.receiver[22])

    def cipher(self) -> AESGCM | ChaCha20Poly1305:
        secret = sealing_key(self.key, self.role, self.sender, self.receiver)
        return AESGCM(secret) if self.aes() else ChaCha20Poly1305(secret)

    def seal(self, kind: int, body: bytes = b"", number: int = 0) -> bytes:
        """Return one complete sealed record."""
        header = HEADER.pack(MAGIC, kind, 0, len(body) + TAG, number)
        return header + self.cipher().encrypt(self._nonce(kind, number), body, header)

    def _nonce(self, kind: int, number: int) -> bytes:
        lane, counter = (1, number) if kind == DATA else (2, self.controls)
        self.controls += kind != DATA
        return struct.pack("<IQ", lane, counter)

    def open(self, kind: int, number: int, body: bytes) -> bytes:
        """Return the body without its tag. Raises InvalidTag if the tag is wrong."""
        header = HEADER.pack(MAGIC, kind, 0, len(body), number)
        return self.cipher().decrypt(self._nonce(kind, number), body, header)


class Peer:
    """End of a connection that the test operates."""

    def __init__(self, connection: socket.socket) -> None:
        self.socket = connection
        self.socket.settimeout(10)

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def exactly(self, length: int) -> bytes:
        data = b""
        while len(data) < length:
            more = self.socket.recv(length - len(data))
            if not more:
                raise EOFError(f"{len(data)} of {length} bytes")
            data += more
        return data

    def take(self) -> tuple[int, int, bytes]:
        """Return type, number and body of the next record."""
        magic, kind, zero, length, number = HEADER.unpack(self.exactly(16))
        assert (magic, zero) == (MAGIC, 0)
        return kind, number, self.exactly(length)

    def until(self, kind: int) -> tuple[int, bytes]:
        """Return number and body of the next record of that type."""
        while True:
            got, number, body = self.take()
            if got == kind:
                return number, body
            assert got != ABORT, body

    def whole_hello(self) -> bytes:
        kind, _, body = self.take()
        assert kind == HELLO, (kind, body)
        return record(HELLO, body)

    def prove_as_sender(self, key: bytes, hello: Hello | None = None) -> None:
        mine = (hello or Hello(SENDER, nonce=os.urandom(32))).whole()
        self.send(mine)
        theirs = self.whole_hello()
        self.send(record(PROOF, proof(key, SENDER, mine, theirs)))
        kind, _, body = self.take()
        assert (kind, body) == (PROOF, proof(key, RECEIVER, mine, theirs))
        self.says = Seals(key, SENDER, mine, theirs)
        self.hears = Seals(key, RECEIVER, mine, theirs)

    def prove_as_receiver(self, key: bytes, hello: Hello | None = None) -> None:
        theirs = self.whole_hello()
        mine = (hello or Hello(RECEIVER, nonce=os.urandom(32))).whole()
        self.send(mine)
        kind, _, body = self.take()
        assert (kind, body) == (PROOF, proof(key, SENDER, theirs, mine))
        self.send(record(PROOF, proof(key, RECEIVER, theirs, mine)))
        self.send(record(CREDIT, number=4))

    def last_words(self) -> str:
        """Return the text of the abort that must come."""
        while True:
            kind, _, body = self.take()
            if kind == ABORT:
                return body.decode()

    def close(self) -> None:
        self.socket.close()

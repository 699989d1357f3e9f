"""A second implementation of the records of base-station/rdma/records.h: for golden vectors, and
for peers that do things that rdsend and rdrecv never do."""

import ctypes
import hmac
import socket
import struct
from dataclasses import dataclass

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
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


def public_key(private: bytes) -> bytes:
    return X25519PrivateKey.from_private_bytes(private).public_key().public_bytes_raw()


def exchange(private: bytes, hello: bytes) -> bytes:
    """Return the value shared with the sender of a complete hello record: X25519."""
    theirs = X25519PublicKey.from_public_bytes(hello[-32:])
    return X25519PrivateKey.from_private_bytes(private).exchange(theirs)


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
    private: bytes = bytes(range(32))
    """Private key of the X25519 exchange."""

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
            public_key(self.private),
        )
        return record(HELLO, body)


def checksum(stream: bytes) -> int:
    """Return the checksum of a whole stream, as in its end record: XXH3 of 64 bits."""
    return int(_xxhash.XXH3_64bits(stream, ctypes.c_size_t(len(stream))))


@dataclass(frozen=True)
class Shared:
    """Secrets and hello records that both ends have after their hellos."""

    key: bytes
    sender: bytes
    receiver: bytes
    exchanged: bytes
    """Secret that both ends computed by X25519."""

    def derive(self, purpose: str, role: int) -> bytes:
        """Return a secret by HKDF-SHA-256 (RFC 5869), one block."""
        salt, secret = self.sender + self.receiver, self.key + self.exchanged
        info = f"rdpipe{VERSION} {purpose} {'sender' if role == SENDER else 'receiver'}\1"
        extracted = hmac.digest(salt, secret, "sha256")
        return hmac.digest(extracted, info.encode(), "sha256")

    def proof(self, role: int) -> bytes:
        return self.derive("proof", role)


@dataclass
class Seals:
    """Protection of the records of one direction: see handshake.h."""

    shared: Shared
    role: int
    """Role of the end that sends these records."""
    controls: int = 0

    def aes(self) -> bool:
        """Return true if both processors have AES instructions."""
        return bool(self.shared.sender[22] and self.shared.receiver[22])

    def cipher(self) -> AESGCM | ChaCha20Poly1305:
        secret = self.shared.derive("seal", self.role)
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

    def meet_as_sender(self, key: bytes, hello: Hello | None = None) -> Shared:
        """Send our hello and read the receiver's."""
        hello = hello or Hello(SENDER)
        mine = hello.whole()
        self.send(mine)
        theirs = self.whole_hello()
        return Shared(key, mine, theirs, exchange(hello.private, theirs))

    def meet_as_receiver(self, key: bytes, hello: Hello | None = None) -> Shared:
        """Exchange the hellos, and check the sender's proof."""
        hello = hello or Hello(RECEIVER)
        theirs = self.whole_hello()
        mine = hello.whole()
        self.send(mine)
        shared = Shared(key, theirs, mine, exchange(hello.private, theirs))
        kind, _, body = self.take()
        assert (kind, body) == (PROOF, shared.proof(SENDER))
        return shared

    def prove_as_sender(self, key: bytes, hello: Hello | None = None) -> None:
        shared = self.meet_as_sender(key, hello)
        self.send(record(PROOF, shared.proof(SENDER)))
        kind, _, body = self.take()
        assert (kind, body) == (PROOF, shared.proof(RECEIVER))
        self.says = Seals(shared, SENDER)
        self.hears = Seals(shared, RECEIVER)

    def prove_as_receiver(self, key: bytes, hello: Hello | None = None) -> None:
        shared = self.meet_as_receiver(key, hello)
        self.send(record(PROOF, shared.proof(RECEIVER)))
        self.send(record(CREDIT, number=4))

    def last_words(self) -> str:
        """Return the text of the abort that must come."""
        while True:
            kind, _, body = self.take()
            if kind == ABORT:
                return body.decode()

    def close(self) -> None:
        self.socket.close()

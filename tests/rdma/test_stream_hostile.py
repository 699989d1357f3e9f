"""Peers that are none: strangers, liars, relays, and what they must not achieve."""

import contextlib
import os
import random
import resource
import socket
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from tests.rdma import records
from tests.rdma.ends import KEY, End, Ended, Ends
from tests.rdma.records import (
    ABORT,
    BYE,
    CREDIT,
    DATA,
    DONE,
    END,
    ENDING,
    HEARTBEAT,
    HELLO,
    PROOF,
    RECEIVER,
    SENDER,
    Hello,
    Peer,
    record,
)

pytestmark = pytest.mark.e2e
Knock = Callable[[], Peer]


@pytest.fixture
def knock(ends: Ends) -> Iterator[Knock]:
    """Connects to the receiver."""
    peers = []

    def connect() -> Peer:
        peers.append(Peer(socket.create_connection(("127.0.0.1", ends.port))))
        return peers[-1]

    yield connect
    for peer in peers:
        peer.close()


def still_works(ends: Ends, receiver: End, within_s: float = 20) -> None:
    sender = ends.send("--", "echo", "the real one")
    assert sender.ended(within_s).status == 0
    ended = receiver.ended()
    assert (ended.status, ended.out) == (0, b"the real one\n")


class TestStrangers:
    def test_a_wrong_key_ends_nothing(self, ends: Ends) -> None:
        receiver = ends.receive()
        ended = ends.send("--", "echo", "bad", key=b"another key of 16+").ended(3)
        assert ended.status == 1 and "same key" in ended.err
        still_works(ends, receiver)

    def test_a_wrong_key_runs_no_producer(self, ends: Ends) -> None:
        ends.receive()
        ends.send("--", "touch", "ran", key=b"another key of 16+").ended(3)
        assert not (ends.place / "ran").exists()

    @pytest.mark.parametrize(
        "said",
        [
            b"",
            b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
            bytes(5000),
            b"\xff" * 5000,
            Hello(SENDER).whole()[:40],
            Hello(SENDER, version=7).whole(),
            Hello(RECEIVER).whole(),
            Hello(SENDER, chunk=0).whole(),
            Hello(SENDER, credits=2**31).whole(),
            record(PROOF, bytes(32)),
            record(DATA, b"x"),
            record(END, bytes(16)),
            Hello(SENDER).whole() * 2,
            Hello(SENDER).whole() + record(PROOF, bytes(32)) + record(END, bytes(16)),
            Hello(SENDER).whole() + record(BYE),
            record(ABORT, b"\x1b[2J" * 60),
        ],
    )
    def test_what_a_stranger_says_ends_nothing(
        self, ends: Ends, knock: Knock, said: bytes
    ) -> None:
        receiver = ends.receive()
        for stays in (False, True):
            stranger = knock()
            try:
                stranger.send(said)
            except OSError:
                assert len(said) > 4000
            if not stays:
                stranger.close()
        still_works(ends, receiver)

    def test_silent_strangers_are_outlived(self, ends: Ends, knock: Knock) -> None:
        """Eight have a seat, four more and the real one wait for it."""
        receiver = ends.receive()
        for _ in range(12):
            knock()
        since = time.monotonic()
        still_works(ends, receiver)
        assert time.monotonic() - since < 12

    def test_without_descriptors_it_waits_and_does_not_spin(
        self, ends: Ends, knock: Knock
    ) -> None:
        few = 9

        def limit() -> None:
            resource.setrlimit(resource.RLIMIT_NOFILE, (few, few))

        receiver = ends.receive(before=limit)
        strangers = [knock() for _ in range(few)]
        before = receiver.cpu_s()
        time.sleep(1)
        assert receiver.cpu_s() - before < 0.05
        for stranger in strangers:
            stranger.close()
        still_works(ends, receiver)

    def test_one_byte_at_a_time(self, ends: Ends, knock: Knock) -> None:
        receiver = ends.receive()
        peer = knock()
        peer.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        mine = Hello(SENDER, nonce=os.urandom(32)).whole()
        for byte in mine:
            peer.send(bytes([byte]))
        theirs = peer.whole_hello()
        mac = records.proof(KEY, SENDER, mine, theirs)
        for byte in record(PROOF, mac):
            peer.send(bytes([byte]))
        assert peer.until(PROOF)[1] == records.proof(KEY, RECEIVER, mine, theirs)
        for byte in record(DATA, b"slow") + record(END, ENDING.pack(4, 0), 1):
            peer.send(bytes([byte]))
        assert "checksum" in peer.last_words()
        assert receiver.ended().status == 1


class TestAgainstTheReceiver:
    """The peer has the key and breaks the rules."""

    def broken(self, ends: Ends, knock: Knock, said: bytes) -> Ended:
        receiver = ends.receive("out")
        peer = knock()
        peer.prove_as_sender(KEY)
        peer.send(said)
        if record(END)[:4] not in said:  # else it is still being judged
            peer.socket.shutdown(socket.SHUT_WR)
        ended = receiver.ended(3)
        assert ended.status == 1
        assert not (ends.place / "out").exists()
        return ended

    @pytest.mark.parametrize(
        ("said", "expected"),
        [
            (record(DATA, b"x", 1), "out of sequence"),
            (record(DATA, b"x") * 2, "out of sequence"),
            (record(DATA, b"x" * 65537), "length"),
            (record(DATA, b""), "length"),
            (record(DATA, b"x") + record(END, ENDING.pack(2, 0), 1), "came of the"),
            (
                record(DATA, b"x") + record(END, ENDING.pack(1, 0), 0),
                "number of records",
            ),
            (record(DATA, b"x") + record(END, ENDING.pack(1, 1), 1), "checksum"),
            (record(END, ENDING.pack(0, 0) + bytes(16)), "sealed"),
            (record(CREDIT, number=9), "not a sender's"),
            (record(DONE, bytes(16)), "not a sender's"),
            (record(HELLO, bytes(48)), "not a sender's"),
            (record(BYE), "not a sender's"),
            (b"garbage, sixteen and more", "protocol"),
            (record(DATA, b"x")[:9], "middle of a record"),
            (record(DATA, b"xyz")[:-1], "middle of a record"),
            (record(DATA, b"x"), "left without a word"),
            (b"", "left without a word"),
            (record(HEARTBEAT), "left without a word"),
            (record(ABORT, b"it hurts", 1), "it hurts"),
        ],
    )
    def test_each_rule(
        self, ends: Ends, knock: Knock, said: bytes, expected: str
    ) -> None:
        assert expected in self.broken(ends, knock, said).err

    def test_more_than_its_credits(self, ends: Ends, knock: Knock) -> None:
        fifo = ends.place / "fifo"
        os.mkfifo(fifo)
        receiver = ends.receive("fifo")  # nobody reads it: no slot comes back
        peer = knock()
        peer.prove_as_sender(KEY)
        credits_, _ = peer.until(CREDIT)
        for number in range(credits_ + 1):
            peer.send(record(DATA, b"x", number))
        assert "credits" in peer.last_words()
        assert "credits" in receiver.ended(3).err

    def test_random_bytes_after_the_proof(self, ends: Ends, knock: Knock) -> None:
        chance = random.Random(7)
        for _ in range(10):
            self.broken(ends, knock, chance.randbytes(300))


class TestAgainstTheSender:
    def serve(self, ends: Ends, act: Callable[[Peer], None], key: bytes = KEY) -> Ended:
        with socket.create_server(("127.0.0.1", 0)) as server:
            port = server.getsockname()[1]
            sender = ends.send("--", "echo", "secret", port=port)
            peer = Peer(server.accept()[0])
            act(peer)
            ended = sender.ended(13)
            peer.close()
        assert ended.status in (1, 3)
        return ended

    def test_a_listener_that_reflects(self, ends: Ends) -> None:
        def reflect(peer: Peer) -> None:
            seen = b""
            peer.socket.settimeout(2)
            while True:
                try:
                    more = peer.socket.recv(4096)
                except TimeoutError:
                    break
                if not more:
                    break
                seen += more
                peer.send(more)
            assert b"secret" not in seen

        self.serve(ends, reflect)

    def test_a_listener_that_reflects_the_proof(self, ends: Ends) -> None:
        def reflect(peer: Peer) -> None:
            peer.whole_hello()
            peer.send(Hello(RECEIVER).whole())
            kind, _, body = peer.take()
            assert kind == PROOF
            peer.send(record(PROOF, body))
            assert peer.last_words()

        assert "nothing was sent" in self.serve(ends, reflect).err

    @pytest.mark.parametrize(
        ("said", "expected"),
        [
            (record(CREDIT, number=3), "credits"),
            (record(CREDIT, number=2**63), "credits"),
            (record(DATA, b"x"), "length"),
            (record(DONE, bytes(16)), "before the end"),
            (record(END, bytes(16)), "not a receiver's"),
            (record(BYE), "not a receiver's"),
            (b"\0" * 16, "protocol"),
            (record(ABORT, b"no room", 1), "no room"),
        ],
    )
    def test_each_rule(self, ends: Ends, said: bytes, expected: str) -> None:
        def act(peer: Peer) -> None:
            peer.prove_as_receiver(KEY)
            peer.send(said)

        with socket.create_server(("127.0.0.1", 0)) as server:
            sender = ends.send("--", "sleep", "60", port=server.getsockname()[1])
            peer = Peer(server.accept()[0])
            act(peer)
            ended = sender.ended(3)
            peer.close()
        assert ended.status == 1 and expected in ended.err

    def test_another_version(self, ends: Ends) -> None:
        def act(peer: Peer) -> None:
            peer.whole_hello()
            peer.send(Hello(RECEIVER, version=7).whole())
            assert "version 1" in peer.last_words()

        assert "speaks version 7" in self.serve(ends, act).err

    def test_a_confirmation_of_another_number_of_bytes(self, ends: Ends) -> None:
        def act(peer: Peer) -> None:
            peer.prove_as_receiver(KEY)
            number, body = peer.until(END)
            peer.send(record(DONE, ENDING.pack(ENDING.unpack(body)[0] - 1, 0), number))

        assert "another number" in self.serve(ends, act).err


class Relay:
    """Between two ends: passes on what `change` makes of it."""

    def __init__(self, port: int, change: Callable[[bytes, int], bytes]) -> None:
        self.server = socket.create_server(("127.0.0.1", 0))
        self.port = self.server.getsockname()[1]
        self._to, self._change = port, change
        self._threads = [threading.Thread(target=self._serve, daemon=True)]
        self.seen = b""
        self._sockets = [self.server]
        self._threads[0].start()

    def _serve(self) -> None:
        near = self.server.accept()[0]
        far = socket.create_connection(("127.0.0.1", self._to))
        self._sockets += [near, far]
        for one, other, way in ((near, far, 0), (far, near, 1)):
            thread = threading.Thread(target=self._pass, args=(one, other, way))
            thread.daemon = True
            thread.start()
            self._threads.append(thread)

    def _pass(self, one: socket.socket, other: socket.socket, way: int) -> None:
        try:
            while data := one.recv(65536):
                self.seen += data
                other.sendall(self._change(data, way))
            other.shutdown(socket.SHUT_WR)
        except OSError:
            return

    def close(self) -> None:
        for one in self._sockets:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(5)
        for one in self._sockets:
            one.close()


class TestRelays:
    def through(
        self, ends: Ends, change: Callable[[bytes, int], bytes], *options: str
    ) -> tuple[Ended, Ended, bytes]:
        receiver = ends.receive("out", options=options)
        relay = Relay(ends.port, change)
        sender = ends.send("--", "echo", "secret", options=options, port=relay.port)
        sent = sender.ended()
        receiver.kill(15)
        received = receiver.ended()
        relay.close()
        return sent, received, relay.seen

    def test_encrypted_data_is_not_to_be_seen(self, ends: Ends) -> None:
        sent, _, seen = self.through(ends, lambda data, way: data, "--encrypt")
        assert sent.status == 0 and b"secret" not in seen and KEY not in seen
        assert (ends.place / "out").read_bytes() == b"secret\n"

    def test_a_relay_cannot_strip_encryption(self, ends: Ends) -> None:
        def strip(data: bytes, way: int) -> bytes:
            if data[2] != HELLO:
                return data
            return data[:20] + b"\0" + data[21:]  # cipher

        sent, _, seen = self.through(ends, strip, "--encrypt")
        assert sent.status == 1 and b"secret" not in seen
        assert not (ends.place / "out").exists()

    @pytest.mark.parametrize("one", [["--encrypt"], []])
    def test_encryption_on_one_side_only(self, ends: Ends, one: list[str]) -> None:
        receiver = ends.receive("out", options=one)
        other = [] if one else ["--encrypt"]
        ended = ends.send("--", "echo", "secret", options=other).ended(3)
        assert ended.status == 1 and "only one end" in ended.err
        receiver.kill(15)
        assert "only one end" in receiver.ended().err
        assert not (ends.place / "out").exists()

    @pytest.mark.parametrize("options", [(), ("--encrypt",)])
    def test_a_relay_cannot_play_a_transfer_again(
        self, ends: Ends, knock: Knock, options: tuple[str, ...]
    ) -> None:
        said = bytearray()

        def listen(data: bytes, way: int) -> bytes:
            said.extend(data if way == 0 else b"")
            return data

        assert self.through(ends, listen, *options)[0].status == 0
        (ends.place / "out").unlink()
        receiver = ends.receive("out", options=options)
        peer = knock()
        peer.send(bytes(said))
        assert "keys differ" in peer.last_words()
        assert not (ends.place / "out").exists()
        receiver.kill(15)
        assert "key is wrong" in receiver.ended().err

    def test_a_relay_cannot_strip_the_checksum(self, ends: Ends) -> None:
        def strip(data: bytes, way: int) -> bytes:
            if data[2] != HELLO:
                return data
            return data[:21] + b"\0" + data[22:]

        sent, _, seen = self.through(ends, strip)
        assert sent.status == 1 and b"secret" not in seen

    @pytest.mark.parametrize("kind", [DATA, END, DONE])
    def test_a_relay_cannot_change_what_is_sealed(self, ends: Ends, kind: int) -> None:
        def flip(data: bytes, way: int) -> bytes:
            changed = bytearray(data)
            at = 0
            while at + 16 <= len(data):
                if data[at + 2] == kind:
                    changed[at + 16] ^= 1
                at += 16 + int.from_bytes(data[at + 4 : at + 8], "little")
            return bytes(changed)

        sent, _, _ = self.through(ends, flip, "--encrypt")
        assert sent.status in (1, 3)
        assert (ends.place / "out").exists() == (kind == DONE)

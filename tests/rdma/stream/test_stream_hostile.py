"""Hostile peers: strangers and liars, and the limits of their effect."""

import random
import resource
import socket
import struct
import time
from collections.abc import Callable

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
    VERSION,
    Hello,
    Peer,
    record,
)

pytestmark = pytest.mark.e2e


def still_works(ends: Ends, receiver: End, within_s: float = 20) -> Ended:
    sender = ends.send("--", "echo", "the real one")
    assert sender.ended(within_s).status == 0
    ended = receiver.ended()
    assert (ended.status, ended.out) == (0, b"the real one\n")
    return ended


class TestStrangers:
    def test_receiver_survives_wrong_key(self, ends: Ends) -> None:
        receiver = ends.receive()
        ended = ends.send("--", "echo", "bad", key=b"another key of 16+").ended(3)
        assert ended.status == 1 and "same key" in ended.err
        still_works(ends, receiver)

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
            Hello(SENDER).whole()[:-32] + bytes(32),  # an X25519 key of small order
            record(PROOF, bytes(32)),
            record(DATA, b"x"),
            record(END, bytes(16)),
            Hello(SENDER).whole() * 2,
            Hello(SENDER).whole() + record(PROOF, bytes(32)) + record(END, bytes(16)),
            Hello(SENDER).whole() + record(BYE),
            record(ABORT, b"\x1b[2J" * 60),
        ],
    )
    def test_receiver_survives_bytes_of_strangers(self, ends: Ends, said: bytes) -> None:
        receiver = ends.receive()
        for stays in (False, True):
            stranger = ends.peer()
            try:
                stranger.send(said)
            except OSError:
                assert len(said) > 4000
            if not stays:
                stranger.close()
        still_works(ends, receiver)

    def test_silent_strangers_are_outlived(self, ends: Ends) -> None:
        """Eight strangers have a seat; four more and the real peer wait for one."""
        receiver = ends.receive()
        for _ in range(12):
            ends.peer()
        since = time.monotonic()
        said = still_works(ends, receiver).err
        assert time.monotonic() - since < 30
        assert said.count("no proof within 5 s (--timeout)") == 8

    def test_receiver_waits_for_proof_for_half_of_timeout(self, ends: Ends) -> None:
        """A slow processor, such as an emulated one, needs seconds for X25519."""
        receiver = ends.receive(options=["--timeout", "16"])
        peer, stranger = ends.peer(), ends.peer()
        time.sleep(6)
        peer.prove_as_sender(KEY)
        stranger.close()
        peer.send(record(DATA, b"late") + record(END, ENDING.pack(4, records.checksum(b"late")), 1))
        peer.until(DONE)
        peer.send(record(BYE))
        assert receiver.ended().out == b"late"

    def test_receiver_without_descriptors_waits_idle(self, ends: Ends) -> None:
        few = 9

        def limit() -> None:
            resource.setrlimit(resource.RLIMIT_NOFILE, (few, few))

        receiver = ends.receive(before=limit)
        strangers = [ends.peer() for _ in range(few)]
        before = receiver.cpu_s()
        time.sleep(1)
        assert receiver.cpu_s() - before < 0.05
        for stranger in strangers:
            stranger.close()
        still_works(ends, receiver)

    def test_peer_may_send_single_bytes(self, ends: Ends) -> None:
        receiver = ends.receive()
        peer = ends.peer()
        peer.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        hello = Hello(SENDER)
        for byte in hello.whole():
            peer.send(bytes([byte]))
        theirs = peer.whole_hello()
        exchanged = records.exchange(hello.private, theirs)
        shared = records.Shared(KEY, hello.whole(), theirs, exchanged)
        for byte in record(PROOF, shared.proof(SENDER)):
            peer.send(bytes([byte]))
        assert peer.until(PROOF)[1] == shared.proof(RECEIVER)
        for byte in record(DATA, b"slow") + record(END, ENDING.pack(4, 0), 1):
            peer.send(bytes([byte]))
        assert "checksum" in peer.last_words()
        assert receiver.ended().status == 1


class TestAgainstTheReceiver:
    """Attacks by a peer that has the key and breaks the rules."""

    def broken(self, ends: Ends, said: bytes) -> Ended:
        receiver = ends.receive("out")
        peer = ends.peer()
        peer.prove_as_sender(KEY)
        peer.send(said)
        if record(END)[:4] not in said:  # otherwise it is still being checked
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
            (record(DATA, b"x") + record(END, ENDING.pack(1, 0), 0), "number of records"),
            (record(DATA, b"x") + record(END, ENDING.pack(1, 1), 1), "checksum"),
            (record(END, ENDING.pack(0, 0) + bytes(16)), "length"),
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
    def test_broken_rule_is_reported(self, ends: Ends, said: bytes, expected: str) -> None:
        assert expected in self.broken(ends, said).err

    @pytest.mark.parametrize(("resets", "says"), [(False, ""), (True, "without a word: Conn")])
    def test_hop_that_was_ended_is_reported_by_its_own_end(
        self, ends: Ends, resets: bool, says: str
    ) -> None:
        """The network may reset a connection: then only this end knows the cause."""
        receiver = ends.receive("out", options=["--hop", "host2, hop 3"])
        peer = ends.peer()
        peer.prove_as_sender(KEY)
        if resets:
            peer.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        peer.until(CREDIT)
        peer.socket.close()
        ended = receiver.ended(3)
        assert ended.status == 1
        assert says in ended.err and bool(ended.err) is bool(says)

    def test_sender_beyond_its_credits_is_refused(self, ends: Ends) -> None:
        receiver = ends.receive("--", "sleep", "60")  # takes what its pipe holds, a MiB
        peer = ends.peer()
        peer.prove_as_sender(KEY)
        credits_, _ = peer.until(CREDIT)
        for number in range(credits_ + 20):
            peer.send(record(DATA, bytes(65536), number))
        assert "credits" in peer.last_words()
        assert "credits" in receiver.ended(3).err

    @pytest.mark.parametrize("said", [record(DATA, b"x")[:9], record(DATA, b"xyz")[:-1]])
    def test_sender_that_stops_mid_record_times_out(self, ends: Ends, said: bytes) -> None:
        """A peer stops in the middle and stays connected."""
        receiver = ends.receive("out", options=["--timeout", "1.5"])
        peer = ends.peer()
        peer.prove_as_sender(KEY)
        peer.send(said)
        ended = receiver.ended(5)
        assert ended.status == 1 and "nothing heard" in ended.err
        assert not (ends.place / "out").exists()

    def test_random_bytes_after_proof_are_refused(self, ends: Ends) -> None:
        chance = random.Random(7)
        for _ in range(10):
            self.broken(ends, chance.randbytes(300))


class TestAgainstTheSender:
    def serve(self, ends: Ends, act: Callable[[Peer], None], key: bytes = KEY) -> Ended:
        sender, peer = ends.send_to_peer("--", "echo", "secret")
        act(peer)
        ended = sender.ended(13)
        assert ended.status in (1, 3)
        return ended

    def test_reflecting_listener_gets_no_data(self, ends: Ends) -> None:
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

    def test_reflected_proof_is_refused(self, ends: Ends) -> None:
        def reflect(peer: Peer) -> None:
            peer.whole_hello()
            peer.send(Hello(RECEIVER).whole())
            kind, _, body = peer.take()
            assert kind == PROOF
            peer.send(record(PROOF, body))
            assert peer.last_words()

        assert "the keys differ" in self.serve(ends, reflect).err

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
    def test_broken_rule_is_reported(self, ends: Ends, said: bytes, expected: str) -> None:
        sender, peer = ends.send_to_peer("--", "sleep", "60")
        peer.prove_as_receiver(KEY)
        peer.send(said)
        ended = sender.ended(3)
        assert ended.status == 1 and expected in ended.err

    @pytest.mark.parametrize("version", [7, VERSION - 1])
    def test_other_protocol_version_is_reported(self, ends: Ends, version: int) -> None:
        said = f"the sender speaks version {VERSION} of the protocol"

        def act(peer: Peer) -> None:
            peer.whole_hello()
            peer.send(Hello(RECEIVER, version=version).whole())
            assert said in peer.last_words()

        assert f"{said}, the receiver version {version}: install the" in self.serve(ends, act).err

    def test_refusal_by_previous_release_is_reported_with_both_versions(self, ends: Ends) -> None:
        def act(peer: Peer) -> None:
            peer.whole_hello()
            peer.send(record(ABORT, b"this end speaks version 3 of the protocol", 1))

        said = self.serve(ends, act).err
        assert "(this one speaks version 4): this end speaks version 3" in said

    def test_end_record_has_checksum_of_sent_bytes(self, ends: Ends) -> None:
        def act(peer: Peer) -> None:
            peer.prove_as_receiver(KEY)
            _, body = peer.until(END)
            said.append(ENDING.unpack(body))
            peer.close()

        said: list[tuple[int, int]] = []
        self.serve(ends, act)
        assert said == [(7, records.checksum(b"secret\n"))]

    def test_confirmation_of_other_byte_count_is_reported(self, ends: Ends) -> None:
        def act(peer: Peer) -> None:
            peer.prove_as_receiver(KEY)
            number, body = peer.until(END)
            peer.send(record(DONE, ENDING.pack(ENDING.unpack(body)[0] - 1, 0), number))

        assert "another number" in self.serve(ends, act).err

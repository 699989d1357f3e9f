"""Default protection of the data beyond loopback."""

import os
import resource
from pathlib import Path

import pytest
from testkit.network.lan import Lan
from testkit.network.pipes import SLOWNESS

from tests.rdma.ends import KEY, End, Ends
from tests.rdma.records import (
    BYE,
    CREDIT,
    DATA,
    DONE,
    ENCRYPTED,
    END,
    ENDING,
    SENDER,
    Hello,
    record,
)
from tests.rdma.stream.test_stream_relays import Relay

pytestmark = pytest.mark.e2e
FORGED = b"forged\n"
HALF_GIB = 1 << 29


def of(kind: int, data: bytes) -> bytes:
    """Return the first record of that type, or no bytes."""
    at = 0
    while at + 16 <= len(data):
        end = at + 16 + int.from_bytes(data[at + 4 : at + 8], "little")
        if data[at + 2] == kind:
            return data[at:end]
        at = end
    return b""


class TestByHand:
    """A sender operated by the test, with and without a processor for AES."""

    @pytest.mark.parametrize("aes", [0, 1])
    def test_both_ciphers(self, ends: Ends, aes: int) -> None:
        receiver = ends.receive("out", options=["-v"])
        peer = ends.peer()
        hello = Hello(SENDER, protection=ENCRYPTED, aes=aes)
        peer.prove_as_sender(KEY, hello)
        kind, number, body = peer.take()
        assert (kind, peer.hears.open(kind, number, body)) == (CREDIT, b"")
        peer.send(peer.says.seal(DATA, b"by hand", 0))
        peer.send(peer.says.seal(END, ENDING.pack(7, 0), 1))
        while kind != DONE:
            kind, number, body = peer.take()
            opened = peer.hears.open(kind, number, body)
        assert (number, opened) == (1, ENDING.pack(7, 0))
        peer.send(peer.says.seal(BYE))
        ended = receiver.ended()
        assert ended.status == 0 and (ends.place / "out").read_bytes() == b"by hand"
        assert ("AES-256-GCM" if peer.says.aes() else "ChaCha20-Poly1305") in ended.err

    @pytest.mark.parametrize("kind", [DATA, END, BYE])
    def test_record_without_tag_is_refused(self, ends: Ends, kind: int) -> None:
        receiver = ends.receive("out", options=["--encrypt"])
        peer = ends.peer()
        peer.prove_as_sender(KEY)
        peer.send(record(kind, b"" if kind == BYE else bytes(16)))
        ended = receiver.ended(4)
        assert ended.status == 1 and "was changed on its way" in ended.err
        assert not (ends.place / "out").exists()

    @pytest.mark.skipif(SLOWNESS > 1, reason="a sanitizer needs more than the limit")
    @pytest.mark.parametrize("limited", ["rdsend", "rdrecv"])
    def test_missing_buffer_memory_is_reported_to_both_ends(self, ends: Ends, limited: str) -> None:
        """The buffers take a GiB, and the process may have half of that."""
        options = ["--plain", "--chunk", "16M", "--credits", "64"]

        def limit() -> None:
            resource.setrlimit(resource.RLIMIT_AS, (HALF_GIB, HALF_GIB))

        before = {limited: limit}
        receiver = ends.receive("out", options=options, before=before.get("rdrecv"))
        sender = ends.send("/dev/zero", options=options, before=before.get("rdsend"))
        ended = sender.ended(), receiver.ended()
        assert [one.status for one in ended] == [1, 1]
        assert all("no memory for buffers" in one.err for one in ended), ended


@pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root")
class TestBeyondLoopback:
    def far(self, ends: Ends, lan: Lan, port: int, *options: str) -> End:
        """Start an rdsend on the far host."""
        secret = ["--", "echo", "secret"]
        return ends.send(*secret, options=options, host=lan.near, port=port, enter=lan.enter)

    def forge(self, ends: Ends) -> bytes:
        """Return the end record that declares FORGED to be right."""
        receiver = ends.receive("/dev/null")
        relay = Relay(ends.port, lambda data, way: data)
        sent = ends.send("--", "echo", "forged", port=relay.port).ended()
        assert (sent.status, receiver.ended().status) == (0, 0)
        relay.close()
        end = relay.seen.index(bytes([0x44, 0x52])[::-1] + bytes([END]))
        return relay.seen[end : end + 32]

    @pytest.mark.parametrize("options", [[], ["--plain"]])
    def test_forged_data_with_mended_checksum_passes_only_plain(
        self, ends: Ends, lan: Lan, options: list[str]
    ) -> None:
        """A man in the middle passes the proofs on. He can change plain data."""
        end = self.forge(ends)

        def change(data: bytes, way: int) -> bytes:
            was, last = of(DATA, data), of(END, data)
            data = data.replace(was[16:23], FORGED) if was else data
            return data.replace(last, end + last[32:]) if last else data

        receiver = ends.receive("out", options=options)
        relay = Relay(ends.port, change, lan.near)
        sent = self.far(ends, lan, relay.port, *options).ended()
        receiver.kill(15)
        received = receiver.ended()
        relay.close()
        out: Path = ends.place / "out"
        assert out.exists() == (options == ["--plain"]), (sent, received)
        assert (sent.status == 0) == (options == ["--plain"])
        assert not out.exists() or out.read_bytes() == FORGED

    def test_default_transfer_beyond_loopback_is_encrypted(self, ends: Ends, lan: Lan) -> None:
        receiver = ends.receive("out", options=["-v"])
        relay = Relay(ends.port, lambda data, way: data, lan.near)
        sent = self.far(ends, lan, relay.port, "-v").ended()
        received = receiver.ended()
        relay.close()
        assert (sent.status, received.status) == (0, 0)
        assert "encrypted by" in sent.err and "encrypted by" in received.err
        assert b"secret" not in relay.seen and KEY not in relay.seen

    @pytest.mark.parametrize("times", [1, 2])
    def test_plain_into_foreign_network_must_be_given_twice(
        self, ends: Ends, lan: Lan, times: int
    ) -> None:
        """Plain data is refused unless the option is given twice. 203.0.113.0/24 is assigned to
        no network."""
        address = "203.0.113.1/32"
        add = ["sh", "-c", f"ip link set lo up; ip addr add {address} dev lo"]
        End([*lan.enter, *add], ends.place).ended()
        plain = ["--plain"] * times
        receiver = ends.receive(options=plain, enter=lan.enter)
        words = [*plain, address[:-3], str(ends.port), "--", "echo", "x"]
        ended = ends.start("rdsend", *words, enter=lan.enter).ended()
        if times == 1:
            assert ended.status == 2 and "leave --plain out, or give it" in ended.err
            receiver.kill(15)
            assert receiver.ended().out == b""
        else:
            assert ended.status == 0 and receiver.ended().out == b"x\n"

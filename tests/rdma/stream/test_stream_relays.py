"""A man in the middle who changes the messages of the two ends, or replays them."""

import contextlib
import socket
import threading
from collections.abc import Callable

import pytest

from tests.rdma.ends import KEY, Ended, Ends
from tests.rdma.records import CREDIT, DATA, DONE, END, HEADER, HELLO, PROOF, SENDER, Shared

pytestmark = pytest.mark.e2e


def whole(data: bytes) -> int:
    """Return the end of the last complete record."""
    at = 0
    while at + HEADER.size <= len(data):
        end = at + HEADER.size + HEADER.unpack_from(data, at)[3]
        if end > len(data):
            break
        at = end
    return at


class Relay:
    """Relay between two ends that passes on the result of `change` for complete records."""

    def __init__(
        self, port: int, change: Callable[[bytes, int], bytes], host: str = "127.0.0.1"
    ) -> None:
        self.server = socket.create_server((host, 0))
        self._host = host
        self.port = self.server.getsockname()[1]
        self._to, self._change = port, change
        self._threads = [threading.Thread(target=self._serve, daemon=True)]
        self.seen = b""
        self._sockets = [self.server]
        self._threads[0].start()

    def _serve(self) -> None:
        near = self.server.accept()[0]
        far = socket.create_connection((self._host, self._to))
        self._sockets += [near, far]
        for one, other, way in ((near, far, 0), (far, near, 1)):
            thread = threading.Thread(target=self._pass, args=(one, other, way))
            thread.daemon = True
            thread.start()
            self._threads.append(thread)

    def _pass(self, one: socket.socket, other: socket.socket, way: int) -> None:
        data = b""
        try:
            while got := one.recv(65536):
                self.seen += got
                data += got
                end = whole(data)
                other.sendall(self._change(data[:end], way) if end else b"")
                data = data[end:]
            other.sendall(data)
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

    def test_key_is_not_visible_to_relay(self, ends: Ends) -> None:
        sent, _, seen = self.through(ends, lambda data, way: data)
        assert sent.status == 0 and b"secret" in seen and KEY not in seen

    def test_recorded_handshake_does_not_confirm_a_guessed_key(self, ends: Ends) -> None:
        """The hellos and a guess are not enough: each end has a fresh X25519 key."""
        seen: list[bytes] = []

        def listen(data: bytes, way: int) -> bytes:
            seen.append(data)
            return data

        for _ in range(2):
            assert self.through(ends, listen)[0].status == 0
        hellos = [data for data in seen if data[2] == HELLO]
        assert len({hello[-32:] for hello in hellos}) == 4
        proof = next(data[HEADER.size :] for data in seen if data[2] == PROOF)
        assert Shared(KEY, hellos[0], hellos[1], b"").proof(SENDER) != proof
        assert Shared(KEY, hellos[0], hellos[1], bytes(32)).proof(SENDER) != proof

    def test_encrypted_data_is_not_visible_to_relay(self, ends: Ends) -> None:
        sent, _, seen = self.through(ends, lambda data, way: data, "--encrypt")
        assert sent.status == 0 and b"secret" not in seen and KEY not in seen
        assert (ends.place / "out").read_bytes() == b"secret\n"

    def test_relay_cannot_strip_encryption(self, ends: Ends) -> None:
        def strip(data: bytes, way: int) -> bytes:
            if data[2] != HELLO:
                return data
            return data[:20] + b"\0" + data[21:]  # cipher

        sent, _, seen = self.through(ends, strip, "--encrypt")
        assert sent.status == 1 and b"secret" not in seen
        assert not (ends.place / "out").exists()

    @pytest.mark.parametrize("one", [["--encrypt"], ["--plain"]])
    def test_encrypt_of_either_end_overrides_plain(self, ends: Ends, one: list[str]) -> None:
        (other,) = {"--encrypt", "--plain"} - set(one)
        receiver = ends.receive("out", options=one)
        relay = Relay(ends.port, lambda data, way: data)
        sender = ends.send("--", "echo", "secret", options=[other], port=relay.port)
        assert (sender.ended().status, receiver.ended().status) == (0, 0)
        relay.close()
        assert b"secret" not in relay.seen

    @pytest.mark.parametrize("options", [(), ("--encrypt",)])
    def test_relay_cannot_replay_transfer(self, ends: Ends, options: tuple[str, ...]) -> None:
        said = bytearray()

        def listen(data: bytes, way: int) -> bytes:
            said.extend(data if way == 0 else b"")
            return data

        assert self.through(ends, listen, *options)[0].status == 0
        (ends.place / "out").unlink()
        receiver = ends.receive("out", options=options)
        peer = ends.peer()
        peer.send(bytes(said))
        assert "keys differ" in peer.last_words()
        assert not (ends.place / "out").exists()
        receiver.kill(15)
        assert "keys differ" in receiver.ended().err

    def test_relay_cannot_strip_checksum(self, ends: Ends) -> None:
        def strip(data: bytes, way: int) -> bytes:
            if data[2] != HELLO:
                return data
            return data[:21] + b"\0" + data[22:]

        sent, _, seen = self.through(ends, strip)
        assert sent.status == 1 and b"secret" not in seen

    @pytest.mark.parametrize("kind", [DATA, END, DONE, CREDIT])
    def test_relay_cannot_change_sealed_record(self, ends: Ends, kind: int) -> None:
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

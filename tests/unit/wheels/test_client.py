"""Client of the wheels' socket in `run`, against a server that may be absent or hang."""

import asyncio
import contextlib
import os
import socket
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
from testkit.profiles import profile_of

from fpvcar.drive.control import Control
from fpvcar.runtime.texts import SAYS, Text
from fpvcar.wheels.client import (
    HUNG_NS,
    LEASE_NS,
    MUTE_AGAIN_NS,
    MUTE_NS,
    REST_LEASE_NS,
    Rescue,
    WheelsClient,
)
from fpvcar.wheels.controller import AHEAD_MAX_NS
from fpvcar.wire.wheels import (
    Answer,
    EscPulses,
    Setpoint,
    Status,
    WheelsReason,
    pack_answer,
    pack_why,
    parse_setpoint,
)

SOON_S = 20.0


class Wheels:
    """Server end of the socket, played by hand."""

    def __init__(self, path: Path) -> None:
        path.unlink(missing_ok=True)
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._listener.bind(str(path))
        self._listener.listen()
        self._listener.setblocking(False)
        self._peers: list[socket.socket] = []

    async def accept(self) -> socket.socket:
        loop = asyncio.get_running_loop()
        peer, _ = await asyncio.wait_for(loop.sock_accept(self._listener), SOON_S)
        self._peers.append(peer)
        return peer

    def answer(self, seq: int, status: Status = Status.APPLIED) -> None:
        answer = Answer(status, WheelsReason.NONE, seq, 1)
        self._peers[-1].send(pack_answer(answer))

    def close(self) -> None:
        self._listener.close()
        for peer in self._peers:
            peer.close()


class Observed(Control, Rescue):
    """Events of the client, and a way to wait for them."""

    def __init__(self) -> None:
        self.answers: list[Answer] = []
        self.states: list[str] = []
        self.whys: list[Text | None] = []
        self.asked = 0
        self.mute: list[int] = []
        self._changed = asyncio.Event()

    def wheels_answer(self, answer: Answer) -> None:
        self.answers.append(answer)
        self._changed.set()

    def wheels_state(self, state: str) -> None:
        self.states.append(state)
        self._changed.set()

    def wheels_fault(self, text: Text | None) -> None:
        self.whys.append(text)
        self._changed.set()

    def call(self, pid: int) -> None:
        self.asked += 1
        self.mute.append(pid)

    async def until(self, holds: Callable[[], bool]) -> None:
        async with asyncio.timeout(SOON_S):
            while not holds():
                self._changed.clear()
                await self._changed.wait()


@pytest.fixture
async def observed() -> Observed:
    return Observed()


@pytest.fixture
async def client(tmp_path: Path, observed: Observed) -> AsyncIterator[WheelsClient]:
    client = WheelsClient(tmp_path / "wheels.sock", observed, profile_of("rc-esc"))
    jobs = [asyncio.create_task(client.run(observed)), asyncio.create_task(_hear(client))]
    yield client
    for job in jobs:
        job.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await job


async def _hear(client: WheelsClient) -> None:
    """Read at each tick, in the way of the gate's owner."""
    while True:
        client.read_answers()
        await asyncio.sleep(0.001)


@pytest.fixture
async def wheels(tmp_path: Path) -> AsyncIterator[Wheels]:
    wheels = Wheels(tmp_path / "wheels.sock")
    yield wheels
    wheels.close()


async def test_send_to_absent_wheels_fails(client: WheelsClient, observed: Observed) -> None:
    await asyncio.sleep(0)
    assert not client.send((0.0, 0.0), 1)
    assert client.state == "absent" and observed.states == []


async def test_setpoints_have_the_calibrated_pulses_of_an_esc(
    client: WheelsClient, wheels: Wheels
) -> None:
    peer = await wheels.accept()
    for neutral_us, pulses in ((1520.0, EscPulses(1520.0, 40.0)), (1500.0, None)):
        client.tune(profile_of("rc-esc", f"motors.drive.neutral_us = {neutral_us}"))
        assert client.send((0.0, 0.0), time.monotonic_ns())
        assert parse_setpoint(peer.recv(64)).pulses == pulses


async def test_answer_to_a_setpoint_makes_the_state_ok(
    client: WheelsClient, wheels: Wheels, observed: Observed
) -> None:
    peer = await wheels.accept()
    now_ns = time.monotonic_ns()
    assert client.send((0.25, -0.5), now_ns)
    setpoint = parse_setpoint(peer.recv(64))
    assert setpoint == Setpoint(1, now_ns + LEASE_NS, (0.25, -0.5))
    assert client.state == "absent", "not before it has answered"
    wheels.answer(1)
    await observed.until(lambda: bool(observed.answers))
    assert observed.answers[0].seq == 1 and observed.states == ["ok"]


async def test_answers_behind_the_newest_are_heard_next(
    client: WheelsClient, wheels: Wheels, observed: Observed
) -> None:
    """The wheels stop by themselves right after an answer, and once before one."""
    await wheels.accept()
    for _ in range(2):
        client.send((0.25, 0.0), time.monotonic_ns())
    wheels.answer(1)
    wheels.answer(2)
    wheels.answer(2, Status.STOPPED)
    client.read_answers()
    assert [one.seq for one in observed.answers] == [1, 2]
    client.send((0.25, 0.0), time.monotonic_ns())
    wheels.answer(3, Status.REFUSED)
    client.read_answers()
    assert [one.status for one in observed.answers[2:]] == [Status.STOPPED, Status.REFUSED]
    client.send((0.25, 0.0), time.monotonic_ns())
    wheels.answer(4)
    wheels.answer(4, Status.STOPPED)
    client.read_answers(True)
    assert [one.status for one in observed.answers[4:]] == [Status.APPLIED, Status.STOPPED]


async def test_car_at_rest_has_a_longer_lease(client: WheelsClient, wheels: Wheels) -> None:
    peer = await wheels.accept()
    assert LEASE_NS < REST_LEASE_NS < AHEAD_MAX_NS
    for steer, lease_ns in ((0.0, REST_LEASE_NS), (-0.5, LEASE_NS)):
        client.send((0.0, steer), 0)
        assert parse_setpoint(peer.recv(64)).deadline_ns == lease_ns


async def test_reason_for_missing_pins_is_passed_on(
    client: WheelsClient, wheels: Wheels, observed: Observed
) -> None:
    peer = await wheels.accept()
    fault = SAYS(place="I2C bus 1", reason="enable I2C")
    for text in (fault, None):
        peer.send(pack_why(text))
    await observed.until(lambda: observed.whys == [fault, None])
    assert client.state == "absent" and observed.answers == []


async def test_unanswered_is_hung_until_answered(
    client: WheelsClient, wheels: Wheels, observed: Observed
) -> None:
    await wheels.accept()
    assert client.send((0.0, 0.0), 0)
    assert client.send((0.0, 0.0), HUNG_NS)
    assert observed.states == []
    assert client.send((0.0, 0.0), HUNG_NS + 1)
    assert observed.states == ["hung"]
    wheels.answer(1)
    await observed.until(lambda: client.state == "ok")
    assert observed.states == ["hung", "ok"]


async def test_mute_wheels_make_the_client_ask_the_helper(
    client: WheelsClient, wheels: Wheels, observed: Observed
) -> None:
    """Moving or not, the client cannot determine the state of the pins."""
    await wheels.accept()
    for now_ns in (0, HUNG_NS + 1, MUTE_NS - 1):
        client.send((0.0, 0.0), now_ns)
    assert observed.asked == 0
    client.send((0.0, 0.0), MUTE_NS)
    client.send((0.0, 0.0), MUTE_NS + MUTE_AGAIN_NS - 1)
    assert observed.asked == 1
    client.send((0.0, 0.0), MUTE_NS + MUTE_AGAIN_NS)
    assert observed.asked == 2, "the first one may hang"
    wheels.answer(1)
    await observed.until(lambda: client.state == "ok")
    client.send((0.0, 0.0), 10 * MUTE_AGAIN_NS)
    assert observed.asked == 2


@pytest.mark.parametrize(
    ("duties", "stopped", "asked"),
    [((0.3, 0.0), False, 1), ((0.3, 0.0), True, 0), ((0.0, 0.0), False, 0)],
)
async def test_helper_is_asked_only_if_wheels_vanish_while_driving(
    client: WheelsClient,
    wheels: Wheels,
    observed: Observed,
    duties: tuple[float, float],
    stopped: bool,
    asked: int,
) -> None:
    """An earlier report that they had stopped needs no helper."""
    peer = await wheels.accept()
    client.send((0.3, 0.0), 0)
    wheels.answer(1)
    client.send(duties, 1)
    wheels.answer(2, Status.STOPPED if stopped else Status.APPLIED)
    await observed.until(lambda: len(observed.answers) == 2)
    peer.close()
    wheels.close()
    await observed.until(lambda: client.state == "absent")
    for now_ns in (2, MUTE_NS + 1):
        assert not client.send((0.0, 0.0), now_ns)
    assert observed.asked == 0
    client.send((0.0, 0.0), MUTE_NS + 2)
    assert observed.asked == asked
    assert observed.mute == [os.getpid()] * asked, "the process that listened"


async def test_silence_counts_from_the_first_failed_send(
    client: WheelsClient, wheels: Wheels, observed: Observed
) -> None:
    """Each send reads first; the loop need not turn in between."""
    await wheels.accept()
    client.send((0.3, 0.0), 0)
    wheels.answer(1)
    await observed.until(lambda: len(observed.answers) == 1)
    wheels.close()
    client.read_answers()
    for now_ns in (2, MUTE_NS + 1):
        assert not client.send((0.0, 0.0), now_ns)
    assert observed.asked == 0
    client.send((0.0, 0.0), MUTE_NS + 2)
    assert observed.asked == 1


async def test_late_own_loop_is_not_a_hang_of_the_wheels(
    client: WheelsClient, wheels: Wheels, observed: Observed
) -> None:
    await wheels.accept()
    client.send((0.0, 0.0), 0)
    wheels.answer(1)  # the answer is waiting, but this loop has not run since
    client.send((0.0, 0.0), 10 * HUNG_NS)
    assert "hung" not in observed.states
    await observed.until(lambda: client.state == "ok")


async def test_full_socket_is_hung(client: WheelsClient, wheels: Wheels) -> None:
    await wheels.accept()
    sent = 0
    while client.send((0.0, 0.0), 0):
        sent += 1
        assert sent < 100_000
    assert client.state == "hung"


async def test_client_reconnects_after_the_socket_was_closed(
    client: WheelsClient, wheels: Wheels, observed: Observed
) -> None:
    peer = await wheels.accept()
    wheels.answer(0, Status.STOPPED)
    await observed.until(lambda: client.state == "ok")
    peer.close()
    await observed.until(lambda: client.state == "absent")
    await wheels.accept()
    wheels.answer(0, Status.STOPPED)
    await observed.until(lambda: client.state == "ok")
    assert observed.states == ["ok", "absent", "ok"]


async def test_nonsense_from_the_wheels_closes_the_connection(
    client: WheelsClient, wheels: Wheels, observed: Observed
) -> None:
    peer = await wheels.accept()
    peer.send(b"nonsense")
    await wheels.accept()
    assert observed.answers == []

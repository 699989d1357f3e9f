"""Socket /ws/intercom: a real server with TLS, and an emulated sound card."""

import asyncio
import ctypes
import socket
import struct
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import pytest
from testkit import sound_card
from testkit.car import Car, Socket, closing
from testkit.hub import PROFILE, Visitor, until
from testkit.sound_card import TONE_HZ, SoundCard, frequency_hz, now_us

from fpvcar import config
from fpvcar.drive.saved import SavedSettings
from fpvcar.http.certificates import server_context
from fpvcar.http.text_session import CLOSE_S
from fpvcar.intercom import socket as intercom_socket
from fpvcar.intercom.socket import LATE_S, TALK_S, SpeakerQueue, feature
from fpvcar.intercom.sound import LOOK_S
from fpvcar.runtime.child_process import KILL_S, TERM_S
from fpvcar.wire import up
from fpvcar.wire.intercom import SOUND_BYTES, SOUND_S, Sound, pack_sound, parse_sound
from tests.unit.seat.test_redundant_link import reason

SOUND = config.Intercom(speaker="default", microphone="default")
SPOKEN = bytes(SOUND_BYTES)
SLACK_S = 10.0
"""Time that a busy machine may add."""
SO_ATTACH_FILTER, SO_DETACH_FILTER, BPF_RETURN = 26, 27, 6  # asm-generic/socket.h, bpf_common.h


@pytest.fixture
def card(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SoundCard:
    card = SoundCard(tmp_path / "card")
    monkeypatch.setenv("PATH", card.path)
    return card


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tls")


class Talking(Car):
    """Car with an intercom, and the settings that it saved."""

    drive: Socket

    def __init__(self, on: bool) -> None:
        profile = msgspec.structs.replace(PROFILE, intercom=SOUND)
        super().__init__(profile, feature=feature, before=SavedSettings(intercom=on))
        self.saved = self.saver.intercom
        self.intercom: Any = getattr(self.features[0].state, "__self__", None)

    async def call(self, name: str = "driver") -> Socket:
        return await self.opens("/ws/intercom", name)

    async def answered_s(self, number: int) -> float:
        """Return the time that the car takes to answer a ping."""
        sent_s = time.monotonic()
        await self.drive.send_json({"kind": "ping", "seq": number, "t": 0.0})
        while (await self.drive.receive_json(timeout=20))["kind"] != "pong":
            pass
        return time.monotonic() - sent_s

    async def listen(self) -> Socket:
        """Open the intercom of the driver, and receive the first sound."""
        ws = await self.call()
        await ws.send_str("listen")
        await ws.receive_bytes(timeout=20)
        return ws


@asynccontextmanager
async def a_car(certificates: Path, on: bool = True, tls: bool = True) -> AsyncIterator[Talking]:
    car = Talking(on)
    async with car.serve(tls=server_context(certificates, ["localhost"]) if tls else None):
        yield car
    car.visitor("Mum", code="grownups").say(up.SetIntercom(False))
    await asyncio.sleep(2 * LOOK_S)


@pytest.fixture
async def car(certificates: Path, card: SoundCard) -> AsyncIterator[Talking]:
    """Serve a car with a sound card, whose driver is at the wheel."""
    async with a_car(certificates) as car:
        car.drive, _ = await car.sits_down()
        yield car


def switched_on(visitor: Visitor) -> bool:
    """Return the intercom's state on a page."""
    return bool(visitor.state.parts["intercom"].on)


async def speak(ws: Socket, frames: int, samples: bytes = SPOKEN) -> None:
    """Send sound in its own time."""
    for _ in range(frames):
        await ws.send_bytes(pack_sound(Sound(now_us(), samples)))
        await asyncio.sleep(SOUND_S)


def test_queue_drops_late_sound_and_sound_too_far_ahead() -> None:
    queue, now_s = SpeakerQueue(), 100.0

    def admits(age_s: float) -> bool:
        return queue.admits(Sound(round((now_s - age_s) * 1e6), SPOKEN), now_s)

    assert not admits(LATE_S + 0.01)
    assert 4 <= [admits(0.1) for _ in range(9)].count(True) <= LATE_S / SOUND_S
    now_s += SOUND_S
    assert admits(0.0) and not admits(0.0)


async def test_plain_http_is_refused_with_a_key(certificates: Path) -> None:
    async with a_car(certificates, tls=False) as car:
        await car.sits_down()
        answer = await car.client.get("/ws/intercom")
        assert answer.status == 403
        assert answer.headers["X-Refusal"] == "key=intercom_https"
        assert "needs https" in await answer.text()


async def test_intercom_is_off_until_a_grown_up_switches_it_on(
    certificates: Path, card: SoundCard
) -> None:
    async with a_car(certificates, on=False) as car:
        await car.sits_down()
        ws = await car.call()
        await ws.send_str("listen")
        assert await closing(ws) == ("a grown-up switched it off", "intercom_off")
        assert not card.started()
        parent = car.visitor("Mum", code="grownups")
        parent.say(up.SetIntercom(True))
        assert switched_on(parent) and car.saved == [True]


async def test_intercom_without_its_programs_names_them(
    certificates: Path, card: SoundCard, monkeypatch: pytest.MonkeyPatch
) -> None:
    card.remove("arecord")
    async with a_car(certificates, on=False) as car:
        monkeypatch.setenv("PATH", str(card.folder))
        parent = car.visitor("Mum", code="grownups")
        parent.say(up.SetIntercom(True))
        error = parent.errors()[-1]
        assert error.code == "no_sound" and error.value == "arecord"
        assert "apt install alsa-utils" in error.next
        assert not switched_on(parent) and not car.saved


async def test_only_the_page_at_the_wheel_talks_and_listens(
    certificates: Path, card: SoundCard
) -> None:
    async with a_car(certificates) as car:
        assert await reason(await car.call("eve")) == "only the driver can use it"
        drive, _ = await car.sits_down()
        await car.joins("eve", "123456")
        assert await reason(await car.call("eve")) == "only the driver can use it"
        ws = await car.listen()
        await drive.send_json({"kind": "release"})
        await until(lambda: not car.hub.sessions.seat.holds("client-driver"))
        await ws.send_str("listen")
        assert await reason(ws) == "only the driver can use it"
        await until(lambda: not card.running())


async def test_speech_is_played_and_ends_with_the_link(car: Talking, card: SoundCard) -> None:
    """The speaker is silent 0.3 s after the last frame, and its program is gone."""
    assert TALK_S + LOOK_S <= 0.3
    ws = await car.call()
    await speak(ws, 10, b"\x7e" * SOUND_BYTES)
    assert len(card.running()) == 1
    lost_s = time.monotonic()
    await until(lambda: not card.running())
    assert time.monotonic() - lost_s < TALK_S + LOOK_S + SLACK_S
    assert 5 * SOUND_BYTES <= len(card.played()) <= 10 * SOUND_BYTES
    assert set(card.played()) == {0x7E}
    assert not ws.closed
    await speak(ws, 3)
    await until(lambda: card.started() == 2)


async def test_driver_hears_the_car_until_it_stops_listening(car: Talking, card: SoundCard) -> None:
    ws = await car.call()
    await ws.send_str("listen")
    sounds = [parse_sound(await ws.receive_bytes(timeout=20)) for _ in range(10)]
    heard = b"".join(sound.samples for sound in sounds)
    assert frequency_hz(heard) == pytest.approx(TONE_HZ, rel=0.05)
    assert all(0 <= now_us() - sound.clock_us < 5e6 for sound in sounds)
    await ws.close()
    await until(lambda: not card.running())


async def test_microphone_without_a_renewed_request_is_closed(
    car: Talking, card: SoundCard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(car.intercom._microphone, "_lease_s", 0.3)
    ws = await car.listen()
    await until(lambda: not card.running())
    assert not ws.closed


async def test_microphone_pauses_while_the_driver_talks(car: Talking) -> None:
    ws = await car.listen()
    begin_us = now_us()
    await speak(ws, 10)
    end_us = now_us()
    stamps_us = [begin_us]
    while stamps_us[-1] < end_us:
        stamps_us.append(parse_sound(await ws.receive_bytes(timeout=20)).clock_us)
    meanwhile = [stamp for stamp in stamps_us if begin_us + 100_000 < stamp < end_us]
    assert len(meanwhile) <= 2, "instead of 8"


async def test_switching_off_ends_both_programs_at_once(car: Talking, card: SoundCard) -> None:
    ws = await car.call()
    await ws.send_str("listen")
    await speak(ws, 3)
    await until(lambda: len(card.running()) == 2)
    car.visitor("Mum", code="grownups").say(up.SetIntercom(False))
    await until(lambda: not card.running())
    await ws.send_str("listen")
    assert await reason(ws) == "a grown-up switched it off"


@pytest.mark.slow
async def test_hung_speaker_is_killed_and_nothing_waits_for_it(
    car: Talking, card: SoundCard
) -> None:
    card.install(aplay=sound_card.HUNG)
    ws = await car.call()
    slowest_s = 0.0
    for number in range(60):
        with suppress(aiohttp.ClientConnectionResetError):
            await ws.send_bytes(pack_sound(Sound(now_us(), SPOKEN)))
        slowest_s = max(slowest_s, await car.answered_s(number))
        if car.intercom._link is None:
            break
        await asyncio.sleep(SOUND_S)
    assert slowest_s < 3.0
    assert await reason(ws) == "aplay plays nothing"
    await until(lambda: not card.running(), TERM_S + KILL_S + 2 * SLACK_S)


async def test_broken_sound_card_is_reported(car: Talking, card: SoundCard) -> None:
    card.install(aplay=sound_card.BROKEN)
    ws = await car.call()
    await speak(ws, 1)
    await until(lambda: car.intercom._fault)
    await speak(ws, 1)
    assert await reason(ws) == "aplay: audio open error: Device or resource busy"


@contextmanager
def cut(*ends: Any) -> Iterator[None]:
    """Drop all packets that arrive at these sockets, as a cut network does."""
    drop_all = struct.pack("HBBI", BPF_RETURN, 0, 0, 0)
    kept = ctypes.create_string_buffer(drop_all)
    for end in ends:
        program = struct.pack("HL", 1, ctypes.addressof(kept))
        end.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, program)
    try:
        yield
    finally:
        for end in ends:
            with suppress(OSError):  # closed by now
                end.setsockopt(socket.SOL_SOCKET, SO_DETACH_FILTER, 0)


@pytest.mark.slow
async def test_lost_network_ends_both_programs_and_frees_the_intercom(
    car: Talking, card: SoundCard, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The car gets no packet, and no end of the connection."""
    silence_s, lease_s = 1.0, 0.5
    monkeypatch.setattr(intercom_socket, "SILENCE_S", silence_s)
    monkeypatch.setattr(car.intercom._microphone, "_lease_s", lease_s)
    ws = await car.call()
    await ws.send_str("listen")
    await speak(ws, 3)
    assert len(card.running()) == 2
    link = car.intercom._link
    assert link is not None
    with cut(ws.get_extra_info("socket"), link._socket):
        lost_s = time.monotonic()
        await speak(ws, 3)
        await until(lambda: not card.running())
        assert time.monotonic() - lost_s < 3 * SOUND_S + lease_s + LOOK_S + SLACK_S
        await until(lambda: car.intercom._link is None)
        assert time.monotonic() - lost_s < 3 * SOUND_S + silence_s + CLOSE_S + SLACK_S
        await car.listen()
        connection = ws._response.connection
        assert connection and connection.transport
        connection.transport.abort()


async def test_bad_frames_close_the_intercom(car: Talking, card: SoundCard) -> None:
    for frame in (b"", bytes(SOUND_BYTES), bytes(4000), "sing"):
        ws = await car.call()
        await (ws.send_str(frame) if isinstance(frame, str) else ws.send_bytes(frame))
        assert await reason(ws)
    assert not card.started()


async def test_newest_socket_of_the_page_replaces_the_older_one(car: Talking) -> None:
    first, second = await car.call(), await car.listen()
    await first.send_str("listen")
    assert await reason(first) == "it is open in another tab"
    await second.receive_bytes(timeout=20)


async def test_flood_of_sound_does_not_delay_commands(car: Talking, card: SoundCard) -> None:
    ws = await car.call()
    flood = asyncio.create_task(_flood(ws))
    slowest_s = 0.0
    for number in range(25):
        slowest_s = max(slowest_s, await car.answered_s(number))
    await car.drive.send_json({"kind": "estop"})
    await until(lambda: car.control.decision.latches.hold)
    flood.cancel()
    assert slowest_s < 3.0
    assert len(card.played()) < 2 * 16000 * (LATE_S + 25 * slowest_s) + 10 * SOUND_BYTES


async def _flood(ws: Socket) -> None:
    while True:
        for _ in range(50):
            await ws.send_bytes(pack_sound(Sound(now_us(), SPOKEN)))
        await asyncio.sleep(0.02)


async def test_car_with_a_speaker_only_says_so(car: Talking) -> None:
    car.intercom._microphone = None
    ws = await car.call()
    await ws.send_str("listen")
    assert await reason(ws) == "the car has no microphone"


async def test_silent_page_is_disconnected(car: Talking, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(intercom_socket, "SILENCE_S", 0.1)
    assert await reason(await car.call()) == "no message for 0 s"


def test_car_without_an_intercom_loads_none_of_it() -> None:
    program = (
        "import sys, fpvcar.app; print([m for m in sys.modules if 'intercom' in m or 'sound' in m])"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert result.stdout == "[]\n", result.stderr

"""/ws/intercom: the driver's voice to the car's speaker, the car's microphone to the driver.

    page -> parse_sound -> SpeakerQueue.admits -> aplay
    arecord -> Link, if the link has room -> page

Only the page at the wheel may open the socket, over https, while a grown-up has switched the
intercom on. Late sound is dropped. Commands and pictures have other connections, and never wait for
sound. The microphone pauses while the driver talks, because the speaker would echo. No sound is
recorded.
"""

import asyncio
import logging
import shutil
import time

from aiohttp import WSMsgType, web
from msgspec import Struct

from fpvcar import config
from fpvcar.drive.saved import Saver
from fpvcar.http.admission import Place
from fpvcar.http.limits import RESERVED, Rank, TokenBucket
from fpvcar.http.responses import refused
from fpvcar.http.text_session import ONLY_DRIVER, SILENT, SessionClosed, open_socket
from fpvcar.intercom.sound import SoundProgram, microphone_argv, speaker_argv
from fpvcar.runtime.texts import VERBATIM, Text, fault_text
from fpvcar.seat.drive_socket import Session
from fpvcar.seat.feature import Core, Feature
from fpvcar.seat.handlers import Right, handles
from fpvcar.seat.redundant_link import hello, refuse
from fpvcar.seat.sessions import Sessions
from fpvcar.seat.video_link import Link
from fpvcar.video.stream import BINARY, frame_head
from fpvcar.wire import up
from fpvcar.wire.down import Error
from fpvcar.wire.errors import WireError
from fpvcar.wire.intercom import (
    FRAME_BYTES,
    LISTEN,
    SOUND_BYTES,
    SOUND_S,
    Sound,
    pack_sound,
    parse_sound,
)
from fpvcar.wire.json_text import DRIVE_MAX_BYTES

LATE_S = 0.2
"""Age of sound that is dropped, and most sound in a queue."""
TALK_S, LISTEN_S = 0.2, 2.0
"""Seconds after the last frame, or the last "listen", until speaker or microphone is closed."""
SILENCE_S = 3.0
MESSAGES_PER_S, BURST, PAUSE_S = 40.0, 40.0, 0.05
DEAF_FRAMES = 25
"""Rejected frames in a row, after which the speaker's program counts as hung."""
log = logging.getLogger("fpvcar.socket")


class SpeakerQueue:
    """Filter of frames: drops late frames, and frames more than LATE_S ahead."""

    def __init__(self) -> None:
        self._played_s = 0.0

    def admits(self, sound: Sound, now_s: float) -> bool:
        """Return whether to play a frame now; a played frame counts."""
        played_s = max(self._played_s, now_s) + SOUND_S
        late = now_s - sound.clock_us / 1e6 > LATE_S
        if late or played_s - now_s > LATE_S:
            return False
        self._played_s = played_s
        return True


class IntercomState(Struct, frozen=True):
    """State of the intercom on all pages: whether a grown-up has switched it on."""

    on: bool


def feature(core: Core) -> Feature:
    """Return the intercom of a car: its socket, and its switch for grown-ups."""
    intercom = Intercom(core.profile.intercom, core.saver, core.sessions, core.changed)
    places = core.admission.sockets("/ws/intercom", RESERVED)

    async def talk(request: web.Request) -> web.WebSocketResponse:
        if not request.secure:
            raise refused(
                web.HTTPForbidden,
                Text("intercom_https", "The intercom needs https: open the car's https address."),
            )
        with places.place(request, Rank.SILENT) as place:
            return await intercom.serve(request, place)

    return Feature(
        name="intercom",
        routes=lambda app: app.router.add_get("/ws/intercom", talk),
        handlers=(intercom,),
        state=intercom.state,
    )


class Intercom:
    """Intercom of the car, used by one page at a time: the newest socket of the driver's page."""

    def __init__(
        self, sound: config.Intercom, saver: Saver, sessions: Sessions, changed: asyncio.Event
    ) -> None:
        """Set `changed` after a switch."""
        self.on, self._saver, self._changed = saver.before.intercom, saver, changed
        self._sessions = sessions
        self._speaker: SoundProgram | None = None
        self._microphone: SoundProgram | None = None
        if sound.speaker:
            self._speaker = SoundProgram(speaker_argv(sound.speaker), TALK_S, plays=True)
        if sound.microphone:
            argv = microphone_argv(sound.microphone)
            self._microphone = SoundProgram(argv, LISTEN_S, plays=False)
            self._microphone.recorded.subscribe(self._recorded)
        for program in self._programs():
            program.failed.subscribe(self._failed)
        self._link: Link | None = None
        self._session: Session | None = None
        self._queue = SpeakerQueue()
        self._talked_s, self._deaf = 0.0, 0
        self._fault: Text | None = None
        self._sound = b""

    def state(self) -> IntercomState:
        """Return the state for pages."""
        return IntercomState(self.on)

    @handles(up.SetIntercom, right=Right.GROWN_UP, act="switches the intercom")
    def switch(self, session: Session, message: up.SetIntercom, now_s: float) -> None:
        """Turn the intercom on or off."""
        programs = (program.argv[0] for program in self._programs())
        missing = next((name for name in programs if message.on and not shutil.which(name)), "")
        if missing:
            next_step = "sudo apt install alsa-utils, and set [intercom] in the profile"
            error = Error("the car has no sound", missing, "", next_step, "no_sound")
            session.deny(error, now_s)
        else:
            self.on = message.on
            self._saver.put_intercom(self.on)
        if not self.on:
            self._end()
        self._changed.set()

    async def serve(self, request: web.Request, place: Place) -> web.WebSocketResponse:
        """Run one /ws/intercom socket to its end; `place` rises for the driver's page."""
        ws = await open_socket(request, DRIVE_MAX_BYTES)
        transport = request.transport
        if transport is None:  # disconnected during the handshake
            return ws
        link = Link(transport)
        try:
            session = await hello(ws, self._sessions)
            place.promote(Rank.DRIVES)
            self._end()
            self._link, self._fault, self._deaf = link, None, 0
            self._session = session
            await self._listen(ws, link)
        except SessionClosed as reason:
            log.info("%s: intercom closed: %s", request.remote, reason)
            await refuse(ws, transport, fault_text(reason))
        finally:
            if self._link is link:
                self._end()
        return ws

    async def _listen(self, ws: web.WebSocketResponse, link: Link) -> None:
        """Read frames until the page disconnects. Raises SessionClosed."""
        meter, loop = TokenBucket(MESSAGES_PER_S, BURST), asyncio.get_running_loop()
        try:
            async with asyncio.timeout(SILENCE_S) as waiting:
                async for message in ws:
                    self._check(link)
                    if message.type is WSMsgType.PING:
                        await ws.pong(message.data)
                    elif message.type is WSMsgType.BINARY:
                        self._play(message.data)
                    elif message.type is WSMsgType.TEXT and message.data == LISTEN:
                        if self._microphone is None:
                            raise SessionClosed(
                                Text("intercom_no_microphone", "the car has no microphone")
                            )
                        self._microphone.renew()
                    elif message.type is not WSMsgType.PONG:
                        raise SessionClosed(VERBATIM(text=f'expected sound or "{LISTEN}"'))
                    waiting.reschedule(loop.time() + SILENCE_S)
                    # Frames already received are read without a pause: let other tasks run.
                    await asyncio.sleep(0.0 if meter.allow(loop.time()) else PAUSE_S)
        except TimeoutError:
            raise SessionClosed(SILENT(seconds=f"{SILENCE_S:.0f}")) from None

    def _may(self) -> bool:
        """Return whether the newest socket may talk and listen."""
        session = self._session
        return self.on and session is not None and self._sessions.seat.holds(session.client)

    def _check(self, link: Link) -> None:
        """Raise SessionClosed if the link's socket may no longer talk or listen."""
        if not self.on:
            raise SessionClosed(Text("intercom_off", "a grown-up switched it off"))
        if self._link is not link:
            raise SessionClosed(Text("intercom_elsewhere", "it is open in another tab"))
        if not self._may():
            raise SessionClosed(ONLY_DRIVER)
        if self._fault:
            raise SessionClosed(self._fault)

    def _play(self, frame: bytes) -> None:
        try:
            sound = parse_sound(frame)
        except WireError as fault:
            raise SessionClosed(VERBATIM(text=fault)) from None
        now_s = time.monotonic()
        if self._speaker is None:
            raise SessionClosed(Text("intercom_no_speaker", "the car has no speaker"))
        if not self._queue.admits(sound, now_s):
            return
        self._talked_s = now_s
        self._speaker.renew()
        self._deaf = 0 if self._speaker.write(sound.samples) else self._deaf + 1
        if self._deaf >= DEAF_FRAMES:
            self._failed(
                Text("intercom_mute", "{program} plays nothing", program=self._speaker.argv[0])
            )

    def _recorded(self, data: bytes) -> None:
        """Send recorded sound, the newest only."""
        self._sound = (self._sound + data)[-round(LATE_S / SOUND_S) * SOUND_BYTES :]
        while len(self._sound) >= SOUND_BYTES:
            samples, self._sound = self._sound[:SOUND_BYTES], self._sound[SOUND_BYTES:]
            self._send(samples)

    def _send(self, samples: bytes) -> None:
        """Send a frame to the page, unless the link holds sound of LATE_S already."""
        now_s = time.monotonic()
        if self._link is None or not self._may() or now_s - self._talked_s < LATE_S:
            return
        frame = pack_sound(Sound(int(now_s * 1e6), samples))
        try:
            acked, unacked, *_ = self._link.read()
            room = unacked <= LATE_S / SOUND_S * FRAME_BYTES
            if room and self._link.empty(acked + unacked):
                self._link.write(acked + unacked, frame_head(len(frame), BINARY) + frame)
        except OSError:  # the page has disconnected
            self._end()

    def _failed(self, reason: Text) -> None:
        """Keep the reason; the page's next message is answered with a close."""
        log.warning("intercom: %s", reason)
        self._fault = reason

    def _end(self) -> None:
        self._link, self._sound = None, b""
        for program in self._programs():
            program.end()

    def _programs(self) -> tuple[SoundProgram, ...]:
        return tuple(filter(None, (self._speaker, self._microphone)))

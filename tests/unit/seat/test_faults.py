"""Random sequences of faults, with pages that lie, flood, replay and freeze.

    page -> kernel's queue -> pace (RateLimit) -> FastPath -> Session -> Hub -> gate
        -> packets -> Wheels: lease, bridges -> fake pins, dead man

Every part is real, time is an argument, each sequence follows from its seed. Checked every 5 ms:

    not late            a motor is driven only if a live page wished it at most 0.7 s ago,
                        and 0.3 s more after a failure of a process
    no second start     a car that stood is driven only if the driver has let go since
"""

import asyncio
import json
import random
from collections import deque
from collections.abc import Callable

import pytest
from testkit.hub import PROFILE
from testkit.machine import MS, WiredCar
from testkit.network.attacks import frame

from fpvcar.access.codes import Rights
from fpvcar.http.fast_path import TEXT, FastPath, unmasked
from fpvcar.http.limits import RateLimit
from fpvcar.http.listener import READ_BYTES
from fpvcar.http.text_session import SessionClosed
from fpvcar.runtime.texts import VERBATIM
from fpvcar.seat.drive_socket import Session, SessionReader
from fpvcar.wire import down, up
from fpvcar.wire.errors import WireError

LATE_NS = 700 * MS
STOOD_NS = 100 * MS
STEP_MS = 5
WISH_STEPS, PING_STEPS = 8, 20
UNREAD_MOST = 200
"""Messages that the kernel holds for a page that does not read."""
SAMPLE, SOAK = 30, 1000


class LongWay(asyncio.Protocol):
    """Queue of texts that the shortcut passes on: they are handled in the next step."""

    def __init__(self) -> None:
        self.texts: deque[str] = deque()

    def data_received(self, data: bytes) -> None:
        if data[0] == TEXT:
            begin = 2 if data[1] & 127 < 126 else 4
            self.texts.append(unmasked(data, begin, len(data)) or "")


class Socket:
    """Connection of a page; the kernel's queues on both sides."""

    closed = False

    def __init__(self, car: "FaultyCar") -> None:
        self.car = car
        self.session = Session("10.0.0.1", Rights(drive=True), PROFILE.gate)
        self.session._ws = self.session._transport = self  # type: ignore[assignment]
        self.upward = b""
        self.downward: deque[int] = deque()
        self.stalled_until_ns = self.paused_until_ns = 0
        self.paused = False
        self._rate = RateLimit(car.now_ns / 1e9)
        self._behind = LongWay()
        reader = SessionReader(
            self.session, car.receive, lambda: car.now_ns / 1e9, lambda session: None
        )
        self._shortcut = FastPath(
            self._behind,
            reader.take_at_once,
            lambda reason: self.session.close(VERBATIM(text=reason)),
            self.session.fresh.forget,
        )

    # Transport of the session.

    def is_closing(self) -> bool:
        return self.closed

    def get_write_buffer_size(self) -> int:
        return max(0, len(self.downward) - UNREAD_MOST)

    def write(self, data: bytes) -> None:
        message = json.loads(data[2 if data[1] < 126 else 4 :])
        if message["kind"] in ("state", "pong"):
            self.downward.append(message["nonce"])

    # Work of the car's loop in 5 ms.

    def serve(self) -> None:
        """Read the waiting messages at the pace of a listener, and send the queue."""
        now_ns, session = self.car.now_ns, self.session
        if self.paused and now_ns >= self.paused_until_ns:
            self.paused = False
            self._shortcut.paced()
        for _ in range(len(self._behind.texts)):
            self._long_way(self._behind.texts.popleft())
        if now_ns < self.stalled_until_ns:
            return
        while self.upward and not self.paused and not session.closing:
            data, self.upward = self.upward[:READ_BYTES], self.upward[READ_BYTES:]
            pause_s = self._rate.pause_s(len(data), now_ns / 1e9)
            self._shortcut.data_received(data)
            if pause_s > 0.0:
                self.paused, self.paused_until_ns = True, now_ns + int(pause_s * 1e9)
                self._shortcut.paced()
        while session._outbox and not self.get_write_buffer_size():
            self._send(session._outbox.popleft())
        if session._newest is not None and not self.get_write_buffer_size():
            newest, session._newest = session._newest, None
            self._send(newest)

    def _send(self, message: object) -> None:
        if isinstance(message, down.State | down.Pong):
            self.session.sent(message)
            self.downward.append(message.nonce)

    def _long_way(self, text: str) -> None:
        self._shortcut.acknowledge()
        if not self.session.meter.allow(self.car.now_ns / 1e9):
            return
        try:
            self.car.receive(self.session, up.parse_upward(text))
        except (WireError, SessionClosed):
            pass


class FaultyCar(WiredCar):
    """Car with the page at its wheel, and all faults of either."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.dice = random.Random(seed)
        self.told: list[str] = [f"seed {seed}"]
        self.frozen_until_ns = self.lying_until_ns = 0
        self.stopped_clock_ms = 0.0
        self.held = 0.0
        self.seq = self.nonce = self.steps = 0
        self.history: list[bytes] = []
        self.live_ns = self.neutral_ns = self.moved_ns = -(10**12)
        self.stood_ns: int | None = None
        self.drives = 0
        self.socket = self.connect_page("page-of-ann")

    # --- the page ---

    def connect_page(self, client: str) -> Socket:
        socket = Socket(self)
        self.receive(socket.session, up.Hello(1, client, client))
        self.receive(socket.session, up.Take())
        self.seq, self.nonce, self.history = 0, 0, []
        return socket

    def receive(self, session: Session, message: up.Upward) -> None:
        self.hub.receive(session, message)

    def wish(self, throttle: float, seen: int, ahead_ms: float = 0.0, size: int = 0) -> bytes:
        """Return the frame of a wish."""
        self.seq += 1
        t = self.now_ns / 1e6 - self.stopped_clock_ms + ahead_ms
        message = {
            "kind": "drive",
            "seq": self.seq,
            "t": t,
            "seen": seen,
            "throttle": throttle,
            "steer": 0.0,
        }
        return frame(json.dumps(message).encode().ljust(size))

    def say(self, data: bytes) -> None:
        self.history = [*self.history[-99:], data]
        self.socket.upward += data

    def run_page(self) -> None:
        """Run the page's own timers, unless it is frozen."""
        if self.now_ns < self.frozen_until_ns:
            return
        while self.socket.downward:
            self.nonce = self.socket.downward.popleft()
        lies = self.now_ns < self.lying_until_ns
        if self.steps % WISH_STEPS == 0:
            seen = self.guess() if lies else self.nonce
            self.say(self.wish(self.held, seen, self.dice.choice((0.0, 1e4)) * lies))
            if not lies:
                name = "live_ns" if self.held else "neutral_ns"
                setattr(self, name, self.now_ns)
        if self.steps % PING_STEPS == 0:
            ping = {"kind": "ping", "seq": self.steps, "t": self.now_ns / 1e6}
            self.say(frame(json.dumps(ping).encode()))

    def guess(self) -> int:
        """Return a nonce that the page claims to have seen."""
        return self.dice.choice(
            (
                0,
                int(self.now_ns / 1e3),
                self.nonce + self.dice.randint(1, 9),
                self.dice.randint(1, 2**52),
            )
        )

    # --- time ---

    def live(self, ms: int) -> None:
        for _ in range(ms // STEP_MS):
            self.steps += 1
            self.run_page()
            if not self.run_is_deaf():
                self.socket.serve()
            self.pass_time(STEP_MS)

    def whatever_moves_was_wished(self) -> None:
        """Check the two rules of this file."""
        now_ns = self.now_ns
        if not self.moves[0]:
            if self.stood_ns is None:
                self.stood_ns = now_ns
            return
        since_ns = now_ns - LATE_NS
        if self.failed_ns > now_ns - LATE_NS - self.off_ns:
            since_ns -= self.off_ns
        assert self.live_ns >= since_ns, f"late: {self.told} {self.words()}"
        if self.stood_ns is not None and now_ns - self.stood_ns >= STOOD_NS:
            let_go = self.neutral_ns >= self.stood_ns - LATE_NS
            assert let_go, f"drives again: {self.told} {self.words()}"
            self.drives += 1
        self.stood_ns = None

    # --- the driver's actions ---

    def drive_off(self) -> None:
        """Resume, let go, and hold the stick."""
        if not self.socket.session.closing:
            self.receive(self.socket.session, up.Resume())
        self.held = 0.0
        self.live(200)
        self.held = self.dice.choice((1.0, -1.0))
        self.live(self.dice.choice((200, 600)))

    # --- faults of the page ---

    def freeze(self) -> None:
        self.frozen_until_ns = self.now_ns + self.dice.choice((100, 300, 2000)) * MS

    def clock_stands_still(self) -> None:
        """Stop the page's clock: the phone slept, and its socket lived."""
        ms = self.dice.choice((300, 5000))
        self.stopped_clock_ms += ms
        self.frozen_until_ns = self.now_ns + ms * MS

    def lie(self) -> None:
        self.lying_until_ns = self.now_ns + 2000 * MS

    def preload_and_freeze(self) -> None:
        """Send wishes for the moments at which the car will read them, with or without a flood
        that slows the car down; then SIGSTOP."""
        size, every_ms = 4000, self.dice.choice((40, 61))
        flood = self.dice.choice((0, 140))
        knows = self.dice.random() < 0.5
        if knows:  # the nonce counts for 0.4 s: the page made these wishes now
            self.live_ns = self.neutral_ns = self.now_ns
        for number in range(flood + 60):
            ahead_ms = max(0, number - flood) * every_ms
            throttle = self.held * (number % 20 > 0)
            seen = self.nonce if knows else self.guess()
            self.say(self.wish(throttle, seen, ahead_ms, size))
        self.say(frame(b'{"kind":"resume"}') + frame(b'{"kind":"take"}'))
        self.frozen_until_ns = self.now_ns + 3000 * MS

    def replay(self) -> None:
        for data in self.dice.choices(self.history or [b""], k=60):
            self.socket.upward += data

    def flood(self) -> None:
        ping = frame(b'{"kind":"ping","seq":1,"t":1}')
        self.socket.upward += ping * self.dice.choice((300, 20_000))

    def stall_socket(self) -> None:
        for_ms = self.dice.choice((100, 300, 2000))
        self.socket.stalled_until_ns = self.now_ns + for_ms * MS

    def reconnect(self) -> None:
        self.hub.leave(self.socket.session)
        self.live(self.dice.choice((0, 50, 400)))
        self.socket = self.connect_page("page-of-ann")

    def hand_over(self) -> None:
        """Let a grown-up take the wheel, send no wish, and give it back."""
        mum = Session("10.0.0.2", Rights(drive=True, grown_up=True), PROFILE.gate)
        self.receive(mum, up.Hello(1, "page-of-mum", "Mum"))
        self.receive(mum, up.Take())
        self.live(self.dice.choice((50, 500)))
        self.receive(mum, up.Release())
        self.hub.leave(mum)
        if not self.socket.session.closing:
            self.receive(self.socket.session, up.Take())

    def restart_run(self) -> None:
        self.kill_run()
        self.socket = self.connect_page("page-of-ann")

    def run(self, faults: int) -> None:
        """Run a sequence: the stick is held through every fault, and let go after some."""
        pages = (
            self.freeze,
            self.clock_stands_still,
            self.lie,
            self.preload_and_freeze,
            self.replay,
            self.flood,
            self.stall_socket,
            self.reconnect,
            self.hand_over,
        )
        of_pages: dict[str, Callable[[], None]] = {one.__name__: one for one in pages}
        of_processes: dict[str, Callable[[], None]] = {
            "hang run": lambda: self.hang_run(self.dice.choice((50, 200, 2000))),
            "kill run": self.restart_run,
            "hang wheels": lambda: self.hang_wheels(self.dice.choice((50, 200, 2000))),
            "kill wheels": lambda: self.kill_wheels(self.live),
            "hang daemon": lambda: self.fail_daemon(hangs=True),
            "kill daemon": lambda: self.fail_daemon(hangs=False),
        }
        self.live(500)
        self.drive_off()
        for _ in range(faults):
            quiet = self.now_ns >= max(self.wheels_until_ns, self.run_until_ns)
            usable = of_pages | (of_processes if quiet and not self.daemon_hangs else {})
            name, fault = self.dice.choice(list(usable.items()))
            self.told.append(f"{self.now_ns // MS} {name}")
            fault()
            self.live(self.dice.choice((20, 100, 300, 1500)))
            if self.dice.random() < 0.5:
                self.drive_off()
        self.frozen_until_ns = self.now_ns + 10**12
        self.live(1500)
        assert self.moves == (0.0, 0.0), f"drives on: {self.told} {self.words()}"


@pytest.mark.soak
def test_random_faults_cause_no_late_stop_and_no_restart(soaking: bool) -> None:
    drives = 0
    for seed in range(SOAK if soaking else SAMPLE):
        car = FaultyCar(seed)
        car.run(faults=8)
        drives += car.drives
    assert drives > 2 * SAMPLE, "most sequences drive"


@pytest.mark.parametrize("stood_ms", [300, 5000])
def test_page_whose_clock_stood_still_drives_at_once(stood_ms: int) -> None:
    car = FaultyCar(1)
    car.live(500)
    car.drive_off()
    assert car.moves[0]
    car.stopped_clock_ms += stood_ms
    car.frozen_until_ns = car.now_ns + stood_ms * MS
    car.live(stood_ms)
    assert not car.moves[0]
    car.drive_off()
    assert car.moves[0], "wishes are not called stale"

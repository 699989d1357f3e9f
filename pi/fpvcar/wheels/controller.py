"""`fpvcar wheels`: the process that owns the motor pins. No network, no asyncio.

    run --- setpoint (seq, deadline, duties) ---> wheels ---> driver by driver ---> pins
        <-- answer (status, reason, seq) --------        ---> dead man: feed

    packet                                   answer
    newest one, deadline 0..150 ms ahead     APPLIED; the dead man is fed
    older pending ones                       REFUSED superseded
    deadline past / too far ahead            REFUSED past / too_far_ahead
    not zero, but a zero is due              REFUSED zero_first
    no connection to the pins                REFUSED pins_lost
    malformed, or a duty above max_volts     STOPPED bad_message
    pulses of an ESC far from the profile's  STOPPED bad_message
    (no packet: a moving car's deadline)     STOPPED deadline
    (no packet: pin daemon hangs / is gone)  STOPPED pins_silent / pins_lost
    (no packet: a client connects)           STOPPED and the reason of the last stop

A deadline that passes while the car stands requires a zero too, but is no stop. Only one client is
served; further connections are closed until it has gone. Actions come before their log lines: the
reader of the log may hang, and block a write.
"""

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, cast

from fpvcar import config
from fpvcar.devices.motors.bridge import MotorBoard, MotorDriver
from fpvcar.devices.pins import PinsFault, PinsRefused, PinsSilent
from fpvcar.drive import mixing
from fpvcar.runtime.texts import Text, fault_text
from fpvcar.wheels.pins_off_client import MotorAccess
from fpvcar.wire.errors import WireError
from fpvcar.wire.wheels import Answer, EscPulses, Setpoint, Status, WheelsReason, parse_setpoint

if TYPE_CHECKING:
    from fpvcar.devices.motors.esc import EscDriver  # loaded only for a car with an ESC

RETRY_NS = 250_000_000
"""Retry interval for a lost pin daemon; a try may take 100 ms."""
SILENT_TRIES = 8
"""Silent tries between calls of the helper, because a helper may hang and a daemon needs time to
start. The helper is also called if the daemon does not answer while the motors are held, and
at the second silent try to connect. A single silent try may be a machine under load. If an
earlier `wheels` left the motors on, `run` has called the helper already (client.py)."""
FED_NS = 150_000_000
"""Time without a feed after which the dead man may have tripped."""
CHECKED_NS = 1_000_000_000
"""Interval between checks of the dead man while it is fed."""
AHEAD_MAX_NS = 150_000_000
"""Limit of a deadline; a later one is refused, because the clock or the sender is wrong."""
ROUNDING = 1e-6
"""Tolerance for duties, which travel as f32."""
log = logging.getLogger("fpvcar.wheels")


class LeaseResult(NamedTuple):
    """Result of some packets: the setpoint to apply, if any, and the answers."""

    setpoint: Setpoint | None
    answers: tuple[Answer, ...]


class Lease:
    """Setpoint in force, valid until its deadline. `most` is the largest duty of each motor, and
    `esc` limits calibrated pulses.

    Of several pending packets, the newest counts. After any stop of its own the lease accepts only
    zero until it has had a zero, so that the car does not move unexpectedly.
    """

    def __init__(self, most: tuple[float, ...], esc: config.EscMotor | None = None) -> None:
        self._most, self._esc = most, esc
        self.zero_first = True
        self.deadline_ns: int | None = None
        self.moving = False
        self.seq = 0
        self.reason = WheelsReason.START

    def take(self, packets: Sequence[bytes], now_ns: int) -> LeaseResult:
        """Validate packets, oldest first. Only the newest setpoint may be applied.

        A bad packet among them stops the car first, because its sender is broken.
        """
        setpoints, bad = [], None
        for packet in packets:
            try:
                setpoints.append(self._parse(packet))
            except WireError as fault:
                bad = fault
        answers = []
        if bad is not None:
            answers.append(self.stop(WheelsReason.BAD_MESSAGE, now_ns))
        for superseded in setpoints[:-1]:
            answers.append(_refused(superseded, WheelsReason.SUPERSEDED, now_ns))
        if not setpoints:
            return LeaseResult(None, tuple(answers))
        newest = setpoints[-1]
        reason = self._refusal(newest, now_ns)
        if reason is None:
            return LeaseResult(newest, tuple(answers))
        return LeaseResult(None, (*answers, _refused(newest, reason, now_ns)))

    def applied(self, setpoint: Setpoint, now_ns: int) -> Answer:
        """Put a setpoint in force after the motors have applied it."""
        self.zero_first = False
        self.deadline_ns, self.seq = setpoint.deadline_ns, setpoint.seq
        self.moving = any(setpoint.duties)
        return Answer(Status.APPLIED, WheelsReason.NONE, setpoint.seq, now_ns)

    def expired(self, now_ns: int) -> bool:
        """Return True once the setpoint in force has passed its deadline."""
        return self.deadline_ns is not None and now_ns >= self.deadline_ns

    def stop(self, reason: WheelsReason, now_ns: int) -> Answer:
        """End the lease; the answer contains the reason."""
        self.zero_first, self.moving, self.deadline_ns = True, False, None
        self.reason = reason
        return self.standing(now_ns)

    def standing(self, now_ns: int) -> Answer:
        """Return the last stop of its own, as sent to a client that connects."""
        return Answer(Status.STOPPED, self.reason, self.seq, now_ns)

    def _parse(self, packet: bytes) -> Setpoint:
        setpoint = parse_setpoint(packet)
        if len(setpoint.duties) != len(self._most):
            count = len(setpoint.duties)
            raise WireError("motors", count, str(len(self._most)))
        for duty, most in zip(setpoint.duties, self._most, strict=True):
            if abs(duty) > most + ROUNDING:
                raise WireError("duty", duty, f"-{most:.3f} to {most:.3f}")
        if setpoint.pulses is not None:
            self._refuse_pulses(setpoint.pulses)
        return setpoint

    def _refuse_pulses(self, pulses: EscPulses) -> None:
        if self._esc is None:
            raise WireError("pulses", pulses, "none: the car has no ESC")
        try:
            self._esc.refuse_pulses(*pulses)
        except config.ConfigError as fault:
            raise WireError("pulses", pulses, str(fault)) from None

    def _refusal(self, setpoint: Setpoint, now_ns: int) -> WheelsReason | None:
        if setpoint.deadline_ns <= now_ns:
            return WheelsReason.PAST
        if setpoint.deadline_ns > now_ns + AHEAD_MAX_NS:
            return WheelsReason.TOO_FAR_AHEAD
        if self.zero_first and any(setpoint.duties):
            return WheelsReason.ZERO_FIRST
        return None


class Wheels:
    """Lease, motors and dead man of one car; packets and times in, answers out."""

    def __init__(self, profile: config.Profile, access: MotorAccess) -> None:
        motors, low_v = profile.motors, profile.battery.lowest_v
        most = tuple(mixing.top_duty(motor, low_v) for motor in motors.pair)
        self._esc = motors.esc
        self.lease = Lease(most, self._esc)
        self._access = access
        self._board: MotorBoard | None = None
        self._retry_ns, self._silent_tries = 0, 0
        self.why: Text | None = None
        """Error text of the pins' back end; "" while the pins work."""
        self._fed_ns = -FED_NS
        self._checked_ns: int | None = None

    def connected(self, now_ns: int) -> list[Answer]:
        """Return the reason of the last stop for a newly connected client."""
        return [self.lease.standing(now_ns)]

    def receive(self, packets: Sequence[bytes], now_ns: int) -> list[Answer]:
        """Process the client's packets since the last call, oldest first."""
        answers = self.tick(now_ns)  # first: after a hang the lease has expired
        result = self.lease.take(packets, now_ns)
        answers += result.answers
        if any(answer.reason == WheelsReason.BAD_MESSAGE for answer in result.answers):
            answers += self._stand(now_ns)
        if result.setpoint is not None:
            answers += self._apply(result.setpoint, now_ns)
        return answers

    def tick(self, now_ns: int) -> list[Answer]:
        """Process due work: a passed deadline, a brake to release, a retry."""
        answers = []
        if self.lease.expired(now_ns):
            moving = self.lease.moving
            stopped = self.lease.stop(WheelsReason.DEADLINE, now_ns)
            if moving:
                answers = [stopped, *self._stand(now_ns)]
                log.warning("deadline of setpoint %d passed", stopped.seq)
            else:
                answers = self._untuned(now_ns) or self._rest(now_ns)
        answers += self._each(None, now_ns)
        if self._board is None and now_ns >= self._retry_ns:
            self._retry_ns = now_ns + RETRY_NS
            self._try(now_ns)
        return answers

    def stop(self, reason: WheelsReason, now_ns: int) -> list[Answer]:
        """Stop the car because the client has gone or the process is to end."""
        moving = self.lease.moving
        answers = [self.lease.stop(reason, now_ns), *self._stand(now_ns)]
        if moving:
            log.warning("stopped: %s", reason.name.lower())
        return answers

    def close(self, now_ns: int) -> None:
        """Stop the motors, brakes included, and close the connection to the pins."""
        self.stop(WheelsReason.EXIT, now_ns)
        if self._board is not None:
            self._board.close()
            self._board = None

    @property
    def due_ns(self) -> int | None:
        """Time of the next work for `tick` if no packet arrives."""
        dues = [driver.due_s for driver in self._drivers]
        times = [round(due_s * 1e9) for due_s in dues if due_s is not None]
        if self.lease.deadline_ns is not None:
            times.append(self.lease.deadline_ns)
        if self._board is None:
            times.append(self._retry_ns)
        return min(times, default=None)

    @property
    def braking(self) -> bool:
        """Whether a stop still has a brake to release."""
        return any(driver.due_s is not None for driver in self._drivers)

    @property
    def _drivers(self) -> Sequence[MotorDriver]:
        return () if self._board is None else self._board.drivers

    def _apply(self, setpoint: Setpoint, now_ns: int) -> list[Answer]:
        if self._board is None:
            return [_refused(setpoint, WheelsReason.PINS_LOST, now_ns)]
        try:
            awake = self._dead_man_awake(self._board, now_ns)
            if any(setpoint.duties) and not awake:
                return [_refused(setpoint, WheelsReason.ZERO_FIRST, now_ns)]
            if (esc := self._esc_driver) is not None:
                esc.tune(setpoint.pulses)
            duties = zip(self._drivers, setpoint.duties, strict=True)
            for driver, duty in duties:
                driver.drive(duty, now_ns / 1e9)
            self._board.dead_man.feed()
        except PinsFault as fault:
            stopped = self._lose(self._board, fault, now_ns)
            refused = _refused(setpoint, stopped.reason, now_ns)
            return [stopped, refused]
        self._fed_ns = now_ns
        return [self.lease.applied(setpoint, now_ns)]

    def _dead_man_awake(self, board: MotorBoard, now_ns: int) -> bool:
        if now_ns - self._fed_ns >= FED_NS:
            self._checked_ns = None
            return False
        checked_ns = self._checked_ns
        if checked_ns is None or now_ns - checked_ns >= CHECKED_NS:
            self._checked_ns = now_ns if board.dead_man.awake() else None
        return self._checked_ns is not None

    @property
    def _esc_driver(self) -> "EscDriver | None":
        if self._esc is None or self._board is None:
            return None
        return cast("EscDriver", self._board.drivers[0])

    def _untuned(self, now_ns: int) -> list[Answer]:
        """Go back to the neutral of the profile, if a setpoint that has ended had another one."""
        esc = self._esc_driver
        return self._each(0.0, now_ns) if esc is not None and esc.tuned else []

    def _stand(self, now_ns: int) -> list[Answer]:
        lost = self._each(0.0, now_ns)
        return lost or self._rest(now_ns)

    def _rest(self, now_ns: int) -> list[Answer]:
        """Report resting motors to the dead man; it must be awake again before motion."""
        self._fed_ns = now_ns - FED_NS
        if self._board is None:
            return []
        try:
            self._board.dead_man.rest()
        except PinsFault as fault:
            return [self._lose(self._board, fault, now_ns)]
        return []

    def _each(self, duty: float | None, now_ns: int) -> list[Answer]:
        """Set the duty of all motors; None: only do the work that is due."""
        board, now_s = self._board, now_ns / 1e9
        if board is None:
            return []
        if duty is not None and (esc := self._esc_driver) is not None:
            esc.tune(None)
        try:
            for driver in board.drivers:
                if duty is None:
                    driver.tick(now_s)
                else:
                    driver.drive(duty, now_s)
        except PinsFault as fault:
            return [self._lose(board, fault, now_ns)]
        return []

    def _lose(self, board: MotorBoard, fault: PinsFault, now_ns: int) -> Answer:
        # The unit of a dead daemon frees the pins, too, by a program that has to start first. A
        # daemon that refuses a request is alive, and in control of its pins.
        refusal = "" if isinstance(fault, PinsRefused) else self._access.release_pins()
        silent = isinstance(fault, PinsSilent)
        if silent:
            self._access.call_helper()
        board.close()
        self._board = None
        self._retry_ns, self.why = now_ns + RETRY_NS, fault_text(fault)
        self._silent_tries = int(silent)
        reason = WheelsReason.PINS_SILENT if silent else WheelsReason.PINS_LOST
        stopped = self.lease.stop(reason, now_ns)
        log.error("lost the pins: %s", fault)
        if refusal:
            log.error("could not release the motor pins: %s", refusal)
        return stopped

    def _try(self, now_ns: int) -> None:
        try:
            self._board = self._access.connect()
        except PinsFault as fault:
            if isinstance(fault, PinsSilent):
                self._access.release_pins()
                self._silent_tries += 1
                if self._silent_tries == 2 or self._silent_tries % SILENT_TRIES == 0:
                    self._access.call_helper()
            if (text := fault_text(fault)) != self.why:
                self.why = text
                log.warning("%s; trying again", fault)
            return
        self._fed_ns = now_ns - FED_NS
        self.why = None
        log.info("holding the motor pins")


def _refused(setpoint: Setpoint, reason: WheelsReason, now_ns: int) -> Answer:
    return Answer(Status.REFUSED, reason, setpoint.seq, now_ns)

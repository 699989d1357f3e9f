"""Battery, DC motor and steering rack of the emulated car. Pure.

Mean values over a PWM period: V = duty * (battery - drop); i = (V - Ke * w) / R. The
motor is a FA-130 type (1.5-3 V), the steering a motor against a spring.
"""

import math
from typing import NamedTuple

from fpvbench.world.bridge import Bridge, Losses
from fpvcar.config.pwm import SMOOTH_HZ

MEASURED_OHM = 0.68 + 1.6
"""Resistance of motor and MX1508 at which the stiction and friction voltages were measured."""


class Motor(NamedTuple):
    """DC motor behind a gear and its bridge, SI units at the motor's shaft."""

    ke: float = 1.3e-3
    """V s/rad, = Kt in N m/A. FA-130: 9100 rpm at 1.5 V, 0.2 A."""
    motor_ohm: float = 0.68
    henry: float = 0.34e-3
    losses: Losses = Losses()
    """Losses of the H-bridge that drives the motor."""
    gear: float = 28.0
    stiction_v: float = 1.0
    """Mean voltage at which a standing motor starts: 34 of 255 at 7.5 V."""
    friction_v: float = 0.62
    """Mean voltage that overcomes friction while it turns."""
    drag: float = 2.6e-7
    """N m s/rad, gears and bearings."""

    @property
    def ohm(self) -> float:
        """Resistance of winding and bridge in series."""
        return self.motor_ohm + self.losses.ohm

    def current_a(self, state: Bridge, battery_v: float, speed: float) -> float:
        """Return the mean current; `speed` in rad/s at the shaft, positive forward.

        During a high-Z off time the diodes carry current only in the driven direction:
        a motor faster than its voltage runs free.
        """
        emf_v = self.ke * speed
        on_v = max(battery_v - self.losses.drop_v, 0.0)
        driven = (state.drive * on_v - emf_v) / self.ohm
        if state.drive and state.coast <= 0.0:
            return driven
        if state.drive > 0.0:
            driven = max(driven, 0.0)
        elif state.drive < 0.0:
            driven = min(driven, 0.0)
        else:
            driven = 0.0
        shorted_v = math.copysign(max(abs(emf_v) - self.losses.drop_v, 0.0), emf_v)
        return driven - state.brake * shorted_v / self.ohm

    def drawn_a(self, state: Bridge, battery_v: float, speed: float) -> float:
        """Return the mean current from the battery. A slow pulse starts at 0, and the diodes
        return its end to the battery."""
        if self.losses.pwm_hz >= SMOOTH_HZ or state.coast <= 0.0 or not state.drive:
            return max(state.drive * self.current_a(state, battery_v, speed), 0.0)
        emf_v = math.copysign(self.ke * speed, state.drive * speed)
        on_v = max(battery_v - self.losses.drop_v, 0.0)
        tau_s, pulse_s = self.henry / self.ohm, abs(state.drive) / self.losses.pwm_hz
        goal_a, back_a = (on_v - emf_v) / self.ohm, (on_v + emf_v) / self.ohm
        peak_a = goal_a * -math.expm1(-pulse_s / tau_s)
        if peak_a <= 0.0 or back_a <= 0.0:
            return 0.0
        back_s = tau_s * math.log1p(peak_a / back_a)
        drawn_as = goal_a * pulse_s - tau_s * peak_a - (tau_s * peak_a - back_a * back_s)
        return max(drawn_as * self.losses.pwm_hz, 0.0)

    def peak_a(self, state: Bridge, battery_v: float, speed: float) -> float:
        """Return the steady-state current at the end of each pulse, the load of
        bridge and supply. In a coasting pause the diodes feed the supply and the
        current falls to 0; in a braked pause it fades into the generator's."""
        duty, period_s = abs(state.drive), 1.0 / self.losses.pwm_hz
        emf_v = math.copysign(self.ke * speed, state.drive * speed)
        on_v = max(battery_v - self.losses.drop_v, 0.0)
        goal_a = (on_v - emf_v) / self.ohm
        if duty >= 1.0 or not duty:
            return max(goal_a, 0.0) * duty
        coasts = state.coast > 0.0
        pause_a = -((on_v if coasts else 0.0) + emf_v) / self.ohm
        remaining = math.exp(-duty * period_s * self.ohm / self.henry)
        faded = math.exp(-(1.0 - duty) * period_s * self.ohm / self.henry)
        rise_a, fall_a = goal_a * (1.0 - remaining), pause_a * (1.0 - faded)
        peak_a = (rise_a + fall_a * remaining) / (1.0 - remaining * faded)
        if coasts and fall_a + peak_a * faded < 0.0:
            peak_a = rise_a  # each pulse starts at 0
        return max(peak_a, 0.0)

    def friction_nm(self, speed: float) -> float:
        """Return the dry friction at the shaft: stiction that fades within 60 rad/s."""
        fade = math.exp(-((speed / 60.0) ** 2))
        volts = self.friction_v + (self.stiction_v - self.friction_v) * fade
        return volts / MEASURED_OHM * self.ke


class Battery:
    """Two lithium cells: open-circuit voltage by charge, and resistance.

    An empty battery stays at `empty_v`: the bench drives on slowly.
    """

    def __init__(self, full_v: float, nominal_v: float, empty_v: float) -> None:
        self._full_v, self._nominal_v, self._empty_v = full_v, nominal_v, empty_v
        self.capacity_as = 2.0 * 3600
        self.ohm = 0.3
        self.charge = 0.7
        """Remaining share, 0 to 1."""
        self.amps = 0.0

    @property
    def open_v(self) -> float:
        """Voltage without load; half full is nominal."""
        if self.charge > 0.5:
            return self._nominal_v + (self._full_v - self._nominal_v) * (2 * self.charge - 1)
        return self._empty_v + (self._nominal_v - self._empty_v) * 2 * self.charge

    @property
    def volts(self) -> float:
        """Voltage under the load of the last tick."""
        return max(self.open_v - self.ohm * self.amps, 0.0)

    def draw(self, amps: float, seconds: float) -> None:
        """Draw a current for a time."""
        self.amps = amps
        self.charge = max(self.charge - amps * seconds / self.capacity_as, 0.0)


class Rack:
    """Steering: a motor against a centring spring between two end stops.

    Without inertia: the gear turns at the speed given by the voltage left after spring
    and friction. `angle` in rad, positive is left.
    """

    end_rad = 0.42
    friction_v = 0.25
    preload_v = 0.45
    """Friction and preload add up to the dead band: 24 of 255 at 7.5 V."""
    spring_v_per_rad = 4.2
    """The end stop is reached at 2.5 V."""
    driven_v_s_per_rad = 0.34
    free_v_s_per_rad = 0.25
    servo_rad_s = 8.7
    """Hobby servo: 60 degrees in 0.12 s."""
    ohm = 6.0
    """Winding and bridge; it mostly stands against spring or stop."""

    def __init__(self, drop_v: float = 0.0) -> None:
        """`drop_v` is the voltage drop of the bridge."""
        self._drop_v = drop_v
        self.angle = 0.0

    def turn(self, angle_rad: float | None, seconds: float) -> None:
        """Turn a servo towards its angle; None leaves it in place."""
        if angle_rad is not None:
            goal = min(max(angle_rad, -self.end_rad), self.end_rad)
            most = self.servo_rad_s * seconds
            self.angle += min(max(goal - self.angle, -most), most)

    def step(self, state: Bridge, battery_v: float, seconds: float) -> float:
        """Advance by a time step; return the mean current of the bridge in A."""
        volts = state.drive * max(battery_v - self._drop_v, 0.0)
        amps = abs(state.drive * volts) / self.ohm
        if self.angle == 0.0:
            spring_v = math.copysign(min(self.preload_v, abs(volts)), volts)
        else:
            pull_v = self.preload_v + self.spring_v_per_rad * abs(self.angle)
            spring_v = math.copysign(pull_v, self.angle)
        left_v = volts - spring_v
        if abs(left_v) <= self.friction_v:
            return amps
        left_v -= math.copysign(self.friction_v, left_v)
        free = state.coast >= 1.0
        damping = self.free_v_s_per_rad if free else self.driven_v_s_per_rad
        moved = self.angle + left_v / damping * seconds
        if moved * self.angle < 0.0:  # the spring ends at the middle
            moved = 0.0
        self.angle = min(max(moved, -self.end_rad), self.end_rad)
        return amps

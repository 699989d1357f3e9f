"""World of the bench: reads the motor pins, moves the car, publishes its state. 100 Hz.

    pins (Soc) -> bridges -> motor, rack -> MuJoCo -> speed, ranges, battery -> Soc

`World` uses neither clock nor Soc: the same seed and bridges give the same run, as fast
as the machine permits. The process below feeds it from a Soc.
"""

import argparse
import contextlib
import logging
import math
import signal
import sys
import time
from pathlib import Path
from typing import Any

import mujoco
import numpy as np

from fpvbench.soc import RANGE_SENSORS, Soc, attach, writing
from fpvbench.world import scene
from fpvbench.world.bridge import Bridge, Bridges, Losses, Wiring, aimed_deg
from fpvbench.world.motor import Battery, Motor, Rack
from fpvcar import config
from fpvcar.config import profiles
from fpvcar.runtime.arguments import log_level

TICK_S = 0.01
RANGE_MAX_M = 4.0
"""Longest range that an HC-SR04 measures."""
LOST_S = 3.0
"""Time a car lies on its back before it is put on its wheels again."""
STANDS_RAD_S = 5.0
"""Shaft speed (6 mm/s) below which stiction holds; MuJoCo's own friction creeps."""
FRONT = ("front_left", "front_right")
GLIDES = 0.02
"""Friction of the front support of a car with a motor per side: a ball or a castor."""
SUBSTEPS = round(TICK_S / scene.TIMESTEP_S)
REAR = ("rear_left", "rear_right")
SOLIDS = np.array([0, 0, 0, 1, 0, 0], dtype=np.uint8)
"""Geom groups hit by a ray: walls, boxes, ramp, floor; not the car."""
log = logging.getLogger("world")


class World:
    """Car in a room. `step` advances by 10 ms; the fields have the state afterwards."""

    def __init__(
        self,
        seed: int,
        battery: config.Battery | None = None,
        place: scene.Layout | None = None,
        losses: tuple[Losses, Losses] = (Losses(), Losses()),
    ) -> None:
        pack = battery or config.Battery()
        self.seed = seed
        self.tick = 0
        self.rescues = 0
        self.battery = Battery(pack.full_v, pack.nominal_v, pack.empty_v)
        drive, steer = losses
        self.motor, self.rack = Motor(losses=drive), Rack(steer.drop_v)
        self.idle_a = 0.4
        """Current drawn by the computer, in amperes."""
        self.peak_a = 0.0
        """Current of the drive motor at the end of each PWM pulse."""
        self.speed_mps = 0.0
        self.contact_mps = 0.0
        """Closing speed of the current contact; 0 without contact."""
        self.hardest_mps = 0.0
        """Greatest closing speed so far."""
        self.ranges_m = [math.inf] * len(RANGE_SENSORS)
        self.model: Any = scene.build(place or scene.layout(seed))
        self.data: Any = mujoco.MjData(self.model)
        self._rear = [int(self.model.joint(n).dofadr[0]) for n in REAR]
        fronts = [int(self.model.joint(name).bodyid[0]) for name in FRONT]
        self._front = np.isin(self.model.geom_bodyid, fronts)
        self._car = int(self.model.body("car").id)
        self._sites = [int(self.model.site(name).id) for name, _ in RANGE_SENSORS]
        self.look = (0.0, 0.0)
        """Pan and tilt of the camera, in radians; + is left and up."""
        self._lost_s = 0.0
        self._geom = np.zeros(1, dtype=np.int32)
        mujoco.mj_forward(self.model, self.data)

    @property
    def pose(self) -> tuple[float, float, float]:
        """Position x, y in metres, yaw in radians."""
        x, y = self.data.qpos[:2].tolist()
        ahead = self.data.xmat[self._car]
        return x, y, math.atan2(ahead[3], ahead[0])

    def step(self, bridges: Bridges) -> None:
        """Advance by one tick of 10 ms with these bridges."""
        model, data = self.model, self.data
        volts = self.battery.volts
        if bridges.differential:
            amps = self.idle_a + self._sides(bridges, volts)
        else:
            amps = self.idle_a + self._drive(bridges.drive, volts)
            amps += self._steer(bridges, volts)
        self.battery.draw(amps, TICK_S)
        velocity = data.qvel[:3].tolist()
        mujoco.mj_step(model, data, SUBSTEPS)
        mujoco.mj_kinematics(model, data)
        self.tick += 1
        self._measure_contact(velocity)
        self._measure_ranges()
        self._rescue()

    def _drive(self, state: Bridge, volts: float) -> float:
        """Apply torque and friction to the rear wheels (open differential); return battery A."""
        motor = self.motor
        first, second = self._rear
        wheels = self.data.qvel
        speed = 0.5 * float(wheels[first] + wheels[second]) * motor.gear
        amps = motor.current_a(state, volts, speed)
        self.peak_a = motor.peak_a(state, volts, speed)
        torque = 0.5 * motor.gear * (motor.ke * amps - motor.drag * speed)
        friction = 0.5 * motor.gear * motor.friction_nm(speed)
        stands = abs(speed) < STANDS_RAD_S and abs(torque) < friction
        self.data.ctrl[0] = self.data.ctrl[1] = 0.0 if stands else torque
        self.model.dof_frictionloss[first] = friction
        self.model.dof_frictionloss[second] = friction
        return motor.drawn_a(state, volts, speed)

    def _sides(self, bridges: Bridges, volts: float) -> float:
        """Drive each rear wheel by its own motor, with glides in front. Returns battery A."""
        # the higher friction of two geoms would count otherwise
        self.model.geom_priority[self._front] = 1
        self.model.geom_friction[self._front, 0] = GLIDES
        motor, drawn_a, peaks_a = self.motor, 0.0, []
        for side, state in enumerate((bridges.drive, bridges.steer)):
            wheel = self._rear[side]
            speed = float(self.data.qvel[wheel]) * motor.gear
            amps = motor.current_a(state, volts, speed)
            torque = 0.5 * motor.gear * (motor.ke * amps - motor.drag * speed)
            friction = 0.5 * motor.gear * motor.friction_nm(speed)
            stands = abs(speed) < STANDS_RAD_S and abs(torque) < friction
            self.data.ctrl[side] = 0.0 if stands else torque
            self.model.dof_frictionloss[wheel] = friction
            drawn_a += motor.drawn_a(state, volts, speed)
            peaks_a.append(motor.peak_a(state, volts, speed))
        self.peak_a = max(peaks_a)
        return drawn_a

    def _steer(self, bridges: Bridges, volts: float) -> float:
        """Turn the front wheels after Ackermann; return battery A."""
        amps = 0.0  # a servo has its own supply
        if bridges.servo is not None:
            self.rack.turn(bridges.servo.angle_rad, TICK_S)
        else:
            amps = self.rack.step(bridges.steer, volts, TICK_S)
        bend = math.tan(self.rack.angle) / scene.WHEELBASE_M
        half = scene.TRACK_M / 2
        for wheel, y in ((2, half), (3, -half)):
            angle = math.atan(scene.WHEELBASE_M * bend / (1.0 - y * bend))
            self.data.ctrl[wheel] = angle
        return amps

    def _measure_contact(self, velocity: list[float]) -> None:
        """Update the speed, and the impact when the car first touches an upright solid."""
        data = self.data
        ahead = data.xmat[self._car]
        vx, vy, vz = data.qvel[:3].tolist()
        self.speed_mps = float(ahead[0] * vx + ahead[3] * vy + ahead[6] * vz)
        hits = [
            normal[:3]
            for normal in data.contact.frame[: data.ncon].tolist()
            if abs(normal[2]) < 0.5
        ]
        if not hits:
            self.contact_mps = 0.0
        elif self.contact_mps == 0.0:
            self.contact_mps = max(
                abs(sum(v * n for v, n in zip(velocity, normal, strict=True))) for normal in hits
            )
        self.hardest_mps = max(self.hardest_mps, self.contact_mps)

    def _measure_ranges(self) -> None:
        data = self.data
        for index, site in enumerate(self._sites):
            ahead = np.ascontiguousarray(data.site_xmat[site][0::3])
            metres = mujoco.mj_ray(
                self.model, data, data.site_xpos[site], ahead, SOLIDS, 1, -1, self._geom
            )
            near = 0.0 <= metres <= RANGE_MAX_M
            self.ranges_m[index] = float(metres) if near else math.inf

    def _rescue(self) -> None:
        x, y, z = self.data.qpos[:3].tolist()
        inside = abs(x) < scene.ROOM_X_M / 2 and abs(y) < scene.ROOM_Y_M / 2
        upright = self.data.xmat[self._car][8] > 0.3
        if inside and upright and -0.1 < z < 1.0:
            self._lost_s = 0.0
            return
        self._lost_s += TICK_S
        if self._lost_s >= LOST_S:
            self.put(scene.START_X_M, scene.START_Y_M, 0.0)
            self._lost_s = 0.0
            self.rescues += 1

    def put(self, x_m: float, y_m: float, yaw_rad: float) -> None:
        """Put the car on its wheels, at rest."""
        mujoco.mj_resetData(self.model, self.data)
        self.data.qpos[:2] = x_m, y_m
        self.data.qpos[3:7] = math.cos(yaw_rad / 2), 0, 0, math.sin(yaw_rad / 2)
        self.rack.angle = 0.0
        mujoco.mj_forward(self.model, self.data)


def looking(soc: Soc, profile: config.Profile, last: tuple[float, float]) -> tuple[float, float]:
    """Return pan and tilt of the camera by the pulses of its servos; one without pulses keeps its
    last angle, in radians."""
    pan, tilt = (
        math.radians(deg) if servo and (deg := aimed_deg(soc, servo)) is not None else before
        for servo, before in zip(map(profile.servos.get, ("pan", "tilt")), last, strict=True)
    )
    return pan, tilt


def publish(soc: Soc, world: World, time_ns: int) -> None:
    """Write the world's state into the Soc."""
    with writing(soc.world) as out:
        out.time_ns, out.tick, out.seed = time_ns, world.tick, world.seed
        out.battery_v, out.battery_a = world.battery.volts, world.battery.amps
        out.peak_a = world.peak_a
        out.speed_mps, out.contact_mps = world.speed_mps, world.contact_mps
        out.hardest_mps = world.hardest_mps
        out.x_m, out.y_m, out.yaw_rad = world.pose
        out.pan_rad, out.tilt_rad = world.look
        out.ranges = len(world.ranges_m)
        out.range_m[: len(world.ranges_m)] = world.ranges_m
        out.nq = world.model.nq
        out.qpos[: world.model.nq] = world.data.qpos.tolist()


def run(soc: Soc, profile: config.Profile, seed: int, ended: list[int]) -> None:
    """Tick by the clock until `ended` contains a signal.

    A loop that falls behind by more than five ticks skips the lost time.
    """
    wiring = Wiring(profile.motors, profile.pca9685.oe, profile.hat_hz(), armed=False)
    world = World(seed, profile.battery, losses=wiring.losses)
    soc.hat.off_percent = 100.0 * (profile.pca9685.clock - 1.0)
    # the previous writer was killed during a write
    soc.world.sequence += soc.world.sequence % 2
    rescues = 0
    due_s = time.monotonic()
    log.info("seed %d, %.0f Hz", seed, 1 / TICK_S)
    while not ended:
        world.step(wiring.bridges(soc))
        world.look = looking(soc, profile, world.look)
        publish(soc, world, time.monotonic_ns())
        if world.rescues != rescues:
            rescues = world.rescues
            log.info("car put back on its wheels")
        due_s += TICK_S
        left_s = due_s - time.monotonic()
        if left_s > 0:
            time.sleep(left_s)
        elif left_s < -5 * TICK_S:
            due_s = time.monotonic()


def main(argv: list[str] | None = None) -> int:
    """Run the process. Returns 0 after SIGTERM or SIGINT, 2 for unreadable input."""
    parser = argparse.ArgumentParser(prog="python -m fpvbench.world.process")
    parser.add_argument("--soc", type=Path, required=True)
    parser.add_argument("--profile", type=Path, required=True)
    parser.add_argument("--set", action="append", default=[], dest="overrides")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(argv)
    logging.basicConfig(level=log_level(), format="%(name)s: %(message)s")
    ended: list[int] = []
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda received, _: ended.append(received))
    try:
        profile = profiles.load(options.profile, options.overrides)
        soc = attach(options.soc)
    except (config.ConfigError, OSError, ValueError) as fault:
        print(f"world: {fault}", file=sys.stderr)
        return 2
    run(soc, profile, options.seed, ended)
    return 0


if __name__ == "__main__":
    with contextlib.suppress(BrokenPipeError):
        sys.exit(main())

"""Cars to wire: every profile that ships, and some further variants."""

import tomllib

from fpvcar.config import Profile, profiles
from fpvcar.runtime import paths

ODD = {
    "low-pins": """
        car.name = "A"
        camera.source = "v4l2"
        depth.source = "v4l2"
        motors.left = {forward = 4, reverse = 17}
        motors.right = {forward = 5, reverse = 6}
    """,
    "two-boards": """
        car.name = "B"
        motors.drive = {driver = "l298n", enable = 12, forward = 7, reverse = 8}
        motors.steer = {forward = 24, reverse = 23}
    """,
    "hat-servo": """
        car.name = "C"
        pca9685 = {oe = 25, bus = 3}
        battery.address = 0x41
        motors.drive = {driver = "motor-hat", port = 3}
        motors.steer = {driver = "hat-servo", channel = 14}
    """,
    "sensors": """
        car.name = "D"
        motors.drive = {forward = 17, reverse = 27}
        motors.steer = {driver = "servo", signal = 12}
        sensors.tof.front = {bus = 3}
        sensors.tof.left = {power = 4, address = 0x30}
        sensors.tof.right = {power = 14, address = 0x31}
        sensors.ultrasound.back = {trigger = 5, echo = 6}
    """,
}
CARS: dict[str, Profile] = {
    path.stem: profiles.load(path) for path in sorted(paths.HARDWARE.glob("*.toml"))
} | {name: profiles.parse(tomllib.loads(text)) for name, text in ODD.items()}

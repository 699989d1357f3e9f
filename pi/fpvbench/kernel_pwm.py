"""Simulated /sys/class/pwm: a tree of files, with the kernel's rules for each write.

Rules of drivers/pwm/core.c and sysfs.c; limits of the period as of a PCA9685. `install` replaces
the one function through which the product writes values, also in processes forked after that.
"""

import errno
import os
from pathlib import Path

from fpvcar.devices.linux import pins_off

PI_3, RP1 = "3f20c000.pwm", "1f00098000.pwm"
SHORTEST_NS, LONGEST_NS = 655_360, 41_779_200


class FakePwm:
    """PWM chip, not exported yet. A busy channel belongs to another driver of the kernel."""

    def __init__(self, folder: Path, device: str = PI_3, npwm: int = 2, number: int = 0) -> None:
        self.device, self.busy = device, set[int]()
        self.chips, self.npwm = folder / "class", npwm
        self.chip = folder / "devices" / device / f"pwm/pwmchip{number}"
        self.chips.mkdir(parents=True, exist_ok=True)
        if self.chip.exists():  # as another process has left it
            return
        self.chip.mkdir(parents=True)
        (self.chip / "device").symlink_to("../..")
        (self.chip / "npwm").write_text(f"{npwm}\n")
        (self.chip / "export").touch()
        (self.chips / self.chip.name).symlink_to(self.chip)

    def install(self) -> None:
        """Make this chip's class the machine's. A test restores both by monkeypatch."""
        pins_off.PWM_CLASS, pins_off.store = str(self.chips), self.store

    def soft(self, gpio: int) -> None:
        """Make it a chip of the overlay pwm-gpio."""
        node = self.chip / "device/of_node"
        node.mkdir()
        (node / "compatible").write_bytes(b"pwm-gpio\0")
        (node / "gpios").write_bytes(b"".join(one.to_bytes(4, "big") for one in (7, gpio, 0)))

    def value(self, channel: int, name: str) -> str:
        path = self.chip / f"pwm{channel}/{name}"
        return pins_off.read(str(path)) if path.exists() else "0"

    def duty(self, channel: int) -> float:
        """Return the share of the time for which the output is high."""
        if self.value(channel, "enable") != "1":
            return 0.0
        return int(self.value(channel, "duty_cycle")) / int(self.value(channel, "period"))

    def store(self, file: int, value: object) -> None:
        """Write a value as the kernel does, or raise its OSError."""
        path = Path(os.readlink(f"/proc/self/fd/{file}"))
        if path.name == "export":
            self._export(int(str(value)))
            return
        number = self._refusal(path.parent, path.name, value)
        if number:
            raise OSError(number, os.strerror(number))
        os.pwrite(file, f"{value}\n".encode(), 0)  # not truncated: others read the first line
        self.changed(int(path.parent.name.removeprefix("pwm")))

    def changed(self, channel: int) -> None:
        """Do nothing; a bench overrides it, to show the output at its chip."""

    def _export(self, channel: int) -> None:
        folder = self.chip / f"pwm{channel}"
        if channel >= self.npwm:
            raise OSError(errno.ENODEV, os.strerror(errno.ENODEV))
        if channel in self.busy or folder.exists():
            raise OSError(errno.EBUSY, os.strerror(errno.EBUSY))
        folder.mkdir()
        for name, value in (("period", 0), ("duty_cycle", 0), ("enable", 0)):
            (folder / name).write_text(f"{value}\n")
        (folder / "polarity").write_text("normal\n")

    def _refusal(self, channel: Path, name: str, value: object) -> int:
        if (self.chip / "gone").exists():
            return errno.ENODEV
        if (channel / f"broken-{name}").exists():
            return errno.EIO
        number = int(channel.name.removeprefix("pwm"))
        period, duty = (int(self.value(number, one)) for one in ("period", "duty_cycle"))
        if name == "polarity":
            return errno.EBUSY if self.value(number, "enable") == "1" else 0
        if name == "period":
            period = int(str(value))
        elif name == "duty_cycle":
            duty = int(str(value))
        fits = SHORTEST_NS <= period <= LONGEST_NS or (name == "enable" and str(value) == "0")
        return 0 if period and duty <= period and fits else errno.EINVAL

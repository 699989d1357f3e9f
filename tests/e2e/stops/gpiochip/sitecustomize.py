"""Give `fpvcar wheels` of a bench a gpiochip and a PWM: put this folder on PYTHONPATH.

Only the program's own calls to the kernel are replaced. Levels go to the bench's chip. The owner of
a line is looked up in gpio_kernel.py, as in a kernel, by a socket for each request, which closes
however its owner dies. The chip makes pulses by itself. So a pulse that a stopped process has begun
continues, as a line keeps a level. The real calls and the real thread are tested in a guest
(tests/guest_sensors). The PWM is a tree of files with the kernel's rules. Its outputs are the
bench's pins 12 and 13, and outlive the process.
"""

import json
import os
import runpy
import socket
import sys
from pathlib import Path
from typing import Any

runpy.run_path(str(Path(__file__).parents[1] / "blockable" / "sitecustomize.py"))


def _give(runtime: Path) -> None:
    from fpvbench import soc as chip
    from fpvcar.devices.linux import gpio, gpiochip
    from fpvcar.devices.pins import PinsRefused

    class Lines:
        def __init__(self, line, gpios):  # type: ignore[no-untyped-def]
            self.gpios, self.line = tuple(gpios), line
            self.soc = chip.attach(runtime / "soc")

        def set(self, levels):  # type: ignore[no-untyped-def]
            for number, level in levels.items():
                self.soc.pin[number].pwm = 0
                self.soc.pin[number].out = level

        def close(self):  # type: ignore[no-untyped-def]
            self.line.close()

    class Chip:
        label, lines = "pinctrl-bcm2835", 54

        def request(self, gpios, flags, consumer, debounce_us=0):  # type: ignore[no-untyped-def]
            assert flags == gpiochip.OUTPUT | gpiochip.PULL_DOWN
            line = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            line.connect(str(runtime / "gpiochip"))
            line.send(json.dumps([list(gpios), consumer]).encode())
            holder = line.recv(100).decode()
            if holder != "yours":
                line.close()
                raise PinsRefused(f"GPIO {gpios} is taken by {holder!r}")
            return Lines(line, gpios)  # type: ignore[no-untyped-call]

        def check(self):  # type: ignore[no-untyped-def]
            pass

        def close(self):  # type: ignore[no-untyped-def]
            pass

    class Pulses:
        def __init__(self, put):  # type: ignore[no-untyped-def]
            self.soc = chip.attach(runtime / "soc")

        def run(self, number, period_s, on_s):  # type: ignore[no-untyped-def]
            pwm = round(on_s * 1e6) << 32 | round(period_s * 1e6)
            self.soc.pin[number].pwm = pwm

        def stop(self, number):  # type: ignore[no-untyped-def]
            pass

        def close(self):  # type: ignore[no-untyped-def]
            pass

    support = Path(__file__).parents[3] / "support"
    FakePwm: Any = runpy.run_path(str(support / "pins/fake_pwm.py"))["FakePwm"]

    class Pwm(FakePwm):  # type: ignore[misc]
        def changed(self, channel):  # type: ignore[no-untyped-def]
            duty, period = (int(self.value(channel, name)) for name in ("duty_cycle", "period"))
            runs = duty and self.value(channel, "enable") == "1"
            pin = chip.attach(runtime / "soc").pin[(12, 13)[channel]]
            pin.out, pin.mode = 0, chip.MODE_OUTPUT
            pin.pwm = duty // 1000 << 32 | period // 1000 if runs else 0

    Pwm(runtime / "pwm").install()
    gpio.ROOT = runtime / "root"
    gpiochip.find = Chip  # type: ignore[assignment]
    setattr(gpio, "Pulses", Pulses)  # noqa: B010  # mypy: it is imported there


if "wheels" in sys.orig_argv:
    _give(Path(os.environ["RUNTIME_DIRECTORY"]))

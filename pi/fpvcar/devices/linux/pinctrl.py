"""Lets go of pins past every daemon: inputs with pull-down, as after a reset.

An input ignores whatever DMA still writes to it. For `ExecStopPost=` of pigpiod and
for the helper that `wheels` asks when pigpiod hangs; needs root or group gpio.
"""

import shutil
import subprocess
from collections.abc import Sequence

TOOLS = ("pinctrl", "raspi-gpio")
"""Newest first; raspi-gpio is what images before Bookworm have."""
TIMEOUT_S = 2.0


class NoPinTool(OSError):
    """Neither tool is there, or it failed."""


def let_go(pins: Sequence[int]) -> None:
    """Runs `pinctrl set 17,27 ip pd`. Raises NoPinTool, which says what to install."""
    listed = ",".join(str(gpio) for gpio in pins)
    for tool in TOOLS:
        path = shutil.which(tool)
        if path is None:
            continue
        argv = [path, "set", listed, "ip", "pd"]
        try:
            subprocess.run(
                argv, check=True, capture_output=True, text=True, timeout=TIMEOUT_S
            )
        except subprocess.TimeoutExpired:
            raise NoPinTool(f"{tool} took more than {TIMEOUT_S} s") from None
        except subprocess.CalledProcessError as fault:
            reason = fault.stderr.strip() or f"status {fault.returncode}"
            raise NoPinTool(f"{' '.join(argv)}: {reason}") from None
        return
    raise NoPinTool(
        f"GPIO {listed} not let go: neither pinctrl nor raspi-gpio is installed "
        "(apt install raspi-utils)"
    )

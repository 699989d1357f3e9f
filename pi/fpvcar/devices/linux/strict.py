"""Checks whether the kernel releases the pins of a dead process.

Raspberry Pi's kernels keep an output driven ("persist_gpio_outputs"): a motor would run
on after the death of `wheels` and its guardian. dtparam=strict_gpiod turns it into an
input again (raspberrypi/linux, pull requests 6117 and 6150). Not tried on metal.
"""

from pathlib import Path

from fpvcar.devices.pins import PinsLost
from fpvcar.runtime.texts import Text

STRICT = Text(
    "strict",
    "a motor would run on when its process dies: add the line dtparam=strict_gpiod to "
    "/boot/firmware/config.txt (sudo fpvcar setup does) and reboot; to drive all the same: "
    "--unsafe, or pins.unsafe = true",
)

MODULES = {
    "pinctrl-bcm2835": "pinctrl_bcm2835",
    "pinctrl-bcm2711": "pinctrl_bcm2835",
    "pinctrl-rp1": "pinctrl_rp1",
}
"""Label of a chip -> the module with the parameter."""
LABEL = "pinctrl-bcm2835"
PARAMETER = "sys/module/{}/parameters/persist_gpio_outputs"
ADVICE = (
    "add the line dtparam=strict_gpiod to /boot/firmware/config.txt (sudo fpvcar setup "
    "does) and reboot; to drive all the same: --unsafe, or pins.unsafe = true"
)


def require_strict(label: str, root: Path = Path("/")) -> None:
    """Raise PinsLost unless the kernel releases pins."""
    path = root / PARAMETER.format(MODULES[label])
    try:
        value = path.read_text().strip()
    except OSError as fault:
        raise PinsLost(
            f"{path}: {fault.strerror}: a motor may run on when its process "
            f"dies; sudo apt full-upgrade, then {ADVICE}"
        ) from None
    if value not in ("N", "0"):
        raise PinsLost(STRICT)


def loose_reason(root: Path) -> str:
    """Return the reason for any chip as text; "" if the kernel releases pins."""
    labels = (label for label, module in MODULES.items() if (root / "sys/module" / module).exists())
    try:
        require_strict(next(labels, LABEL), root)
    except PinsLost as fault:
        return str(fault)
    return ""

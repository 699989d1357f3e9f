"""Modules for a VM's kernel that Debian's kernel lacks: gpio-sim, pwm-pca9685.

The VM has no compiler. So the modules are made in a Debian of the VM's release, from the
source and headers of that exact kernel.
"""

from dataclasses import dataclass
from pathlib import Path

from testkit.prepared import Prepared, build
from testkit.vm.image import PIPES, Image, Recipe

SCRIPT = Path(__file__).with_name("modules.sh")
GPIO_SIM, PWM_PCA9685 = "gpio-sim", "pwm-pca9685"
BUILD_S = 900.0


@dataclass(frozen=True)
class Modules(Prepared):
    """A folder with NAME.ko of each module. The image of the VM is made before it."""

    vm: Recipe = PIPES
    kind = "modules"
    takes_s = 60.0

    @property
    def title(self) -> str:
        """The words of a progress line."""
        return f"kernel modules of tests/{self.vm.source.name}"

    def recipe(self) -> str:
        return f"{Image(self.vm.folder).version} {SCRIPT.read_text()}"

    def fill(self, folder: Path) -> None:
        folder.mkdir()
        version = Image(self.vm.folder).version
        upstream = ".".join(version.split(".")[:2])
        packages = f"linux-headers-{version},linux-source-{upstream},gcc,make,xz-utils"
        build(
            [
                "mmdebstrap",
                "--quiet",
                "--variant=apt",
                "--format=null",
                '--aptopt=APT::Install-Recommends "false"',
                f"--include={packages}",
                f'--customize-hook=sh "{SCRIPT}" "$1" "{version}" "{folder}"',
                self.vm.release,
                "/dev/null",
            ],
            BUILD_S,
        )


def module(name: str, vm: Recipe = PIPES) -> Path:
    """Return NAME.ko for a VM. Raises FileNotFoundError if it was not made."""
    return Modules(vm).folder / f"{name}.ko"

"""Build modules for the guest's kernel that Debian's kernel lacks: gpio-sim, pwm-pca9685.

The guest has no compiler. So the modules are made in a Debian of the guest's release, from the
source and headers of that exact kernel, and kept in the cache beside the image.
"""

import fcntl
import hashlib
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.guest.image import cache, host_release

SCRIPT = Path(__file__).with_name("modules.sh")
GPIO_SIM, PWM_PCA9685 = "gpio-sim", "pwm-pca9685"
BUILD_S = 900.0


def module(name: str, version: str, release: str | None = None) -> Path:
    """Return NAME.ko for a kernel ("6.1.0-56-amd64") of a release, by default the host's."""
    recipe = hashlib.sha256(SCRIPT.read_bytes()).hexdigest()[:16]
    folder = cache().parent / "modules"
    made = folder / f"{version}-{recipe}"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not made.exists():
            print(f"  guest: building modules for {version}", file=sys.stderr)
            with tempfile.TemporaryDirectory(dir=folder) as temporary:
                out = Path(temporary) / "out"
                out.mkdir()
                _build(version, release or host_release(), out)
                out.replace(made)
    return made / f"{name}.ko"


def _build(version: str, release: str, out: Path) -> None:
    upstream = ".".join(version.split(".")[:2])
    packages = f"linux-headers-{version},linux-source-{upstream},gcc,make,xz-utils"
    done = subprocess.run(
        [
            "mmdebstrap",
            "--quiet",
            "--variant=apt",
            "--format=null",
            '--aptopt=APT::Install-Recommends "false"',
            f"--include={packages}",
            f'--customize-hook=sh "{SCRIPT}" "$1" "{version}" "{out}"',
            release,
            "/dev/null",
        ],
        capture_output=True,
        text=True,
        timeout=BUILD_S,
    )
    if done.returncode:
        raise RuntimeError(f"modules: {done.stderr.strip()[-2000:]}")

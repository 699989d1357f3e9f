"""Builds what Debian's kernel has not, for the guest's kernel: gpio-sim.

The module is made here, as the guest has no compiler, from the distribution's own
source and headers of that very kernel, and kept in the cache beside the image.
irq_sim.c, which the kernel lacks too, is linked into it.
"""

import fcntl
import hashlib
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.guest.image import cache

SOURCES = ("drivers/gpio/gpio-sim.c", "drivers/gpio/gpiolib.h", "kernel/irq/irq_sim.c")
MAKEFILE = "obj-m := gpio-sim.o\ngpio-sim-y := sim.o irq_sim.o\n"
NOT_EXPORTED = ("irq_to_desc(irqnum)", "irq_data_to_desc(irq_get_irq_data(irqnum))")
"""What modules cannot call, and what does the same."""
BUILD_S = 600.0


def gpio_sim(version: str) -> Path:
    """gpio-sim.ko for a kernel ("6.1.0-56-amd64")."""
    recipe = hashlib.sha256(Path(__file__).read_bytes()).hexdigest()[:16]
    made = cache().parent / "modules" / f"gpio-sim-{version}-{recipe}.ko"
    made.parent.mkdir(parents=True, exist_ok=True)
    with (made.parent / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not made.exists():
            print(f"  guest: building gpio-sim for {version}", file=sys.stderr)
            with tempfile.TemporaryDirectory(dir=made.parent) as folder:
                _build(version, Path(folder)).replace(made)
    return made


def _run(folder: Path, *argv: str) -> str:
    done = subprocess.run(
        argv, cwd=folder, capture_output=True, text=True, timeout=BUILD_S
    )
    if done.returncode:
        raise RuntimeError(f"{' '.join(argv)}: {done.stderr.strip()[-2000:]}")
    return done.stdout


def _dependency(folder: Path, package: str, begins: str) -> str:
    words = _run(folder, "apt-cache", "depends", package).split()
    return next(word for word in words if word.startswith(begins) and word != package)


def _build(version: str, folder: Path) -> Path:
    upstream = ".".join(version.split(".")[:2])
    headers = f"linux-headers-{version}"
    packages = (
        headers, f"linux-source-{upstream}",
        _dependency(folder, headers, "linux-headers-"),
        _dependency(folder, headers, "linux-kbuild-"),
    )  # fmt: skip
    _run(folder, "apt-get", "download", "-o", "APT::Sandbox::User=root", *packages)
    for package in folder.glob("*.deb"):
        _run(folder, "dpkg-deb", "-x", str(package), ".")
    usr = folder / "usr"
    names = [f"linux-source-{upstream}/{name}" for name in SOURCES]
    _run(usr, "tar", "-xf", f"src/linux-source-{upstream}.tar.xz", *names)
    work = folder / "work"
    work.mkdir()
    for name in names:
        shutil.copy(usr / name, work)
    (work / "gpio-sim.c").rename(work / "sim.c")
    source = (work / "irq_sim.c").read_text()
    (work / "irq_sim.c").write_text(source.replace(*NOT_EXPORTED))
    (work / "Makefile").write_text(MAKEFILE)
    tree = usr / "src" / headers
    for name in ("Makefile", ".kernelvariables"):  # they name where they are installed
        text = (tree / name).read_text()
        (tree / name).write_text(text.replace("/usr/", f"{usr}/"))
    _run(tree, "make", f"M={work}", "modules")
    return work / "gpio-sim.ko"

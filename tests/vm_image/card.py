"""A card in a VM: a copy of the image that QEMU boots."""

import json
import os
import struct
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from testkit.network.ports import free_port
from testkit.vm.machine import STEADY, Machine

from tests.vm_units.car import ROOT, Car

BUILD_S, BOOT_S, ANSWER_S = 3600.0, 1800.0, 60.0
SECTOR = 512
CARD_BYTES = 3 << 30
"""The card is larger than the image, as every card is."""


def build(out: Path, debs: Path) -> Path:
    """Return the image: FPVCAR_IMAGE, or a new one of these packages."""
    if "FPVCAR_IMAGE" in os.environ:
        return Path(os.environ["FPVCAR_IMAGE"])
    done = subprocess.run(
        [ROOT / "tools" / "image.sh", out],
        env={**os.environ, "DEBS": str(debs)},
        capture_output=True,
        text=True,
        timeout=BUILD_S,
    )
    assert done.returncode == 0, done.stderr[-8000:]
    return out / "fpvcar.img"


def partition(image: Path, number: int) -> int:
    """Return the offset of a partition in bytes."""
    with image.open("rb") as file:
        file.seek(446 + 16 * (number - 1) + 8)
        (sector,) = struct.unpack("<I", file.read(4))
    return int(sector) * SECTOR


def firmware(image: Path, *words: str | Path) -> None:
    """Copy files into or out of the first partition, named `::`, by mcopy."""
    place = f"{image}@@{partition(image, 1)}"
    subprocess.run(["mcopy", "-n", "-o", "-i", place, *words], check=True, timeout=ANSWER_S)


def root_file(image: Path, command: str) -> str:
    """Return the output of a command of debugfs on the second partition."""
    place = f"{image}?offset={partition(image, 2)}"
    done = subprocess.run(
        ["debugfs", "-R", command, place], check=True, capture_output=True, text=True
    )
    return done.stdout


class Card(Machine):
    """A VM whose card is `disk`; all writes to it stay."""

    def __init__(self, disk: Path, key: Path, share: Path) -> None:
        super().__init__(key, None, BOOT_S)
        for name in ("vmlinuz", "initrd.img"):
            firmware(disk, f"::{name}-*", self.home)
        self._page_port = free_port()
        self._start(
            "qemu-system-aarch64",
            "-machine",
            "virt",
            "-cpu",
            "cortex-a53",
            *STEADY,
            "-m",
            "1024",
            "-nodefaults",
            "-display",
            "none",
            "-serial",
            f"file:{self.console}",
            "-kernel",
            str(next(self.home.glob("vmlinuz-*"))),
            "-initrd",
            str(next(self.home.glob("initrd.img-*"))),
            "-append",
            "console=ttyAMA0 root=LABEL=RASPIROOT rw",
            "-drive",
            f"file={disk},if=virtio,format=raw,cache=unsafe",
            "-device",
            "virtio-rng-pci",
            "-netdev",
            f"user,id=cable,hostfwd=tcp:127.0.0.1:{self.ssh_port}-:22,"
            f"hostfwd=tcp:127.0.0.1:{self._page_port}-:8080",
            "-device",
            "virtio-net-pci,netdev=cable,romfile=",
            "-virtfs",
            f"local,path={share},mount_tag=share,security_model=none",
        )

    def ask(self, path: str, answers: dict[str, str] | None = None) -> str:
        """Return the page's answer to a request, a POST if there are answers. Raises OSError."""
        body = None if answers is None else json.dumps(answers).encode()
        request = urllib.request.Request(f"http://127.0.0.1:{self._page_port}{path}", body)
        with urllib.request.urlopen(request, timeout=ANSWER_S) as response:
            return str(response.read().decode())

    def page(self, has: str) -> float:
        """Wait until the first page contains some words; return the seconds."""
        begin_s = time.monotonic()
        while True:
            try:
                if has in self.ask("/"):
                    return time.monotonic() - begin_s
            except (OSError, urllib.error.URLError):
                pass
            assert self._process.poll() is None, "QEMU has ended"
            assert time.monotonic() < begin_s + BOOT_S, self.log()[-8000:]
            time.sleep(1)


class ImageCar(Car):
    """A car that runs from the image."""

    def __init__(self, image: Path, share: Path, disk: Path) -> None:
        self.share, self.disk, self.pins = share, disk, "pigpio"
        self._key = disk.with_name("key")
        words = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(self._key)]
        subprocess.run(words, check=True)
        subprocess.run(["cp", "--sparse=always", image, disk], check=True)
        os.truncate(disk, CARD_BYTES)
        firmware(disk, self._key.with_name("key.pub"), "::authorized_keys")
        self.vm = self.card = Card(disk, self._key, share)

    def _boot(self) -> Machine:
        self.vm = self.card = Card(self.disk, self._key, self.share)
        self.card.__enter__()
        self.mount()
        return self.card

    def cut(self) -> None:
        """Cut the power, check a copy of the root as a boot does, and boot again."""
        self.vm.close()
        copy = self.disk.with_name("root.ext4")
        skip = f"skip={partition(self.disk, 2)}"
        words = [f"if={self.disk}", f"of={copy}", "bs=4M", "iflag=skip_bytes", skip, "conv=sparse"]
        subprocess.run(["dd", "status=none", *words], check=True)
        checked = subprocess.run(["e2fsck", "-f", "-p", copy], capture_output=True, text=True)
        copy.unlink()
        assert checked.returncode in (0, 1), (checked.returncode, checked.stdout, checked.stderr)
        self.vm = self._boot()

    def mount(self) -> None:
        """Mount the share."""
        options = "trans=virtio,version=9p2000.L,msize=262144"
        self.check(f"mkdir -p /share; mount -t 9p -o {options} share /share")

    def status(self) -> dict[str, Any]:
        """Return the car's status by its page."""
        return dict(json.loads(self.card.ask("/api/status")))

    def answer(self, **answers: str) -> dict[str, Any]:
        """Answer the questions of the first boot; return the page's answer."""
        return dict(json.loads(self.card.ask("/api/first-boot", answers)))

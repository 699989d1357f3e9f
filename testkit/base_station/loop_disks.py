"""Real disks on loop devices that lose power, fill up and are unmounted. Needs root.

A power cut is a clone of the disk's image at that moment, mounted in place of the disk: bytes that
the file system has not yet written to the device are lost. The images are in memory.
"""

import contextlib
import ctypes
import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from testkit.recorder.card import FICLONE, image, mounted, run

BELOW_MB = 2000
FILLER = ".filler"
GONE_S = 30.0
CLONE_NEWNS = 0x20000
MEMORY = Path("/dev/shm")


def clone(source: Path, target: Path) -> None:
    with source.open("rb") as live, target.open("wb") as copy:
        fcntl.ioctl(copy, FICLONE, live.fileno())


class LoopDisk:
    """Disk with a copy of a prepared file system, mounted at `path`."""

    def __init__(self, prepared: Path, path: Path) -> None:
        self.path, self._prepared = path, prepared
        self._image = prepared.with_name(f"{path.name}.live")
        path.mkdir()

    def insert(self) -> None:
        """Replace the disk by a new copy of the prepared one."""
        self.unmount()
        self._image.unlink(missing_ok=True)
        clone(self._prepared, self._image)
        self.mount()

    def mount(self) -> None:
        """Mount the disk, if it is not. Remove files that were written below it meanwhile."""
        if os.path.ismount(self.path):
            return
        for entry in self.path.iterdir():
            shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
        self._wait_until_free()
        # btrfs takes an older state of a known disk for a second disk.
        run("btrfs", "device", "scan", "--forget")
        run("mount", "-o", "loop,noatime", self._image, self.path)

    def _wait_until_free(self) -> None:
        """Wait until a lazy `umount` has ended."""
        until_s = time.monotonic() + GONE_S
        while any(self._is_behind(device) for device in Path("/sys/block").glob("loop*/loop")):
            assert time.monotonic() < until_s, f"{self._image} is in use"
            time.sleep(0.01)

    def _is_behind(self, device: Path) -> bool:
        with contextlib.suppress(OSError):
            return (device / "backing_file").read_text().strip() == str(self._image)
        return False

    def unmount(self) -> None:
        """Unmount the disk, also while a process has a file of it open."""
        if os.path.ismount(self.path):
            run("umount", "-l", self.path)

    def cut_power(self) -> None:
        """Cut the power, and mount the disk again."""
        cut = self._image.with_suffix(".cut")
        clone(self._image, cut)
        self.unmount()
        self._wait_until_free()
        cut.replace(self._image)
        self.mount()

    def fill(self, left: int) -> None:
        """Leave at most so many bytes free."""
        usage = os.statvfs(self.path)
        size = usage.f_bavail * usage.f_frsize - left
        with (self.path / FILLER).open("wb") as filler:
            while size > left:
                try:
                    os.posix_fallocate(filler.fileno(), 0, size)
                    return
                except OSError:
                    size -= size // 16

    def make_room(self) -> None:
        """Remove what `fill` has written."""
        filler = self.path / FILLER
        if filler.exists():
            os.truncate(filler, 0)
            filler.unlink()


@contextmanager
def own_mounts() -> Iterator[None]:
    """Give this process a mount namespace within the context: another one that is made meanwhile
    would keep our disks mounted."""
    before, folder = os.open("/proc/self/ns/mnt", os.O_RDONLY | os.O_CLOEXEC), Path.cwd()
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.unshare(CLONE_NEWNS) == 0, os.strerror(ctypes.get_errno())
    try:
        run("mount", "--make-rprivate", "/")
        yield
    finally:
        assert libc.setns(before, CLONE_NEWNS) == 0, os.strerror(ctypes.get_errno())
        os.chdir(folder)  # setns leads to the root
        os.close(before)


@contextmanager
def loop_disks(**prepared: tuple[int, str]) -> Iterator[dict[str, LoopDisk]]:
    """Yield disks by name: MB and kind of the file system of each. A btrfs has the
    subvolume `store`."""
    with own_mounts(), tempfile.TemporaryDirectory(dir=MEMORY) as folder, ExitStack() as stack:
        home = Path(folder)
        below_image = image(home / "below.img", BELOW_MB, "mkfs.btrfs", "-q", "-f")
        below = stack.enter_context(mounted(below_image, home / "below"))
        disks = {}
        for name, (megabytes, kind) in prepared.items():
            force = "-f" if kind == "btrfs" else "-F"
            file = image(below / f"{name}.img", megabytes, f"mkfs.{kind}", "-q", force)
            if kind == "btrfs":
                with mounted(file, home / f"{name}-prepared") as path:
                    run("btrfs", "subvolume", "create", path / "store")
            disks[name] = LoopDisk(file, home / name)
            stack.callback(disks[name].unmount)
        yield disks

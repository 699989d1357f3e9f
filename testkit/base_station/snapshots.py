"""Store in a subvolume of a real btrfs, and its replica on another host."""

import subprocess
import time
from pathlib import Path

import pytest

from fpvstation.__main__ import main
from fpvstation.replicas.rdcp import Rdcp
from fpvstation.replicas.remote import CopyProgress
from fpvstation.snapshots import send, tools
from fpvstation.snapshots.send import Sender, Target
from fpvstation.store.disk import Folder
from fpvstation.store.store import Store
from testkit.base_station.stored import NAME, put
from testkit.network.pipes import Tools
from testkit.recorder.card import run

SECOND = NAME.replace("0001", "0002")


class Rig:
    """Store in a subvolume of its own, with the files that `setup` writes below `etc`."""

    def __init__(self, disk: Path, home: Path) -> None:
        self.root, self.etc, self.home = disk / "store", home / "etc", home
        run("btrfs", "subvolume", "create", self.root)
        self.store = Store(Folder(self.root))
        self.store.open("")
        put(self.store)
        self.etc.mkdir()

    def verb(self, verb: str, *arguments: str) -> int:
        return main(["snapshots", verb, "--store", str(self.root), *arguments])

    def set_up(self, *arguments: str) -> None:
        assert self.verb("setup", "--etc", str(self.etc), *arguments) == 0
        self.conf = self.etc / "btrbk/fpvstation.conf"

    def hour(self) -> list[Path]:
        """Run the command line of the timer's unit; return the snapshots."""
        run("sync", "-f", self.root)
        unit = (self.etc / f"systemd/system/{tools.UNIT}.service").read_text()
        for line in unit.splitlines():
            if line.startswith("ExecStart="):
                run(*map(self._own_lock, line.removeprefix("ExecStart=").split()))
        time.sleep(1.01)  # the names have seconds
        return [snapshot.path for snapshot in tools.snapshots_of(self.root)]

    def _own_lock(self, word: str) -> str:
        """Return a copy of btrbk's configuration with a lock file of its own: tests run side by
        side on one computer, whose lock folder needs systemd."""
        if word != str(self.conf):
            return word
        own = self.etc / "own-lock.conf"
        own.write_text(self.conf.read_text().replace("/run/lock", str(self.etc)))
        return str(own)


def refusal(capsys: pytest.CaptureFixture[str], *argv: str) -> str:
    """Return the message of a refused command."""
    assert main(["snapshots", *argv]) == 1
    return capsys.readouterr().err


class Replica:
    """Second btrfs on a host that the tests' sshd serves, and rdcp."""

    def __init__(self, rig: Rig, running: Tools, disk: Path) -> None:
        self.rig, self.folder = rig, disk / "replica"
        self.folder.mkdir()
        self.remote = Target(f"host1:{self.folder}", running.ssh)
        self.options = ["--ssh", running.ssh, "--remote-path", str(running.folder)]
        self.moved = 0

    def claim(self) -> None:
        self.remote.run(send.LIST + send.CLAIM, self.rig.store.id, "")

    def send(self, *options: str) -> list[send.Sent]:
        """Send all; note the bytes moved, also by a transfer that is cut."""
        before = 0

        def note(progress: CopyProgress) -> None:
            nonlocal before
            self.moved += progress.moved - before
            before = progress.moved

        root = self.rig.root
        rdcp = Rdcp(self.remote.place, root, [*self.options, *options])
        made = []
        for sent in Sender(root, self.rig.store.id, self.remote, rdcp).run(note):
            made.append(sent)
            before = 0
        return made

    def names(self) -> list[str]:
        """Return the snapshots there, each compared with the one here."""
        names = sorted(path.name for path in self.folder.glob("store.*"))
        for name in names:
            run(
                "diff",
                "-r",
                "--exclude=.snapshots",
                self.rig.root / ".snapshots" / name,
                self.folder / name,
            )
            mine = shown(self.rig.root / ".snapshots" / name, "UUID")
            assert shown(self.folder / name, "Received UUID") == mine
        return names

    def is_clean(self) -> bool:
        left = [*self.folder.glob(".incoming/*"), *self.rig.root.glob(".snapshots/.outgoing/*m")]
        return not left


def shown(subvolume: Path, field: str) -> str:
    """Return a field of a subvolume."""
    argv = ["btrfs", "subvolume", "show", str(subvolume)]
    text = subprocess.run(argv, check=True, capture_output=True, text=True).stdout
    return text.partition(f"\t{field}:")[2].split()[0]

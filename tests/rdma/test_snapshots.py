"""Snapshots of a store on a real btrfs, by the real btrbk, and sent to another btrfs."""

import contextlib
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from fpvcar.runtime.units import MIB
from fpvstation.__main__ import main
from fpvstation.errors import StationError
from fpvstation.mirror.mirror import Rdcp
from fpvstation.mirror.replicate import CopyProgress, OfficeFault
from fpvstation.snapshots import send, tools
from fpvstation.snapshots.send import Sender, Target
from fpvstation.store.disk import Folder
from fpvstation.store.store import Store
from tests.e2e.recordings.recording import image, mounted, run
from tests.rdma.running import Tools
from tests.unit.fpvstation.store.test_store import DATA, NAME, SESSION, put

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.unhurried,
    pytest.mark.skipif(os.geteuid() != 0, reason="loop devices and btrbk need root"),
]
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
        # The lock file's folder may be missing on a machine without systemd.
        self.conf = self.etc / "btrbk/fpvstation.conf"

    def hour(self) -> list[Path]:
        """Run the command line of the timer's unit; return the snapshots."""
        run("sync", "-f", self.root)
        unit = (self.etc / f"systemd/system/{tools.UNIT}.service").read_text()
        for line in unit.splitlines():
            if line.startswith("ExecStart="):
                run(*line.removeprefix("ExecStart=").split())
        time.sleep(1.01)  # the names have seconds
        return [snapshot.path for snapshot in tools.snapshots_of(self.root)]


@pytest.fixture
def rig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Rig]:
    monkeypatch.setenv("STATE_DIRECTORY", str(tmp_path / "state"))
    file = image(tmp_path / "disk.img", 300, "mkfs.btrfs", "-q", "-f")
    with mounted(file, tmp_path / "disk", "loop,noatime") as disk:
        yield Rig(disk, tmp_path)


# --- Set-up, and the hourly run


def test_hourly_run_makes_a_snapshot_only_after_a_change(rig: Rig) -> None:
    rig.set_up()
    (first,) = rig.hour()
    assert (first / SESSION / NAME).read_bytes() == DATA
    assert not list((first / tools.SNAPSHOTS).iterdir()), "no snapshot of snapshots"
    assert rig.hour() == [first]
    assert rig.verb("list") == 0 and rig.hour() == [first], "a look changes nothing"
    put(rig.store, SECOND, b"second")
    _, second = rig.hour()
    assert (second / SESSION / SECOND).exists() and not (first / SESSION / SECOND).exists()


def test_btrbk_expires_snapshots_by_the_retention(rig: Rig) -> None:
    rig.set_up("--keep", "1h")
    for number in range(3, 6):
        put(rig.store, NAME.replace("0001", f"000{number}"), b"more")
        rig.hour()
    assert len(tools.snapshots_of(rig.root)) <= 2, "the first of the hour, and the newest"


def test_setup_run_again_writes_nothing(rig: Rig, capsys: pytest.CaptureFixture[str]) -> None:
    rig.set_up()
    said = capsys.readouterr().out
    assert said.count("written: ") == 3 and "systemctl enable --now" in said
    rig.set_up()
    assert "written" not in capsys.readouterr().out
    rig.set_up("--keep", "24h 14d")
    assert capsys.readouterr().out.count("written: ") == 1
    assert "24h 14d" in rig.conf.read_text()


def test_systemd_accepts_the_units(rig: Rig) -> None:
    rig.set_up("--send", "nas:/srv/snapshots")
    units = list((rig.etc / "systemd/system").iterdir())
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", *units], capture_output=True, text=True
    )
    assert not [line for line in done.stderr.splitlines() if str(rig.etc) in line], done.stderr
    assert (
        f"snapshots send --store {rig.root} nas:/srv/snapshots"
        in units[0].read_text() + units[1].read_text()
    )


def refusal(capsys: pytest.CaptureFixture[str], *argv: str) -> str:
    """Return the message of a refused command."""
    assert main(["snapshots", *argv]) == 1
    return capsys.readouterr().err


def test_setup_names_what_is_missing_and_the_next_step(
    rig: Rig, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def setup(store: Path, *more: str) -> str:
        return refusal(capsys, "setup", "--etc", str(rig.etc), "--store", str(store), *more)

    assert "is not a store" in setup(tmp_path / "absent")
    assert '"12x" refused: expected a retention such as "48h 30d"' in setup(
        rig.root, "--keep", "12x"
    )
    assert '--send "a b:/c" refused' in setup(rig.root, "--send", "a b:/c")
    folder = rig.root.parent / "folder"
    shutil.copytree(rig.root, folder)
    assert f"btrfs subvolume create {folder}" in setup(folder)
    other = image(tmp_path / "other.img", 32, "mkfs.ext4", "-q", "-F")
    with mounted(other, tmp_path / "other") as disk:
        shutil.copytree(rig.root, disk / "store")
        assert "is on ext4: snapshots need btrfs or ZFS" in setup(disk / "store")
    spaced = rig.root.parent / "my store"
    rig.root.rename(spaced)
    assert "has letters, digits" in setup(spaced)
    spaced.rename(rig.root)
    with monkeypatch.context() as patch:
        (tmp_path / "bin").mkdir()
        for program in ("findmnt", "btrfs"):
            (tmp_path / "bin" / program).symlink_to(shutil.which(program) or "")
        patch.setenv("PATH", str(tmp_path / "bin"))
        assert "btrbk is missing: sudo apt install btrbk" in setup(rig.root)
    assert not list(rig.etc.rglob("*.*")), "nothing is written"


def test_read_only_snapshot_folder_is_refused(rig: Rig, capsys: pytest.CaptureFixture[str]) -> None:
    argv = ["setup", "--etc", str(rig.etc), "--store", str(rig.root)]
    run("mount", "-o", "remount,ro", rig.root.parent)
    assert f"{rig.root}/.snapshots is read-only" in refusal(capsys, *argv)
    run("mount", "-o", "remount,rw", rig.root.parent)
    run("btrfs", "subvolume", "create", rig.root / ".snapshots")
    run("btrfs", "property", "set", rig.root / ".snapshots", "ro", "true")
    assert f"{rig.root}/.snapshots is read-only" in refusal(capsys, *argv)
    run("btrfs", "property", "set", rig.root / ".snapshots", "ro", "false")
    run("btrfs", "subvolume", "delete", rig.root / ".snapshots")
    (rig.root / ".snapshots").mkdir()
    assert "is a folder, expected a subvolume" in refusal(capsys, *argv)


def test_sanoid_template_has_the_retention() -> None:
    path, text = tools.sanoid_configuration("tank/drives", "48h 30d")
    assert path == "sanoid/fpvstation/sanoid.conf" and "[tank/drives]" in text
    assert "hourly = 48\ndaily = 30\nweekly = 0\nmonthly = 0\nyearly = 0\n" in text


# --- Restore


def test_removed_session_and_damaged_file_are_restored(
    rig: Rig, capsys: pytest.CaptureFixture[str]
) -> None:
    put(rig.store, SECOND, b"second")
    rig.set_up()
    rig.hour()
    rig.store.remove(SESSION)
    rig.hour()
    first, second = tools.snapshots_of(rig.root)
    at = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(first.at_s))
    capsys.readouterr()
    assert rig.verb("list") == 0
    assert [line.split()[-1] for line in capsys.readouterr().out.splitlines()] == [
        str(first.path),
        str(second.path),
    ]
    assert rig.verb("list", SESSION.rpartition("/")[2]) == 0
    assert capsys.readouterr().out.splitlines() == [f"{at}  {first.path}  2 segments"]
    assert "has no Plague" in refusal(
        capsys, "restore", "--store", str(rig.root), SESSION, "--at", "2100-01-01"
    )
    file = f"{SESSION.rpartition('/')[2]}/{SECOND}"
    assert rig.verb("restore", file, "--at", at) == 0
    assert "1 segment restored from the snapshot of" in capsys.readouterr().out
    assert [segment.path for segment in rig.store.segments()] == [f"{SESSION}/{SECOND}"]
    assert rig.verb("restore", SESSION, "--at", at) == 0
    assert "1 segment restored" in capsys.readouterr().out
    (rig.root / SESSION / NAME).write_bytes(b"?" + DATA[1:])
    capsys.readouterr()
    assert rig.verb("restore", SESSION, "--at", at) == 0
    assert "1 segment restored" in capsys.readouterr().out
    argv = ["sha256sum", "--quiet", "--strict", "-c", "SHA256SUMS"]
    subprocess.run(argv, cwd=rig.root / SESSION, check=True)
    assert main(["verify", "--store", str(rig.root)]) == 0
    assert not list(rig.root.glob(".incoming/snapshot"))


def test_file_that_is_bad_in_the_snapshot_too_is_not_restored(
    rig: Rig, capsys: pytest.CaptureFixture[str]
) -> None:
    """A snapshot shares its blocks with the store: rot is in both."""
    rig.set_up()
    (rig.root / SESSION / NAME).write_bytes(b"?" + DATA[1:])
    rig.hour()
    said = refusal(capsys, "restore", "--store", str(rig.root), SESSION, "--at", "2100-01-01")
    assert f"{NAME}: bad in that snapshot, too" in said
    assert list(rig.root.glob(f".bad/{SESSION}/*")), "the file here is kept"


def test_restore_refuses_times_without_a_snapshot(
    rig: Rig, capsys: pytest.CaptureFixture[str]
) -> None:
    argv = ["restore", "--store", str(rig.root), SESSION, "--at"]
    assert "or earlier: there are none" in refusal(capsys, *argv, "2020-01-01")
    assert main(["snapshots", "list", "--store", str(rig.root)]) == 1
    rig.set_up()
    rig.hour()
    assert "or earlier: the oldest is of 20" in refusal(capsys, *argv, "2020-01-01")
    assert '"noon" refused: expected a time such as 14:00' in refusal(capsys, *argv, "noon")
    inside = str(tools.snapshots_of(rig.root)[0].path)
    argv = ["restore", "--store", inside, SESSION, "--at", "2100-01-01"]
    assert refusal(capsys, *argv)
    assert (rig.root / SESSION / NAME).read_bytes() == DATA


# --- To another host


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


@pytest.fixture
def replica(
    rig: Rig, tools: Tools, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Replica]:
    monkeypatch.setenv("PATH", f"{tools.folder}:{os.environ['PATH']}")
    rig.set_up()
    file = image(tmp_path / "replica.img", 300, "mkfs.btrfs", "-q", "-f")
    with mounted(file, tmp_path / "far") as disk:
        yield Replica(rig, tools, disk)


def test_snapshots_are_sent_whole_then_by_their_changes(replica: Replica) -> None:
    put(replica.rig.store, SECOND, os.urandom(8 * MIB))
    replica.rig.hour()
    (full,) = replica.send()
    assert full.size > 8 * MIB and full.moved == full.size
    assert replica.send() == []
    put(replica.rig.store, NAME.replace("0001", "0003"), os.urandom(MIB))
    replica.rig.hour()
    (changes,) = replica.send()
    assert MIB < changes.size < 2 * MIB
    assert replica.names() == [full.name, changes.name] and replica.is_clean()
    run("btrfs", "subvolume", "delete", replica.folder / full.name)
    assert replica.send() == [], "older ones that were deleted there stay so"


def test_send_cut_at_half_continues_where_it_was(replica: Replica) -> None:
    put(replica.rig.store, SECOND, os.urandom(40 * MIB))
    replica.rig.hour()
    size = 0

    class Cut(Exception):
        pass

    def cut(progress: CopyProgress) -> None:
        nonlocal size
        size = progress.total or 0
        if size and progress.done * 2 >= size:
            raise Cut

    root = replica.rig.root
    rdcp = Rdcp(replica.remote.place, root, [*replica.options, "--rate", "12M"])
    with pytest.raises(Cut):
        list(Sender(root, replica.rig.store.id, replica.remote, rdcp).run(cut))
    assert replica.names() == []
    (sent,) = replica.send()
    assert size == sent.size and sent.moved <= 0.51 * size, sent
    assert replica.names() == [sent.name] and replica.is_clean()


def test_flipped_byte_of_a_stream_is_found(
    replica: Replica, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(replica.rig.store, SECOND, os.urandom(4 * MIB))
    replica.rig.hour()
    copy = Rdcp.copy
    places = [replica.folder / ".incoming", replica.rig.root / ".snapshots/.outgoing"]

    for place in places:

        async def damage(
            self: Rdcp, source: Path, path: str, *more: object, place: Path = place
        ) -> None:
            if place == places[1]:
                flip(source)
            await copy(self, source, path, *more)  # type: ignore[arg-type]
            if place == places[0]:
                flip(replica.folder / path)

        with monkeypatch.context() as patch:
            patch.setattr(Rdcp, "copy", damage)
            with pytest.raises(send.DamagedStream):
                replica.send()
        assert replica.names() == []
    (sent,) = replica.send()
    assert replica.names() == [sent.name] and replica.is_clean()


def flip(path: Path) -> None:
    with path.open("r+b") as file:
        file.seek(2 * MIB)
        byte = file.read(1)
        file.seek(2 * MIB)
        file.write(bytes([byte[0] ^ 1]))


@pytest.mark.parametrize("end", ["killed", "unsynced"])
def test_torn_snapshot_is_deleted_and_received_again(replica: Replica, end: str) -> None:
    put(replica.rig.store, SECOND, os.urandom(4 * MIB))
    (snapshot,) = replica.rig.hour()
    torn = replica.folder / snapshot.name
    replica.claim()
    if end == "killed":  # btrfs receive makes it writable, and sets its received_uuid at the end
        run("btrfs", "subvolume", "create", torn)
    else:  # a power cut between the receive and the sync: the stream is still there
        stream = replica.rig.home / "stream"
        run("btrfs", "send", "-q", "-f", stream, snapshot)
        run("btrfs", "receive", "-q", "-f", stream, replica.folder)
        (replica.folder / f".incoming/{snapshot.name}.stream").touch()
    assert [sent.name for sent in replica.send()] == [snapshot.name]
    assert replica.names() == [snapshot.name] and replica.is_clean()


def test_foreign_or_unmounted_target_gets_nothing(replica: Replica) -> None:
    replica.rig.hour()
    with contextlib.ExitStack() as stack:
        aside = replica.folder.with_name("aside")
        replica.folder.rename(aside)
        stack.callback(aside.rename, replica.folder)
        with pytest.raises(StationError, match="host1:/.*can't cd to"):
            replica.send()
    own = replica.folder / "store.20260101T000000+0000"
    run("btrfs", "subvolume", "create", own)
    with pytest.raises(StationError, match="has snapshots already: name an empty folder"):
        replica.send()
    assert own.is_dir()
    run("btrfs", "subvolume", "delete", own)
    marker = replica.folder / ".fpvstation-snapshots"
    marker.write_text("another\n")
    with pytest.raises(StationError, match="has the snapshots of another store"):
        replica.send()
    marker.unlink()
    replica.send()
    marker.unlink()
    with pytest.raises(StationError, match="mount its disk"):
        replica.send()
    replica.remote = Target(f"host1:{replica.rig.home}", replica.options[1])
    with pytest.raises(StationError, match="is not on btrfs"):
        replica.send()
    assert not (replica.rig.home / ".incoming").exists()


def test_full_target_keeps_the_stream_and_continues(replica: Replica) -> None:
    put(replica.rig.store, SECOND, os.urandom(40 * MIB))
    replica.rig.hour()
    replica.claim()
    filler = replica.folder.parent / "filler"
    with pytest.raises(OSError), filler.open("wb", buffering=0) as file:
        while True:
            file.write(os.urandom(MIB))
    with pytest.raises((OfficeFault, StationError), match="No space left"):
        replica.send()
    filler.unlink()
    (sent,) = replica.send()
    assert replica.names() == [sent.name] and replica.is_clean()


def test_send_verb_uses_a_folder_of_this_host(
    replica: Replica, capsys: pytest.CaptureFixture[str]
) -> None:
    replica.rig.hour()
    capsys.readouterr()
    assert replica.rig.verb("send", str(replica.folder)) == 0
    said = capsys.readouterr().out
    assert "received, 1." in said and "1 snapshot received; up to date" in said
    assert replica.rig.verb("send", str(replica.folder)) == 0
    assert "0 snapshots received" in capsys.readouterr().out
    assert len(replica.names()) == 1 and replica.is_clean()

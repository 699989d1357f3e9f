"""Comparison of rdcp with rsync (over SSH, and its daemon) and rclone, on the same trees.

Over loopback from disk to disk; sync runs between two measurements.
"""

import getpass
import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from testkit.network.ports import free_port
from testkit.network.sshd import Sshd

from benchmarks.rdma import pipes
from benchmarks.rdma.pairs import PAIRS, Run, compare
from benchmarks.rig import Settings, say
from benchmarks.rows import RATIO, Aim, Note, Result, Row, ratio, row

PART = "copies"
FILES, FILE_BYTES, IN_A_FOLDER = 100_000, 1000, 1000
CUT_BYTES, COLD_BYTES = 1 << 30, 2 << 30
REPEATS = 3
LIMIT_S = 3600.0
SFTP = "/usr/lib/openssh/sftp-server"
"""Path of openssh-server's SFTP server: the test's sshd has no SFTP subsystem.

rclone would compare each file in its own session with md5sum on the server, which takes longer than
all the rest: the check is disabled.
"""
OURS, SSH, DAEMON, RCLONE = "rdcp", "rsync -a, SSH", "rsync -a, daemon", "rclone copy"
ENCRYPTED = "rdcp --encrypt"
RSH = "rsync -a, rdpipe --rsh"
RSH_BYTES = 1 << 30


@dataclass
class Host:
    """Local machine as a remote host: an sshd, and an rsync daemon."""

    home: Path
    sshd: Sshd
    rsync_port: int
    tools: Path

    def words(self, way: str, source: Path, target: Path) -> list[str]:
        """Return the command that makes `target` a copy of `source`."""
        far = ["--ssh", self.sshd.command, "--remote-path", str(self.tools)]
        rdcp = [str(self.tools / "rdcp"), "-r", *far]
        paths = [f"{source}/.", f"host:{target}"]
        sftp = (
            f":sftp,host=127.0.0.1,port={self.sshd.port},user={getpass.getuser()},"
            f"key_file={self.sshd.folder}/user_key,server_command={SFTP},"
            f"disable_hashcheck=true:{target}"
        )
        rdpipe = (
            f"'{self.tools}/rdpipe' --encrypt --ssh \"{self.sshd.command}\""
            f" --remote-path '{self.tools}' --rsh"
        )
        daemon = f"rsync://127.0.0.1:{self.rsync_port}/home/{target.name}/"
        return {
            OURS: [*rdcp, *paths],
            ENCRYPTED: [*rdcp, "--encrypt", *paths],
            SSH: ["rsync", "-a", "-e", self.sshd.command, f"{source}/", f"host:{target}/"],
            RSH: ["rsync", "-a", "-e", rdpipe, f"{source}/", f"host:{target}/"],
            DAEMON: ["rsync", "-a", f"{source}/", daemon],
            RCLONE: ["rclone", "--config", "", "copy", str(source), sftp],
        }[way]

    def session_s(self) -> float:
        """Return the CPU seconds of all sessions that have ended on the server."""
        stat = Path(f"/proc/{self.sshd.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(stat[13]) + int(stat[14])) / os.sysconf("SC_CLK_TCK")

    def took_s(self, way: str, source: Path, target: Path) -> float:
        """Return the time of one copy; pending writes are flushed first."""
        os.sync()
        since_s = time.monotonic()
        ended = subprocess.run(
            self.words(way, source, target), capture_output=True, timeout=LIMIT_S
        )
        took_s = time.monotonic() - since_s
        if ended.returncode:
            raise RuntimeError(f"{way}: {ended.stderr.decode(errors='replace')}")
        return took_s


def hosted(home: Path, closing: ExitStack) -> Host:
    """Start both servers on this machine."""
    (home / "sshd").mkdir()
    sshd = Sshd(home / "sshd")
    closing.callback(sshd.close)
    port = free_port()
    (home / "rsyncd.conf").write_text(
        f"use chroot = no\n[home]\npath = {home}\nread only = no\n"
        f"uid = {os.getuid()}\ngid = {os.getgid()}\n"
    )
    daemon = subprocess.Popen(
        [
            "rsync",
            "--daemon",
            "--no-detach",
            "--config",
            str(home / "rsyncd.conf"),
            "--address",
            "127.0.0.1",
            "--port",
            str(port),
        ]
    )
    closing.callback(daemon.wait, 10.0)
    closing.callback(daemon.terminate)
    until_s = time.monotonic() + 10.0
    while socket.socket().connect_ex(("127.0.0.1", port)):
        if daemon.poll() is not None or time.monotonic() > until_s:
            raise RuntimeError("no rsync daemon")
        time.sleep(0.02)
    return Host(home, sshd, port, pipes.SOURCE)


def grown(folder: Path, files: int) -> Path:
    """Make a tree of small files, all different."""
    for number in range(files):
        if number % IN_A_FOLDER == 0:
            below = folder / f"{number // IN_A_FOLDER:04}"
            below.mkdir(parents=True)
        (below / f"{number % IN_A_FOLDER:04}").write_bytes(os.urandom(FILE_BYTES))
    return folder


def trees(host: Host, files: int, repeats: int) -> Iterator[Result]:
    """Measure a tree's first copy and its second, by each tool in turn."""
    # Delete nothing on the way: ext4 searches long for an inode that was not freed in the last
    # minute, to the disadvantage of a tool that writes into its predecessor's place.
    source = grown(host.home / "tree", files)
    ways = [OURS, ENCRYPTED, SSH, DAEMON, RCLONE]
    times_s: dict[tuple[str, str], list[float]] = {}
    for number in range(repeats):
        for way in ways if number % 2 == 0 else reversed(ways):
            target = host.home / "copied"
            for run in ("first", "again"):
                say(f"{PART}: {way}, {run}, {number}")
                times_s.setdefault((way, run), []).append(host.took_s(way, source, target))
            if len(list(target.rglob("*"))) != len(list(source.rglob("*"))):
                raise RuntimeError(f"{way} has not copied all")
            target.rename(host.home / f"copied-{number}-{ways.index(way)}")
    for run, least in (("first", 1.5), ("again", 2.0)):
        rows = {
            way: row(PART, f"{files:,} files, {run}: {way}", "s", times_s[way, run]) for way in ways
        }
        yield from rows.values()
        yield faster(f"{run}: {SSH} / {OURS}", rows[SSH], rows[OURS], least)
        yield faster(f"{run}: {SSH} / {ENCRYPTED}", rows[SSH], rows[ENCRYPTED], None)
    for tree in host.home.glob("copied-*"):
        shutil.rmtree(tree)
    shutil.rmtree(source)


def faster(name: str, theirs: Row, ours: Row, least: float | None) -> Row:
    """Return the ratio of their time to ours."""
    return ratio(PART, name, theirs, ours, Aim(least=least))


def written(path: Path, size: int) -> None:
    """Write a file of `size` bytes, synced to the disk."""
    block = os.urandom(1 << 20)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        for _ in range(size >> 20):
            file.write(block)
        os.fsync(file.fileno())


def cut(host: Host, size: int, repeats: int) -> Iterator[Result]:
    """Measure the restart of a copy that was killed halfway through its one file."""
    source, target = host.home / "cut", host.home / "copied"
    written(source / "file", size)
    command = host.words(OURS, source, target)
    shares = []
    for number in range(repeats):
        say(f"{PART}: cut, {number}")
        part = target / ".file.rdcp-part"
        copier = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        while not part.exists() or part.stat().st_blocks * 512 < size // 2:
            if copier.poll() is not None:
                raise RuntimeError("the copy ended before it was cut")
            time.sleep(0.001)
        copier.kill()
        copier.wait()
        repeat = [*command[:1], "--json", *command[1:]]
        ended = subprocess.run(repeat, capture_output=True, timeout=LIMIT_S)
        moved = moved_bytes(ended.stderr.decode(errors="replace"))
        if ended.returncode or moved is None:
            raise RuntimeError(ended.stderr.decode(errors="replace"))
        shares.append(moved / size)
        shutil.rmtree(target)
    shutil.rmtree(source)
    name = f"{size >> 20} MiB, cut at 50 %: moved again"
    yield row(PART, name, "x", shares, Aim(median=0.51))


def moved_bytes(text: str) -> int | None:
    """Return the bytes moved by the sink's last line of --json, or None."""
    for line in text.splitlines():
        if '"there_already"' in line:
            return int(line.partition('"bytes": ')[2].partition(",")[0])
    return None


def forgotten(path: Path) -> None:
    """Drop a file from the page cache."""
    with path.open("rb") as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def cold(host: Host, size: int, pairs: int) -> Iterator[Result]:
    """Measure from the disk to /dev/null, compared with cat of a similar file."""
    one, other = host.home / "one", host.home / "other"
    written(one, size)
    written(other, size)
    bench = pipes.Bench(host.tools, one, size, pairs)

    def ours() -> Run:
        forgotten(one)
        return bench.send()

    def cat() -> Run:
        forgotten(other)
        since_s = time.monotonic()
        with open(os.devnull, "wb") as null:
            subprocess.run(["cat", str(other)], check=True, stdout=null)
        return Run(size / 1e6 / (time.monotonic() - since_s))

    name = f"{size >> 30} GiB that is not in the page cache"
    yield from bench.compare(name, ours, cat, 0.8, "cat")
    one.unlink()
    other.unlink()


def over_rsh(host: Host, size: int, pairs: int) -> Iterator[Result]:
    """Measure rsync over rdpipe --rsh and over ssh: wall time, and CPU of both ends."""
    source, target = host.home / "sent", host.home / "copied"
    written(source / "file", size)
    wall_s: dict[str, list[float]] = {RSH: [], SSH: []}
    cpu_s: dict[str, list[float]] = {RSH: [], SSH: []}

    def run(way: str) -> Run:
        os.sync()
        before_s, since_s = host.session_s(), time.monotonic()
        client = subprocess.Popen(host.words(way, source, target))
        client_s = pipes.reaped(client)
        took_s = time.monotonic() - since_s
        if client.returncode:
            raise RuntimeError(f"{way}: exit status {client.returncode}")
        time.sleep(0.2)  # the server counts a session once it has ended
        server_s = host.session_s() - before_s
        wall_s[way].append(took_s)
        cpu_s[way].append(client_s + server_s)
        shutil.rmtree(target)
        return Run(size / 1e6 / took_s, client_s, server_s)

    sent = f"{size >> 20} MiB, encrypted"
    name = f"{sent}: {RSH}"
    yield from compare(name, lambda: run(RSH), lambda: run(SSH), 1.1, SSH, pairs)
    for way in (RSH, SSH):  # the first run warms the caches
        yield row(PART, f"{sent}: {way}, wall time", "s", wall_s[way][1:])
        yield row(PART, f"{sent}: {way}, CPU", "s", cpu_s[way][1:])
    ratios = [ours / theirs for ours, theirs in zip(cpu_s[RSH][1:], cpu_s[SSH][1:], strict=True)]
    yield row(PART, f"{name} / {SSH}: CPU", RATIO, ratios, Aim(median=1.0))
    shutil.rmtree(source)


def missing(programs: Sequence[str]) -> list[str]:
    """Return the programs that are not installed."""
    return [program for program in programs if not shutil.which(program)]


def rows(
    settings: Settings, files: int = FILES, cut_bytes: int = CUT_BYTES, cold_bytes: int = COLD_BYTES
) -> Iterator[Result]:
    """Measure trees, a cut, rsync over rdpipe, and a file that is not in memory."""
    if without := missing(["rsync", "rclone", "ssh"]):
        yield Note(PART, f"not installed: {', '.join(without)}")
        return
    subprocess.run(["make", "-s", "-C", str(pipes.SOURCE)], check=True)
    with tempfile.TemporaryDirectory(dir="/var/tmp") as home, ExitStack() as closing:
        host = hosted(Path(home), closing)
        repeats = min(REPEATS, settings.runs)
        yield from trees(host, files, repeats)
        yield from cut(host, cut_bytes, repeats)
        yield from over_rsh(host, RSH_BYTES, min(PAIRS, settings.runs))
        yield from cold(host, cold_bytes, min(PAIRS, settings.runs))

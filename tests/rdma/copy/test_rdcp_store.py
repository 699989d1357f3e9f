"""rdcp for a store: lists of sums, files there already; effects of an outage."""

import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from testkit.network.pipes import Tools

from tests.rdma.copy.test_rdcp import copied, facts
from tests.rdma.kernel import CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH, without_capability
from tests.rdma.near import Near, NearSsh

pytestmark = pytest.mark.e2e


@pytest.fixture
def tools(near: Near) -> Tools:
    return near()


@pytest.fixture
def tree(tools: Tools) -> Path:
    tree = tools.place / "tree"
    (tree / "d").mkdir(parents=True)
    (tree / "a").write_bytes(b"a")
    (tree / "d" / "b").write_bytes(os.urandom(1_500_000))
    (tree / "d" / "new\nline \\").write_bytes(b"odd")
    (tree / "link").symlink_to("a")
    return tree


def make_list(folder: Path) -> None:
    """Write SUMS beside the folder, as the manual says."""
    line = f"(cd {folder.name}; find . -type f -exec sha256sum {{}} +) >SUMS"
    subprocess.run(["sh", "-c", line], cwd=folder.parent, check=True)


@pytest.mark.parametrize("host", ["", "host1:"])
def test_check_names_each_difference(tools: Tools, tree: Path, host: str) -> None:
    make_list(tree)
    target = f"{host}{tools.place}/copy"
    copied(tools.run("rdcp", "-r", "tree", target))
    copied(tools.run("rdcp", "--check", "SUMS", target))
    copy = tools.place / "copy"
    with (copy / "d" / "b").open("r+b") as file:
        file.write(b"????")
    (copy / "a").unlink()
    (copy / "more").write_bytes(b"more")
    ended = tools.run("rdcp", "--check", "SUMS", target)
    assert ended.returncode == 1
    lines = sorted(ended.stderr.decode().splitlines())
    assert lines == [
        "rdcp: a: No such file or directory",
        "rdcp: d/b: its content is not what the list says",
        "rdcp: more: is not in the list",
    ]


def test_malformed_list_is_refused(tools: Tools, tree: Path) -> None:
    (tools.place / "SUMS").write_text("0123  a\n")
    ended = tools.run("rdcp", "--check", "SUMS", "tree")
    assert ended.returncode == 1
    assert b"line 1: not SUM, two spaces and a path" in ended.stderr


def misleading_copy(tools: Tools, tree: Path) -> Path:
    """Copy with misleading times: a has the same size and time but other content; d/b has
    another time and the same content."""
    copied(tools.run("rdcp", "-r", "tree", "copy"))
    copy = tools.place / "copy"
    when = (tree / "a").stat().st_mtime_ns
    (copy / "a").write_bytes(b"?")
    os.utime(copy / "a", ns=(when, when))
    os.utime(copy / "d" / "b", ns=(1, 1))
    return copy


def test_checksum_option_compares_by_content(tools: Tools, tree: Path) -> None:
    copy = misleading_copy(tools, tree)
    ended = tools.run("rdcp", "-rv", "tree/.", "copy")
    assert b"1 files, 1500000 bytes, 3 there already" in ended.stderr
    assert (copy / "a").read_bytes() == b"?"
    os.utime(copy / "d" / "b", ns=(1, 1))
    ended = tools.run("rdcp", "-rv", "--checksum", "tree/.", "copy")
    assert b"1 files, 1 bytes, 3 there already" in ended.stderr
    assert facts(copy) == facts(tree)


@pytest.mark.parametrize("what", ["mode", "time"])
def test_existing_file_gets_mode_and_time(tools: Tools, tree: Path, what: str) -> None:
    copied(tools.run("rdcp", "-r", "tree", "copy"))
    if what == "mode":
        (tree / "a").chmod(0o600)
    else:
        os.utime(tree / "a", ns=(1, 10**15))
    copied(tools.run("rdcp", "-r", "--checksum", "tree/.", "copy"))
    assert facts(tools.place / "copy") == facts(tree)


def test_json_reports_progress_and_totals(tools: Tools, tree: Path) -> None:
    with (tree / "big").open("wb") as file:
        file.write(os.urandom(6_000_000))
    ended = tools.run("rdcp", "-r", "--json", "--bwlimit", "4M", "tree", "copy")
    copied(ended)
    rows = [json.loads(line) for line in ended.stderr.splitlines()]
    assert rows[-1] == {"files": 5, "bytes": 7_500_004, "there_already": 0, "errors": 0}
    assert rows[0]["total"] == 7_500_004
    assert [row["done"] for row in rows[:-1]] == sorted(row["done"] for row in rows[:-1])
    assert rows[-2] == {"moved": 7_500_004, "done": 7_500_004, "total": 7_500_004}


@pytest.mark.parametrize("far", ["", "host1:"])
def test_json_check_prints_a_code_for_each_fault(tools: Tools, tree: Path, far: str) -> None:
    names = ["same", 'bent "\\', "gone\n"]
    (tools.place / "kept").mkdir()
    for name in names:
        (tools.place / "kept" / name).write_bytes(name.encode())
    make_list(tools.place / "kept")
    copied(tools.run("rdcp", "-r", "kept/.", "copy"))
    (tools.place / "copy" / names[1]).write_bytes(b"another")
    (tools.place / "copy" / names[2]).unlink()
    (tools.place / "copy" / "more").touch()
    place = f"{far}{tools.place}" if far else str(tools.place)
    ended = tools.run("rdcp", "--json", "--check", "SUMS", f"{place}/copy")
    assert ended.returncode == 1
    *rows, last = [json.loads(line) for line in ended.stderr.splitlines()]
    assert {row["path"]: row["code"] for row in rows} == {
        names[1]: "differs",
        names[2]: "missing",
        "more": "unlisted",
    }
    assert last == {"checked": 3, "errors": 3}
    ended = tools.run("rdcp", "--json", "--check", "SUMS", f"{place}/absent")
    (row, last) = [json.loads(line) for line in ended.stderr.splitlines()]
    assert row["code"] == "missing" and row["path"].endswith("/absent")
    assert last == {"checked": 0, "errors": 1}


def test_json_copy_of_a_missing_source_prints_its_code(tools: Tools) -> None:
    (tools.place / "to").mkdir()
    ended = tools.run("rdcp", "--json", "host1:absent", "to")
    assert ended.returncode == 1
    rows = [json.loads(line) for line in ended.stderr.splitlines() if b"path" in line]
    assert rows == [{"path": "absent", "code": "missing", "error": "No such file or directory"}]


@pytest.fixture
def compressing(tools: Tools) -> Iterator[Path]:
    """A small disk that compresses its files."""
    if os.geteuid() != 0 or shutil.which("mkfs.btrfs") is None:
        pytest.skip("needs root and btrfs-progs")
    image, disk = tools.place / "image", tools.place / "disk"
    disk.mkdir()
    with image.open("wb") as file:
        file.truncate(128 << 20)
    subprocess.run(["mkfs.btrfs", "-q", image], check=True)
    mount: list[str | Path] = ["mount", "-o", "loop,compress-force=zstd", image, disk]
    if subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("no loop devices, or no btrfs")
    yield disk
    subprocess.run(["umount", "-l", disk], check=True)


def test_file_larger_than_disk_fits_compressed(tools: Tools, compressing: Path) -> None:
    content = b"compressible" * (16 << 20)
    (tools.place / "big").write_bytes(content)
    copied(tools.run("rdcp", "big", compressing))
    assert (compressing / "big").read_bytes() == content


@pytest.mark.parametrize("algorithm", ["xxh3", "sha256"])
def test_hash_algorithms_copy_tree(tools: Tools, tree: Path, algorithm: str) -> None:
    copied(tools.run("rdcp", "-r", "--hash", algorithm, "--verify", "tree", "copy"))
    assert facts(tools.place / "copy") == facts(tree)


@pytest.mark.parametrize("row", [["--hash", "md5"], ["--retry", "soon"], ["--retry", "-5m"]])
def test_bad_option_values_are_refused(tools: Tools, tree: Path, row: list[str]) -> None:
    assert tools.run("rdcp", *row, "-r", "tree", "copy").returncode == 2
    assert not (tools.place / "copy").exists()


def test_retry_survives_killed_source(tools: Tools) -> None:
    """The source's process is killed under way; rdcp dials again, and goes on."""
    data = os.urandom(8_000_000)
    (tools.place / "big").write_bytes(data)
    process = tools.start("rdcp", "-v", "--retry", "1m", "--rate", "4M", "big", "copy")
    tools.await_part(tools.place / ".copy.rdcp-part", 3_000_000)
    tools.kill_source()
    _, said = process.communicate(timeout=40)
    assert process.returncode == 0, said
    assert b"rdcp: dials again in 1 s, for 60 s at most" in said
    assert (tools.place / "copy").read_bytes() == data
    moved = int(said.rsplit(b"1 files, ")[1].split()[0])
    assert moved < len(data) - 2_500_000


def ignore_hangup() -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)


ONCE = 'echo >>dialed; [ "$(wc -l <dialed)" -lt 2 ] || exit 255\n'
"""Commands of a fake ssh that reaches its host only the first time."""


def test_outage_that_goes_on_is_retried(tools: Tools) -> None:
    """A signal that is ignored stays ignored while rdcp waits to dial again."""
    (tools.place / "big").write_bytes(os.urandom(8_000_000))
    ssh = NearSsh(tools.place, ONCE).command
    row = ["--retry", "1m", "--rate", "1M", "--ssh", ssh, "big", "host:copy"]
    process = tools.start("rdcp", *row, before=ignore_hangup)
    tools.await_part(tools.place / ".copy.rdcp-part")
    tools.kill_source()
    assert process.stderr
    again = (line for line in process.stderr if b"dials again" in line)
    assert b"in 1 s" in next(again)
    for _ in range(10):  # it sleeps for a second now
        process.send_signal(signal.SIGHUP)
        time.sleep(0.05)
    assert b"in 2 s" in next(again)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=20)
    assert process.returncode == 128 + signal.SIGTERM


def not_above_modes() -> None:
    """Take from root the capabilities to ignore modes, for `preexec_fn`."""
    if os.geteuid() == 0:
        without_capability(CAP_DAC_OVERRIDE)()
        without_capability(CAP_DAC_READ_SEARCH)()


@pytest.mark.parametrize(
    ("row", "says"),
    [
        (["tree", "copy"], b"tree/fifo: skipped: "),
        (["tree", "no/copy"], b"no/copy: No such file or directory"),
        (["tree", "closed"], b"closed: Permission denied"),
        (["tree", "closed/copy"], b"closed/copy: Permission denied"),
        (["--ssh", "sh -c 'exit 255'", "tree", "host:copy"], b"ssh ended with status 255"),
        (["--remote-path", "/no/where", "tree", "host:copy"], b"no rdpipe found there"),
    ],
)
def test_permanent_fault_is_not_retried(
    tools: Tools, tree: Path, row: list[str], says: bytes
) -> None:
    os.mkfifo(tree / "fifo")
    (tools.place / "closed").mkdir(mode=0)
    ended = tools.run("rdcp", "-r", "--retry", "1m", *row, within_s=15, before=not_above_modes)
    assert ended.returncode == 1
    assert says in ended.stderr
    assert b"dials again" not in ended.stderr

"""`make install`: programs, man pages without a fault, completion for each tool."""

import os
import subprocess
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "base-station" / "rdma"
TOOLS = ["rdsend", "rdrecv", "rdpipe", "rdcp"]
pytestmark = pytest.mark.e2e


def test_install(rdma_tools: Path, tmp_path: Path) -> None:
    words = ["make", "-s", "-C", str(SOURCE), "install", f"DESTDIR={tmp_path}"]
    subprocess.run([*words, "PREFIX=/opt/x"], check=True, timeout=240)
    for tool in TOOLS:
        program = tmp_path / "opt/x/bin" / tool
        assert os.access(program, os.X_OK)
        told = subprocess.run([program, "--help"], capture_output=True, text=True)
        assert told.returncode == 0 and told.stdout.startswith(f"usage: {tool}")
        assert (tmp_path / "opt/x/share/man/man1" / f"{tool}.1").is_file()
        assert (tmp_path / "opt/x/share/bash-completion/completions" / tool).is_file()


def test_changed_build_options_rebuild_objects(tmp_path: Path) -> None:
    made = tmp_path / "bytes.o"

    def built(*asked: str) -> int:
        words = ["make", "-s", "-C", str(SOURCE), f"BUILD={tmp_path}", *asked]
        subprocess.run([*words, str(made)], check=True, timeout=60)
        return made.stat().st_mtime_ns

    with_verbs, without = built("VERBS=1"), built("VERBS=0")
    assert with_verbs < without < built("VERBS=1")
    other = built("VERBS=1", "CFLAGS=-O0")
    assert built("VERBS=1", "CFLAGS=-O0") == other


def test_default_build_has_no_processor_options(tmp_path: Path) -> None:
    """The build has no -mavx or similar option by default, because it also runs on each ARM."""
    words = ["make", "-n", "-C", str(SOURCE), f"BUILD={tmp_path}", "programs"]
    bare = {"PATH": os.environ["PATH"]}  # no CC, CFLAGS or MAKEFLAGS of the user's
    told = subprocess.run(words, capture_output=True, text=True, check=True, env=bare).stdout
    compiled = [line.split() for line in told.splitlines() if " -c -o " in line]
    assert len(compiled) > 20
    assert not [word for row in compiled for word in row if word.startswith("-m")]


@pytest.mark.parametrize("tool", TOOLS)
def test_options_are_in_manual_and_completion(rdma_tools: Path, tool: str) -> None:
    told = subprocess.run(
        [rdma_tools / tool, "--help"], capture_output=True, text=True, check=True
    ).stdout
    manual = (SOURCE / f"{tool}.1").read_text().replace("\\-", "-")
    completion = subprocess.run(
        [
            "bash",
            "-c",
            f"source {SOURCE}/completion.bash; COMP_WORDS=({tool} --) COMP_CWORD=1;"
            f' $(complete -p {tool} | sed -E "s/.*-F ([^ ]+).*/\\1/") '
            f"'{rdma_tools / tool}' -- {tool};"
            ' printf "%s\\n" "${COMPREPLY[@]}"',
        ],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    options = {word.strip("[],.'") for word in told.split() if word.startswith("--")}
    assert len(options) > 5
    for option in options - {"--", "--help", "--version"}:
        assert option in manual, f"{option} is not in {tool}.1"
        assert option in completion, f"{option} is not completed for {tool}"


@pytest.mark.parametrize("tool", TOOLS)
def test_manual_has_no_groff_warning(tool: str) -> None:
    words = ["groff", "-man", "-Tutf8", "-ww", "-z", str(SOURCE / f"{tool}.1")]
    said = subprocess.run(words, capture_output=True, text=True)
    assert (said.returncode, said.stderr) == (0, "")

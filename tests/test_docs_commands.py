"""Commands that README and docs/ show: each runs, or its comment says what it needs.

Every line of an indented block, or of a ```sh block, is a command. Each is run here, or by the test
that TESTED names, or its comment has the word "needs" or "takes".
"""

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from testkit import mcaps
from testkit.cameras.video_source import encode
from testkit.mcaps import Drive, McapFile

from fpvcar.__main__ import main
from fpvcar.cli.command_line import parser
from fpvcar.config import profiles
from tests.test_docs import PAGES, ROOT

MARK = re.compile(r"\b(needs|takes) ")
TESTED = {
    ".venv/bin/python -m fpvbench.pigpiod --port 8888": "tests/unit/fpvbench/pigpiod/test_contract.py::"  # noqa: E501
    "test_emulator_alone_makes_its_own_chip_and_removes_it",
    ".venv/bin/python -m tests.fuzz drive_up --seconds 10": "tests/fuzz/test_parsers.py::test_parsers_survive_fuzzed_input",  # noqa: E501
    "python3 docs/examples/drive.py http://localhost:8080 123456": "tests/e2e/test_example_client.py::test_example_client_drives_and_stops",  # noqa: E501
    "fpvstation tunnel wireguard attic --endpoint attic.example.org": "tests/unit/fpvstation/cli/test_tunnel.py::"  # noqa: E501
    "test_wireguard_ends_have_keys_of_their_own_and_know_each_other",
    "fpvstation tunnel wireguard attic --endpoint attic.example.org --phone": "tests/unit/fpvstation/cli/test_tunnel.py::"  # noqa: E501
    "test_phone_gets_its_end_as_a_qr",
    "fpvstation tunnel openvpn attic --endpoint attic.example.org": "tests/unit/fpvstation/cli/test_tunnel.py::"  # noqa: E501
    "test_openvpn_ends_pin_each_other_and_explain_each_setting",
    "make -C base-station/rdma": "tests/rdma/test_install.py::test_changed_build_options_rebuild_objects",  # noqa: E501
    "make -C base-station/rdma install PREFIX=~/.local": "tests/rdma/test_install.py::test_install",
    "man -l base-station/rdma/rdpipe.1": "tests/rdma/test_install.py::test_manual_has_no_groff_warning",  # noqa: E501
    **{
        f"sudo {words}": "tests/e2e/test_sites.py::test_documented_commands_work"
        for words in (
            "fpvsites apply --dry-run",
            "fpvsites apply",
            "-u fpvsites fpvsites passwd",
            "fpvsites status",
            "fpvsites allow kids everything --until 18:00",
            "fpvsites allow kids nothing --until 20:00",
            "fpvsites undo",
            "fpvsites off",
        )
    },
}
"""Commands that are not run here, each with the test that runs it."""


class Command(NamedTuple):
    """Single line that a reader may type."""

    page: str
    words: str
    mark: bool
    on_pi: bool


def blocks(text: str) -> Iterator[tuple[str, str]]:
    """Yield (language, line) of each line in a block; an indented one is sh."""
    fence = None
    for line in text.splitlines():
        if line.startswith("```"):
            fence = line[3:] if fence is None else None
        elif fence is not None:
            yield fence, line
        elif line.startswith("    ") and line.strip():
            yield "sh", line.strip()


def commands() -> list[Command]:
    """Return every command of every page."""
    found = []
    for page in PAGES:
        for language, line in blocks(page.read_text(encoding="utf-8")):
            if language == "sh" and line:
                words, _, comment = line.partition(" # ")
                mark = MARK.search(comment) is not None
                on_pi = "needs a Pi" in comment
                found.append(Command(str(page.relative_to(ROOT)), words.strip(), mark, on_pi))
    return found


COMMANDS = commands()
MAKE = sorted({one.words for one in COMMANDS if re.match(r"make [^-]", one.words)})
FPVCAR = sorted({one.words for one in COMMANDS if "fpvcar " in one.words.split("-")[0]})


def here(one: Command) -> bool:
    """Return whether a test of this file runs the command."""
    return one.words in MAKE or one.words in FPVCAR


def test_documented_commands_are_tested_or_marked() -> None:
    assert len(COMMANDS) > 30
    silent = [
        f"{one.page}: {one.words}"
        for one in COMMANDS
        if not (one.mark or here(one) or one.words in TESTED)
    ]
    assert silent == []


def test_tested_commands_are_in_the_documents() -> None:
    assert set(TESTED) <= {one.words for one in COMMANDS}
    for test in TESTED.values():
        file, _, name = test.partition("::")
        assert f"\ndef {name}(" in (ROOT / file).read_text(encoding="utf-8"), test


@pytest.fixture
def sandbox(tmp_path: Path) -> Path:
    """A folder with the Makefile and the scripts it calls, but nothing installed. Each program
    of .venv records its arguments."""
    tree = tmp_path / "tree"
    (tree / "tools").mkdir(parents=True)
    (tree / ".venv/bin").mkdir(parents=True)
    for name in ("Makefile", "tools/run.sh", "tools/test.sh"):
        shutil.copy(ROOT / name, tree / name)
    stub = f'#!/bin/sh\n[ "$1" = -c ] && exec {sys.executable} "$@"\n'
    stub += f'printf "%s\\0" "$@" >{tree}/called\n'
    for name in ("python", "ruff", "mypy"):
        (tree / ".venv/bin" / name).write_text(stub)
    for name in ("setup.sh", "lock.sh"):
        (tree / "tools" / name).write_text("#!/bin/sh\n")
    (tree / "base-station/rdma").mkdir(parents=True)
    (tree / "base-station/rdma/Makefile").write_text("check-static clean:\n")
    for name in (
        "tools/setup.sh",
        "tools/lock.sh",
        *(f".venv/bin/{name}" for name in ("python", "ruff", "mypy")),
    ):
        (tree / name).chmod(0o755)
    return tree


def known(variable: str) -> bool:
    """Return whether any script that make starts reads the variable."""
    readers = [ROOT / "Makefile", *(ROOT / "tools").glob("*.sh")]
    readers += [*(ROOT / "benchmarks").rglob("*.py"), *(ROOT / "tests").glob("soak/*")]
    pattern = re.compile(rf"\b{variable}\b")
    return any(one.is_file() and pattern.search(one.read_text()) for one in readers)


@pytest.mark.parametrize("words", MAKE)
def test_make_has_target_and_reads_variables(words: str, sandbox: Path) -> None:
    asked = shlex.split(words)
    for word in asked[1:]:
        variable, given, _ = word.partition("=")
        assert not given or known(variable), variable
    dry = [] if asked[1] == "run" or words.startswith("make test ARGS=") else ["-n"]
    done = subprocess.run([*asked, *dry], cwd=sandbox, capture_output=True, text=True, timeout=30)
    assert done.returncode == 0, done.stderr
    if dry:
        return
    called = (sandbox / "called").read_text().split("\0")[:-1]
    if asked[1] == "run":
        assert called[:3] == ["-m", "fpvcar", "bench"]
        options = parser().parse_args(called[2:])
        profiles.load(options.profile, options.overrides)
    elif asked[1] == "test":
        assert called[:3] == ["-m", "pytest", "-q"] and (ROOT / called[3]).is_file()


def arguments(words: str) -> list[str]:
    """Return the arguments of a command of fpvcar, without its name."""
    return shlex.split(words.partition("fpvcar ")[2])


@pytest.mark.parametrize("words", FPVCAR)
def test_fpvcar_accepts_documented_commands(words: str) -> None:
    parser().parse_args(arguments(words))


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recording of a drive of four seconds."""
    folder, drive = tmp_path_factory.mktemp("recordings"), Drive(seed=1)
    steps = mcaps.step_messages(drive.go(4.0))
    units = [(number % 30 == 0, unit) for number, unit in enumerate(encode(120))]
    pictures = mcaps.filmed(drive.captures, units)
    messages = [*pictures, *mcaps.measured(4.0), *steps]
    mcap_file = McapFile(messages, profile=drive.profile)
    return mcap_file.to(folder / f"{mcaps.RECORDING}-0001.mcap")


ON_FILES = [
    one.words for one in COMMANDS if re.search(r"\b(FILE|DIR)\b", one.words) and one.words in FPVCAR
]


@pytest.mark.parametrize("words", [one for one in ON_FILES if "--page" not in one])
def test_documented_recording_commands_run(
    words: str, recorded: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = str(shutil.copy(recorded, tmp_path))
    if " release " in words:
        Path(f"{file}.keep").touch()
    monkeypatch.chdir(tmp_path)
    asked = [{"FILE...": file, "DIR": str(tmp_path)}.get(word, word) for word in arguments(words)]
    before = os.umask(0)
    try:
        assert main(asked) == 0
    finally:
        os.umask(before)


def test_replay_page_of_a_recording_opens(recorded: Path) -> None:
    assert "fpvcar replay --page FILE..." in ON_FILES
    asked = ["replay", "--page", "--port", "0", str(recorded)]
    with subprocess.Popen(
        [sys.executable, "-m", "fpvcar", *asked], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        try:
            said = re.search(r"http://localhost:\d+/\S+", process.stdout.readline())
            assert said is not None
            with urllib.request.urlopen(said.group(), timeout=10) as page:
                assert b"<title>" in page.read()
            process.send_signal(signal.SIGINT)
            assert process.wait(10) == 130
        finally:
            process.kill()


CLONE = re.compile(r"git clone|build\.md#1-try-it-without-a-car|\]\(#1-try-it-without-a-car\)")
"""How to get the code, or the link to it."""


@pytest.mark.parametrize("page", PAGES[:-1], ids=lambda page: page.stem)
def test_page_with_commands_of_the_clone_says_how_to_get_it(page: Path) -> None:
    """A shell finds neither make's targets nor a program of .venv elsewhere."""
    text = page.read_text(encoding="utf-8")
    here = [one for one in COMMANDS if one.page == str(page.relative_to(ROOT))]
    in_clone = [one for one in here if re.match(r"(sudo )?(make |tools/|\.venv/)", one.words)]
    assert not in_clone or CLONE.search(text), in_clone[0]
    bare = [one for one in here if re.match("fpv(car|station) ", one.words) and not one.on_pi]
    assert not bare or ".venv/bin/fpv" in text, bare[0]

"""Files of a whole day: more of them than a process may open."""

import itertools
import os
import resource
from collections.abc import Iterator
from pathlib import Path

import pytest
from testkit import mcaps
from testkit.command import Command
from testkit.mcaps import BEGAN_NS, Drive, Logged, McapFile

from fpvcar.recordings import names
from fpvcar.runtime.units import SECOND_NS

FILES, ROOM = 40, 12
"""Number of files, and of remaining descriptors."""
STEP_S = 1.0


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a drive in files of a second; the last one was never closed."""
    made = tmp_path_factory.mktemp("day")
    drive = Drive(11)
    drive.go(FILES * STEP_S)
    shares: list[list[Logged]] = [[] for _ in range(FILES)]
    for one in mcaps.step_messages(drive.steps):
        at = int((one.log_ns - BEGAN_NS) / SECOND_NS / STEP_S)
        shares[min(at, FILES - 1)].append(one)
    sent = 0
    for number, share in enumerate(shares):
        start_ns = BEGAN_NS + round(number * STEP_S * SECOND_NS)
        film = list(mcaps.pictures(1.0 / mcaps.FPS, start_ns))  # no age to check
        mcap_file = McapFile(
            [*share, *film], number + 1, drive.profile, number < FILES - 1, sequence_from=sent
        )
        sent += max(len(share), len(film))
        suffix = names.SEALED if number < FILES - 1 else names.OPEN
        mcap_file.to(made / names.file_name("Plague-20251121T200000Z", number + 1, suffix))
    return made


@pytest.fixture
def few_descriptors() -> Iterator[None]:
    """Limit the files that can be open at once."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    taken = {int(name) for name in os.listdir("/proc/self/fd")}
    left = itertools.islice((n for n in itertools.count() if n not in taken), ROOM)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(left) + 1, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.parametrize(
    "words",
    [
        ("log", "list"),
        ("log", "info"),
        ("replay",),
        ("export", "--csv", "OUT"),
        ("export", "--mp4", "OUT"),
    ],
)
def test_commands_open_files_one_after_the_other(
    folder: Path, tmp_path: Path, few_descriptors: None, command: Command, words: tuple[str, ...]
) -> None:
    said = command(*(str(tmp_path / "out") if one == "OUT" else one for one in words), folder)
    if words == ("replay",):
        assert "all as recorded" in said.out
        assert said.out.count("steps in") == 1, "one drive, not forty"
    if words[0] != "log":
        assert said.err.count("never closed") == 1, "said where it comes"


def test_verify_covers_all_files(folder: Path, few_descriptors: None, command: Command) -> None:
    said = command("log", "verify", folder, status=1).out
    assert said.count("every CRC holds") == FILES - 1 and "never closed" in said

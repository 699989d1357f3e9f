"""First picture of a file, or of a drive in the middle of it."""

from pathlib import Path

import pytest
from testkit import mcaps
from testkit.mcaps import BEGAN_NS, FRAME_NS, McapFile

from fpvcar.recordings.export.thumbnail import first_picture
from fpvcar.runtime.units import SECOND_NS


def test_late_camera_start_still_gives_a_thumbnail(tmp_path: Path) -> None:
    """The camera starts half a minute after the recorder, for example on a slow board."""
    film = mcaps.pictures(1.0, BEGAN_NS + 30 * SECOND_NS)
    path = McapFile([*mcaps.measured(31.0), *film]).to(tmp_path / "late.mcap")
    found = first_picture(path)
    assert found and found.capture_ns == BEGAN_NS + 30 * SECOND_NS


@pytest.mark.parametrize(
    ("from_s", "number"), [(0.0, 0), (0.1, 10), (0.9, 30), (2.5, 80), (4.0, None)]
)
def test_first_key_frame_from_a_moment_on(
    tmp_path: Path, from_s: float, number: int | None
) -> None:
    """Key frames come every ten pictures; the file begins with the first."""
    path = McapFile(list(mcaps.pictures(4.0))).to(tmp_path / "a.mcap")
    found = first_picture(path, from_s)
    wanted = None if number is None else BEGAN_NS + number * FRAME_NS
    assert (found.capture_ns if found else None) == wanted

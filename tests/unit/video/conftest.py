"""Fixture: the output of a camera's program."""

from pathlib import Path

import pytest
from testkit.cameras.video_source import encode

from fpvcar.video import h264
from fpvcar.wire.camera import pack_record


@pytest.fixture(scope="module")
def film(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a file of wire records: 10 units, a key frame every fifth."""
    path = tmp_path_factory.mktemp("film") / "film"
    units = encode(frames=10, slices=4)
    path.write_bytes(b"".join(pack_record(h264.is_key(u), 0, u) for u in units))
    return path

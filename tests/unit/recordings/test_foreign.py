"""Recordings in foreign programs; e2e/test_recording.py has the bench's."""

from pathlib import Path

import pytest
from mcap.reader import make_reader
from testkit import mcaps
from testkit.mcaps import Drive, McapFile
from testkit.recorder.foreign import HAS_RERUN, by_javascript, by_mcap, by_rerun

from fpvcar.recordings import codec, messages, reader
from fpvcar.recordings.repair import salvage


def mcap_file() -> McapFile:
    """Return some seconds with all messages of a drive."""
    drive = Drive(4)
    drive.go(3.0)
    return McapFile(
        [*mcaps.pictures(3.0), *mcaps.measured(3.0), *mcaps.step_messages(drive.steps)],
        profile=drive.profile,
    )


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return mcap_file().to(tmp_path_factory.mktemp("foreign") / "whole.mcap")


@pytest.fixture(scope="module")
def recovered(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make the output of `fpvcar log recover` for a damaged file."""
    folder = tmp_path_factory.mktemp("foreign")
    bad = mcaps.flipped(folder / "bad.mcap", mcap_file().chunks(), 2)
    with reader.read(bad) as made:
        salvage.write_clean(made, folder / "clean.mcap")
    return folder / "clean.mcap"


@pytest.mark.parametrize("name", ["whole", "recovered"])
def test_foreign_readers_see_the_same_messages(name: str, request: pytest.FixtureRequest) -> None:
    path: Path = request.getfixturevalue(name)
    with reader.read(path) as made:
        ours = made.counts
        seen = {
            topic: sorted((one.log_ns, len(one.data)) for one in made.messages({topic}))
            for topic in ours
        }
        chunks = len(made.chunks)
    assert by_mcap(path) == ours
    theirs = by_javascript(path)
    for way in ("indexed", "streamed"):
        assert theirs[way]["topics"] == {
            topic: {
                "count": len(found),
                "bytes": sum(size for _, size in found),
                "first": str(found[0][0]),
                "last": str(found[-1][0]),
            }
            for topic, found in seen.items()
        }
    assert theirs["indexed"]["chunks"] == chunks
    assert theirs["indexed"]["metadata"] == ["fpvcar"]
    assert theirs["streamed"]["done"] and theirs["streamed"]["schemas"] > 0


def test_schemas_are_stored_once_per_file(whole: Path) -> None:
    with whole.open("rb") as file:
        summary = make_reader(file).get_summary()
    assert summary is not None and summary.statistics is not None
    names = [schema.name for schema in summary.schemas.values()]
    assert len(names) == len(set(names)) == summary.statistics.schema_count
    used = {channel.schema_id for channel in summary.channels.values()}
    assert used == set(summary.schemas) and len(summary.channels) > len(used)


def test_calibration_known_is_in_front_of_each_copy_of_the_profile(whole: Path) -> None:
    with reader.read(whole) as made:
        said = [codec.decode(one.topic, one.data) for one in made.messages({messages.CALIBRATION})]
        assert len(said) == made.counts[messages.ABOUT] > 0
    for one in said:
        assert isinstance(one, messages.Calibration)
        assert one.camera[:2] == (640, 480)
        assert one.camera.focal_px == pytest.approx(451.2, abs=0.5), "56 degrees of 480 rows"


@pytest.mark.skipif(not HAS_RERUN, reason="rerun is not built for this machine")
@pytest.mark.parametrize("name", ["whole", "recovered"])
def test_rerun_sees_the_same_message_counts(
    name: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    path: Path = request.getfixturevalue(name)
    assert by_rerun(path, tmp_path) == by_mcap(path)

"""Cards that are full, read-only or silent stop the recorder and no other part."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from testkit.harness import wait_for
from testkit.network.ports import free_port
from testkit.recorder.card import Writing, files, image, mounted, recorded, run, step_times

from fpvcar.recordings import reader

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(os.geteuid() != 0, reason="loop devices need root"),
]


def test_full_card_stops_only_the_recorder(tmp_path: Path) -> None:
    small = image(tmp_path / "small.img", 12, "mkfs.ext4", "-q", "-F")
    settings = (
        "recording.keep_free_mb = 0",
        "recording.segment_s = 5",
        "camera.bitrate = 25_000_000",
    )
    with mounted(small, tmp_path / "card") as card:
        folder = card / "rec"
        with Writing(folder, *settings) as writing:
            wait_for(lambda: "No space left" in writing.state, "not full", 15.0)
            before = writing.last_ns
            wait_for(lambda: writing.last_ns > before + 500_000_000, "it hangs")
            for path in files(folder):
                with reader.read(path) as made:
                    assert all(one.reason.startswith("cut") for one in made.damage)
                path.unlink()
            wait_for(lambda: writing.state == "ok", "it does not go on", 10.0)
            assert writing.end() == 0
        assert files(folder)


def test_read_only_or_silent_card_is_reported_and_retried(tmp_path: Path) -> None:
    small = image(tmp_path / "small.img", 32, "mkfs.ext4", "-q", "-F")
    with mounted(small, tmp_path / "card") as card:
        run("mount", "-o", "remount,ro", card)
        with Writing(card / "rec", "recording.keep_free_mb = 0") as writing:
            wait_for(lambda: "Read-only" in writing.state, "not said")
            run("mount", "-o", "remount,rw", card)
            wait_for(lambda: writing.state == "ok", "it does not begin", 10.0)
            wait_for(lambda: recorded(card / "rec"), "nothing is recorded")
            run("fsfreeze", "--freeze", card)
            try:
                wait_for(lambda: "has not answered" in writing.state, "not said")
                before = writing.last_ns
                wait_for(lambda: writing.last_ns > before + 200_000_000, "it hangs")
            finally:
                run("fsfreeze", "--unfreeze", card)
            wait_for(lambda: writing.state == "ok", "it does not go on")
            assert writing.end() == 0
        times = step_times(card / "rec")
        gaps = [b - a for a, b in zip(times, times[1:], strict=False)]
        assert max(gaps) < 500_000_000, "what waited was written"


def test_card_full_at_first_start_is_told_by_run_and_doctor(tmp_path: Path) -> None:
    small = image(tmp_path / "small.img", 4, "mkfs.ext4", "-q", "-F", "-O", "^has_journal")
    with mounted(small, tmp_path / "card") as card:
        state = card / "state"
        state.mkdir()
        with pytest.raises(OSError), (card / "filled").open("wb", buffering=0) as file:
            while True:
                file.write(bytes(4096))
        env = {
            **os.environ,
            "STATE_DIRECTORY": str(state),
            "RUNTIME_DIRECTORY": str(tmp_path / "run"),
        }

        def fpvcar(*words: str) -> "subprocess.CompletedProcess[str]":
            return subprocess.run(
                [sys.executable, "-m", "fpvcar", *words],
                env=env,
                text=True,
                capture_output=True,
                timeout=60,
            )

        none = ("--set=camera.source = 'none'", "--set=gate.blind = 'ignore'")
        done = fpvcar("run", f"--port={free_port()}", *none)
        assert done.returncode == 1 and "No space left" in done.stderr
        assert "make room (sudo journalctl" in done.stderr.splitlines()[-1]
        doctor = fpvcar("doctor", "--json")
        found = {one["key"]: one for one in json.loads(doctor.stdout)["findings"]}
        assert doctor.returncode == 4
        assert str(state) in found["card-no-room"]["what"]

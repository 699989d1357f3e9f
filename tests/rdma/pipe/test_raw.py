"""The raw stream of a session, over rdpipe, to a stand-in for a screen."""

import hashlib
import io
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from testkit.base_station.stored import new_store, put
from testkit.mcaps import McapFile
from testkit.network.pipes import SLOWNESS, Tools
from testkit.recordings import NAME, SECONDS, drive_messages

from fpvcar.recordings.export.export import Report
from fpvstation.cli import decode

pytestmark = pytest.mark.e2e


def streamed(tools: Tools, store: Path, *more: str) -> tuple[str, float]:
    """Return the checksum of the received stream, and the time it took."""
    session = NAME.rpartition("-")[0]
    station = f"{sys.executable} -m fpvstation raw --store '{store}' {session}"
    far = f"--ssh \"{tools.ssh}\" --remote-path '{tools.folder}'"
    line = f"set -o pipefail; {station} {' '.join(more)} | '{tools.folder}/rdpipe' {far} "
    env = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    began_s = time.monotonic()
    ended = subprocess.run(
        ["bash", "-c", line + "host1:sha256sum"],
        capture_output=True,
        text=True,
        timeout=60 * SLOWNESS,
        env=env,
    )
    assert ended.returncode == 0, ended.stderr
    assert "-f rawvideo -pixel_format yuv420p" in ended.stderr
    return ended.stdout.split()[0], time.monotonic() - began_s


def test_recording_is_shown_on_second_machine(tools: Tools, tmp_path: Path) -> None:
    root = tmp_path / "store"
    store = new_store(root)
    made = McapFile(drive_messages()).to(tmp_path / NAME)
    put(store, NAME, made.read_bytes())
    whole = io.BytesIO()
    assert decode.write(whole, [made], Report(lambda words: None), False) > 0
    wanted = hashlib.sha256(whole.getvalue()).hexdigest()
    assert streamed(tools, root, "--fast")[0] == wanted
    came, took_s = streamed(tools, root)
    assert came == wanted and took_s >= SECONDS * 0.9

"""Foreign programs accept datasets and read from them what was recorded.

lerobot-doctor and robovet judge LeRobot datasets, Donkeycar's own Tub reads a tub.
"""

import json
from pathlib import Path

import pytest
from testkit import mcaps
from testkit.command import Command
from testkit.mcaps import McapFile
from testkit.recorder import datasets
from testkit.recorder.datasets import driven, filmed, foreign

DOCTOR = """
import sys
from lerobot_doctor.cli import main
sys.argv = ["lerobot-doctor", "check", sys.argv[1]]
main()
"""
ROBOVET = """
import sys
from robovet.cli import app
sys.argv = ["robovet", "doctor", sys.argv[1]]
app()
"""
TASKS = """
import sys, pandas
tasks = pandas.read_parquet(sys.argv[1] + "/meta/tasks.parquet")
print({tasks.iloc[number].name: int(tasks.loc[name].task_index) for number, name in
       enumerate(tasks.index)})
"""
TUB = """
import json, sys, types
from PIL import Image
package = types.ModuleType("donkeycar")  # its own one imports every part of a car
package.__path__ = [sys.argv[1]]
sys.modules["donkeycar"] = package
from donkeycar.parts.tub_v2 import Tub
tub = Tub(sys.argv[2], read_only=True)
rows = list(tub)
pictures = {Image.open(f"{tub.images_base_path}/{row['cam/image_array']}").size for row in rows}
kinds = [isinstance(row[name], float) for row in rows for name in ("user/angle", "user/throttle")]
print(json.dumps([len(tub), all(kinds), sorted(pictures), tub.manifest.inputs, rows[-1],
                  sorted({row["_session_id"] for row in rows})]))
tub.close()
"""


def drives(folder: Path, count: int) -> None:
    """Write drives of two drivers, of which every fifth has lost a frame."""
    for number in range(count):
        path = datasets.drive(folder, number, 5.0 + number % 3, ("Ann", "Zoë")[number % 2])
        if number % 5 == 1:
            start_s = 60.0 * number
            film = filmed(5.0, start_s)
            logged = [*film[:59], *film[60:], *driven(5.0, start_s, seed=number)]
            McapFile(logged, recording=path.stem[:-5]).to(path)


def clean(out: Path) -> None:
    """Check that both programs find neither a fault nor a warning."""
    done = foreign(DOCTOR, out)
    assert done.returncode == 0 and "Summary: 11 PASS" in done.stdout, done.stdout
    assert "WARN" not in done.stdout and "FAIL" not in done.stdout, done.stdout
    done = foreign(ROBOVET, out)
    assert done.returncode == 0 and "0 fail · 0 warn · 0 info" in done.stdout, done.stdout


@pytest.mark.parametrize("options", [["--copy"], ["--fps", "20", "--size", "96x64"]])
def test_validators_find_nothing_in_a_dataset(
    tmp_path: Path, command: Command, options: list[str]
) -> None:
    drives(tmp_path, 2)
    out = tmp_path / "set"
    said = command("log", "export", "--lerobot", out, *options, tmp_path, "--partial")
    assert ("1 copied, 1 encoded" if "--copy" in options else "0 copied, 2 encoded") in said.out
    clean(out)
    assert foreign(TASKS, out).stdout == "{'Drive the car': 0}\n"


@pytest.mark.soak
@pytest.mark.long
def test_validators_find_nothing_in_twenty_drives(tmp_path: Path, command: Command) -> None:
    drives(tmp_path, 20)
    said = command("log", "export", "--lerobot", tmp_path / "set", "--copy", tmp_path, "--partial")
    assert "20 episodes" in said.out and "16 copied, 4 encoded" in said.out
    clean(tmp_path / "set")


def test_validators_find_a_missing_row(tmp_path: Path, command: Command) -> None:
    drives(tmp_path, 1)
    out = tmp_path / "set"
    command("log", "export", "--lerobot", out, tmp_path)
    info = json.loads((out / "meta" / "info.json").read_text())
    (out / "meta" / "info.json").write_text(json.dumps({**info, "total_frames": 1}))
    assert "FAIL" in foreign(DOCTOR, out).stdout
    assert foreign(ROBOVET, out).returncode == 1


def test_donkeycar_reads_a_tub(tmp_path: Path, command: Command) -> None:
    drives(tmp_path, 3)
    command("log", "export", "--donkey", tmp_path / "tub", "--fps", "60", "--partial", tmp_path)
    done = foreign(TUB, datasets.VALIDATORS / "donkeycar", tmp_path / "tub")
    assert done.returncode == 0, done.stdout
    length, floats, sizes, inputs, last, sessions = json.loads(done.stdout.splitlines()[-1])
    assert floats and length == last["_index"] + 1 > 1000, "two catalogs"
    assert sizes == [[160, 120]]
    assert inputs[:4] == ["cam/image_array", "user/angle", "user/throttle", "user/mode"]
    assert {"range_front_m", "battery_v", "gate_throttle", "driver", "stop"} <= set(inputs)
    assert sessions == ["25-11-21_0", "25-11-21_1", "25-11-21_2"]
    assert last["_timestamp_ms"] - mcaps.BEGAN_NS // 1_000_000 == pytest.approx(127_000, abs=60)

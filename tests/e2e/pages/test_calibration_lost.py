"""Loss of a calibrated motor direction, a missing resistor: the car stands until it is settled."""

import json
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from testkit.driver import Driver, free, set_off, sit_down
from testkit.harness import SMALL, RunningBench, started, wait_for
from testkit.stops.stopping import reason

from fpvcar.access.rights import CODE
from fpvcar.calibration import store

pytestmark = pytest.mark.e2e
API = "api/calibration"


def cookie(bench: RunningBench) -> str:
    """The cookie of a grown-up driver."""
    code = json.loads((bench.state / "codes.json").read_text())["grown_up"]
    unlock = urllib.request.Request(
        f"{bench.url}api/recordings/unlock", method="POST", headers={CODE: code}
    )
    with urllib.request.urlopen(unlock, timeout=10) as answer:
        return str(answer.headers["Set-Cookie"].partition(";")[0])


def ask(bench: RunningBench, path: str, who: str, method: str = "POST") -> Any:
    """Answer to a request by a grown-up."""
    request = urllib.request.Request(
        f"{bench.url}{API}/{path}", method=method, headers={"Cookie": who}
    )
    with urllib.request.urlopen(request, timeout=10) as answer:
        return json.load(answer)


def faults(bench: RunningBench) -> str:
    """Answer of /healthz with status 503."""
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(f"{bench.url}healthz", timeout=10)
    assert refused.value.code == 503
    return refused.value.read().decode()


def test_damaged_calibration_holds_car_until_directions_are_kept(tmp_path: Path) -> None:
    state = tmp_path / "state"
    state.mkdir()
    (state / store.FILE).write_text('{"changes": [{"utc_s": 1')
    with started(tmp_path, *SMALL, '--set=gate.blind = "ignore"') as bench:
        with Driver(bench.port) as driver, bench.watch() as watch:
            sit_down(driver)
            driver.say(kind="resume")
            for throttle in (0.0, 1.0):
                driver.drive(throttle, 0.0)
                time.sleep(0.3)
            assert not any(sample.driving for sample in watch.samples)
            assert reason(bench) == "direction"
            assert "direction of drive, steer in doubt" in faults(bench)
            who = cookie(bench)
            driver.drive(0.0, 0.0)
            for motor in ("drive", "steer"):
                key = f"motors.{motor}.invert"
                assert ask(bench, f"set?key={key}&value=false", who)["values"]
            driver.say(kind="resume")
            wait_for(lambda: reason(bench) is None, "the car is still held")
            set_off(driver, watch)


@pytest.mark.parametrize(("really", "phase"), [("2.2", "done"), ("0.0", "missing")])
def test_step_finds_whether_the_resistor_is_there(tmp_path: Path, really: str, phase: str) -> None:
    lines = (
        "motors.drive.pwm_hz = 100",
        "motors.drive.resistor_ohm = 2.2",
        'gate.blind = "ignore"',
    )
    options = [
        *(f"--set={line}" for line in lines),
        f"--really=motors.drive.resistor_ohm = {really}",
    ]
    with started(tmp_path, *SMALL, *options) as bench:
        with Driver(bench.port) as driver:
            sit_down(driver)
            who = cookie(bench)
            step = ask(bench, "begin?step=resistor&of=drive", who)
            ends_s = time.monotonic() + 30.0
            while step["phase"] == "hold" and time.monotonic() < ends_s:
                if driver.stop_cause() not in (None, "resistor"):  # a busy machine was late
                    free(driver)
                driver.drive(step["wish"]["throttle"], step["wish"]["steer"])
                time.sleep(0.1)
                step = ask(bench, "step", who, "GET")
            driver.drive(0.0, 0.0)
            assert step["phase"] == phase, step
            assert reason(bench) == (None if phase == "done" else "resistor")
            if phase == "missing":
                assert "motors.drive lacks its resistor of 2.2" in faults(bench)
                assert '"drive.resistor"' in (bench.state / store.FILE).read_text()

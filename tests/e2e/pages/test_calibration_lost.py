"""Loss of a calibrated motor direction: the car stands until it is calibrated again."""

import json
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from fpvcar.calibration import store
from fpvcar.server.api.recordings_rights import CODE
from tests.e2e.driver import Driver, set_off, sit_down
from tests.e2e.harness import SMALL, RunningBench, started, wait_for
from tests.e2e.stops.stopping import reason

pytestmark = pytest.mark.e2e
API = "api/calibration"


def post(bench: RunningBench, path: str, code: str) -> int:
    """Status of a request by a grown-up."""
    unlock = urllib.request.Request(
        f"{bench.url}api/recordings/unlock", method="POST", headers={CODE: code}
    )
    with urllib.request.urlopen(unlock, timeout=10) as answer:
        cookie = answer.headers["Set-Cookie"].partition(";")[0]
    request = urllib.request.Request(
        f"{bench.url}{API}/{path}", method="POST", headers={"Cookie": cookie}
    )
    with urllib.request.urlopen(request, timeout=10) as answer:
        return int(answer.status)


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
            code = json.loads((bench.state / "codes.json").read_text())["grown_up"]
            driver.drive(0.0, 0.0)
            for motor in ("drive", "steer"):
                key = f"motors.{motor}.invert"
                assert post(bench, f"set?key={key}&value=false", code) == 200
            driver.say(kind="resume")
            wait_for(lambda: reason(bench) is None, "the car is still held")
            set_off(driver, watch)

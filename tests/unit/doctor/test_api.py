"""Route /api/doctor: a grown-up only, while the car stands; for any end of the process."""

import asyncio
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from testkit.grown_up import GrownUpsApi
from testkit.hub import CODES

from fpvcar.doctor.api import DoctorApi


class Rig(GrownUpsApi):
    """Route over a program of the test's own."""

    def __init__(self, tmp_path: Path) -> None:
        super().__init__(tmp_path)
        self.moves, self.within_s = False, 30.0

    async def answers(
        self, status: int, words: str, program: str = "", code: str = CODES.grown_up, asks: int = 1
    ) -> None:
        """Check the answers to some requests at once."""
        argv = [sys.executable, "-c", program]
        control: Any = SimpleNamespace(duties=(0.0, 0.5 * self.moves))
        api = DoctorApi(argv, self.rights, control, self.within_s)
        async with self.serve(code, api) as client:
            found = [client.post("/api/doctor") for _ in range(asks)]
            for answer in await asyncio.gather(*found):
                assert answer.status == status
                assert words in await answer.text()
                assert status > 401 or answer.headers["Cache-Control"] == "no-store"


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    return Rig(tmp_path)


@pytest.mark.parametrize("status", [0, 3, 4])
async def test_doctor_answers_with_the_output_of_its_process(rig: Rig, status: int) -> None:
    program = f"print('{{\"findings\": []}}'); raise SystemExit({status})"
    await rig.answers(200, '{"findings": []}\n', program)


async def test_simultaneous_doctor_requests_share_one_process(rig: Rig, tmp_path: Path) -> None:
    log = tmp_path / "log"
    program = f"import time; open({str(log)!r}, 'a').write('x'); time.sleep(0.3)"
    await rig.answers(200, "", program, asks=3)
    assert log.read_text() == "x"


async def test_doctor_refuses_while_the_car_moves(rig: Rig) -> None:
    rig.moves = True
    await rig.answers(409, "wait until it stops")


@pytest.mark.parametrize(
    ("program", "words"),
    [
        ("import sys; sys.exit('no such profile')", "no such profile"),
        ("raise SystemExit(2)", "doctor ended with status 2"),
        ("import time; time.sleep(60)", "doctor does not answer"),
    ],
)
async def test_doctor_reports_a_failed_process(rig: Rig, program: str, words: str) -> None:
    rig.within_s = 1.0
    await rig.answers(503, words, program)

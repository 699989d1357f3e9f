"""Each failure in the first table of docs/safety.md has a test in the quick suite."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest
from testkit.stops import causes

from fpvcar.hil import stop_causes

ROOT = Path(__file__).resolve().parent.parent
QUICK = "smoke or not (e2e or slow)"
"""The marks of the tests that `make test` runs."""
STOPS = "tests/e2e/stops/test_who_stops"
TABLE = f"{STOPS}.py::test_car_stops_in_time"
PWM = f"{STOPS}_linux.py::test_kernel_pwm_motors_stop_in_time"
ESC = f"{STOPS}_esc.py::test_esc_on"
DOCTOR = f"{STOPS}_doctor.py::test_doctor_move_stops_in_time[doctor --move:"
UNIT = "tests/unit"
ROWS = {
    "finger lifts, tab hidden": [
        f"{TABLE}[finger lifts]",
        f"{STOPS}.py::test_car_under_browser_stops_in_time[key up]",
    ],
    "Wi-Fi cut, browser frozen": [
        f"{TABLE}[only heartbeats]",
        f"{STOPS}.py::test_car_under_browser_stops_in_time[browser frozen]",
    ],
    "`run` killed": [f"{TABLE}[run killed]"],
    "`run` hangs": [f"{TABLE}[run stopped]"],
    "`run`'s loop is blocked": [f"{TABLE}[run's loop blocked]"],
    "`wheels` killed or hung": [f"{TABLE}[wheels killed]", f"{TABLE}[wheels stopped]"],
    "the same with motors on a PCA9685": [f"{STOPS}_hat.py::test_hat_motors_stop_in_time[wheels"],
    "the same with motors on the kernel's pins": [
        f"{STOPS}_linux.py::test_gpiochip_motors_stop_in_time[wheels stopped]"
    ],
    "the same with a motor on the [kernel's PWM]": [f"{PWM}[wheels stopped]"],
    "`wheels` and its guardian killed together": [f"{PWM}[wheels and guardian killed]"],
    "the guardian killed or hung": [
        f"{STOPS}_linux.py::test_gpiochip_motors_stop_in_time[guardian hangs]"
    ],
    "an I2C error on a PCA9685": [
        f"{UNIT}/wheels/test_hat.py::test_failed_bus_with_oe_stops_the_car_at_once",
        f"{UNIT}/wheels/test_hat.py::test_car_stops_when_the_failed_bus_is_back",
    ],
    "with an [ESC](#a-car-with-an-esc) on `pigpiod`: `wheels`": [
        f"{ESC}_pigpiod_stops_in_time[wheels killed]"
    ],
    "with an ESC on the kernel's PWM or a PCA9685": [
        f"{ESC}_kernel_pwm_stops_in_time[wheels stopped]",
        f"{ESC}_pca9685_by_guardian_stops_in_time[guardian hangs]",
    ],
    "with an ESC on `pigpiod`: `pigpiod` dies": [f"{ESC}_pigpiod_stops_in_time[pigpiod killed]"],
    "with an ESC on a PCA9685: an I2C error": [
        f"{ESC}_pca9685_with_oe_stops_in_time[I2C error, OE wired]"
    ],
    "`wheels` resumes after a hang": [
        f"{UNIT}/wheels/test_controller.py::test_queued_packets_after_a_stall_move_nothing"
    ],
    "Ctrl-C, SIGTERM or SIGHUP while `fpvcar doctor --move`": [f"{DOCTOR} terminal sends SIGINT]"],
    "that process killed or hung": [f"{DOCTOR} motor process hangs]"],
    "`pigpiod` dies": [f"{TABLE}[pigpiod killed]"],
    "`pigpiod` hangs": [f"{TABLE}[pigpiod hangs]"],
    "the camera is silent": [f"{TABLE}[camera hangs]"],
    "the [second camera]": [
        "tests/e2e/video/test_picture.py"
        "::test_second_camera_is_swapped_by_a_key_and_stops_the_car_when_it_hangs"
    ],
    "a range sensor is silent": [f"{TABLE}[range sensor without power]"],
    "the link is late": [f"{TABLE}[link late by 1.5 s, upwards]"],
    "the page lies": [
        f"{TABLE}[page lies about what it saw]",
        f"{TABLE}[page frozen behind its own flood]",
    ],
    "a calibrated motor direction is lost": [
        f"{UNIT}/calibration/test_store.py::test_damaged_file_leaves_all_directions_in_doubt"
    ],
    "the calibration's step *Resistor*": [
        f"{UNIT}/calibration/test_resistor.py::test_missing_resistor_holds_the_car_until",
        f"{UNIT}/calibration/test_resistor.py::test_step_limits_each_wish_to_ten_percent_duty",
    ],
    "the helper starts late": [
        f"{UNIT}/devices/test_pins_off.py::test_late_helper_leaves_the_pins_of_a_newer_wheels"
    ],
    "any two of": [f"{UNIT}/wheels/test_hat.py::test_helper_stops_the_car_when_wheels_and"],
    "`run` starts again": [f"{STOPS}.py::test_grown_up_settings_outlive_a_killed_run"],
}
"""The first words of each row, and the first words of its tests."""


@pytest.fixture(scope="module")
def collected() -> list[str]:
    """Tests of the quick suite in the files that the table names."""
    files = sorted({test.partition("::")[0] for tests in ROWS.values() for test in tests})
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [*command, "-m", QUICK, *files], cwd=ROOT, check=True, capture_output=True, text=True
    )
    return done.stdout.splitlines()


def test_table_of_tests_has_each_row_of_the_page() -> None:
    text = (ROOT / "docs" / "safety.md").read_text()
    table = text.partition("## What fails")[2].partition("\n### ")[0]
    rows = re.findall(r"^\| (.+?) \|", table, re.M)[1:]
    assert len(rows) == len(ROWS)
    for row, words in zip(rows, ROWS, strict=True):
        assert row.startswith(words), row


@pytest.mark.parametrize("row", ROWS)
def test_row_has_a_test_in_the_quick_suite(row: str, collected: list[str]) -> None:
    missing = [test for test in ROWS[row] if not any(one.startswith(test) for one in collected)]
    assert missing == []


def test_tests_and_benchmark_measure_each_stop_of_hil() -> None:
    assert {cause.name for cause in causes.CAUSES} >= stop_causes.BY_NAME.keys()


def test_stop_limits_of_tests_are_those_of_hil() -> None:
    """No row of the tests, which the benchmark runs too, has a number of its own."""
    numbers = [
        f"{file.name}:{node.lineno}"
        for file in (ROOT / "testkit" / "stops").glob("*.py")
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "Cause"
        if isinstance(node.args[1], ast.Constant)
    ]
    assert numbers == []


def test_quick_suite_runs_these_marks() -> None:
    script = (ROOT / "tools" / "test.sh").read_text()
    quick = script.partition("start deciding")[2].partition("else\n")[0]
    assert quick.count("-m ") == 2 and "-m smoke" in quick
    assert quick.count("'not e2e and not slow'") == 2

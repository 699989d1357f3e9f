"""Runner: each check has a verdict of its own, for any outcome."""

from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from fpvcar.config import ConfigError
from fpvcar.devices.pins import PinsLost
from fpvcar.hil import plots, runner
from fpvcar.hil.checks import CHECKS, sensors
from fpvcar.hil.results import Measured, Result
from fpvcar.hil.rig import PARTS, Check, CheckFailed, InvalidMeasurement, MissingPart
from fpvcar.runtime.texts import STARTING
from fpvcar.wire.telemetry import Range
from tests.unit.hil.rigs import PlayedRig, check, values


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "AGAIN_S", 0.0)


def ran(one: Check, repeat: int = 1, **lacking: str) -> tuple[Result, str]:
    said: list[str] = []
    rig: Any = PlayedRig(**lacking)
    (result,) = runner.run([one], rig, repeat, said.append)
    return result, said[0]


def raising(*faults: Exception | None) -> Any:
    left = list(faults)

    def act(rig: Any) -> Measured:
        fault = left.pop(0)
        if fault is not None:
            raise fault
        return Measured(0.5)

    return act


def test_check_with_a_value_at_the_limit_passes() -> None:
    result, said = ran(check(values(0.25, 1.0, 0.5)), 3)
    assert (result.verdict, result.values) == ("passed", (0.25, 1.0, 0.5))
    assert (result.median, result.worst) == (0.5, 1.0)
    assert said.startswith("passed   one") and "worst of 3 (limit 1 s)" in said


def test_single_value_above_the_limit_fails_the_check() -> None:
    result, said = ran(check(values(0.25, 1.5, 0.5)), 3)
    assert result.verdict == "failed"
    assert result.why == "1 of 3 above 1 s: 1.5" and result.why in said


def test_trace_of_the_worst_value_is_kept() -> None:
    result, _ = ran(check(values(0.25, 0.75, 0.5)), 3)
    assert result.trace == ((0.0, 1.0), (0.5, 0.0))


@pytest.mark.parametrize(
    "fault",
    [
        CheckFailed("no edge"),
        TimeoutError("no car"),
        PinsLost("gone"),
        OSError("no bus"),
        InvalidMeasurement("stood before"),
    ],
)
def test_exception_in_a_check_is_its_failure(fault: Exception) -> None:
    result, _ = ran(check(raising(fault, fault, fault)))
    assert (result.verdict, result.why) == ("failed", str(fault))


def test_failure_among_values_keeps_the_values() -> None:
    result, _ = ran(check(raising(None, CheckFailed("no edge"), None)), 3)
    assert (result.verdict, result.why) == ("failed", "no edge")
    assert result.values == (0.5, 0.5)


def test_spoilt_measurement_is_repeated_twice() -> None:
    spoilt = InvalidMeasurement("stood before")
    result, said = ran(check(raising(spoilt, spoilt, None)))
    assert (result.verdict, result.values) == ("passed", (0.5,))
    assert result.repeated == ("stood before",) * 2
    assert "2 repeated: stood before; stood before" in said


def test_measurement_late_by_a_busy_bench_is_repeated() -> None:
    late = [Measured(1.3, waited_s=0.4), Measured(1.2, waited_s=0.2), Measured(0.5)]
    result, said = ran(check(lambda rig: late.pop(0)))
    assert (result.verdict, result.values) == ("passed", (0.5,))
    assert "1.3 s, for 0.4 s of which the bench had no core" in said
    result, _ = ran(check(lambda rig: Measured(1.3, waited_s=0.4)))
    assert result.verdict == "failed" and "too busy" in result.why, "three times"


@pytest.mark.parametrize("waited_s", [0.0, 0.29])
def test_measurement_late_beyond_its_wait_fails(waited_s: float) -> None:
    result, _ = ran(check(lambda rig: Measured(1.3, waited_s=waited_s)))
    assert (result.verdict, result.repeated) == ("failed", ())
    assert "1 of 1 above 1 s: 1.3" in result.why


def test_measurement_is_repeated_after_lost_pins() -> None:
    result, _ = ran(check(raising(PinsLost("gone"), None)))
    assert (result.verdict, result.repeated) == ("passed", ("gone",))


def test_check_with_a_missing_part_is_not_run_and_names_it() -> None:
    act = raising(AssertionError("it was run"))
    result, said = ran(check(act, "loops", "contact"), contact="no relay on pin 9")
    assert (result.verdict, result.why) == ("not run", "no relay on pin 9")
    assert said.startswith("not run") and "no relay on pin 9" in said
    result, _ = ran(check(raising(MissingPart("no PyAV"))))
    assert (result.verdict, result.why) == ("not run", "no PyAV")


def test_check_by_hand_says_how_and_is_not_run() -> None:
    result, _ = ran(check(None, by_hand="Hold the shaft."))
    assert (result.verdict, result.why) == ("not run", "by hand: Hold the shaft.")


def test_rig_rests_after_each_measurement_broken_or_not() -> None:
    rig: Any = PlayedRig()
    list(runner.run([check(raising(None, CheckFailed("no"), None))], rig, 3, lambda _: None))
    assert rig.rests == 3


def test_named_checks_alone_are_chosen() -> None:
    names = [one.name for one in runner.chosen(CHECKS, "stop-silence, echo")]
    assert names == ["echo", "stop-silence"]
    assert runner.chosen(CHECKS, "") == CHECKS
    with pytest.raises(ConfigError, match="--only ecko: no such check.*--list"):
        runner.chosen(CHECKS, "ecko,echo")


def test_checks_have_unique_names_and_known_parts() -> None:
    assert len({one.name for one in CHECKS}) == len(CHECKS) > 30
    for one in CHECKS:
        assert set(one.needs) <= set(PARTS), one.name
        assert (one.act is None) == bool(one.by_hand), one.name
        only_metal = {"metal", "photodiode"} & set(one.needs)
        assert one.metal == bool(only_metal), one.name
        assert one.limit.source and one.proves.endswith("."), one.name


def test_many_values_are_printed_as_a_histogram() -> None:
    late_s = [0.080 + 0.001 * n for n in range(19)] + [0.15]
    missed = CheckFailed("no edge")
    left: list[Any] = [*late_s[:10], missed, *late_s[10:], missed]

    def act(rig: Any) -> Measured:
        value = left.pop(0)
        if value is missed:
            raise missed
        return Measured(value)

    said: list[str] = []
    rig: Any = PlayedRig()
    (result,) = runner.run([check(act)], rig, 22, said.append)
    assert (result.verdict, result.missed, len(result.values)) == ("failed", 2, 20)
    first, histogram = said
    assert "no edge" in first
    *lines, summary = histogram.splitlines()
    assert summary == "median 89 ms, p95 98 ms, p99 150 ms of 20; 2 missed"
    rows = [line.split() for line in lines]
    assert [row[0] for row in rows[:3]] == ["80", "85", "90"] and rows[-1][0] == "150"
    assert sum(int(row[-1]) for row in rows) == 20 and len(rows) <= plots.BINS
    assert max(line.count("#") for line in lines) == plots.BAR


@pytest.mark.parametrize(
    "values", [[0.5] * 20, [0.0] * 20, [-3.0, *range(19)], [1e-9, *[5e3] * 19]]
)
def test_histogram_has_a_row_for_each_value(values: list[float]) -> None:
    result = runner.judged(check(None, most=1e9), [Measured(value) for value in values], ())
    *lines, summary = plots.histogram(result).splitlines()
    assert sum(int(line.split()[-1]) for line in lines) == 20 and len(lines) <= plots.BINS
    assert summary.endswith(" of 20; 0 missed")
    few = runner.judged(check(None), [Measured(1.0)] * (plots.MANY - 1), ())
    assert plots.histogram(few) == ""


def test_sensor_without_readings_is_named_with_its_state(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sensors, "ANSWER_S", 0.0)
    front = msgspec.to_builtins(Range("front", 0.0, None, None, STARTING))
    driver: Any = SimpleNamespace(state={"ranges": [front]})
    with pytest.raises(CheckFailed, match="^front: starting, for 0 s$"):
        sensors._range_of(driver, "front")
    with pytest.raises(CheckFailed, match="^rear: not reported by the car, for 0 s$"):
        sensors._range_of(driver, "rear")

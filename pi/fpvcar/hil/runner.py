"""Runs checks on a rig, one after another, and compares their values with the limits."""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial

from fpvcar.config import ConfigError
from fpvcar.devices.pins import PinsFault
from fpvcar.hil import plots
from fpvcar.hil.gpio_rig import Rig
from fpvcar.hil.results import Measured, Result, Verdict, again
from fpvcar.hil.rig import Check, CheckFailed, InvalidMeasurement, MissingPart

TRIES, AGAIN_S = 3, 1.0
"""Retries of a spoilt measurement, and the pause between them."""
Say = Callable[[str], object]
Act = Callable[[Rig], Measured]


def chosen(checks: Sequence[Check], only: str) -> tuple[Check, ...]:
    """Return the checks named as NAME[,NAME]; "" means all. Raises ConfigError."""
    if not only:
        return tuple(checks)
    names = [name.strip() for name in only.split(",")]
    known = [check.name for check in checks]
    if unknown := [name for name in names if name not in known]:
        raise ConfigError(
            f"--only {','.join(unknown)}: no such check; fpvcar hil --list lists them"
        )
    return tuple(check for check in checks if check.name in names)


def run(checks: Iterable[Check], rig: Rig, repeat: int, say: Say) -> Iterator[Result]:
    """Yield one result per check. A fault of one check does not end the run."""
    for check in checks:
        result = _run(check, rig, repeat)
        say(line(result))
        if spread := plots.histogram(result):
            say(spread)
        yield result


def _run(check: Check, rig: Rig, repeat: int) -> Result:
    missing = [why for part in check.needs if (why := rig.lacks(part))]
    if missing:
        return result_of(check, "not run", why=missing[0])
    if check.act is None:
        return result_of(check, "not run", why=f"by hand: {check.by_hand}")
    measurements: list[Measured] = []
    faults: list[str] = []
    repeated: list[str] = []
    for _ in range(repeat):
        try:
            measurements.append(_measure(partial(_in_time, check, check.act), rig, repeated))
        except MissingPart as fault:
            return result_of(check, "not run", measurements, str(fault))
        except (CheckFailed, InvalidMeasurement, PinsFault, OSError) as fault:
            faults.append(str(fault) or type(fault).__name__)
    return judged(check, measurements, faults, repeated)


def _in_time(check: Check, act: Act, rig: Rig) -> Measured:
    """Measure once. Raises InvalidMeasurement if the excess over the limit is less than the time
    the bench waited for a core: then the machine is at fault, not the car."""
    measured = act(rig)
    most = check.limit.most
    if measured.value > most >= measured.value - measured.waited_s:
        raise InvalidMeasurement(
            f"{measured.value:.3g} {check.limit.unit}, for {measured.waited_s:.3g} s "
            "of which the bench had no core: this machine is too busy"
        )
    return measured


def _measure(act: Act, rig: Rig, repeated: list[str]) -> Measured:
    """Measure, with two retries when a busy machine made the car stop itself or the
    pin daemon restart."""
    for left in reversed(range(TRIES)):
        try:
            return act(rig)
        except (InvalidMeasurement, PinsFault) as fault:
            if not left:
                raise
            repeated.append(str(fault))
            time.sleep(AGAIN_S)
        finally:
            rig.rest()
    raise AssertionError("unreachable")


def judged(
    check: Check,
    measurements: Sequence[Measured],
    faults: Sequence[str],
    repeated: Sequence[str] = (),
) -> Result:
    """Compare every measurement with the limit."""
    over = [measured.value for measured in measurements if measured.value > check.limit.most]
    why = "; ".join(dict.fromkeys(faults))
    if over:
        message = f"{len(over)} of {len(measurements)} above {check.limit}: {max(over):.4g}"
        why = "; ".join([message, why]) if why else message
    verdict: Verdict = "failed" if why else "passed"
    return result_of(check, verdict, measurements, why, repeated, len(faults))


def result_of(
    check: Check,
    verdict: Verdict,
    measurements: Sequence[Measured] = (),
    why: str = "",
    repeated: Sequence[str] = (),
    missed: int = 0,
) -> Result:
    """Return a check's result with the trace of the worst measurement."""
    worst = max(measurements, key=lambda measured: measured.value, default=Measured(0.0))
    return Result(
        check.name,
        check.group,
        check.proves,
        check.limit,
        verdict,
        tuple(measured.value for measured in measurements),
        why,
        worst.trace,
        check.metal,
        missed,
        tuple(repeated),
    )


def line(result: Result) -> str:
    """Return one line for a terminal."""
    head = f"{result.verdict:8} {result.name:22}"
    if result.worst is None:
        return f"{head} {result.why}"
    unit = result.limit.unit
    count = f", worst of {len(result.values)}" if len(result.values) > 1 else ""
    figure = f"{result.worst:.4g} {unit}{count} (limit {result.limit})"
    notes = [note for note in (result.why, again(result)) if note]
    return ": ".join([f"{head} {figure}", *notes])

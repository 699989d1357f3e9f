"""Owner of the collision guard: modes, reports, and counted interventions."""

import msgspec
import pytest
from testkit.control import PROFILE, Rig
from testkit.hub import House

from fpvcar.calibration.values import overridden
from fpvcar.config import GuardMode
from fpvcar.drive.gate import Cause
from fpvcar.wire import telemetry, up
from fpvcar.wire.settings import Guard
from fpvcar.wire.telemetry import Guarding

STOP_M = PROFILE.guard.stop_m


def wall(range_m: float | None = STOP_M, age_s: float = 0.01) -> telemetry.Range:
    return telemetry.Range("front", 0.0, range_m, age_s)


def at_a_wall(mode: GuardMode) -> Rig:
    rig = Rig(seen=(wall(),))
    rig.control.guard(mode)
    rig.wish(0.0)
    rig.wish(1.0)
    return rig


def test_bench_profile_starts_with_the_guard_on() -> None:
    assert PROFILE.guard.mode == "limit"
    assert Rig().control.guarding() == Guarding("limit", STOP_M)


def test_limit_mode_holds_the_car_and_names_the_sensor() -> None:
    rig = at_a_wall("limit")
    assert not rig.moving
    assert rig.control.decision.reason == "guarded"
    assert rig.control.guarding() == Guarding("limit", STOP_M, 0.0, 1.0, "front", "")


def test_warn_mode_reports_and_lets_the_car_drive() -> None:
    rig = at_a_wall("warn")
    assert rig.moving and rig.control.decision.reason == "driving"
    assert rig.control.guarding() == Guarding("warn", STOP_M, 0.0, 1.0, "front", "")


def test_off_mode_ignores_ranges() -> None:
    rig = at_a_wall("off")
    assert rig.moving
    assert rig.control.guarding() == Guarding("off", STOP_M)


def test_mode_change_applies_at_once() -> None:
    rig = at_a_wall("off")
    changes = rig.changes
    rig.control.guard("limit")
    assert not rig.moving and rig.changes > changes
    rig.control.guard("warn")
    assert rig.moving
    rig.control.guard("off")
    assert rig.moving and rig.control.free == (1.0, 1.0)
    assert rig.control.guarding() == Guarding("off", STOP_M)


def test_wall_at_the_limit_adds_no_log_lines_or_reports(caplog: pytest.LogCaptureFixture) -> None:
    """Noise at the edge of the free range changes the reason many times a second."""
    caplog.set_level("INFO", "fpvcar.gate")
    rig = Rig()
    rig.drive_off()
    logged, changes = len(caplog.messages), rig.changes
    for range_m in (STOP_M, 3.0, STOP_M, 3.0):
        rig.seen = (wall(range_m),)
        rig.wish(1.0)
    assert rig.control.reasons["guarded"] == 2
    assert (len(caplog.messages), rig.changes) == (logged, changes)
    rig.wish(0.0)
    assert rig.changes == changes + 1


def test_reasons_and_stops_are_counted_once_each() -> None:
    rig = Rig()
    control = rig.control
    rig.drive_off()
    rig.tick()
    assert control.reasons["driving"] == 1 and not control.stops
    rig.tick(20)
    assert control.stops == {"silence": 1} and control.reasons["stopped"] == 1
    rig.drive_off()
    control.estop("Ann", grown_up=False)
    control.estop("Bob", grown_up=False)
    rig.tick(5)
    assert control.stops == {"silence": 1, "estop": 1}
    control.estop("Mum", grown_up=True)
    assert control.stops[Cause.ESTOP_GROWN_UP] == 1
    control.resume(grown_up=True)
    rig.drive_off()
    control.handover()
    assert Cause.HANDOVER not in control.stops
    assert control.reasons["driving"] == 3


def test_wish_age_counts_from_its_arrival_until_let_go() -> None:
    rig = Rig()
    assert rig.control.wish_age_s(5.0) is None
    rig.wish(0.0)
    assert rig.control.wish_age_s(rig.now_ns / 1e9 + 0.1) == pytest.approx(0.1)
    rig.control.let_go()
    assert rig.control.wish_age_s(rig.now_ns / 1e9) is None


@pytest.mark.parametrize(
    ("mode", "measured", "share"),
    [("limit", False, 0.4), ("limit", True, 1.0), ("warn", False, 1.0), ("off", False, 1.0)],
)
def test_guard_with_unmeasured_speed_caps_the_throttle_until_calibration(
    mode: GuardMode, measured: bool, share: float
) -> None:
    settings = msgspec.structs.replace(PROFILE.guard, measured=measured)
    profile = msgspec.structs.replace(PROFILE, guard=settings)
    rig = Rig(seen=(wall(9.0),))
    rig.control.tune(profile)
    rig.control.guard(mode)
    rig.drive_off()
    assert rig.control.decision.throttle == pytest.approx(share)
    assert rig.control.guarding().measured is measured
    rig.control.tune(overridden(profile, {"guard.top_mps": 1.1}))
    assert rig.control.limit_now(0.0) == 1.0 and rig.control.guarding().measured


# --- controlled by the page ---


def test_grown_up_sets_the_guard() -> None:
    house = House()
    ann, mum = house.visitor("Ann"), house.visitor("Mum", code="grownups")
    assert ann.state.guard == Guarding("limit", STOP_M)
    mum.say(Guard("off"))
    assert not mum.errors()
    assert ann.state.guard == Guarding("off", STOP_M)


def test_profile_sets_the_initial_guard_mode() -> None:
    guard = msgspec.structs.replace(PROFILE.guard, mode="warn")
    house = House(msgspec.structs.replace(PROFILE, guard=guard))
    assert house.visitor("Ann").state.guard == Guarding("warn", STOP_M)


def test_hub_keeps_the_drivers_report_and_packet_loss() -> None:
    house = House()
    assert house.hub.sessions.driver() is None
    ann = house.visitor("Ann")
    driver = house.hub.sessions.driver()
    assert driver is ann.session and driver.report is None
    ann.say(up.Report("mse", 20.0, 3.0))
    house.visitor("Bob").say(up.Report("webcodecs"))
    assert driver.report == up.Report("mse", 20.0, 3.0)
    house.hub.sessions.lost(driver.video, 0.08)
    house.hub.sessions.lost("nobody's", 0.5)
    assert ann.state.lost == 0.08

"""Settings and stops of grown-ups outlive the gate's owner."""

import msgspec
import pytest
from testkit.control import PROFILE, PlayedSaver, Rig

from fpvcar.drive.gate import Cause
from fpvcar.drive.saved import STRICTEST, SavedSettings
from fpvcar.seat.state import stop_of
from fpvcar.wire.wheels import Status


class Saving(Rig):
    """Control whose messages to the saver are recorded; it can start again."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.saved: list[SavedSettings] = []
        self.restart()

    def restart(self) -> None:
        before = self.saved[-1] if self.saved else SavedSettings()
        self.control = self.control_of(saver=PlayedSaver(before, self.saved.append))
        self.answer(Status.APPLIED)

    def set_limit(self, limit: float) -> None:
        self.control.limit = limit
        self.control.step()


@pytest.fixture
def rig() -> Saving:
    return Saving()


def test_grown_ups_stop_survives_restarts_until_resumed(rig: Saving) -> None:
    rig.drive_off()
    rig.control.estop("Mum", grown_up=True)
    for _ in range(2):
        rig.restart()
        rig.wish(0.0)
        rig.wish(1.0)
        assert not rig.moving and rig.cause is Cause.ESTOP_GROWN_UP
        hold = rig.control.decision.latches.hold
        assert hold is not None and hold.by == "Mum"
        assert not rig.control.resume(grown_up=False)
    assert rig.control.resume(grown_up=True)
    rig.restart()
    rig.drive_off()
    assert rig.saved == [SavedSettings(stopped_by="Mum"), SavedSettings()]


def test_saved_stop_holds_before_the_gate_first_runs(rig: Saving) -> None:
    rig.control.estop("Mum", grown_up=True)
    rig.restart()
    assert rig.cause is Cause.ESTOP_GROWN_UP


def test_lost_settings_hold_until_a_grown_up_resumes(rig: Saving) -> None:
    """The hold is in the file, also for a version that knows no other cause than a person."""
    rig.saved.append(STRICTEST)
    for _ in range(2):
        rig.restart()
        rig.wish(0.0)
        rig.wish(1.0)
        assert not rig.moving and rig.cause is Cause.SETTINGS_LOST
        stop = stop_of(rig.control.decision.latches)
        assert stop is not None and stop.clears == "grown_up"
        assert not rig.control.resume(grown_up=False)
        assert rig.saved[-1].stopped_by == STRICTEST.stopped_by
    assert rig.control.resume(grown_up=True)
    rig.restart()
    rig.drive_off()
    assert rig.control.limit == STRICTEST.limit, "until a grown-up sets another"


def test_stops_of_drivers_and_wheels_are_not_saved(rig: Saving) -> None:
    rig.control.estop("Ann", grown_up=False)
    rig.control.wheels_state("hung")
    rig.tick()
    assert rig.saved == []
    rig.restart()
    rig.drive_off()


def test_limit_and_guard_are_saved_and_survive_a_restart(rig: Saving) -> None:
    rig.set_limit(0.3)
    rig.control.guard("warn")
    rig.tick(3)
    assert rig.saved == [SavedSettings(limit=0.3), SavedSettings(limit=0.3, guard="warn")]
    rig.restart()
    assert rig.control.limit == 0.3
    rig.wish(0.0)
    rig.wish(1.0)
    assert rig.control.decision.throttle == 0.3
    rig.set_limit(PROFILE.gate.limit)
    rig.restart()
    assert rig.control.limit == PROFILE.gate.limit


def test_restart_applies_no_looser_guard_than_the_profile(rig: Saving) -> None:
    rig.control.guard("off")
    rig.restart()
    assert rig.control.guard_mode == PROFILE.guard.mode == "limit"
    rig.tick()
    assert rig.saved[-1] == SavedSettings(), "what does not hold is not kept"


def test_settings_equal_to_the_profile_are_not_saved(rig: Saving) -> None:
    """A change of the profile then changes the car."""
    rig.control.guard("warn")
    rig.control.guard("limit")
    rig.set_limit(0.5)
    rig.set_limit(1.0)
    assert rig.saved[-1] == SavedSettings()
    looser = msgspec.structs.replace(PROFILE.guard, mode="off")
    control = rig.control_of(
        msgspec.structs.replace(PROFILE, guard=looser),
        saver=PlayedSaver(rig.saved[-1], rig.saved.append),
    )
    assert control.guard_mode == "off"

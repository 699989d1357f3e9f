"""States that the hub sends to all pages, the lights and the sensors: when, and their contents."""

import json

import pytest
from testkit.hub import House

from fpvcar.drive import gate
from fpvcar.drive.gate import Cause, Hold
from fpvcar.runtime.child_process import SILENT
from fpvcar.runtime.texts import STARTING, Text
from fpvcar.seat.hub import REST_AFTER_S, TIDY_S
from fpvcar.video.frame_rate import REASONS
from fpvcar.wire import telemetry, up
from fpvcar.wire.json_text import encode_downward


def test_slow_reader_has_a_bounded_outbox_with_newest_state(house: House) -> None:
    ann = house.visitor("Ann")
    for seq in range(1000):
        ann.say(up.Ping(seq, 0.0))
        house.hub.broadcast()
    assert len(ann.session._outbox) <= 32
    assert ann.state.seq >= 1000


def test_recorder_status_reaches_the_led(house: House) -> None:
    house.hub.broadcast()
    assert house.lights.recorder == telemetry.Recording(False, "ok", 0.0)
    told = telemetry.Recording(True, Text("card_full", "the card is full"), 3.0)
    house.hub._recorder.status = lambda: told  # type: ignore[method-assign]
    house.hub.broadcast()
    assert house.lights.recorder == told


def test_sensors_rest_a_while_after_the_last_visitor(house: House) -> None:

    def here(after_s: float) -> bool:
        house.now_s += after_s
        house.hub.broadcast()
        return house.senses.here

    assert here(REST_AFTER_S - 0.1) and not here(0.2)
    ann = house.visitor("Ann")
    assert here(0.0) and here(60.0), "as long as she is here"
    house.hub.leave(ann.session)
    assert here(REST_AFTER_S - 0.1), "a lost link may come back"
    assert not here(0.2)


def test_wishes_do_not_postpone_the_tidying_for_good(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The driver's wishes send the states, and postpone the timer that does both."""
    ann, hub = house.visitor("Ann"), house.hub
    monkeypatch.setattr(hub._timer, "postpone", lambda seconds: None)
    hub._beat()
    begin_s, looked_s = house.now_s, [house.now_s]
    for tick in range(100):
        house.now_s = begin_s + tick * 0.04
        house.senses.here, before = False, hub._state.seq
        ann.drive(0.5)
        if house.senses.here:
            looked_s.append(house.now_s)
            assert hub._state.seq > before
    pauses_s = [b - a for a, b in zip(looked_s, looked_s[1:], strict=False)]
    assert 0.4 < min(pauses_s[1:]) and max(pauses_s) <= TIDY_S + 0.13


@pytest.mark.parametrize(("wishes", "most_gap_ms"), [(True, 130), (False, 100)])
def test_states_go_out_ten_a_second_with_or_without_wishes(
    wishes: bool, most_gap_ms: int, house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only without wishes the timer alone sends them."""
    ann, hub, sent, by_timer = house.visitor("Ann"), house.hub, [0], 0
    begin_s, waits = house.now_s, [hub._beat()]
    due_ms = round(waits[0] * 1000)
    monkeypatch.setattr(hub._timer, "postpone", waits.append)
    for now_ms in range(1, 10_001):
        house.now_s, before, put_off = (begin_s + now_ms / 1000, hub._state.seq, len(waits))
        if wishes and now_ms % 40 == 17:
            ann.drive(0.5)
        if len(waits) > put_off:
            due_ms = now_ms + round(waits[-1] * 1000)
        if now_ms == due_ms:
            due_ms, by_timer = now_ms + round(hub._beat() * 1000), by_timer + 1
        if hub._state.seq > before:
            sent.append(now_ms)
    gaps_ms = [after - one for one, after in zip(sent, sent[1:], strict=False)]
    assert len(gaps_ms) == pytest.approx(100, abs=2) and max(gaps_ms) <= most_gap_ms
    assert by_timer == (0 if wishes else 100)


def test_state_has_key_and_values_of_its_faults(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    ann = house.visitor("Ann")
    fault, slow = SILENT(seconds=2), REASONS["heat"]()
    monkeypatch.setattr(house.vehicle.cameras.first, "state", fault, raising=False)
    monkeypatch.setattr(house.vehicle.cameras.first, "lowered_rate", slow, raising=False)
    house.control.wheels = STARTING
    hold = Hold(Cause.WHEELS_STOPPED, "bad message")
    house.control.step(gate.hold(house.control.decision.latches, hold))
    house.now_s += 0.1
    house.hub.broadcast()
    state = ann.state
    assert (state.lowered_rate, state.camera, state.wheels) == (slow, fault, STARTING)
    assert state.stop and state.stop.by == Text("wheels_bad_message", "bad message")
    sent = json.loads(encode_downward(state))
    assert sent["camera"] == {
        "key": "camera_silent",
        "english": "it has sent nothing for {seconds} s",
        "values": {"seconds": "2"},
    }
    assert sent["stop"]["by"]["key"] == "wheels_bad_message"

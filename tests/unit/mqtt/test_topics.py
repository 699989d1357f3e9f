"""Topics of a car: discovery by Home Assistant's rules, and the stops that are dropped."""

import msgspec
import pytest
from testkit.smart_home.home_assistant import TOPIC, faults_of

from fpvcar.config import Mqtt
from fpvcar.mqtt.topics import Message, Published, Topics, discovery_of, stop_within_s
from fpvcar.wire.station import Live
from fpvcar.wire.telemetry import Battery, Range, Recording

CAR = Published("0123456789abcdef", "Plague", "https://192.168.1.5:8081")
LIVE = Live(
    car="Plague",
    version="0.2.0",
    run="1",
    change="1",
    driver=None,
    reason="nobody",
    stop=None,
    stopped_by="",
    stops={},
    wheels="ok",
    camera="ok",
    viewers=0,
    recording=Recording(False, "ok", 0.0),
    battery=Battery(7.4, 0.5, 0.6, False, 0.01),
    ranges=(Range("front", 0.0, 0.5, 0.01), Range("rear-left", 150.0, 0.5, 0.01)),
)
STOP = Message("fpvcar/Plague/stop", b"stop", received_s=100.0)


@pytest.mark.parametrize("stop", [False, True])
@pytest.mark.parametrize("bare", [False, True])
def test_discovery_follows_the_rules_of_home_assistant(stop: bool, bare: bool) -> None:
    settings = Mqtt(broker="mqtt://nas", stop=stop, stills=stop)
    live = msgspec.structs.replace(LIVE, battery=None, ranges=()) if bare else LIVE
    payload = msgspec.to_builtins(discovery_of(settings, CAR, live))
    assert faults_of(payload) == []
    assert TOPIC.fullmatch(Topics(settings, CAR).config)
    entities = payload["components"]
    assert {"driver", "last_stop", "link", "event"} <= entities.keys()
    assert ("battery" in entities) == ("distance_front" in entities) == (not bare)
    assert (entities["stop"] == {"platform": "button"}) == (not stop)
    assert (entities["still"] == {"platform": "camera"}) == (not stop)


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"device": {"name": "Plague"}}, "the device has no identifier"),
        ({"origin": {}}, "the origin has no name"),
        ({"components": {"a": {"platform": "lamp"}}}, "a: platform 'lamp'"),
        (
            {"components": {"a": {"platform": "sensor", "state_topic": "a", "colour": "red"}}},
            "a: sensor: unknown key colour",
        ),
        ({"components": {"a": {"platform": "camera", "unique_id": "a"}}}, "a: topic is missing"),
        ({"state": "a"}, "payload: unknown key state"),
    ],
)
def test_rules_find_faults(change: dict[str, object], fault: str) -> None:
    payload = discovery_of(Mqtt(broker="mqtt://nas"), CAR, LIVE) | change
    assert fault in faults_of(payload)


def test_unusual_names_stay_in_their_level_of_topics() -> None:
    topics = Topics(Mqtt(broker="mqtt://nas", prefix="house/cars"), CAR)
    assert topics.state == "house/cars/Plague/state"
    assert Topics(Mqtt(discovery=""), CAR).config == ""


def test_fresh_stop_is_due_within_its_expiry() -> None:
    assert stop_within_s(STOP, True, 101.0) == 4.0
    assert stop_within_s(STOP._replace(expiry_s=2.0), True, 101.0) == 1.0
    assert stop_within_s(STOP._replace(expiry_s=600.0), True, 101.0) == 4.0


@pytest.mark.parametrize(
    ("message", "allowed", "now_s", "reason"),
    [
        (STOP, False, 100.0, "stop refused: it is off; to allow it, set stop = true in [mqtt]"),
        (STOP._replace(retained=True), True, 100.0, "retained"),
        (STOP._replace(repeated=True), True, 100.0, "delivered again"),
        (STOP, True, 105.0, "older than 5 s"),
        (STOP._replace(expiry_s=1.0), True, 101.0, "older than 1 s"),
        (STOP._replace(expiry_s=0.0), True, 100.0, "older than 0 s"),
        (STOP._replace(payload=b"go"), True, 100.0, """payload b'go' refused: expected "stop\""""),
        (STOP._replace(payload=b"x" * 9999), True, 100.0, "payload"),
    ],
)
def test_other_stops_are_dropped_with_a_reason(
    message: Message, allowed: bool, now_s: float, reason: str
) -> None:
    dropped = stop_within_s(message, allowed, now_s)
    assert isinstance(dropped, str) and reason in dropped and len(dropped) < 200

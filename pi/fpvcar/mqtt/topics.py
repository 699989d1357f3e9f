"""Topics of one car, its description for Home Assistant, and the rules for a stop. Pure.

    fpvcar/Plague/presence      online | offline, retained; offline is the will, too
    fpvcar/Plague/state         JSON, once a second and on change
    fpvcar/Plague/event         JSON, QoS 1: events.Event
    fpvcar/Plague/still         JPEG, every ten seconds
    fpvcar/Plague/stop          <- stop
    homeassistant/device/fpvcar_ID/config       retained: discovery

The form of discovery: https://www.home-assistant.io/integrations/mqtt/#device-discovery-payload
"""

from typing import Any, NamedTuple

from fpvcar.config import Mqtt
from fpvcar.mqtt.events import EVENTS
from fpvcar.wire.station import Live

ONLINE, OFFLINE, STOP = "online", "offline", "stop"
STOP_AGE_S = 5.0
"""Age in seconds from which a stop is dropped, unless its own expiry is shorter."""


class Published(NamedTuple):
    """Car as its topics name it: `folder` is its level, `id` its device in Home Assistant."""

    id: str
    folder: str
    url: str


class Topics:
    """Names of the topics of one car."""

    def __init__(self, settings: Mqtt, car: Published) -> None:
        base, discovery = f"{settings.prefix}/{car.folder}", settings.discovery
        self.presence, self.state = f"{base}/presence", f"{base}/state"
        self.event, self.still, self.stop = f"{base}/event", f"{base}/still", f"{base}/stop"
        self.device = f"fpvcar_{car.id}"
        self.config = f"{discovery}/device/{self.device}/config" if discovery else ""
        self.birth = f"{discovery}/status" if discovery else ""
        """Home Assistant publishes "online" here after its start."""


class Message(NamedTuple):
    """Message from the broker. `expiry_s` is the rest of its expiry, None without one; `repeated`
    is its flag DUP."""

    topic: str
    payload: bytes
    retained: bool = False
    repeated: bool = False
    expiry_s: float | None = None
    received_s: float = 0.0


def stop_within_s(message: Message, allowed: bool, now_s: float) -> float | str:
    """Return the seconds in which the car must have this stop, or the reason to drop it.

    Only a stop that was published just now counts: the car may have been resumed since.
    """
    if message.payload != STOP.encode():
        return f'payload {message.payload[:20]!r} refused: expected "{STOP}"'
    if not allowed:
        return "stop refused: it is off; to allow it, set stop = true in [mqtt]"
    if message.retained:
        return "stop dropped: it is retained; publish it without retain"
    if message.repeated:
        return "stop dropped: it is delivered again"
    expiry_s = STOP_AGE_S if message.expiry_s is None else min(STOP_AGE_S, message.expiry_s)
    left_s = expiry_s - (now_s - message.received_s)
    return left_s if left_s > 0.0 else f"stop dropped: it is older than {expiry_s:g} s"


def discovery_of(settings: Mqtt, car: Published, live: Live) -> dict[str, Any]:
    """Return the device and its entities for Home Assistant.

    It removes an entity that has only a platform.
    """
    topics = Topics(settings, car)
    entities = {"stop": _entity("button", "Stop", icon="mdi:car-brake-alert")}
    entities["stop"] |= {"command_topic": topics.stop, "payload_press": STOP, "qos": 1}
    entities["still"] = _entity("camera", "Camera") | {"topic": topics.still}
    if not settings.stop:
        entities["stop"] = {"platform": "button"}
    if not settings.stills:
        entities["still"] = {"platform": "camera"}
    entities["event"] = _entity("event", "Event", event_types=list(EVENTS))
    entities["event"] |= {"state_topic": topics.event, "qos": 1}
    for key, entity in _readings(live).items():
        entities[key] = {"state_topic": topics.state, **entity}
    entities["last_stop"]["json_attributes_topic"] = topics.state
    for key, entity in entities.items():
        if len(entity) > 1:
            entity["unique_id"] = f"{topics.device}_{key}"
    return {
        "device": {
            "identifiers": [topics.device],
            "name": live.car,
            "manufacturer": "fpvcar",
            "model": "FPV car",
            "sw_version": live.version,
            "configuration_url": car.url,
        },
        "origin": {"name": "fpvcar", "sw_version": live.version},
        "availability_topic": topics.presence,
        "components": entities,
    }


def _readings(live: Live) -> dict[str, dict[str, Any]]:
    """Return the entities of the topic state."""
    value = "{{ value_json.%s }}"
    since = "{{ {'since': value_json.last_stop_time} | tojson }}"
    entities = {
        "driver": _entity("sensor", "Driver", value_template="{{ value_json.driver or 'none' }}"),
        "stopped": _entity(
            "binary_sensor",
            "Stopped",
            device_class="problem",
            value_template="{{ 'ON' if value_json.stop else 'OFF' }}",
        ),
        "last_stop": _entity(
            "sensor",
            "Last stop",
            value_template="{{ value_json.last_stop or 'none' }}",
            json_attributes_template=since,
        ),
        "recording": _entity("sensor", "Recording", value_template=value % "recording"),
        "link": _measured("Link", "duration", "ms", value % "link_ms"),
        "wifi": _measured("Wi-Fi", "signal_strength", "dBm", value % "wifi_dbm"),
    }
    if live.battery is not None:
        entities["battery"] = _measured("Battery", "battery", "%", value % "battery")
        entities["volts"] = _measured("Voltage", "voltage", "V", value % "volts")
    for sensor in live.ranges:
        text = value % f"distance['{sensor.name}']"
        name = f"Distance {sensor.name}"
        entities[f"distance_{sensor.name}"] = _measured(name, "distance", "m", text)
    for key in ("volts", "wifi", "recording"):
        if key in entities:
            entities[key]["entity_category"] = "diagnostic"
    return entities


def _entity(platform: str, name: str, **more: Any) -> dict[str, Any]:
    return {"platform": platform, "name": name, **more}


def _measured(name: str, kind: str, unit: str, template: str) -> dict[str, Any]:
    return _entity(
        "sensor",
        name,
        device_class=kind,
        unit_of_measurement=unit,
        state_class="measurement",
        value_template=template,
    )

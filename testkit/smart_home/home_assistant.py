"""Home Assistant's rules for the payload of a device discovery.

From its documentation: https://www.home-assistant.io/integrations/mqtt/ and the pages button.mqtt,
camera.mqtt, event.mqtt, sensor.mqtt and binary_sensor.mqtt there. Its own package has device
discovery from 2024.11 on and then needs Python 3.12, so the rules are a table here.
"""

import re
from typing import Any

DEVICE = {
    "configuration_url",
    "connections",
    "hw_version",
    "identifiers",
    "manufacturer",
    "model",
    "model_id",
    "name",
    "serial_number",
    "suggested_area",
    "sw_version",
    "via_device",
}
ORIGIN = {"name", "support_url", "sw_version"}
SHARED = {"availability", "availability_mode", "availability_topic", "command_topic", "encoding"}
SHARED |= {"payload_available", "payload_not_available", "qos", "state_topic"}
ENTITY = SHARED - {"command_topic", "state_topic"}
ENTITY |= {"availability_template", "default_entity_id", "enabled_by_default", "entity_category"}
ENTITY |= {"entity_picture", "icon", "json_attributes_template", "json_attributes_topic"}
ENTITY |= {"name", "platform", "unique_id"}
MEASURED = {"device_class", "expire_after", "force_update", "value_template", "state_topic"}
KEYS = {
    "binary_sensor": MEASURED | {"off_delay", "payload_off", "payload_on"},
    "button": {"command_topic", "command_template", "device_class", "payload_press", "retain"},
    "camera": {"image_encoding", "topic"},
    "event": {"device_class", "event_types", "state_topic", "value_template"},
    "sensor": MEASURED
    | {"last_reset_value_template", "options", "state_class", "suggested_display_precision"}
    | {"unit_of_measurement"},
}
"""Keys of each platform beside those of every entity."""
REQUIRED = {
    "binary_sensor": {"state_topic"},
    "button": {"command_topic"},
    "camera": {"topic"},
    "event": {"event_types", "state_topic"},
    "sensor": {"state_topic"},
}
UNITS = {
    "battery": {"%"},
    "distance": {"km", "m", "cm", "mm", "mi", "nmi", "yd", "in"},
    "duration": {"d", "h", "min", "s", "ms", "µs"},
    "signal_strength": {"dB", "dBm"},
    "voltage": {"V", "mV", "µV", "kV", "MV"},
}
"""Units of the device classes of sensors."""
BINARY = {"battery", "connectivity", "moving", "problem", "running", "safety"}
CATEGORIES, STATE_CLASSES = {"config", "diagnostic"}, {"measurement", "total", "total_increasing"}
TOPIC = re.compile(r"homeassistant/device/[a-zA-Z0-9_-]+/config")


def faults_of(payload: dict[str, Any]) -> list[str]:
    """Return the rules that a discovery payload breaks."""
    faults = [
        f"{key} is missing" for key in ("device", "origin", "components") if key not in payload
    ]
    faults += _unknown("payload", payload, SHARED | {"device", "origin", "components"})
    device, origin = payload.get("device", {}), payload.get("origin", {})
    faults += _unknown("device", device, DEVICE) + _unknown("origin", origin, ORIGIN)
    if not (device.get("identifiers") or device.get("connections")):
        faults.append("the device has no identifier")
    if not re.match("https?://[^/]", device.get("configuration_url", "http://car")):
        faults.append("configuration_url is no URL")
    if not origin.get("name"):
        faults.append("the origin has no name")
    if {"availability", "availability_topic"} <= payload.keys():
        faults.append("availability and availability_topic exclude each other")
    ids = [one["unique_id"] for one in payload["components"].values() if "unique_id" in one]
    if len(set(ids)) != len(ids):
        faults.append("a unique_id is used twice")
    for key, entity in payload["components"].items():
        faults += [f"{key}: {fault}" for fault in _faults_of_entity(entity)]
    return faults


def _faults_of_entity(entity: dict[str, Any]) -> list[str]:
    platform = entity.get("platform", "")
    if platform not in KEYS:
        return [f"platform {platform!r}"]
    if len(entity) == 1:  # removes the entity
        return []
    faults = _unknown(platform, entity, ENTITY | KEYS[platform])
    needed = REQUIRED[platform] | {"unique_id"}
    faults += [f"{key} is missing" for key in needed - entity.keys()]
    kind, unit = entity.get("device_class"), entity.get("unit_of_measurement")
    if platform == "sensor" and kind is not None and unit not in UNITS.get(kind, ()):
        faults.append(f"unit {unit!r} of device class {kind!r}")
    if platform == "binary_sensor" and kind is not None and kind not in BINARY:
        faults.append(f"device class {kind!r}")
    if entity.get("entity_category", "config") not in CATEGORIES:
        faults.append(f"category {entity['entity_category']!r}")
    if entity.get("state_class", "total") not in STATE_CLASSES:
        faults.append(f"state class {entity['state_class']!r}")
    topics = [str(value) for key, value in entity.items() if key.endswith("topic")]
    return faults + [f"topic {topic!r}" for topic in topics if not re.fullmatch(r"[^+#\0]+", topic)]


def _unknown(name: str, table: dict[str, Any], known: set[str]) -> list[str]:
    return [f"{name}: unknown key {key}" for key in table.keys() - known]

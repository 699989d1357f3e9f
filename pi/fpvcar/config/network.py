"""Sections of a profile for the network: Wi-Fi, MQTT."""

from typing import Annotated
from urllib.parse import urlsplit

from msgspec import Meta

from fpvcar.config.base import ConfigError, Section

MQTT_PORTS = {"mqtt": 1883, "mqtts": 8883}


class Network(Section, frozen=True):
    """Wi-Fi of a car with NetworkManager; the page sets which network it joins."""

    own: bool = True
    """Whether to open a network of the car's name if no known one is in range."""


class Mqtt(Section, frozen=True):
    """MQTT broker that gets state and events; "" for none. For a car: `fpvcar mqtt`."""

    broker: str = ""
    """mqtts://HOST, or without TLS mqtt://HOST; a port may follow."""
    user: str = ""
    """Name of the car or station at the broker."""
    password_file: str = ""
    """File with the password of this user."""
    ca: str = ""
    """File with the broker's certificate authority, if the system does not know it."""
    prefix: Annotated[str, Meta(pattern=r"^[\w-]+(/[\w-]+)*$")] = "fpvcar"
    """First level of the topics."""
    discovery: Annotated[str, Meta(pattern=r"^([\w-]+(/[\w-]+)*)?$")] = "homeassistant"
    """First level of Home Assistant's discovery topics; "" for no discovery."""
    stop: bool = False
    """Whether clients of the broker may stop the car. They can never drive it."""
    stills: bool = False
    """Whether to publish pictures of the camera."""
    stills_s: Annotated[float, Meta(ge=2, le=3600)] = 10.0
    """Interval of the pictures in seconds."""

    @property
    def address(self) -> tuple[str, int, bool]:
        """Host, port, and whether TLS is used. Raises ValueError."""
        url = urlsplit(self.broker)
        if url.scheme not in MQTT_PORTS or not url.hostname or url.path.strip("/") or url.username:
            raise ValueError(self.broker)
        return url.hostname, url.port or MQTT_PORTS[url.scheme], url.scheme == "mqtts"


def refuse_mqtt(mqtt: Mqtt) -> None:
    """Raise ConfigError for values that do not go together."""
    try:
        tls = mqtt.address[2] if mqtt.broker else False
    except ValueError:
        raise ConfigError(
            f'mqtt.broker = "{mqtt.broker}" refused: expected mqtts://HOST or mqtt://HOST:PORT; '
            "user and password_file are keys of their own"
        ) from None
    if mqtt.ca and not tls:
        raise ConfigError(
            f'mqtt.ca = "{mqtt.ca}" refused: it is for TLS: write broker = "mqtts://HOST"'
        )
    if mqtt.password_file and not mqtt.user:
        raise ConfigError("mqtt.password_file is set without mqtt.user: add the user's name")

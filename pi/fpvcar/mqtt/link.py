"""MQTT client of one car: one connection, so that the broker publishes this car's will.

paho-mqtt connects, repeats and waits in a thread of its own. Everything here is called in the event
loop, which callbacks of that thread are moved to.
"""

import asyncio
import ssl
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from paho.mqtt.client import MQTT_ERR_SUCCESS, Client, MQTTMessage
from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.reasoncodes import ReasonCode
from paho.mqtt.subscribeoptions import SubscribeOptions

from fpvcar.config import ConfigError, Mqtt
from fpvcar.mqtt.topics import OFFLINE, Message

KEEP_ALIVE_S = 15
"""A broker publishes the will of a silent client after one and a half times as long."""
BACK_OFF_S = (1, 60)
"""Shortest and longest delay before the next attempt to connect; it doubles each time."""


class Listener(Protocol):
    """Owner of a link, which calls it in the event loop."""

    def connected(self) -> None:
        """Act on a new connection, which has no subscription yet."""

    def acknowledged(self, number: int) -> None:
        """Note that the broker has the message of this number."""

    def received(self, message: Message) -> None:
        """Act on a message of a subscription."""


class Link:
    """Connection of one car. `report` gets the present fault, "" after a connection."""

    def __init__(
        self,
        settings: Mqtt,
        name: str,
        will: str,
        listener: Listener,
        report: Callable[[str], None],
    ) -> None:
        """Create a client called `name` whose will is "offline" at the topic `will`. Raises
        ConfigError if a file of the settings cannot be read."""
        self.up = False
        self._broker, self._listener, self._report = settings.broker, listener, report
        self._loop = asyncio.get_running_loop()
        host, port, tls = settings.address
        self._client = client = Client(
            CallbackAPIVersion.VERSION2, name, protocol=MQTTProtocolVersion.MQTTv5
        )
        context, password = secrets_of(settings)
        if tls:
            client.tls_set_context(context)
        if settings.user:
            client.username_pw_set(settings.user, password)
        client.will_set(will, OFFLINE, qos=1, retain=True)
        client.reconnect_delay_set(*BACK_OFF_S)
        client.on_connect, client.on_disconnect = self._on_connect, self._on_disconnect
        client.on_connect_fail, client.on_message = self._on_fail, self._on_message
        client.on_publish = self._on_publish
        # No session at the broker: it keeps no stop for later.
        client.connect_async(host, port, KEEP_ALIVE_S, clean_start=True)

    def open(self) -> None:
        """Start to connect, and connect again after each loss."""
        self._client.loop_start()

    def close(self, with_will: bool = True) -> None:
        """Disconnect; `with_will` has the broker publish the will. Blocks until the thread ends."""
        how = "Disconnect with will message" if with_will else "Normal disconnection"
        code = ReasonCode(PacketTypes.DISCONNECT, how)
        self._client.disconnect(reasoncode=code)
        self._client.loop_stop()

    def publish(self, topic: str, payload: str | bytes, qos: int = 0, retain: bool = False) -> int:
        """Publish while there is a connection; return the number of the message, 0 if there is
        none."""
        if not self.up:
            return 0
        sent = self._client.publish(topic, payload, qos, retain)
        return sent.mid if qos or sent.rc == MQTT_ERR_SUCCESS else 0

    def subscribe(self, *topics: str) -> None:
        """Subscribe with QoS 1. A retained message is not sent at once, and keeps its flag."""
        options = SubscribeOptions(
            qos=1, retainAsPublished=True, retainHandling=SubscribeOptions.RETAIN_DO_NOT_SEND
        )
        self._client.subscribe([(topic, options) for topic in topics])

    # --- callbacks in paho's thread ---

    def _on_connect(self, client: Client, _: Any, flags: Any, reason: ReasonCode, __: Any) -> None:
        self._call(self._set_up, f"refused: {reason}: check [mqtt]" if reason.is_failure else "")

    def _on_disconnect(self, client: Client, _: Any, flags: Any, reason: Any, __: Any) -> None:
        self._call(self._set_up, f"connection lost: {reason}" if reason.is_failure else "closed")

    def _on_fail(self, client: Client, _: Any) -> None:
        self._call(self._set_up, f"not reached: {sys.exc_info()[1]}")

    def _on_message(self, client: Client, _: Any, message: MQTTMessage) -> None:
        expiry_s = getattr(message.properties, "MessageExpiryInterval", None)
        received = Message(
            message.topic,
            bytes(message.payload),
            message.retain,
            message.dup,
            expiry_s,
            time.monotonic(),
        )
        self._call(self._listener.received, received)

    def _on_publish(self, client: Client, _: Any, number: int, reason: Any, __: Any) -> None:
        if reason.is_failure:
            self._call(self._report, f"{self._broker}: publication refused: {reason}")
        else:
            self._call(self._listener.acknowledged, number)

    def _call(self, act: Callable[..., None], *arguments: object) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(act, *arguments)

    # --- in the event loop ---

    def _set_up(self, fault: str) -> None:
        self.up = not fault
        if fault != "closed":
            self._report(f"{self._broker}: {fault}" if fault else "")
        if self.up:
            self._listener.connected()


def secrets_of(settings: Mqtt) -> tuple[ssl.SSLContext, str | None]:
    """Return the context for TLS, and the password. Raises ConfigError."""
    return _context(settings.ca), _password(settings.password_file)


def _context(ca: str) -> ssl.SSLContext:
    """Return a context that verifies the broker's certificate. Raises ConfigError."""
    try:
        return ssl.create_default_context(cafile=ca or None)
    except OSError as fault:
        raise ConfigError(f'mqtt.ca = "{ca}": {fault}: name a file of certificates') from None


def _password(path: str) -> str | None:
    """Return the password in a file. Raises ConfigError."""
    try:
        return Path(path).read_text().strip() if path else None
    except (OSError, ValueError) as fault:
        raise ConfigError(
            f'mqtt.password_file = "{path}": {fault}: write the password into it'
        ) from None

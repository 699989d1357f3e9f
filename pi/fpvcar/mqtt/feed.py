"""State and events of one car to an MQTT broker; stops from there, if they are allowed.

Source.live -> events.observe -> Outbox -> Link -> broker
broker -> Link -> topics.stop_within_s -> Source.stop
"""

import asyncio
import contextlib
import logging
import sqlite3
import time
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol

import msgspec

from fpvcar.config import Mqtt
from fpvcar.mqtt import topics
from fpvcar.mqtt.events import observe, state_of
from fpvcar.mqtt.link import Link
from fpvcar.mqtt.outbox import Outbox
from fpvcar.mqtt.topics import Message, Published, Topics
from fpvcar.runtime.clock import Clock
from fpvcar.wire.station import Live

FORGET_S = 5.0
"""Longest wait for the broker when a car is removed there."""
BACK_OFF_S = (1.0, 2.0, 5.0, 15.0)
"""Delays before the next request to a car after consecutive faults."""
LEAST_S = 0.1
"""Pause between two requests to a car, which answers after 0.9 s without a change."""
SETTLED_S = 5.0
"""Time after the acknowledgement of an event in which a lost connection makes this service send it
again. A broker may acknowledge an event before it has saved or forwarded it."""
REPORT_S = 60.0
"""Least interval of equal reports. A broker may close a connection again and again, such as for a
topic that its access list denies."""
AT_ONCE = 50
"""Events without an acknowledgement that are sent together."""
log = logging.getLogger("fpvcar.mqtt")


class SourceFault(Exception):
    """Fault of the car or its connection: try again later."""


class Superseded(Exception):
    """Raised when a base station publishes the car; its text is the station's name."""


class Requests(Protocol):
    """Open connection to a car. Raises SourceFault."""

    async def live(self, after: str) -> Live:
        """Return the present state at its next change after `after`, or after a second."""

    async def stop(self) -> None:
        """Stop the car, as any page may."""


class Source(Protocol):
    """Car as a publisher reaches it. Raises SourceFault, also for faults of its requests."""

    def opened(self) -> AbstractAsyncContextManager[Requests]:
        """Open a connection to the car."""

    async def still(self) -> bytes:
        """Return the present picture as a JPEG."""


class Reports:
    """Log of the broker's faults. Several connections to it may report the same one."""

    def __init__(self, broker: str) -> None:
        self._broker, self._fault = broker, "not contacted yet"
        self._reported_s: dict[str, float] = {}

    def report(self, fault: str) -> None:
        """Log a fault once, "" for a connection; again after a while."""
        now_s = time.monotonic()
        if fault == self._fault or now_s - self._reported_s.get(fault, -REPORT_S) < REPORT_S:
            self._fault = fault
            return
        self._fault, self._reported_s[fault] = fault, now_s
        if fault:
            log.warning("MQTT: %s; retrying", fault)
        else:
            log.info("MQTT: connected to %s", self._broker)


class Feed:
    """Publications of one car, and its stops."""

    def __init__(
        self,
        car: Published,
        source: Source,
        settings: Mqtt,
        outbox: Outbox,
        report: Callable[[str], None],
        name: str,
        yields: bool = False,
        utc_s: Clock = time.time,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """Create a client called `name` at the broker. `yields`: end while a station publishes the
        car. Raises ConfigError."""
        self._car, self._source, self._settings, self._outbox = car, source, settings, outbox
        self._yields, self._utc_s, self._sleep = yields, utc_s, sleep
        self._topics = Topics(settings, car)
        self._link = Link(settings, name, self._topics.presence, self, report)
        self._memory = outbox.memory(car.id)
        self._live: Live | None = None
        self._discovery: dict[str, Any] | None = None
        self._sent: dict[int, int] = {}
        """Numbers of messages without an acknowledgement, and of their events."""
        self._acknowledged: dict[int, float] = {}
        """Events with an acknowledgement, and its time."""
        self._connected = asyncio.Event()
        self._stops = set[asyncio.Task[None]]()

    async def run(self) -> None:
        """Publish the car's state and events until cancelled. Raises Superseded."""
        self._link.open()
        stills, with_will = asyncio.create_task(self._stills()), True
        try:
            await self._follow_car()
        except Superseded:  # the presence is the station's now
            with_will = False
            raise
        finally:
            await cancel(*self._stops, stills)
            await asyncio.to_thread(self._link.close, with_will)

    async def forget(self) -> None:
        """Remove the car from the broker, if it can be reached, and from the outbox."""
        self._outbox.forget(self._car.id)
        self._link.open()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(FORGET_S):
                await self._connected.wait()
                for topic in filter(None, (self._topics.config, self._topics.presence)):
                    self._link.publish(topic, b"", qos=1, retain=True)
                await asyncio.sleep(0.5)
        await asyncio.to_thread(self._link.close, False)

    # --- car ---

    async def _follow_car(self) -> None:
        faults, logged = 0, ""
        while True:
            try:
                async with self._source.opened() as car:
                    while True:
                        live = await car.live(self._live.change if self._live else "")
                        self._take(live)
                        faults, logged = 0, ""
                        await self._sleep(LEAST_S)
            except Superseded:
                raise
            except SourceFault as fault:
                if logged != (logged := str(fault)):
                    log.warning("MQTT: %s: %s", self._car.folder, fault)
            except Exception:  # a fault of one car does not end the service
                log.exception("MQTT: %s", self._car.folder)
            self._live = None
            self._publish_presence()
            await self._sleep(BACK_OFF_S[min(faults, len(BACK_OFF_S) - 1)])
            faults += 1

    def _take(self, live: Live) -> None:
        """Publish a state, and the events since the last one. Raises Superseded."""
        if self._yields and live.station:
            raise Superseded(live.station)
        now_s, returned = self._utc_s(), self._live is None
        memory, events = observe(self._memory, live, now_s)
        if memory != self._memory:
            try:
                self._outbox.add(self._car.id, memory, events)
            except sqlite3.Error as fault:  # the next state brings the same events
                log.error("MQTT: %s: events not saved, retrying: %s", self._car.folder, fault)
                return
            self._memory = memory
        self._live = live
        self._publish_discovery()
        if returned:
            self._publish_presence()
        state = state_of(live, memory, now_s)
        self._link.publish(self._topics.state, msgspec.json.encode(state))
        self._settle()
        self._send_events()

    # --- broker ---

    def connected(self) -> None:
        """Send all that a broker without memory lacks."""
        self._connected.set()
        self._link.subscribe(*filter(None, (self._topics.stop, self._topics.birth)))
        self._discovery = None
        self._publish_discovery()
        self._publish_presence()
        self._settle()
        self._acknowledged.clear()
        self._send_events()

    def received(self, message: Message) -> None:
        """Act on a stop, and on the birth message of Home Assistant."""
        if message.topic == self._topics.birth:
            if message.payload == topics.ONLINE.encode():
                self._discovery = None
                self._publish_discovery()
                self._publish_presence()
            return
        left = topics.stop_within_s(message, self._settings.stop, time.monotonic())
        if isinstance(left, str):
            log.warning("MQTT: %s: %s", self._car.folder, left)
            return
        task = asyncio.create_task(self._stop(left))
        self._stops.add(task)
        task.add_done_callback(self._stops.discard)

    async def _stop(self, within_s: float) -> None:
        try:
            async with asyncio.timeout(within_s):
                async with self._source.opened() as car:
                    await car.stop()
        except (SourceFault, TimeoutError) as fault:
            log.warning("MQTT: %s: not stopped: %s", self._car.folder, fault or "no answer")
        else:
            log.info("MQTT: %s: stopped", self._car.folder)

    def _publish_presence(self) -> None:
        present = topics.ONLINE if self._live else topics.OFFLINE
        self._link.publish(self._topics.presence, present, qos=1, retain=True)

    def _publish_discovery(self) -> None:
        """Publish the description for Home Assistant if it has changed."""
        if not (self._live and self._link.up and self._topics.config):
            return
        discovery = topics.discovery_of(self._settings, self._car, self._live)
        if discovery != self._discovery:
            self._discovery = discovery
            payload = msgspec.json.encode(discovery)
            self._link.publish(self._topics.config, payload, qos=1, retain=True)

    # --- events ---

    def _send_events(self) -> None:
        """Send the events that are neither on their way nor acknowledged."""
        if not self._link.up:
            return
        known = {*self._sent.values(), *self._acknowledged}
        oldest = self._outbox.events(self._car.id, len(known) + AT_ONCE)
        waiting = [event for event in oldest if event.id not in known]
        for event in waiting[: AT_ONCE - len(self._sent)]:
            payload = msgspec.json.encode(event)
            number = self._link.publish(self._topics.event, payload, qos=1)
            self._sent[number] = event.id

    def acknowledged(self, number: int) -> None:
        """Note the acknowledgement of an event."""
        if number in self._sent:
            self._acknowledged[self._sent.pop(number)] = time.monotonic()
            if not self._sent:
                self._send_events()

    def _settle(self) -> None:
        """Remove the events that were acknowledged a while ago."""
        until_s = time.monotonic() - SETTLED_S
        settled = [event for event, at_s in self._acknowledged.items() if at_s < until_s]
        if settled:
            self._outbox.remove(settled)
            for event in settled:
                del self._acknowledged[event]

    # --- pictures ---

    async def _stills(self) -> None:
        """Publish pictures at their interval while the car answers, if they are on."""
        logged = ""
        while self._settings.stills:
            await self._sleep(self._settings.stills_s)
            if not (self._live and self._link.up and self._live.camera == "ok"):
                continue
            try:
                picture = await self._source.still()
                self._link.publish(self._topics.still, picture)
                logged = ""
            except SourceFault as fault:
                if logged != (logged := str(fault)):
                    log.warning("MQTT: %s: no still: %s", self._car.folder, fault)


async def cancel(*tasks: asyncio.Task[None]) -> None:
    """Cancel tasks, and wait for their ends."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)

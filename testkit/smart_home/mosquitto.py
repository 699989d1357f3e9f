"""Real broker (mosquitto) on 127.0.0.1, and a subscriber that remembers each message."""

import json
import signal
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any

from paho.mqtt.client import Client, MQTTMessage
from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from paho.mqtt.subscribeoptions import SubscribeOptions

from testkit.harness import wait_for
from testkit.network.ports import free_port

PROGRAM = "/usr/sbin/mosquitto"
PLAIN = "allow_anonymous true"
SAVED = """
user root
persistence true
autosave_interval 1
autosave_on_changes true
max_queued_messages 0
persistence_location {folder}/
pid_file {folder}/pid
log_dest file {folder}/log
listener {port} 127.0.0.1
"""


class Broker(AbstractContextManager["Broker"]):
    """Broker that saves its sessions at each change; `access` has the lines of its listener."""

    def __init__(self, folder: Path, access: str = PLAIN) -> None:
        folder.mkdir(exist_ok=True)
        self.port, self.log = free_port(), folder / "log"
        self._config = folder / "mosquitto.conf"
        self._config.write_text(SAVED.format(folder=folder, port=self.port) + access + "\n")
        self.process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> "Broker":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill(signal.SIGTERM)

    def start(self) -> None:
        """Start the broker, also again, and wait until it listens."""
        self.process = subprocess.Popen(
            [PROGRAM, "-c", str(self._config)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )

        def listens() -> bool:
            with socket.socket() as probe:
                return probe.connect_ex(("127.0.0.1", self.port)) == 0

        wait_for(listens, "no broker", 20.0)

    def kill(self, number: signal.Signals = signal.SIGKILL) -> None:
        """End the broker by this signal."""
        if self.process is not None:
            self.process.send_signal(number)
            self.process.wait(60.0)
            self.process = None


class Redelivery(AbstractContextManager["Redelivery"]):
    """Way to a broker on which messages for one topic carry DUP, as if they came again."""

    def __init__(self, port: int, topic: str) -> None:
        self.port, self._broker, self._topic = free_port(), port, topic.encode()
        self.marked = threading.Event()
        self._server = socket.create_server(("127.0.0.1", self.port))
        self._open = [self._server]
        self._run(self._accept)

    def __exit__(self, *_: object) -> None:
        for one in self._open:
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def _run(self, work: Callable[..., None], *arguments: Any) -> None:
        threading.Thread(target=work, args=arguments, daemon=True).start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._server.accept()
                broker = socket.create_connection(("127.0.0.1", self._broker))
                self._open += [client, broker]
                self._run(self._copy, client, broker)
                self._run(self._mark, broker, client)

    def _copy(self, source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                sink.sendall(data)

    def _mark(self, broker: socket.socket, client: socket.socket) -> None:
        """Forward whole packets. A fixed header has a type, flags, and a length of 7 bits a byte
        (MQTT 5.0, 2.1)."""
        stream = broker.makefile("rb")
        with suppress(OSError, ValueError, IndexError):  # it may end within a header
            while first := stream.read(1):
                length, sizes = 0, b""
                while not sizes or sizes[-1] & 0x80:
                    sizes += stream.read(1)
                    length |= (sizes[-1] & 0x7F) << 7 * (len(sizes) - 1)
                body = stream.read(length)
                if first[0] >> 4 == 3 and self._topic in body[: 2 + len(self._topic)]:
                    first = bytes([first[0] | 0x08])
                    self.marked.set()
                client.sendall(first + sizes + body)


class Listener:
    """Subscriber with a session that outlives the broker; it keeps each message by topic."""

    def __init__(
        self, port: int, *topics: str, name: str = "listener", ca: str = "", password: str = ""
    ) -> None:
        """Create the client `name`; with a password it is its user, too."""
        self._topics, self._lock = topics, threading.Lock()
        self._messages: dict[str, list[MQTTMessage]] = {}
        self.client = Client(CallbackAPIVersion.VERSION2, name, protocol=MQTTProtocolVersion.MQTTv5)
        self.client.on_connect, self.client.on_message = self._subscribe, self._keep
        self.client.reconnect_delay_set(1, 1)
        self.client.max_inflight_messages_set(0)
        self.port, self.subscribed = port, threading.Event()
        if ca:
            self.client.tls_set(ca)
        if password:
            self.client.username_pw_set(name, password)
        self.client.on_subscribe = lambda *_: self.subscribed.set()

    def open(self) -> None:
        """Connect, and wait for the subscriptions."""
        kept = Properties(PacketTypes.CONNECT)  # type: ignore[no-untyped-call]
        kept.SessionExpiryInterval = 3600
        self.client.connect("127.0.0.1", self.port, 60, clean_start=False, properties=kept)
        self.client.loop_start()
        assert self.subscribed.wait(20.0)

    def close(self) -> None:
        """Disconnect; the broker keeps the session."""
        self.client.disconnect()
        self.client.loop_stop()
        self.client.reinitialise()  # closes two sockets that loop_stop leaves open

    def _subscribe(self, *_: Any) -> None:
        options = SubscribeOptions(qos=1, retainAsPublished=True)
        self.client.subscribe([(topic, options) for topic in self._topics])

    def _keep(self, _: Client, __: Any, message: MQTTMessage) -> None:
        with self._lock:
            self._messages.setdefault(message.topic, []).append(message)

    def messages(self, topic: str) -> list[MQTTMessage]:
        """Return the messages of a topic."""
        with self._lock:
            return list(self._messages.get(topic, ()))

    def texts(self, topic: str) -> list[str]:
        """Return the payloads of a topic."""
        return [message.payload.decode() for message in self.messages(topic)]

    def objects(self, topic: str) -> list[dict[str, Any]]:
        """Return the JSON objects of a topic."""
        return [json.loads(text) for text in self.texts(topic) if text]

    def newest(self, topic: str) -> dict[str, Any]:
        """Return the newest object of a topic, {} before the first."""
        objects = self.objects(topic)
        return objects[-1] if objects else {}

    def publish(
        self, topic: str, text: str, expiry_s: int | None = None, retain: bool = False
    ) -> None:
        """Publish with QoS 1, and wait for the acknowledgement."""
        properties = Properties(PacketTypes.PUBLISH)  # type: ignore[no-untyped-call]
        if expiry_s is not None:
            properties.MessageExpiryInterval = expiry_s
        self.client.publish(topic, text, 1, retain, properties).wait_for_publish(20.0)


@contextmanager
def listening(
    port: int, *topics: str, name: str = "listener", ca: str = "", password: str = ""
) -> Iterator[Listener]:
    """Run a subscriber with these topics."""
    listener = Listener(port, *topics, name=name, ca=ca, password=password)
    listener.open()
    try:
        yield listener
    finally:
        listener.close()

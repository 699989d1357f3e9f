"""Two hosts in radio range of each other: the router carries TCP."""

import os
import socket
import threading
import time
from collections.abc import Iterator

import pytest
from testkit.network.air import Air, Weather

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root"),
]


@pytest.fixture(scope="module")
def air() -> Iterator[Air]:
    with Air() as made:
        yield made


def echo_s(connection: socket.socket) -> float:
    """Return the round-trip time of a byte."""
    begin_s = time.monotonic()
    connection.sendall(b"x")
    assert connection.recv(1) == b"x"
    return time.monotonic() - begin_s


def test_tcp_survives_delay_loss_and_a_dead_spot(air: Air) -> None:
    with socket.create_server((air.near, 0)) as listener:
        connection = air.connect(listener.getsockname()[1])
        near = listener.accept()[0]

        def answer() -> None:
            while said := near.recv(100):
                near.sendall(said)

        answering = threading.Thread(target=answer, daemon=True)
        answering.start()
        air.set(Weather(delay_s=0.05))
        assert all(echo_s(connection) >= 0.1 for _ in range(3))
        air.drop(0.3)
        for _ in range(10):
            echo_s(connection)
        air.lose()
        connection.settimeout(0.5)
        with pytest.raises(TimeoutError):
            echo_s(connection)
        connection.settimeout(10.0)
        air.find()
        assert connection.recv(1) == b"x", "TCP sent it again"
        connection.close()
        answering.join()
        near.close()

"""Hostile and clumsy clients: a clear error, no motion, the driver undisturbed."""

import http.client
import json
import socket
import time

import pytest
from testkit.driver import Driver, open_socket
from testkit.harness import SMALL, RunningBench, wait_for
from websockets.exceptions import InvalidStatus

from fpvcar.http.text_session import UNKNOWN_ANSWERED

pytestmark = pytest.mark.e2e
OPTIONS = SMALL

DRIVE = '{"kind":"drive","seq":1,"t":1,"throttle":%s,"steer":0}'


@pytest.mark.parametrize(
    ("frame", "what", "said"),
    [
        ("{", "malformed JSON", "truncated"),
        ("[]", "message refused", "object"),
        ("NaN", "malformed JSON", "invalid"),
        (DRIVE % "99", "message refused", "<= 1.0"),
        (DRIVE % "-1.01", "message refused", ">= -1.0"),
        (DRIVE % '"fast"', "message refused", "float"),
        (DRIVE % "null", "message refused", "float"),
        (DRIVE % "NaN", "malformed JSON", "invalid"),
        (DRIVE % "1e999", "message refused", "out of range"),
        ('{"kind":"drive","seq":1}', "message refused", "missing required field"),
        ('{"kind":"take","now":true}', "message refused", "unknown field"),
        ('{"kind":3}', "message refused", "str"),
        ("x" * 5000, "message too long", "<= 4096"),
        (b"\x00\x01", "binary frame refused", "JSON"),
    ],
)
def test_bad_message_error_names_fault_value_and_limit(
    bench: RunningBench, driver: Driver, frame: str | bytes, what: str, said: str
) -> None:
    with bench.watch() as watch, Driver(bench.port, name="Eve") as eve:
        eve.sending = eve.pinging = False
        wait_for(lambda: bool(eve.state), "no state")
        eve.say_text(frame)
        wait_for(lambda: bool(eve.errors()), "no error")
        error = eve.errors()[0]
        assert error["what"] == what
        assert said in error["limit"], error
        assert not eve.closed.is_set(), "one mistake closes nothing"
        for _ in range(2):
            eve.say_text(frame)
        wait_for(eve.closed.is_set, "the third in a row closes")
        text = eve.heard[-1]["text"]
        assert (
            text["key"] == eve.close_reason == "close_messages" and text["values"]["count"] == "3"
        )
        assert not watch.now.driving


def test_good_messages_between_bad_keep_the_socket(bench: RunningBench, driver: Driver) -> None:
    with Driver(bench.port, name="Eve") as eve:
        eve.sending = eve.pinging = False
        for number in range(6):
            eve.say_text("{")
            eve.say(kind="ping", seq=number, t=1.0)
        wait_for(lambda: len(eve.errors()) == 6, "not every error was said")
        assert not eve.closed.is_set()


def test_unknown_kinds_are_named_and_keep_the_socket(bench: RunningBench, driver: Driver) -> None:
    with Driver(bench.port, name="Eve") as eve:
        eve.sending = False
        for _ in range(10):
            eve.say(kind="fly", height=3)
        wait_for(lambda: any(one["kind"] == "pong" for one in eve.heard), "no answer")
        assert len(eve.errors()) == UNKNOWN_ANSWERED and not eve.closed.is_set()
        assert eve.errors()[0]["what"] == "unknown kind"
        assert eve.errors()[0]["value"] == "fly"


def test_wrong_version_error_says_reload(bench: RunningBench) -> None:
    with open_socket(bench.port, "/ws/drive") as socket:
        socket.send('{"kind":"hello","v":7,"client":"12345678"}')
        error = json.loads(socket.recv(timeout=3))
    assert error["what"] == "wrong version" and error["value"] == "7"
    assert "reload" in error["limit"]


def test_enormous_frame_closes_only_its_socket(bench: RunningBench, driver: Driver) -> None:
    with Driver(bench.port, name="Eve") as eve:
        wait_for(lambda: bool(eve.state), "no state")
        eve.sending = eve.pinging = False
        eve.say_text("x" * 200_000)
        wait_for(eve.closed.is_set, "200 kB were taken")
    assert driver.state["role"] == "driver"


@pytest.mark.parametrize("path", ["/ws/drive", "/ws/video?id=12345678", "/"])
@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("Origin", "http://evil.example", "Origin"),
        ("Origin", "null", "Origin"),
        ("Host", "evil.example", "Host"),
    ],
)
def test_foreign_origins_and_hosts_are_refused(
    bench: RunningBench, path: str, name: str, value: str, said: str
) -> None:
    connection = http.client.HTTPConnection("localhost", bench.port, timeout=5)
    upgrade = {
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==",
    }
    connection.request("GET", path, headers={**upgrade, name: value})
    answer = connection.getresponse()
    body = answer.read().decode()
    connection.close()
    assert answer.status == 403
    assert said in body and value in body


def test_host_name_of_the_computer_is_accepted(bench: RunningBench) -> None:
    connection = http.client.HTTPConnection("localhost", bench.port, timeout=5)
    host = f"{socket.gethostname()}.local:{bench.port}"
    connection.request("GET", "/api/status", headers={"Host": host})
    assert connection.getresponse().status == 200
    connection.close()


def test_client_without_origin_needs_code_even_on_loopback(
    bench: RunningBench, driver: Driver
) -> None:
    codes = json.loads((bench.state / "codes.json").read_text())
    with Driver(bench.port, name="script", own_origin=False) as script:
        wait_for(lambda: bool(script.state), "no state")
        assert not script.state["may_drive"]
        script.say(kind="take")
        # One error of several: wishes are also refused, because the client has no wheel.
        refused = "you may only watch"
        wait_for(lambda: refused in [one["what"] for one in script.errors()], "no error")
        script.say(kind="unlock", code=codes["drive"])
        wait_for(lambda: script.state["may_drive"], "the code does not open")


def test_client_of_a_proxy_on_the_cars_machine_needs_code(bench: RunningBench) -> None:
    forwarded = {"X-Forwarded-For": "203.0.113.9"}
    with Driver(bench.port, name="far", headers=forwarded) as stranger, Driver(bench.port) as near:
        wait_for(lambda: bool(stranger.state and near.state), "no state")
        assert near.state["may_drive"] and not stranger.state["may_drive"]


def test_driver_flood_is_metered_and_keeps_the_socket(bench: RunningBench, driver: Driver) -> None:
    driver.sending = False
    for _ in range(2_000):
        driver.drive(0.0, 0.0)
    wait_for(lambda: any(one["what"] == "too many messages" for one in driver.errors()), "no error")
    assert "250 a second" in driver.errors()[0]["limit"]
    driver.sending = True
    time.sleep(0.1)
    assert not driver.closed.is_set()


def test_viewers_over_the_limit_are_refused(bench: RunningBench) -> None:
    sockets = []
    try:
        with pytest.raises(InvalidStatus) as refused:
            for number in range(80):
                path = f"/ws/video?id=crowd-{number:08d}"
                sockets.append(open_socket(bench.port, path, own_origin=False))
        assert refused.value.response.status_code == 503
        assert b"50 are open already at /ws/video" in (refused.value.response.body or b"")
    finally:
        for socket in sockets:
            socket.close()


def test_pages_outside_web_are_not_served(bench: RunningBench) -> None:
    connection = http.client.HTTPConnection("localhost", bench.port, timeout=5)
    for path in ("/../pyproject.toml", "/%2e%2e/pyproject.toml", "/nothing.html"):
        connection.request("GET", path)
        answer = connection.getresponse()
        assert answer.status == 404, path
        answer.read()
    connection.request("GET", "/healthz")
    assert connection.getresponse().read() == b"ok\n"
    connection.close()

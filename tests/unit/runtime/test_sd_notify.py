"""Notifications of services to systemd, at a socket of the test's own."""

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from fpvcar.runtime import sd_notify


@pytest.fixture
def manager(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        listener.bind(str(tmp_path / "notify"))
        listener.setblocking(False)
        monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
        yield listener


def test_notify_without_systemd_does_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NOTIFY_SOCKET", raising=False)
    sd_notify.notify("READY=1")


def test_state_is_sent_as_one_datagram(manager: socket.socket) -> None:
    sd_notify.notify("READY=1")
    assert manager.recv(100) == b"READY=1"


def test_notify_socket_may_be_abstract(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        listener.bind("")  # the kernel gives it an abstract name
        name = listener.getsockname().decode()
        monkeypatch.setenv("NOTIFY_SOCKET", name.replace("\0", "@"))
        sd_notify.notify("READY=1")
        assert listener.recv(100) == b"READY=1"


def test_manager_that_does_not_read_blocks_no_notify(manager: socket.socket) -> None:
    for _ in range(10_000):
        sd_notify.notify("WATCHDOG=1")
    manager.close()
    sd_notify.notify("WATCHDOG=1")


@pytest.mark.parametrize(
    ("us", "pid", "every_ns"),
    [
        ("2000000", None, 1_000_000_000),
        ("2000000", "us", 1_000_000_000),
        ("2000000", "1", None),  # for our parent
        ("", None, None),
        ("x", None, None),
    ],
)
def test_watchdog_is_fed_twice_as_often_as_asked(
    monkeypatch: pytest.MonkeyPatch, us: str, pid: str | None, every_ns: int | None
) -> None:
    monkeypatch.setenv("WATCHDOG_USEC", us)
    monkeypatch.delenv("WATCHDOG_PID", raising=False)
    if pid:
        monkeypatch.setenv("WATCHDOG_PID", str(os.getpid()) if pid == "us" else pid)
    assert sd_notify.watchdog_ns() == every_ns


def test_beat_is_due_at_once_and_then_each_period(manager: socket.socket) -> None:
    beat = sd_notify.Heartbeat(100)
    for now_ns in (7, 50, 106, 107, 120, 500):
        beat.beat(now_ns)
    assert beat.due_ns == 600
    heard = [manager.recv(100) for _ in range(3)]
    assert heard == [b"WATCHDOG=1"] * 3
    with pytest.raises(BlockingIOError):
        manager.recv(100)


def test_beat_without_a_watchdog_is_never_due(manager: socket.socket) -> None:
    beat = sd_notify.Heartbeat(None)
    beat.beat(10**12)
    assert beat.due_ns is None
    with pytest.raises(BlockingIOError):
        manager.recv(100)

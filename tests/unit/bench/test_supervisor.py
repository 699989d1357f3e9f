"""The bench's own words: where it answers, and when it does not."""

import asyncio
import logging
import os
import subprocess
from pathlib import Path

import pytest

from fpvcar.bench import supervisor, units


@pytest.mark.parametrize(
    ("host", "where"),
    [
        ("0.0.0.0", "localhost"), ("::", "localhost"), ("127.0.0.1", "localhost"),
        ("192.168.1.7", "192.168.1.7"), ("::1", "::1"),
    ],
)  # fmt: skip
def test_it_is_looked_for_where_it_listens(host: str, where: str) -> None:
    assert supervisor.reachable(host) == where


def test_a_bench_that_does_not_answer_says_so(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(supervisor, "READY_S", 0.01)
    options = supervisor.Options(Path(), (), "127.0.0.1", 1, 1, False, True)
    with caplog.at_level(logging.ERROR):
        asyncio.run(supervisor._greet(options, "car"))
    assert "nothing answers at 127.0.0.1:1" in caplog.text


def test_what_is_near_the_pins_stands_in_front_of_other_sessions() -> None:
    """Where sessions are groups for the scheduler, a process's nice value is little."""
    said = subprocess.run(
        ["sh", "-c", "nice; cat /proc/self/autogroup || true"],
        preexec_fn=lambda: units.leash(supervisor.NEAR_PINS),
        start_new_session=True, capture_output=True, text=True, check=True,
    )  # fmt: skip
    nice, *group = said.stdout.splitlines()
    may = os.geteuid() == 0
    assert int(nice) == (supervisor.NEAR_PINS if may else os.nice(0))
    for line in group:
        assert line.endswith(f" nice {supervisor.NEAR_PINS if may else 0}")


def test_the_greeting_says_where_the_car_records(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STATE_DIRECTORY", str(tmp_path))
    options = supervisor.Options(Path(), (), "127.0.0.1", 1, 1, False, True)
    said = supervisor.greeting(options, "Plague", "/srv/drives")
    assert "It records in /srv/drives" in said

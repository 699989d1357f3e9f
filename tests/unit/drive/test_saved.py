"""Settings of grown-ups: saved by a thread, atomically, and never looser."""

import errno
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest

from fpvcar import config
from fpvcar.drive import saved
from fpvcar.drive.saved import (
    FILE,
    DisplayName,
    SavedName,
    SavedSettings,
    Saver,
    guard_of,
    limit_of,
)
from tests.support.control import PROFILE

MUMS = SavedSettings(0.3, "limit", "Mum")
WITHIN_S = 20.0


def until(holds: Callable[[], bool]) -> None:
    start_s = time.monotonic()
    while not holds():
        assert time.monotonic() - start_s < WITHIN_S, "nothing happened"
        time.sleep(0.001)


@contextmanager
def saving(directory: Path) -> Iterator[Saver]:
    saver = Saver(directory)
    saver.start()
    try:
        yield saver
    finally:
        saver.stop(WITHIN_S)


def profile(limit: float, guard: str) -> config.Profile:
    return msgspec.structs.replace(
        PROFILE,
        gate=msgspec.structs.replace(PROFILE.gate, limit=limit),
        guard=msgspec.structs.replace(PROFILE.guard, mode=guard),
    )


def test_intercom_is_off_until_it_is_saved_as_on(tmp_path: Path) -> None:
    assert not Saver(tmp_path).before.intercom
    with saving(tmp_path) as saver:
        saver.put_intercom(True)
        saver.put(MUMS)
    assert Saver(tmp_path).before == msgspec.structs.replace(MUMS, intercom=True)


def test_put_settings_are_loaded_at_the_next_start(tmp_path: Path) -> None:
    assert Saver(tmp_path).before == SavedSettings()
    with saving(tmp_path) as saver:
        saver.put(MUMS)
        until(lambda: Saver(tmp_path).before == MUMS)
        saver.put(SavedSettings())
        until(lambda: Saver(tmp_path).before == SavedSettings())
    assert [one.name for one in tmp_path.iterdir()] == [FILE]


def test_settings_put_before_stop_are_written(tmp_path: Path) -> None:
    with saving(tmp_path) as saver:
        saver.put(MUMS)
    assert Saver(tmp_path).before == MUMS


def test_slow_card_blocks_no_put_and_the_newest_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    free, syncing = threading.Event(), threading.Event()

    def slow(_: int) -> None:
        syncing.set()
        assert free.wait(WITHIN_S)

    monkeypatch.setattr(os, "fsync", slow)
    with saving(tmp_path) as saver:
        saver.put(SavedSettings(0.9))
        assert syncing.wait(WITHIN_S)
        for percent in range(80, 20, -1):  # each put returns at once
            saver.put(SavedSettings(percent / 100))
        assert not (tmp_path / FILE).exists(), "not synced, but in place"
        free.set()
    assert Saver(tmp_path).before == SavedSettings(0.21)


def test_failing_card_is_logged_once_and_retried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    saved.write(tmp_path / FILE, SavedSettings(0.5))
    monkeypatch.setattr(saved, "AGAIN_S", 0.001)
    tries: list[int] = []
    sync = os.fsync

    def fails(file: int) -> None:
        tries.append(file)
        if len(tries) < 10:
            assert saved.load(tmp_path / FILE) == SavedSettings(0.5), "the old one is hurt"
            raise OSError(errno.EIO, "Input/output error")
        sync(file)

    monkeypatch.setattr(os, "fsync", fails)
    with saving(tmp_path) as saver:
        saver.put(MUMS)
        until(lambda: saver.state == "ok")
    assert Saver(tmp_path).before == MUMS
    warnings = [one.getMessage() for one in caplog.records if one.levelname == "WARNING"]
    assert len(warnings) == 1 and "lost at a restart: [Errno 5]" in warnings[0], warnings


@pytest.mark.parametrize(
    "found",
    [
        b"",
        b"{",
        b"\xff",
        b'"\xff"',
        b"[]",
        b'{"limit":1.5}',
        b'{"limit":"0.3"}',
        b'{"guard":"none"}',
        b'{"guard":"limit\\n"}',
        b'{"drive":"123456"}',
        b'{"stopped_by":"' + b"x" * 33 + b'"}',
        b"\0" * 40,
    ],
)
def test_damaged_or_foreign_file_is_logged_and_ignored(
    tmp_path: Path, found: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / FILE).write_bytes(found)
    assert Saver(tmp_path).before == SavedSettings()
    assert "using the profile's limit and guard" in caplog.text
    saved.write(tmp_path / FILE, MUMS)
    assert Saver(tmp_path).before == MUMS


def test_saved_limit_and_guard_never_loosen_the_profile() -> None:
    assert limit_of(SavedSettings(0.3), profile(0.5, "off")) == 0.3
    assert limit_of(SavedSettings(0.8), profile(0.5, "off")) == 0.5
    assert limit_of(SavedSettings(), profile(0.5, "off")) == 0.5
    guards = {
        (mine, own): guard_of(SavedSettings(guard=mine), profile(1.0, own))
        for mine in (None, *saved.GUARD_MODES)
        for own in saved.GUARD_MODES
    }
    assert {pair for pair, mode in guards.items() if mode == "off"} == {
        (None, "off"),
        ("off", "off"),
    }
    assert {pair for pair, mode in guards.items() if mode == "warn"} == {
        (None, "warn"),
        ("off", "warn"),
        ("warn", "off"),
        ("warn", "warn"),
    }


def test_chosen_name_survives_restart_and_other_settings(tmp_path: Path) -> None:
    with saving(tmp_path) as saver:
        name = DisplayName("Toad", saver.before.car, saver.put_name, shipped=True)
        assert (name.text, name.chosen) == ("Toad", False)
        name.choose("Blitz")
        saver.put(MUMS)
        assert (name.text, name.chosen) == ("Blitz", True)
    before = Saver(tmp_path).before
    assert before == msgspec.structs.replace(MUMS, car=SavedName("Blitz", "Toad"))
    later = DisplayName("Toad", before.car, lambda _: None, shipped=True)
    assert (later.text, later.chosen) == ("Blitz", True)


def test_new_name_in_the_profile_replaces_the_chosen_one() -> None:
    renamed = DisplayName("Rusty", SavedName("Blitz", "Toad"), lambda _: None, shipped=False)
    assert (renamed.text, renamed.chosen) == ("Rusty", True)


def test_names_of_shipped_profiles_are_recognised() -> None:
    assert saved.ships("Toad") and saved.ships("Plague")
    assert not saved.ships("Rusty") and not saved.ships("")

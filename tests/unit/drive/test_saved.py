"""Settings of grown-ups: saved by a thread, atomically, and never looser."""

import errno
import os
import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest
from testkit.control import PROFILE
from testkit.pins.wheels import until

from fpvcar import config
from fpvcar.drive import saved
from fpvcar.drive.gate import Cause, Hold, Latches, resume
from fpvcar.drive.saved import (
    FILE,
    LATER,
    DisplayName,
    SavedName,
    SavedSettings,
    Saver,
    differing,
    guard_of,
    hold_of,
    limit_of,
)

MUMS = SavedSettings(0.3, "limit", "Mum")
WITHIN_S = 20.0
SAMPLE, SOAK = 12, 200
"""Sequences of restarts of the property test."""


class EarlierSettings(msgspec.Struct, forbid_unknown_fields=True):
    """Fields of the versions that ignore the whole file for one unknown field."""

    limit: config.Share | None = None
    guard: config.GuardMode | None = None
    stopped_by: config.PersonName | None = None
    picture: config.Picture | None = None
    car: SavedName | None = None
    intercom: bool = False


def earlier(path: Path) -> SavedSettings:
    """Load the file as those versions do."""
    try:
        settings = msgspec.json.decode(path.read_bytes(), type=EarlierSettings)
    except (OSError, ValueError, msgspec.DecodeError):
        return SavedSettings()
    return SavedSettings(**msgspec.structs.asdict(settings))


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
            assert earlier(tmp_path / FILE) == SavedSettings(0.5), "the old one is hurt"
            raise OSError(errno.EIO, "Input/output error")
        sync(file)

    monkeypatch.setattr(os, "fsync", fails)
    with saving(tmp_path) as saver:
        saver.put(MUMS)
        until(lambda: saver.state == "ok")
    assert Saver(tmp_path).before == MUMS
    warnings = [one.getMessage() for one in caplog.records if one.levelname == "WARNING"]
    assert len(warnings) == 1 and "lost at a restart: Input/output error" in warnings[0], warnings


@pytest.mark.parametrize(
    "damaged",
    [
        b"",
        b"{",
        b"\xff",
        b'"\xff"',
        b"[]",
        b'{"limit":0.3,"stopped_by":"Mum',
        b"[" * 9000,
        b'{"limit":1.5}',
        b'{"limit":"0.3"}',
        b'{"guard":"none"}',
        b'{"guard":"limit\\n"}',
        b'{"stopped_by":"' + b"x" * 33 + b'"}',
        b'{"stopped_by":{"name":"Mum"}}',
        b"\0" * 40,
    ],
)
def test_unreadable_stop_limit_or_guard_holds_the_car_until_a_grown_up_resumes(
    tmp_path: Path, damaged: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / FILE).write_bytes(damaged)
    for _ in range(2):  # the loss stays known
        with saving(tmp_path) as saver:
            hold = hold_of(saver.before)
            assert hold is not None and hold.cause is Cause.SETTINGS_LOST
            held = Latches(hold=hold)
            assert resume(held, grown_up=False) == held
            assert resume(held, grown_up=True).hold is None
    assert FILE in caplog.text
    before = Saver(tmp_path).before
    for key in ("limit", "guard"):
        if f'"{key}":'.encode() in damaged:
            assert getattr(before, key) == getattr(saved.STRICTEST, key)
    assert before == earlier(tmp_path / FILE), "the earlier version is held, too"


def test_folder_in_place_of_the_file_holds_the_car(tmp_path: Path) -> None:
    (tmp_path / FILE).mkdir()
    with saving(tmp_path) as saver:
        assert saver.before == saved.STRICTEST
        until(lambda: "lost at a restart" in str(saver.state))


def test_error_of_the_card_at_the_start_holds_the_car(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(_: Path) -> bytes:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(Path, "read_bytes", fails)
    assert Saver(tmp_path).before == saved.STRICTEST


def test_other_unreadable_values_are_the_profiles_and_named(tmp_path: Path) -> None:
    (tmp_path / FILE).write_bytes(
        b'{"limit":0.3,"guard":"limit","stopped_by":"Mum","intercom":"loud",'
        b'"picture":{"width":5000},"car":{"name":"","instead_of":"Toad"}}'
    )
    with saving(tmp_path) as saver:
        assert saver.before == MUMS and saver.unreadable == ("picture", "car", "intercom")
    assert earlier(tmp_path / FILE) == MUMS
    assert Saver(tmp_path).unreadable == ()


def test_fields_of_a_later_version_stay_where_earlier_ones_ignore_them(tmp_path: Path) -> None:
    for number in (1, 2):
        text = f'{{"limit":0.3,"guard":"limit","stopped_by":"Mum","new{number}":[1.50,"x"]}}'
        (tmp_path / FILE).write_text(text)
        with saving(tmp_path) as saver:
            assert saver.before == MUMS and saver.unreadable == ()
        assert earlier(tmp_path / FILE) == MUMS
    assert (tmp_path / LATER).read_bytes() == b'{"new1":[1.50,"x"],"new2":[1.50,"x"]}'


def test_viewers_look_survives_a_restart_beside_fields_of_later_versions(tmp_path: Path) -> None:
    """An earlier version ignores all of FILE, also its stop, if it has a field unknown to it."""
    (tmp_path / LATER).write_bytes(b'{"new":[1.50,"x"]}')
    saved.write(tmp_path / FILE, MUMS)
    for on in (True, False):
        with saving(tmp_path) as saver:
            assert saver.later.viewers_look is not on
            saver.put_viewers_look(on)
        assert earlier(tmp_path / FILE) == MUMS
        text = f'{{"new":[1.50,"x"],"viewers_look":{"true" if on else "false"}}}'
        assert (tmp_path / LATER).read_text() == text


@pytest.mark.parametrize("text", ["{", '{"viewers_look":"yes"}', "[]", "\xff"])
def test_unreadable_later_settings_are_the_defaults(tmp_path: Path, text: str) -> None:
    (tmp_path / LATER).write_text(text, "latin-1")
    with saving(tmp_path) as saver:
        assert not saver.later.viewers_look and saver.unreadable == ()
        saver.put_viewers_look(True)
    assert Saver(tmp_path).later.viewers_look


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


class Lives:
    """Car over restarts, with its stop, limit and guard as last set by a grown-up."""

    def __init__(self, path: Path, chance: random.Random) -> None:
        self.path, self.chance = path / FILE, chance
        self.profile = profile(1.0, "off")
        self.state: tuple[Hold | None, float, config.GuardMode] = (None, 1.0, "off")

    def grown_up(self) -> None:
        """Stop, resume, or set another limit and guard."""
        hold, limit, guard = self.state
        if self.chance.random() < 0.5:
            hold = (
                None if hold else Hold(Cause.ESTOP_GROWN_UP, self.chance.choice(("Mum", "", FILE)))
            )
        else:
            limit = self.chance.choice((0.1, 0.3, 0.75, 1.0))
            guard = self.chance.choice(saved.GUARD_MODES)
        self.state = hold, limit, guard

    def live(self) -> None:
        """Run this version: load, set, save."""
        with saving(self.path.parent) as saver:
            self.check(saver.before)
            self.grown_up()
            _, limit, guard = self.state
            saver.put(differing(self.profile, limit, guard, self.state[0]))

    def roll_back(self) -> None:
        """Run the earlier version."""
        self.check(earlier(self.path))
        self.grown_up()
        hold, limit, guard = self.state
        if hold:
            hold = Hold(Cause.ESTOP_GROWN_UP, hold.by)
        saved.write(self.path, differing(self.profile, limit, guard, hold))

    def check(self, loaded: SavedSettings) -> None:
        """Check that nothing became looser, and go on with the loaded settings."""
        hold, limit, guard = self.state
        new_hold, new_limit = hold_of(loaded), limit_of(loaded, self.profile)
        new_guard = guard_of(loaded, self.profile)
        assert new_hold or not hold, f"the stop is lost: {loaded}"
        assert new_limit <= limit, f"a higher limit than {limit}: {loaded}"
        assert saved.GUARD_MODES.index(new_guard) >= saved.GUARD_MODES.index(guard), loaded
        self.state = new_hold, new_limit, new_guard

    def damage(self) -> None:
        """Cut or clear the file, or put fields and values of a later version into it."""
        data = self.path.read_bytes() if self.path.exists() else b"{}"
        kind = self.chance.randrange(4)
        if kind == 0:
            data = data[: self.chance.randrange(len(data))]
        elif kind == 1:
            data = bytes(len(data))
        else:
            fields = msgspec.json.decode(data)
            key = self.chance.choice(("later", "limit", "guard", "stopped_by", "picture", "car"))
            fields[key] = self.chance.choice(({"by": 1}, [7], "x" * 40, 5000))
            data = msgspec.json.encode(fields)
        self.path.write_bytes(data)


@pytest.mark.soak
def test_restarts_with_damage_and_other_versions_loosen_nothing(
    tmp_path: Path, soaking: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "fsync", lambda _: None)
    for seed in range(SOAK if soaking else SAMPLE):
        chance = random.Random(seed)
        folder = tmp_path / str(seed)
        folder.mkdir()
        lives = Lives(folder, chance)
        for _ in range(10):
            lives.live()
            if chance.random() < 0.5:
                lives.damage()
                lives.live()
            if chance.random() < 0.5:
                lives.roll_back()

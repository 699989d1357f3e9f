"""Hours of the second office: edges by a passed-in clock, and rounds that the window ends."""

import asyncio
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from testkit.base_station.builder import Station
from testkit.base_station.office import PLACE
from testkit.base_station.stored import DATA, NAME, act, put

from fpvcar.config import ConfigError
from fpvcar.runtime.texts import State
from fpvstation.replicas.remote import OnProgress
from fpvstation.replicas.remotes import Remotes
from fpvstation.settings import Window, load
from fpvstation.store.sums_file import StoredSegment

NIGHT = Window.parse("22:00-06:00")
OTHER = NAME.replace("20261121", "20261122")


@pytest.fixture(autouse=True)
def berlin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Central European time, without a database of zones."""
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3")
        time.tzset()
        yield
    time.tzset()


def utc(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


@pytest.mark.parametrize(
    ("hours", "moment", "is_open"),
    [
        ("22:00-06:00", "2026-11-27T20:59:59.999", False),
        ("22:00-06:00", "2026-11-27T21:00", True),
        ("22:00-06:00", "2026-11-27T23:00", True),  # midnight
        ("22:00-06:00", "2026-11-28T04:59:59.999", True),
        ("22:00-06:00", "2026-11-28T05:00", False),
        ("01:00-05:30", "2026-11-27T23:59", False),
        ("01:00-05:30", "2026-11-28T00:00", True),
        ("01:00-05:30", "2026-11-28T04:30", False),
        ("22:00-06:00", "2026-07-01T20:00", True),  # summer time: an hour earlier
        ("22:00-06:00", "2026-07-02T04:00", False),
        # 2026-03-29: 02:00 is followed by 03:00
        ("02:30-04:00", "2026-03-29T00:59", False),
        ("02:30-04:00", "2026-03-29T01:00", True),
        ("02:15-02:45", "2026-03-29T01:00", False),
        # 2026-10-25: 03:00 is followed by 02:00
        ("02:15-02:45", "2026-10-25T00:30", True),
        ("02:15-02:45", "2026-10-25T00:50", False),
        ("02:15-02:45", "2026-10-25T01:30", True),
        ("22:00-02:30", "2026-10-25T00:45", False),
        ("22:00-02:30", "2026-10-25T01:15", True),
    ],
)
def test_window_is_open_from_begin_to_end_by_local_time(
    hours: str, moment: str, is_open: bool
) -> None:
    assert Window.parse(hours).is_open(utc(moment)) is is_open


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (
            'window = "10pm-6am"\nsecond = "b:/x"',
            'window = "10pm-6am" refused: expected two different',
        ),
        ('window = "22:00-22:00"\nsecond = "b:/x"', "two different times"),
        ('window = "22:00-24:30"\nsecond = "b:/x"', "two different times"),
        ('window = "22:00-06:00"\ntarget = "a:/x"', "replicas.second, which is missing"),
        ('rate = "0M"\nsecond = "b:/x"', 'rate = "0M" refused: expected bytes per second above 0'),
        ('rate = "5 MB"\nsecond = "b:/x"', "expected bytes per second"),
        ('rate = "5M"\nsecond = "s3://drives/plague"', "works with rdcp only"),
        ('rate = "5M"', "replicas.second, which is missing"),
    ],
)
def test_bad_window_or_rate_is_refused_with_the_next_step(
    line: str, words: str, tmp_path: Path
) -> None:
    config = tmp_path / "station.toml"
    config.write_text(f"[replicas]\n{line}\n")
    with pytest.raises(ConfigError) as refused:
        load(config)
    assert words in str(refused.value) and str(config) in str(refused.value)


def test_window_and_rate_are_of_the_second_remote_only(tmp_path: Path) -> None:
    config = tmp_path / "station.toml"
    config.write_text(
        '[replicas]\ntarget = "a:/x"\nsecond = "b:/x"\nwindow = "22:00-06:00"\nrate = "5M"\n'
        'options = ["--encrypt"]\n'
    )
    replicas = load(config).replicas
    assert replicas.windows == {"b:/x": NIGHT}
    assert replicas.options_of("a:/x") == ("--encrypt",)
    assert replicas.options_of("b:/x") == ("--encrypt", "--rate", "5M")


def test_former_section_works_with_a_warning_that_names_the_new_one(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    config = tmp_path / "station.toml"
    section = 'target = "a:/x"\nsecond = "b:/x"\nwindow = "22:00-06:00"\n'
    config.write_text(f"[replicas]\n{section}")
    expected = load(config)
    assert not caplog.messages
    config.write_text(f"[office]\n{section}")
    assert load(config) == expected
    assert caplog.messages == [f"{config}: [office] is called [replicas] now: rename it there"]
    config.write_text(f"[office]\n{section}[replicas]\n")
    with pytest.raises(ConfigError, match="office"):
        load(config)


class Night:
    """Remotes with one whose window is NIGHT, and a wall clock that each pause moves on."""

    def __init__(self, rig: Station, moments: list[str]) -> None:
        self.rig, self.moments = rig, moments
        self.now_s = utc(moments.pop(0))
        self.remotes = Remotes(
            [rig.office],
            2,
            rig.copies,
            self._sleep,
            clock_s=rig.steady_s,
            utc_s=lambda: self.now_s,
            windows={PLACE: NIGHT},
        )
        self.remotes.open(rig.store, act)
        self.seen = list[tuple[State, int, int, int, str]]()
        """State, complete, pending sessions and bytes, and opening time, at each pause."""

    async def _sleep(self, _: float) -> None:
        await asyncio.sleep(0)
        (state,) = self.remotes.states
        self.seen.append(
            (state.state, state.complete, state.waiting, state.waiting_bytes, state.waits_until)
        )
        if not self.moments:
            await asyncio.Event().wait()
        self.now_s = utc(self.moments.pop(0))

    async def run(self) -> None:
        running = asyncio.create_task(self.remotes.run())
        while self.moments and not running.done():
            await asyncio.sleep(0)
        for _ in range(20):
            await asyncio.sleep(0)
        running.cancel()
        done = await asyncio.gather(running, return_exceptions=True)
        assert isinstance(done[0], asyncio.CancelledError)


async def test_closed_window_counts_sessions_and_contacts_no_office(rig: Station) -> None:
    put(rig.store)
    put(rig.store, OTHER)
    night = Night(rig, ["2026-11-27T12:00", "2026-11-27T20:59"])
    await night.run()
    assert rig.office.known == [] and rig.office.sent == []
    assert night.seen[-1] == ("ok", 0, 2, 2 * len(DATA), "22:00")


@pytest.mark.parametrize(
    "moments",
    [
        ["2026-11-27T20:59:55", "2026-11-27T21:00:05"],
        ["2026-11-27T12:00", "2026-11-28T02:00"],  # set forward
        ["2026-11-27T12:00", "2026-11-27T03:00"],  # set back
        ["1970-01-01T12:00", "2026-11-27T21:00"],  # no clock before the network's
    ],
)
async def test_window_that_opens_lets_sessions_go(rig: Station, moments: list[str]) -> None:
    put(rig.store)
    night = Night(rig, [*moments, moments[-1]])
    await night.run()
    assert len(rig.office.sent) == 1
    assert night.seen[0][1:] == (0, 1, len(DATA), "22:00")
    (state,) = night.remotes.states
    assert (state.complete, state.waiting, state.waits_until) == (1, 0, "")


@pytest.mark.parametrize("jump", ["2026-11-28T05:00", "2026-11-28T12:00", "2026-11-27T20:00"])
async def test_window_that_closes_ends_the_copy_and_keeps_the_session(
    rig: Station, jump: str
) -> None:
    put(rig.store)
    put(rig.store, OTHER)
    cancelled = list[str]()
    send = rig.office.send

    async def stuck(
        session: str, listed: list[StoredSegment], anew: bool, on_progress: OnProgress
    ) -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.append(session)
            raise

    rig.office.send = stuck  # type: ignore[method-assign]
    night = Night(rig, ["2026-11-28T04:59", "2026-11-28T04:59:30", jump])
    await night.run()
    (state,) = night.remotes.states
    assert len(cancelled) == 1
    assert (state.state, state.waiting, state.waits_until) == ("ok", 2, "22:00")
    rig.office.send = send  # type: ignore[method-assign]
    night.moments = ["2026-11-28T21:00", "2026-11-28T21:00:10"]
    night.now_s = utc("2026-11-28T21:00")
    await night.run()
    assert len(rig.office.sent) == 2
    assert (state.complete, state.waiting, state.waits_until) == (2, 0, "")

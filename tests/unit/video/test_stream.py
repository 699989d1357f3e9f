"""Policy of the fan-out with a clock in hand; slow viewers delay no other."""

import pytest
from testkit.cameras.video_source import PlayedCamera, encode

from fpvcar.video import h264, stream
from fpvcar.video.bitrate import LEAST_BITRATE, LinkReport
from fpvcar.video.h264 import AccessUnit
from fpvcar.video.stream import Frame, Stream, Viewer
from fpvcar.wire.video import FPS_MOST, parse_video

FRAME_S = 1 / 30


class Bench:
    """Stream with a clock and a fake source."""

    def __init__(self, obeys: bool = True) -> None:
        self.source = PlayedCamera(obeys)
        self.stream = Stream(self.source, 2_000_000, lambda: self.source.now_s)

    @property
    def now_s(self) -> float:
        return self.source.now_s

    def publish(self, kinds: str) -> None:
        """Publish one unit per letter, K or P, a frame apart."""
        for kind in kinds:
            self.source.now_s += FRAME_S
            self.stream.publish(AccessUnit(kind == "K", int(self.now_s * 1e6), b"unit"))

    def viewer(self, driver: bool = False) -> Viewer:
        return self.stream.add_viewer(lambda: driver)

    def drain(self, viewer: Viewer) -> str:
        got = ""
        while (frame := viewer.next(True, self.now_s)) is not None:
            got += "K" if frame.key else "P"
        return got


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_unit_is_packed_once_for_all_viewers(bench: Bench) -> None:
    one, two = bench.viewer(), bench.viewer()
    bench.publish("K")
    first, second = one.next(True, bench.now_s), two.next(True, bench.now_s)
    assert first is not None and second is not None
    assert first.framed is second.framed
    header, unit = parse_video(first.framed[2:])
    assert header == (True, 0, int(FRAME_S * 1e6), 4) and unit == b"unit"
    bench.publish("P")
    third = one.next(True, bench.now_s)
    assert third is not None and parse_video(third.framed[2:])[0].sequence == 1


def test_recovery_point_starts_waiting_viewers_and_drops_no_units(bench: Bench) -> None:
    gradual = next(u for u in encode(frames=20, gop=10, refresh=True)[1:] if h264.is_key(u))
    one = bench.viewer()
    bench.publish("KP")
    two = bench.viewer()
    bench.stream.publish(AccessUnit(True, int(bench.now_s * 1e6), gradual))
    assert bench.drain(two) == "K" and two.dropped == 0
    assert (one.waiting, one.dropped, one.needs_key) == (0, 3, True), "two units wait at most"
    bench.stream.publish(AccessUnit(True, int(bench.now_s * 1e6), gradual))
    bench.publish("P")
    bench.stream.publish(AccessUnit(True, int(bench.now_s * 1e6), b"whole"))
    assert bench.drain(one) == "K" and one.dropped == 5


def test_frame_length_is_encoded_as_in_rfc_6455() -> None:
    for size, head in (
        (0, b"\x82\x00"),
        (125, b"\x82\x7d"),
        (126, b"\x82\x7e\x00\x7e"),
        (65535, b"\x82\x7e\xff\xff"),
        (65536, b"\x82\x7f\0\0\0\0\0\x01\0\0"),
    ):
        assert stream.frame_head(size, stream.BINARY) == head


def test_new_viewer_requests_and_starts_at_a_key_frame(bench: Bench) -> None:
    bench.publish("KP")
    viewer = bench.viewer()
    assert bench.source.keys == [bench.now_s]
    bench.publish("PP")
    assert bench.drain(viewer) == ""
    bench.publish("K")
    assert bench.drain(viewer) == "K"
    bench.publish("P")
    assert bench.drain(viewer) == "P"


def test_new_viewer_takes_the_newest_key_frame_if_current(bench: Bench) -> None:
    bench.publish("PK")
    assert bench.drain(bench.viewer()) == "K"
    assert bench.source.keys == []
    bench.source.now_s += 0.2  # the picture is no longer current
    viewer = bench.viewer()
    assert bench.drain(viewer) == "" and len(bench.source.keys) == 1


def test_unit_is_not_packed_without_viewers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "pack_video_header", None)
    bench = Bench()
    bench.publish("KP")
    assert bench.stream.sequence == 2


def test_third_waiting_unit_drops_all(bench: Bench) -> None:
    viewer = bench.viewer()
    bench.publish("KP")
    assert viewer.waiting == 2 and viewer.wants
    bench.publish("P")
    assert (viewer.waiting, viewer.dropped, viewer.needs_key) == (0, 3, True)
    bench.publish("PPP")
    assert (viewer.waiting, viewer.dropped) == (0, 6)


def test_viewer_never_has_more_than_two_units_waiting(bench: Bench) -> None:
    viewer = bench.viewer()
    for kind in "KPPPKPKKPPPPKPPKK":
        bench.publish(kind)
        assert viewer.waiting <= 2


def test_viewer_without_key_requests_keeps_a_second_of_units() -> None:
    bench = Bench(obeys=False)
    viewer = bench.viewer(driver=True)
    bench.publish("K" + "P" * 29)
    assert (viewer.waiting, viewer.dropped) == (30, 0)
    assert bench.drain(viewer) == "K" + "P" * 29, "all of them can be decoded"
    bench.publish("PPPK")
    assert (viewer.dropped, bench.drain(viewer)) == (3, "K"), "the newest wins"


def test_viewer_without_key_requests_drops_units_older_than_1_s() -> None:
    bench = Bench(obeys=False)
    viewer = bench.viewer(driver=True)
    most = 0
    for kind in "K" + "P" * 300:
        bench.publish(kind)
        most = max(most, viewer.waiting)
    assert most == round(stream.BACKLOG_S / FRAME_S) + 1
    assert viewer.waiting == 0 and viewer.needs_key
    bench.publish("K")
    assert bench.drain(viewer) == "K"


def test_viewer_backlog_is_bounded_in_number_whatever_the_stamps() -> None:
    bench = Bench(obeys=False)
    viewer = bench.viewer(driver=True)
    for number in range(3 * stream.BACKLOG_MAX):
        bench.stream.publish(AccessUnit(number == 0, 1, b"unit"))
        assert viewer.waiting <= stream.BACKLOG_MAX


def test_viewer_keeps_units_once_its_key_requests_are_ignored(bench: Bench) -> None:
    viewer = bench.viewer(driver=True)
    bench.publish("PPPPPPP")  # these do not answer the new viewer's request
    bench.publish("KPPPPPPP")
    assert (viewer.waiting, viewer.needs_key) == (8, False)


def test_key_frame_supersedes_waiting_units(bench: Bench) -> None:
    viewer = bench.viewer()
    bench.publish("KPK")
    assert (viewer.dropped, bench.drain(viewer)) == (2, "K")


def test_key_frame_is_requested_when_room_returns_not_at_a_drop(bench: Bench) -> None:
    viewer = bench.viewer(driver=True)
    bench.publish("K")
    assert bench.drain(viewer) == "K"
    bench.source.keys.clear()
    for _ in range(40):
        bench.publish("P")
        assert viewer.next(False, bench.now_s) is None
    assert bench.source.keys == []
    assert viewer.next(True, bench.now_s) is None
    assert bench.source.keys == [bench.now_s]
    bench.publish("KP")
    assert bench.drain(viewer) == "KP"


def test_drivers_key_request_is_sent_at_once_and_repeated(bench: Bench) -> None:
    watcher, driver = bench.viewer(), bench.viewer(driver=True)
    assert bench.source.keys == [0.0, 0.0]
    bench.publish("P")
    assert bench.drain(driver) == "" and len(bench.source.keys) == 2
    bench.source.now_s += stream.DRIVER_AGAIN_S
    assert bench.drain(driver) == "" and len(bench.source.keys) == 3
    bench.publish("K")
    assert bench.drain(driver) == "K" == bench.drain(watcher)
    driver.wait_for_key()
    bench.drain(driver)
    assert len(bench.source.keys) == 4
    driver.wait_for_key()
    assert bench.drain(driver) == "" and len(bench.source.keys) == 5


def test_key_requests_of_other_viewers_are_pooled(bench: Bench) -> None:
    for _ in range(10):
        bench.viewer()
    assert bench.source.keys == [0.0]
    while len(bench.source.keys) < 2:
        bench.publish("P")
    assert 0.5 <= bench.now_s < 0.6
    bench.publish("P" * 30)
    assert len(bench.source.keys) == 2


def test_arriving_key_frame_serves_the_pooled_requests(bench: Bench) -> None:
    bench.viewer()
    bench.viewer()
    bench.publish("K" + "P" * 60)
    assert bench.source.keys == [0.0]


def test_bad_viewer_costs_few_key_frames(bench: Bench) -> None:
    driver, watcher = bench.viewer(driver=True), bench.viewer()
    bench.publish("K")
    bench.drain(driver)
    bench.source.keys.clear()
    for _ in range(300):  # 10 s in which it loses its place with every unit
        bench.publish("P")
        assert bench.drain(driver) == "P"
        watcher.wait_for_key()
        bench.drain(watcher)
    assert 4 <= len(bench.source.keys) <= 6, bench.source.keys


def test_stalled_viewer_does_not_delay_another(bench: Bench) -> None:
    stalled, good = bench.viewer(), bench.viewer()
    got = ""
    for kind in "KPPPPKPPPP":
        bench.publish(kind)
        got += bench.drain(good)
        assert stalled.waiting <= 2
    assert got == "KPPPPKPPPP" and good.dropped == 0


def test_driver_is_woken_before_other_viewers(bench: Bench) -> None:
    order: list[str] = []
    watcher, driver = bench.viewer(), bench.viewer(driver=True)
    watcher.wake = lambda: order.append("watcher")
    driver.wake = lambda: order.append("driver")
    bench.publish("K")
    assert order == ["driver", "watcher"]


def test_removed_viewer_gets_no_units(bench: Bench) -> None:
    viewer = bench.viewer()
    bench.stream.remove(viewer)
    bench.publish("K")
    assert viewer.waiting == 0 and bench.stream.viewers == []


def test_camera_without_requests_can_be_watched() -> None:
    alone = Stream(PlayedCamera(obeys=False), clock_s=lambda: 5.0)
    viewer = alone.add_viewer(lambda: True)
    alone.report(viewer, LinkReport(0, 0, 1.0, 9))
    alone.publish(AccessUnit(True, 5_000_000, b"unit"))
    frame = viewer.next(True, 5.0)
    assert isinstance(frame, Frame) and frame.key


def test_bitrate_follows_only_the_drivers_link(bench: Bench) -> None:
    bad = LinkReport(delivered=400_000, burst=400_000, blocked_s=0.3, dropped=3)
    bench.stream.report(bench.viewer(), bad)
    assert bench.source.bitrates == []
    bench.stream.report(bench.viewer(driver=True), bad)
    assert bench.source.bitrates == [320_000]


def test_rate_of_the_camera_follows_the_drivers_page(bench: Bench) -> None:
    driver, watcher = bench.viewer(driver=True), bench.viewer()
    driver.fps_most, watcher.fps_most = 15, 5
    for viewer in (driver, watcher, driver):
        bench.stream.report(viewer, LinkReport(8e6, 8e6, 0.0, 0))
    assert bench.source.rates == [15]
    bench.publish("P" * 100)
    assert bench.source.rates == [15, FPS_MOST], "no driver's link reports any more"


def test_lower_limit_of_page_and_car_wins(bench: Bench) -> None:
    driver = bench.viewer(driver=True)
    for limit, wish in ((30, FPS_MOST), (30, 15), (10, 15), (FPS_MOST, 15)):
        bench.stream.limit_fps(limit)
        driver.fps_most = wish
        bench.stream.report(driver, LinkReport(8e6, 8e6, 0.0, 0))
    assert bench.source.rates == [30, 15, 10, 15]


def test_slow_watcher_gets_whole_beginnings_of_gops(bench: Bench) -> None:
    slow, driver = bench.viewer(), bench.viewer(driver=True)
    slow.fps_most = driver.fps_most = 10
    got, asked = "", len(bench.source.keys)
    for _ in range(10):
        for kind in "K" + "P" * 29:
            bench.publish(kind)
            got += bench.drain(slow)
            assert bench.drain(driver) == kind, "the camera's rate serves the driver"
    gops = [f"K{rest}" for rest in got.split("K")[1:]]
    assert len(gops) == 10 and all(set(gop[1:]) <= {"P"} for gop in gops)
    assert 8 <= sum(map(len, gops[2:])) / 8 <= 13
    assert len(bench.source.keys) == asked


def test_full_bitrate_returns_without_a_driver(bench: Bench) -> None:
    dead = LinkReport(delivered=0, burst=0, blocked_s=0.3, dropped=3)
    bench.stream.report(bench.viewer(driver=True), dead)
    assert bench.source.bitrates == [LEAST_BITRATE]
    bench.publish("P" * 80)
    assert len(bench.source.bitrates) == 1
    bench.publish("P" * 20)
    assert bench.source.bitrates == [LEAST_BITRATE, 2_000_000]


def test_viewer_stats_count_frames_bytes_fps_and_age(bench: Bench) -> None:
    viewer = bench.viewer(driver=True)
    assert viewer.stats(0.0) == (True, 0, 0, 0, 0, None)
    for _ in range(60):
        bench.publish("K")
        bench.source.now_s += 0.01
        bench.drain(viewer)
    stats = viewer.stats(bench.now_s)
    assert stats.frames == 60 and stats.bytes == 60 * 26 and stats.dropped == 0
    assert 22 <= stats.fps <= 24
    assert stats.age_s is not None and abs(stats.age_s - 0.01) < 1e-6
    assert viewer.stats(bench.now_s + 2.0).fps == 0

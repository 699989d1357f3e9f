"""Modes of the sensors: the table against printed lists, the choice, and its words."""

import pytest
from testkit.cameras import sensor_listings

from fpvcar.config import Camera
from fpvcar.config.schema import View
from fpvcar.devices import sensor_modes
from fpvcar.devices.sensor_modes import SENSORS, choose, fov_deg, report, visible, within_mode


@pytest.mark.parametrize("name", SENSORS)
def test_table_has_printed_modes_only(name: str) -> None:
    printed = {
        (size, bits): (fps, crop)
        for pixel_format, size, fps, crop in sensor_listings.modes(name)
        for bits in (int(pixel_format.split("_")[0].lstrip("SRGB")),)
    }
    for mode in SENSORS[name].modes:
        fps, crop = printed[(mode.width, mode.height), mode.bits]
        assert mode.fps == pytest.approx(fps, rel=0.01) and mode.crop == crop
    assert max(crop for _, crop in printed.values()) <= SENSORS[name].size


def share(name: str, camera: Camera) -> tuple[int, int]:
    sensor = SENSORS[name]
    across, down = visible(sensor, choose(sensor, camera), camera)
    return round(100 * across), round(100 * down)


@pytest.mark.parametrize(
    ("name", "view"),
    [
        ("ov5647", (99, 99)),
        ("imx219", (100, 100)),
        ("imx708", (75, 100)),
        ("imx708_wide", (75, 100)),
        ("imx477", (100, 100)),
        ("imx296", (100, 100)),
        ("imx500", (100, 100)),
    ],
)
def test_whole_view_at_any_rate(name: str, view: tuple[int, int]) -> None:
    for fps in (10.0, 30.0, 60.0, 120.0):
        assert share(name, Camera(fps=fps)) == view
    wide = Camera(width=1280, height=720)
    assert share(name, wide)[0] == 100


@pytest.mark.parametrize(
    ("name", "fps", "view", "mode", "rate"),
    [
        ("imx219", 30, "whole", (1640, 1232, 10), 30),
        ("imx219", 60, "whole", (1640, 1232, 8), 60),
        ("imx219", 120, "whole", (1640, 1232, 8), 83.7),
        ("imx219", 120, "fast", (640, 480, 10), 120),
        ("imx708", 60, "whole", (2304, 1296, 10), 56),
        ("imx708", 60, "fast", (1536, 864, 10), 60),
        ("imx477", 60, "whole", (2028, 1520, 12), 40),
        ("imx477", 60, "fast", (1332, 990, 10), 60),
        ("imx500", 60, "whole", (2028, 1520, 10), 30),
        ("imx500", 60, "fast", (2028, 1520, 10), 30),
        ("ov5647", 60, "whole", (640, 480, 10), 60),
        ("imx708_wide_noir", 30, "fast", (2304, 1296, 10), 30),
        ("imx296", 60, "whole", (1456, 1088, 10), 60),
    ],
)
def test_mode_and_rate(
    name: str, fps: float, view: View, mode: tuple[int, int, int], rate: float
) -> None:
    camera, chosen = within_mode(name, Camera(fps=fps, view=view))
    assert chosen is not None and chosen[:3] == mode
    assert camera.fps == rate


def test_angle_is_cut_with_the_picture() -> None:
    def angle(name: str, camera: Camera) -> float:
        angle = fov_deg(SENSORS[name], choose(SENSORS[name], camera), camera)
        assert angle is not None
        return angle

    assert angle("imx219", Camera()) == pytest.approx(62.2, abs=0.1)
    assert angle("imx708", Camera(width=1280, height=720)) == pytest.approx(66.0)
    assert angle("imx708", Camera()) == pytest.approx(51.9, abs=0.1)
    assert angle("imx708", Camera(fps=60, view="fast")) == pytest.approx(36.0, abs=0.1)


def test_report_names_mode_angle_and_the_other_choice() -> None:
    said = report("imx708", Camera(fps=60))
    assert str(said.text) == (
        "imx708: 2304 × 1296, 10 bits; the picture is 52° wide, 75 % × 100 % of the sensor; "
        "up to 56 frames per second, readout 17 ms"
    )
    assert str(said.rate) == (
        'the whole view has 56 of 60 frames per second; the view "fast" has 60, with '
        "50 % × 67 % of the sensor"
    )
    assert report("imx708", Camera()).rate is None
    assert "30 of 60" in str(report("imx500", Camera(fps=60)).rate)
    assert "at most 120 of" not in str(report("imx477", Camera(fps=60, view="fast")).rate)
    assert "depends on the lens" in str(report("imx477", Camera()).text)


def test_unknown_sensor_keeps_the_settings() -> None:
    camera = Camera(fps=90)
    assert within_mode("ov9281", camera) == (camera, None)
    said = report("ov9281", camera)
    assert not said.known and str(said.text).startswith("ov9281: a sensor without a table")


def test_table_has_a_row_for_each_sensor_and_a_line_for_each_lower_rate() -> None:
    lines = sensor_modes.table(Camera(fps=60))
    assert lines[0] == "640x480 at 60 fps, view = whole"
    assert [line.split()[0] for line in lines[2 : 2 + len(SENSORS)]] == list(SENSORS)
    lowered = ["imx708:", "imx708_wide:", "imx477:", "imx500:"]
    assert [line.split()[0] for line in lines[2 + len(SENSORS) :]] == lowered

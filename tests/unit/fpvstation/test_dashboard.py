"""Grafana dashboard: each queried figure exists, with its labels."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from prometheus_client.parser import text_string_to_metric_families

from fpvcar.http.prometheus_text import exposition
from fpvcar.wire import telemetry, up
from tests.unit.fpvstation.web.test_health import NOW_S, standing
from tests.unit.seat.test_metrics import Measured

ROOT = Path(__file__).resolve().parents[3]
DASHBOARD = json.loads((ROOT / "base-station" / "grafana.json").read_text())
PANELS = [one for one in DASHBOARD["panels"] if one["type"] != "row"]
SCRAPED = {"instance", "job"}
"""Labels that Prometheus itself adds."""


@pytest.fixture(scope="module")
def labels() -> dict[str, set[str]]:
    """Return the labels of every figure that car and station can show."""
    car = Measured()
    ann = car.visitor("Ann")
    ann.drive(0.0)
    ann.drive(1.0)
    ann.say(up.Report("webcodecs", 12.5, 4.0))
    ann.say(up.Estop())
    car.senses.computer = msgspec.structs.replace(car.senses.computer, celsius=48.0)
    car.recorder.recording = telemetry.Recording(True, "ok", 3.0, 120.0)
    found = {
        name: {key for sample in samples for key, _ in sample}
        for name, samples in car.read().items()
    }
    now = standing(alone=1, alone_s=NOW_S)
    now.cars[0].card_total = now.cars[0].card_free = 1
    now.remotes[0].verified_s = NOW_S
    for family in text_string_to_metric_families(exposition(now.metrics())):
        for sample in family.samples:
            found.setdefault(sample.name, set()).update(sample.labels)
    return found


def targets() -> Iterator[tuple[str, Any]]:
    for panel in PANELS:
        for one in panel["targets"]:
            yield panel["title"], one


def test_queried_metrics_exist_with_their_labels(labels: dict[str, set[str]]) -> None:
    asked = set()
    for title, one in targets():
        names = set(re.findall(r"\bfpvcar_\w+", one["expr"]))
        assert names and names <= labels.keys(), (title, names - labels.keys())
        for label in re.findall(r"{{(\w+)}}", one["legendFormat"]):
            assert label in SCRAPED or all(label in labels[name] for name in names), (title, label)
        asked |= names
    assert any("station" in one for one in asked) and "fpvcar_wheels_up" in asked
    assert "fpvcar_wheel_up" not in labels, "one that is misspelt would be seen"


def test_panels_do_not_overlap() -> None:
    taken = set[tuple[int, int]]()
    for panel in DASHBOARD["panels"]:
        at = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(at["x"], at["x"] + at["w"])
            for y in range(at["y"], at["y"] + at["h"])
        }
        assert not cells & taken and max(x for x, _ in cells) < 24, panel["title"]
        taken |= cells
    assert len({one["id"] for one in DASHBOARD["panels"]}) == len(DASHBOARD["panels"])

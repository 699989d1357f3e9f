"""Text of /metrics: Prometheus' own parser reads the same values back."""

import math

from hypothesis import given
from hypothesis import strategies as some
from prometheus_client.parser import text_string_to_metric_families

from fpvcar.http.prometheus_text import Metric, counter, exposition, gauge

texts = some.text(max_size=20)


@given(texts, texts, some.floats(allow_nan=False))
def test_exposition_is_read_back_unchanged(words: str, label: str, value: float) -> None:
    metric = Metric("a_total", "counter", words, [({"b": label}, value)])
    (family,) = text_string_to_metric_families(exposition([metric]))
    (sample,) = family.samples
    assert sample.labels == {"b": label} and sample.name == "fpvcar_a_total"
    assert sample.value == value


def test_nan_and_infinity_survive_the_exposition() -> None:
    text = exposition([gauge("x", "y", math.nan), gauge("z", "y", -math.inf)])
    values = [one.samples[0].value for one in text_string_to_metric_families(text)]
    assert math.isnan(values[0]) and values[1] == -math.inf


def test_unknown_value_has_no_metric_line() -> None:
    assert exposition([gauge("x", "y", None), counter("z_total", "y", None)]) == ""
    assert exposition([gauge("x", "y", True)]).splitlines()[-1] == "fpvcar_x 1"

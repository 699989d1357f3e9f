"""Text format of Prometheus, version 0.0.4. Pure.

The format takes thirty lines of code, and the parts hold every figure already; Prometheus' own
client library would store them a second time. The tests read this output with its parser.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
Labels = Mapping[str, str]


class Metric(NamedTuple):
    """Family of samples. `kind`: "gauge" or "counter" (its name ends in _total).

    Each sample is (labels, value); a value of None is unknown and left out.
    """

    name: str
    kind: str
    help: str
    samples: Iterable[tuple[Labels, float | None]]


def gauge(name: str, help_text: str, value: float | None, **labels: str) -> Metric:
    """Return a family of one sample that can rise and fall."""
    return Metric(name, "gauge", help_text, [(labels, value)])


def counter(name: str, help_text: str, value: float | None, **labels: str) -> Metric:
    """Return a family of one sample that only grows, until the program restarts."""
    return Metric(name, "counter", help_text, [(labels, value)])


def exposition(metrics: Iterable[Metric]) -> str:
    """Return the text for Prometheus (text format 0.0.4)."""
    lines: list[str] = []
    for metric in metrics:
        samples = [
            f"fpvcar_{metric.name}{_labels(labels)} {_value(value)}"
            for labels, value in metric.samples
            if value is not None
        ]
        if samples:
            name = f"fpvcar_{metric.name}"
            lines += [f"# HELP {name} {_escaped(metric.help)}"]
            lines += [f"# TYPE {name} {metric.kind}", *samples]
    return "\n".join([*lines, ""])


def _labels(labels: Labels) -> str:
    if not labels:
        return ""
    inner = (f'{key}="{_quoted(value)}"' for key, value in labels.items())
    return "{" + ",".join(inner) + "}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n")


def _quoted(text: str) -> str:
    return _escaped(text).replace('"', '\\"')


def _value(value: float) -> str:
    value = float(value)
    return str(int(value)) if value.is_integer() else repr(value)

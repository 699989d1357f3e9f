"""Rival as shipped, and the wire protocol of Firefox."""

import json
import time
from typing import Any, cast

import pytest
from benchmarks.baselines.webrtc import StripTrack
from benchmarks.rdma.bidi import Tab
from websockets.sync.client import ClientConnection


async def test_track_delivers_at_its_own_rate() -> None:
    start_s, track = time.monotonic(), StripTrack(fps=100.0)
    pictures = [await track.recv() for _ in range(5)]
    assert time.monotonic() - start_s >= 0.04
    stamps = [each.pts or 0 for each in pictures]
    assert stamps == sorted(set(stamps))
    assert {(each.width, each.height) for each in pictures} == {(640, 480)}


class FakeFirefox:
    """Firefox that answers by method and sends an event before each answer."""

    def __init__(self, **answers: Any) -> None:
        self.asked: list[dict[str, Any]] = []
        self._answers = {
            "session.new": {"capabilities": {"browserVersion": "153.0"}},
            "browsingContext.getTree": {"contexts": [{"context": "tab-1"}]},
            **answers,
        }
        self._said: list[str] = []

    def send(self, text: str) -> None:
        asked = json.loads(text)
        self.asked.append(asked)
        answer = self._answers[asked["method"]]
        known = {"type": "success", "result": answer}
        if isinstance(answer, str):
            known = {"type": "error", "error": answer, "message": "because"}
        self._said += ['{"type": "event"}', json.dumps({"id": asked["id"], **known})]

    def recv(self, timeout: float) -> str:
        return self._said.pop(0)


def tab(**answers: Any) -> tuple[Tab, FakeFirefox]:
    fake = FakeFirefox(**{name.replace("_", "."): one for name, one in answers.items()})
    return Tab(cast(ClientConnection, fake)), fake


def test_firefox_evaluates_functions_clicks_and_presses_keys() -> None:
    value = {"type": "success", "result": {"type": "string", "value": "[1, 2]"}}
    one, fake = tab(script_evaluate=value, input_performActions={})
    assert one.version == "153.0"
    assert one.evaluate("(a) => a", "#picture") == [1, 2]
    asked = fake.asked[-1]["params"]
    assert '((a) => a)("#picture")' in asked["expression"]
    assert asked["target"] == {"context": "tab-1"}
    one.locator("#resume").click()
    asked = fake.asked[-1]["params"]
    assert 'document.querySelector(selector).click())("#resume")' in asked["expression"]
    one.keyboard.down("ArrowUp")
    (source,) = fake.asked[-1]["params"]["actions"]
    assert source["actions"] == [{"type": "keyDown", "value": "\ue013"}]


def test_firefox_errors_are_raised_with_their_text() -> None:
    thrown = {"type": "exception", "exceptionDetails": {"text": "no such thing"}}
    one, _ = tab(script_evaluate=thrown, browsingContext_navigate="unknown error")
    with pytest.raises(RuntimeError, match="no such thing"):
        one.evaluate("x")
    with pytest.raises(RuntimeError, match=r"navigate: unknown error: because"):
        one.goto("http://nowhere/")

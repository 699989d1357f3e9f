"""`fpvcar network show` at the socket of the real service, on a terminal and without one."""

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from testkit.harness import running
from testkit.hub import until

from fpvcar.cli import network
from fpvcar.wifi.core import Machine
from fpvcar.wifi.fake import FakeRadio
from fpvcar.wifi.service import Service, own_network, serve
from fpvcar.wire.network import SOCKET

KEY = "twelve chars"


@pytest.fixture
async def service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[None]:
    monkeypatch.setenv("RUNTIME_DIRECTORY", str(tmp_path))
    made = Service(Machine(True, 0.0), FakeRadio({}), own_network("Rusty", KEY), "rusty.local")
    async with running(serve(made, tmp_path / SOCKET)):
        await until((tmp_path / SOCKET).exists)
        yield


async def show(key: bool = False) -> int:
    return await asyncio.to_thread(network.show, key)


@pytest.mark.parametrize(
    ("typed", "shown"), [("y\n", True), ("YES\n", True), ("n\n", False), ("\n", False)]
)
async def test_terminal_shows_the_key_only_after_consent(
    typed: str,
    shown: bool,
    service: None,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    master, slave = os.openpty()
    with open(slave, encoding="utf-8") as terminal:
        monkeypatch.setattr("sys.stdin", terminal)
        os.write(master, typed.encode())
        assert await show() == 0
    os.close(master)
    said = capsys.readouterr()
    assert "Show its key [y/N]?" in said.err and "opens its own: Rusty" in said.out
    assert (KEY in said.out) is shown and KEY not in said.err
    assert ("sudo fpvcar network show --key" in said.out) is not shown


async def test_key_without_a_terminal_needs_the_option(
    service: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with open(os.devnull, encoding="utf-8") as no_terminal:
        monkeypatch.setattr("sys.stdin", no_terminal)
        await show()
        hidden = capsys.readouterr()
        await show(key=True)
    assert KEY not in hidden.out + hidden.err and "[y/N]" not in hidden.err
    assert KEY in capsys.readouterr().out

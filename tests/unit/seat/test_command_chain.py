"""Files of the car that one `drive` command runs through, from the socket's bytes to the pins.

    WebSocket -> run (app.build) -> wheels.sock -> wheels -> pigpiod, emulated

Each file is one more to open for a reader of "Follow one command". The limits only go down.
STACK_MOST limits the files of the two call stacks alone: from the socket's bytes to the setpoint
for `wheels`, and from the setpoint to the pin.
"""

import asyncio
import contextlib
import itertools
import json
import math
import os
import sys
import threading
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import aiohttp
import pytest
from testkit.network.ports import free_port
from testkit.pins.wheels import BENCH, START_S, Chip

import fpvcar
from fpvcar import app
from fpvcar.access import codes
from fpvcar.config import Profile, profiles
from fpvcar.http.fast_path import FastPath
from fpvcar.seat import hub
from fpvcar.wheels.controller import Wheels
from fpvcar.wheels.pins_off_client import MotorAccess
from fpvcar.wheels.service import Service

PACKAGE = f"{Path(fpvcar.__file__).parent}/"
STACK_MOST, COMMAND_MOST, ALL_MOST = 11, 24, 37
BESIDE = ("buttons/", "calibration/", "recorder/", "seat/vehicle", "sensors/", "video/")
"""Files that the gate reads the car's state from, or that watch it."""
LOOPS = {"wheels", "hub", "control", "site"}
"""Parts of `run` that the command needs."""
PERIOD_S = 0.04


class Trace:
    """Files of the package that run, in the order of their first call, and those of the call
    stack when the function `last` is called."""

    def __init__(self, last: str) -> None:
        self.files: dict[str, None] = {}
        self.stack: dict[str, None] = {}
        self._last = last

    def _note(self, frame: FrameType, event: str, arg: object) -> None:
        file = frame.f_code.co_filename
        if event != "call" or not file.startswith(PACKAGE):
            return
        self.files.setdefault(file.removeprefix(PACKAGE))
        if frame.f_code.co_qualname == self._last:
            callers: FrameType | None = frame
            while callers is not None:
                if (file := callers.f_code.co_filename).startswith(PACKAGE):
                    self.stack.setdefault(file.removeprefix(PACKAGE))
                callers = callers.f_back

    def watch(self, patch: pytest.MonkeyPatch, owner: type, method: str) -> None:
        """Trace each call of a method, in its own thread."""
        traced = getattr(owner, method)

        def call(*values: Any) -> None:
            sys.setprofile(self._note)
            try:
                traced(*values)
            finally:
                sys.setprofile(None)

        patch.setattr(owner, method, call)


class Page:
    """Socket of a page at the wheel."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket, self._numbers = socket, itertools.count(1)

    async def say(self, kind: str, **values: object) -> None:
        await self._socket.send_str(json.dumps({"kind": kind, **values}))

    async def nonce(self) -> int:
        """Return the nonce of a fresh answer."""
        await self.say("ping", seq=next(self._numbers), t=0)
        while (answer := json.loads(await self._socket.receive_str()))["kind"] != "pong":
            pass
        return int(answer["nonce"])

    async def drive(self, throttle: float, nonce: int) -> None:
        wish = {"throttle": throttle, "steer": 0, "seen": nonce}
        await self.say("drive", seq=next(self._numbers), t=time.monotonic() * 1000.0, **wish)
        await asyncio.sleep(PERIOD_S)


@contextlib.contextmanager
def wheels_of(profile: Profile, runtime: Path) -> Iterator[None]:
    """Run `wheels` in a thread."""
    wheels = Wheels(profile, MotorAccess(profile, runtime))
    service = Service(wheels, runtime, time.monotonic_ns)
    thread = threading.Thread(target=service.run)
    thread.start()
    try:
        yield
    finally:
        service._ending = True
        os.write(service._waker, b"\0")
        thread.join()
        service.__exit__()


@contextlib.asynccontextmanager
async def page_of(profile: Profile, runtime: Path) -> AsyncIterator[Page]:
    """Run the parts of `run` that a command passes, and connect a page."""
    port = free_port()
    parts = app.build(profile, app.Options("127.0.0.1", port, runtime, runtime / "soc"))
    loops = [loop for part in parts if part.name in LOOPS for loop in part.loops]
    tasks = [asyncio.create_task(loop()) for loop in loops]
    site = f"http://127.0.0.1:{port}"
    try:
        async with aiohttp.ClientSession(site) as session:
            while True:
                try:
                    socket = await session.ws_connect("/ws/drive", origin=site)
                    break
                except aiohttp.ClientConnectorError:
                    await asyncio.sleep(0.01)
            async with socket:
                page = Page(socket)
                code = codes.load_codes(runtime).grown_up
                await page.say("hello", v=1, client="client-chain", name="Ann", code=code)
                yield page
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def test_command_crosses_few_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STATE_DIRECTORY", str(tmp_path))
    monkeypatch.setattr(hub, "STATE_EARLY_S", -math.inf)  # a state is not part of the command
    with Chip(tmp_path) as chip:
        profile = profiles.load(BENCH, [f"pins.port = {chip.port}", 'gate.blind = "ignore"'])
        pin = chip.soc.pin[profile.motor_pins()[0]]
        with wheels_of(profile, tmp_path):
            async with asyncio.timeout(START_S), page_of(profile, tmp_path) as page:
                while pin.duty() == 0.0:  # a busy machine stops the car
                    with monkeypatch.context() as patch:
                        await page.drive(0.0, await page.nonce())
                        nonce = await page.nonce()
                        run, wheels = Trace("WheelsClient.send"), Trace("PigpioPins.pwm")
                        run.watch(patch, FastPath, "data_received")
                        wheels.watch(patch, Service, "_read")
                        await page.drive(0.5, nonce)
    files = run.files | wheels.files
    command = [file for file in files if not file.startswith(BESIDE)]
    print(f"run: {', '.join(run.files)}\nwheels: {', '.join(wheels.files)}")
    stack = [*reversed(run.stack), *reversed(wheels.stack)]
    print(f"stack: {', '.join(stack)}")
    print(f"{len(stack)} files on the stack, {len(command)} of the command, {len(files)} in all")
    assert len(stack) <= STACK_MOST
    assert len(command) <= COMMAND_MOST
    assert len(files) <= ALL_MOST

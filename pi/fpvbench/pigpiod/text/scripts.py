"""Slots for 32 stored scripts: PROC, PROCR, PROCU, PROCS, PROCP, PROCD."""

import re
import struct

from fpvbench.pigpiod.protocol import CommandError, Err, Outcome, Request, Wait, signed
from fpvbench.pigpiod.text.command_words import PARAMETERS
from fpvbench.pigpiod.text.script import Execute, RunState, Script
from fpvbench.pigpiod.text.script_parser import parse

SLOTS = 32
DELETE_POLL_US = 5000
"""Interval at which gpioDeleteScript checks whether the script has halted: 5 ms."""
NAME = re.compile(r"[A-Za-z0-9_-]+\Z")
NOT_FOUND = 127 << 8
"""Result of system() for a program missing from /opt/pigpio/cgi, as every program is here."""


def run_program(name: str) -> int:
    """Answer SYS and SHELL: the emulator has no programs to run."""
    return NOT_FOUND if NAME.match(name) else Err.BAD_SCRIPT_NAME


class Scripts:
    """Scripts of the daemon; they outlive their clients."""

    def __init__(self) -> None:
        self._slots: dict[int, Script] = {}
        """Scripts in the order of their numbers."""
        self._dying: set[int] = set()

    def all(self) -> list[Script]:
        return list(self._slots.values())

    def next_us(self) -> int | None:
        """Return the earliest wake-up time of the scripts, or None if all are halted or waiting."""
        times = [script.wake_us for script in self._slots.values()]
        return min((time for time in times if time is not None), default=None)

    def run(self, now_us: int, execute: Execute) -> None:
        """Run every script that is due."""
        for script in self.all():
            script.run(now_us, execute)

    def waited_bits(self) -> int:
        """Return the bits of the GPIO that scripts wait for."""
        bits = 0
        for script in self._slots.values():
            bits |= script.wait_bits
        return bits

    def store(self, request: Request, now_us: int) -> int:
        """Answer PROC: store a script; return its slot, or an error."""
        free = [number for number in range(SLOTS) if number not in self._slots]
        if not free:
            return Err.NO_SCRIPT_ROOM
        try:
            instructions = parse(request.ext)
        except CommandError as fault:
            return fault.error
        script = Script(instructions, run_program, now_us)
        self._slots = dict(sorted({**self._slots, free[0]: script}.items()))
        return free[0]

    def start(self, request: Request, now_us: int) -> int:
        """Answer PROCR: set parameters and start a script."""
        script = self._checked(request)
        if not isinstance(script, Script):
            return script
        if script.state(now_us) is RunState.INITING:
            return Err.SCRIPT_NOT_READY
        self._set_parameters(script, request)
        script.start(now_us)
        return 0

    def update(self, request: Request, now_us: int) -> int:
        """Answer PROCU: set the first parameters of a running or halted script."""
        script = self._checked(request)
        if not isinstance(script, Script):
            return script
        self._set_parameters(script, request)
        return 0

    def stop(self, request: Request, now_us: int) -> int:
        """Answer PROCS: stop a script before its next instruction."""
        script = self._get(request.p1)
        if script is None:
            return Err.BAD_SCRIPT_ID
        script.stop(now_us)
        return 0

    def status(self, request: Request, now_us: int) -> int | bytes:
        """Answer PROCP: pack status and parameters of a script."""
        script = self._get(request.p1)
        if script is None:
            return Err.BAD_SCRIPT_ID
        return struct.pack("<11i", script.state(now_us), *script.parameters)

    def delete(self, request: Request, now_us: int) -> Outcome:
        """Answer PROCD: free the slot once the script has halted."""
        number = request.p1
        script = self._get(number)
        if script is None:
            return Err.BAD_SCRIPT_ID
        self._dying.add(number)
        script.stop(now_us)

        def look(at_us: int) -> Outcome:
            if script.state(at_us) is RunState.RUNNING:
                return Wait(at_us + DELETE_POLL_US, look)
            del self._slots[number]
            self._dying.discard(number)
            return 0

        return look(now_us)

    def _get(self, number: int) -> Script | None:
        return None if number in self._dying else self._slots.get(number)

    def _checked(self, request: Request) -> Script | int:
        if request.p1 >= SLOTS:
            return Err.BAD_SCRIPT_ID
        if len(request.ext) // 4 > PARAMETERS:
            return Err.TOO_MANY_PARAM
        return self._get(request.p1) or Err.BAD_SCRIPT_ID

    @staticmethod
    def _set_parameters(script: Script, request: Request) -> None:
        for index, word in enumerate(request.words()):
            script.parameters[index] = signed(word)

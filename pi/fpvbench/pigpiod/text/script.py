"""Stored script of pigpiod: registers, instructions, life cycle (pthScript).

The daemon has a thread per script; the emulator has a wake-up time instead. A script that never
rests gets a slice of instructions each millisecond, so that it cannot block the emulator.
"""

from collections.abc import Callable
from enum import IntEnum

from fpvbench.pigpiod.protocol import Outcome, Request, Wait, signed
from fpvbench.pigpiod.text.arithmetic import ARITHMETIC, ScriptFault, shift_left, shift_right
from fpvbench.pigpiod.text.command_words import PARAMETERS, VARIABLES, Op, Operand, OperandSource
from fpvbench.pigpiod.text.script_parser import Instruction

STACK_MAX = 256
BUFFER_SIZE = 65536
READY_US = 200
"""Time between PROC and a thread that can be started."""
SLICE, SLICE_US = 200, 1000
LATE_US = 10_000
"""Delay above which a wake-up counts as missed: the script continues from now."""
Execute = Callable[[Request, int], Outcome]


class RunState(IntEnum):
    """Run states returned by PROCP; pthScript overwrites FAILED with HALTED."""

    INITING = 0
    HALTED = 1
    RUNNING = 2
    WAITING = 3


CONDITIONS: dict[int, Callable[[int], bool]] = {
    Op.JMP: lambda flag: True,
    Op.CALL: lambda flag: True,
    Op.JZ: lambda flag: flag == 0,
    Op.JNZ: lambda flag: flag != 0,
    Op.JP: lambda flag: flag >= 0,
    Op.JM: lambda flag: flag < 0,
}
STUCK = frozenset((Op.NOP, Op.CMDR, Op.CMDW))
"""Instructions that pthScript does not handle: the program counter stands still for ever."""


class Script:
    """Interpreter of one parsed script. Times are microseconds."""

    def __init__(
        self, instructions: tuple[Instruction, ...], system: Callable[[str], int], now_us: int
    ) -> None:
        self._instructions, self._system = instructions, system
        self.parameters = [0] * PARAMETERS
        self._variables = [0] * VARIABLES
        self._buffer = bytearray()
        self._ready_us = now_us + READY_US
        self._state = RunState.HALTED
        self._halt_asked = False
        self._a = self._flag = self._pc = 0
        self._stack: list[int] = []
        self._command: Wait | None = None
        self._changed_bits = 0
        self.wait_bits = self.event_bits = 0
        self.wake_us: int | None = None
        """Time of the next run, or None while the script is halted or waits for bits."""

    def state(self, now_us: int) -> RunState:
        """Return the run state reported by PROCP."""
        return RunState.INITING if now_us < self._ready_us else self._state

    def start(self, now_us: int) -> None:
        """Start the script from the top, unless it is running; end a WAIT, if it is waiting."""
        self._halt_asked = False
        if self._state is RunState.WAITING:
            self._resume(now_us)
        elif self._state is RunState.HALTED:
            self._a = self._flag = self._pc = 0
            self._stack.clear()
            self._state, self.wake_us = RunState.RUNNING, now_us

    def stop(self, now_us: int) -> None:
        """Halt the script before its next instruction."""
        self._halt_asked = True
        if self._state is RunState.WAITING:
            self._resume(now_us)

    def notice(self, changed: int, events: int, now_us: int) -> None:
        """End a WAIT for a GPIO or an event of these bits.

        An event from an earlier EVTWT ends a later WAIT too: scrEvtWait does not clear its bits.
        """
        if self._state is not RunState.WAITING:
            return
        if self.wait_bits & changed or self.event_bits & events:
            self._changed_bits = self.event_bits & events or self.wait_bits & changed
            self._resume(now_us)

    def run(self, now_us: int, execute: Execute) -> None:
        """Run all instructions that are due, at most SLICE."""
        budget = SLICE
        while self.wake_us is not None and self.wake_us <= now_us:
            late = now_us - self.wake_us > LATE_US
            self.wake_us = at_us = now_us if late else self.wake_us
            if self._command is not None:
                command, self._command = self._command, None
                self._finish(command.finish(at_us))
            elif self._halt_asked or self._pc >= len(self._instructions):
                self._state, self.wake_us = RunState.HALTED, None
            elif not budget:
                self.wake_us = now_us + SLICE_US
            else:
                budget -= 1
                try:
                    self._step(self._instructions[self._pc], at_us, execute)
                except ScriptFault:
                    self._state, self.wake_us = RunState.HALTED, None

    def _resume(self, now_us: int) -> None:
        self._state, self.wake_us, self.wait_bits = RunState.RUNNING, now_us, 0
        self._set(self._changed_bits)

    def _set(self, value: int) -> None:
        self._a = self._flag = signed(value)

    def _finish(self, outcome: Outcome) -> None:
        if isinstance(outcome, Wait):
            self._command, self.wake_us = outcome, outcome.until_us
        else:
            self._set(outcome if isinstance(outcome, int) else len(outcome))

    def _step(self, instruction: Instruction, at_us: int, execute: Execute) -> None:
        code = instruction.code
        if code in STUCK:
            self.wake_us = at_us + SLICE_US
            return
        self._pc += 1
        if code < Op.TAG:
            self._finish(execute(self._request(instruction), at_us))
        elif code in ARITHMETIC:
            self._set(ARITHMETIC[code](self._a, self._value(instruction, 0)))
        elif code in CONDITIONS:
            self._jump(instruction)
        elif code in (Op.WAIT, Op.EVTWT):
            self._wait(instruction)
        elif code in REGISTER_STEPS:
            REGISTER_STEPS[code](self, instruction.operands)
        else:
            PLAIN_STEPS[code](self, instruction)

    def _request(self, instruction: Instruction) -> Request:
        values = [self._read(operand) & 0xFFFFFFFF for operand in instruction.operands]
        ext = values[2].to_bytes(4, "little") if len(values) > 2 else b""
        if ext:
            self._bytes()[:4] = ext
        p1, p2 = (*values, 0, 0)[:2]
        return Request(instruction.code, p1, p2, ext)

    def _jump(self, instruction: Instruction) -> None:
        if instruction.code == Op.CALL:
            self._push(self._pc)
        if CONDITIONS[instruction.code](self._flag):
            self._pc = instruction.operands[0].value

    def _wait(self, instruction: Instruction) -> None:
        bits = self._value(instruction, 0) & 0xFFFFFFFF
        if instruction.code == Op.WAIT:
            self.wait_bits = bits
        else:
            self.event_bits = bits
        self._state, self.wake_us = RunState.WAITING, None

    def _value(self, instruction: Instruction, index: int) -> int:
        return self._read(instruction.operands[index])

    def _read(self, operand: Operand) -> int:
        if operand.source is OperandSource.VARIABLE:
            return self._variables[operand.value]
        if operand.source is OperandSource.PARAMETER:
            return self.parameters[operand.value]
        return signed(operand.value)

    def _write(self, operand: Operand, value: int) -> int:
        value = signed(value)
        if operand.source is OperandSource.PARAMETER:
            self.parameters[operand.value] = value
        else:
            self._variables[operand.value] = value
        return value

    def _push(self, value: int) -> None:
        if len(self._stack) >= STACK_MAX:
            raise ScriptFault("too many pushes")
        self._stack.append(value)

    def _pop(self) -> int:
        if not self._stack:
            raise ScriptFault("too many pops")
        return self._stack.pop()

    def _bytes(self) -> bytearray:
        if not self._buffer:
            self._buffer = bytearray(BUFFER_SIZE)
        return self._buffer

    def _load_store(self, instruction: Instruction) -> None:
        value = self._value(instruction, 0)
        if instruction.code == Op.LDA:
            self._a = value
        elif instruction.code == Op.CMP:
            self._flag = signed(self._a - value)
        elif 0 <= value < BUFFER_SIZE:
            if instruction.code == Op.LDAB:
                self._a = self._bytes()[value]
            else:
                self._bytes()[value] = self._a & 0xFF

    def _on_a(self, instruction: Instruction) -> None:
        if instruction.code == Op.PUSHA:
            self._push(self._a)
        elif instruction.code == Op.POPA:
            self._a = self._pop()
        else:
            self._set(self._a + (1 if instruction.code == Op.INRA else -1))

    def _control(self, instruction: Instruction) -> None:
        if instruction.code == Op.RET:
            self._pc = self._pop()
        elif instruction.code == Op.HALT:
            self._state, self.wake_us = RunState.HALTED, None
        else:
            self._set(self._system(instruction.text))

    def _count(self, operands: tuple[Operand, ...], by: int) -> None:
        self._flag = self._write(operands[0], self._read(operands[0]) + by)

    def _shift(self, operands: tuple[Operand, ...], by: Callable[[int, int], int]) -> None:
        value = by(self._read(operands[0]), self._read(operands[1]))
        self._flag = self._write(operands[0], value)

    def _swap_a(self, operands: tuple[Operand, ...]) -> None:
        value = self._read(operands[0])
        self._write(operands[0], self._a)
        self._a = value

    def _swap(self, operands: tuple[Operand, ...]) -> None:
        first, second = map(self._read, operands)
        self._write(operands[0], second)
        self._write(operands[1], first)


_Operands = tuple[Operand, ...]
REGISTER_STEPS: dict[int, Callable[[Script, _Operands], object]] = {
    Op.INR: lambda s, o: s._count(o, 1),
    Op.DCR: lambda s, o: s._count(o, -1),
    Op.PUSH: lambda s, o: s._push(s._read(o[0])),
    Op.POP: lambda s, o: s._write(o[0], s._pop()),
    Op.STA: lambda s, o: s._write(o[0], s._a),
    Op.LD: lambda s, o: s._write(o[0], s._read(o[1])),
    Op.RL: lambda s, o: s._shift(o, shift_left),
    Op.RR: lambda s, o: s._shift(o, shift_right),
    Op.X: Script._swap,
    Op.XA: Script._swap_a,
}
PLAIN_STEPS: dict[int, Callable[[Script, Instruction], None]] = {
    **dict.fromkeys((Op.LDA, Op.CMP, Op.LDAB, Op.STAB), Script._load_store),
    **dict.fromkeys((Op.INRA, Op.DCRA, Op.PUSHA, Op.POPA), Script._on_a),
    **dict.fromkeys((Op.RET, Op.HALT, Op.SYS), Script._control),
}

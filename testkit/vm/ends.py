"""An rdsend and an rdrecv in VMs, over RDMA unless told otherwise."""

import re
import shlex
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from testkit.vm.machine import Vm

KEY = "sixteen bytes and more"
TOOLS = "/share"  # path in the VMs
RDMA = ("--transport", "rdma", "--plain")
"""Plain, because emulated AES is slower than the network. Some tests ask for it."""
PATIENT = ("--timeout", "60", "--connect-timeout", "60")
"""Limits for an emulated processor, which a busy host runs late."""
NOW = "date +%s.%N"


@dataclass
class Ended:
    status: int
    out: str
    err: str
    at_s: float
    """Time by the VM's clock."""


class End:
    """An rdsend or rdrecv that runs in its VM, in /dev/shm."""

    def __init__(self, vm: Vm, words: Sequence[str], key: str, wrap: str, out: str) -> None:
        # Without exec: sshd would not report the status of a process that a signal ended.
        command = (
            f"cd /dev/shm; export RDPIPE_KEY={shlex.quote(key)}; exec 3>&1; "
            f"{wrap} {shlex.join(words)} {out}; status=$?; {NOW} >&3; exit $status"
        )
        self.process = subprocess.Popen(
            [*vm.ssh, command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def line(self) -> str:
        """Return the first line of its output."""
        assert self.process.stdout
        return self.process.stdout.readline()

    def ended(self, within_s: float = 60) -> Ended:
        out, err = self.process.communicate(timeout=within_s)
        before, _, at_s = out.rstrip("\n").rpartition("\n")
        return Ended(self.process.returncode, before, err, float(at_s))


class Ends:
    """Start both ends. On closing, none of their processes may be left in the VMs."""

    def __init__(self, sender: Vm, receiver: Vm, limits: Sequence[str] = PATIENT) -> None:
        self.sender, self.receiver, self._limits = sender, receiver, limits
        self.port = ""
        self._started: list[End] = []

    def receive(
        self, *rest: str, options: Sequence[str] = RDMA, key: str = KEY, wrap: str = ""
    ) -> End:
        """Start an rdrecv and wait until it listens; its stdout is the file `stdout`."""
        words = [f"{TOOLS}/rdrecv", "--announce-fd", "3", *self._limits, *options, "0", *rest]
        end = End(self.receiver, words, key, wrap, ">stdout")
        self._started.append(end)
        line = end.line()
        found = re.match(r"port=(\d+) ", line)
        assert found, (line, end.process.communicate())
        self.port = found.group(1)
        return end

    def send(
        self,
        *rest: str,
        options: Sequence[str] = RDMA,
        key: str = KEY,
        wrap: str = "",
        host: str | None = None,
        port: str | None = None,
    ) -> End:
        where = [host or self.receiver.address, port or self.port]
        words = [f"{TOOLS}/rdsend", *self._limits, *options, *where, *rest]
        end = End(self.sender, words, key, wrap, "")
        self._started.append(end)
        return end

    def kill(self, vm: Vm, name: str) -> float:
        """Kill a program; return the time by the VM's clock."""
        return float(vm.check(f"{NOW}; pkill -KILL -x {name}"))

    def left(self) -> str:
        """Return the processes of both ends that still run."""
        find = "pgrep -a -x 'rdsend|rdrecv|rdpipe' || true"
        return self.sender.check(find) + self.receiver.check(find)

    def close(self) -> None:
        # The ssh master that serves them all keeps their pipes open until they end.
        if any(end.process.poll() is None for end in self._started):
            for vm in (self.sender, self.receiver):
                vm.run("pkill -KILL -x 'rdsend|rdrecv'")
        for end in self._started:
            end.process.communicate(timeout=30)
        until = time.monotonic() + 5
        while left := self.left():
            assert time.monotonic() < until, f"left behind: {left}"
            time.sleep(0.2)


def bring_tools(folder: Path, share: Path) -> None:
    for name in ("rdsend", "rdrecv", "rdpipe", "rdcp"):
        (share / name).write_bytes((folder / name).read_bytes())
        (share / name).chmod(0o755)

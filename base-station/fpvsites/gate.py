"""Enforcement: `fpvsites run` keeps nftables and one dnsmasq per group as the newest state says.

Its end leaves the firewall as it is; each group's chain closes at its next change by itself.
"""

import datetime
import json
import logging
import os
import pwd
import re
import signal
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path

from fpvcar.runtime import pdeathsig, sd_notify
from fpvcar.runtime.texts import PROGRAM_EXIT, SAYS, Text, fault_text
from fpvsites import state
from fpvsites.rules import TABLE, Rules, rules
from fpvsites.state import InForce, local_now
from fpvstation.errors import StationError, require

STEP_S = 1.0
END_S = 2.0
log = logging.getLogger("fpvsites")


def check_programs() -> None:
    """Raise StationError unless nft and a dnsmasq with nftset and filter-rr are installed."""
    require("nft", "nftables")
    said = subprocess.run(
        [require("dnsmasq", "dnsmasq-base"), "--version"], capture_output=True, text=True
    ).stdout
    number = re.match(r"Dnsmasq version (\d+)\.(\d+)", said)
    recent = number is not None and tuple(map(int, number.groups())) >= (2, 90)
    if not recent or not re.search(r"(?<!no-)\bnftset\b", said):
        version = said.partition("\n")[0] or "no version"
        raise StationError(
            f"dnsmasq is too old ({version}): expected 2.90 or newer, built with nftset, as in "
            "Debian 12: sudo apt install dnsmasq-base"
        )


def nft(*words: str, script: str = "") -> str:
    """Run nft; return its output. Raises StationError."""
    done = subprocess.run(
        [require("nft", "nftables"), *words], input=script, capture_output=True, text=True
    )
    if done.returncode:
        raise StationError(SAYS(place="nft", reason=done.stderr.strip()))
    return done.stdout


def _parts() -> dict[str, str] | None:
    """Return name -> kind of the sets and chains in the kernel; None without the table."""
    try:
        listed = json.loads(nft("-j", "-t", "list", "table", *TABLE.split()))["nftables"]
    except StationError:
        return None
    kinds = ((kind, entry[kind]) for entry in listed for kind in ("chain", "set") if kind in entry)
    return {part["name"]: kind for kind, part in kinds}


class Gate:
    """Firewall and name servers, brought in line by each `step`."""

    def __init__(self, folder: Path, clock: Callable[[], datetime.datetime] = local_now) -> None:
        self._folder, self._clock = folder, clock
        self._loaded: Rules | None = None
        self._servers: dict[str, tuple[str, subprocess.Popen[bytes]]] = {}
        self._reported: InForce | None = None

    def step(self) -> None:
        """Read the newest state and enforce it; log and report a new fault."""
        at_s, fault = 0.0, None
        try:
            states = state.load(self._folder)
            if states:
                at_s = states[-1].at_s
                self._enforce(states[-1])
        except (StationError, OSError) as error:
            fault = fault_text(error)
        report = InForce(at_s, str(fault) if fault else "", fault)
        if self._reported != report:
            log.error("%s", fault) if fault else None
            self._reported = report
            state.save(self._folder / state.IN_FORCE, report)

    def _enforce(self, wanted: state.State) -> None:
        parts = _parts()
        if wanted.config is None:
            self._loaded = None
            if parts is not None:
                nft("delete", "table", *TABLE.split())
            self._serve({})
            return
        made = rules(wanted.config, wanted.switches, self._clock())
        if self._loaded is None or made.nft != self._loaded.nft or parts is None:
            # One transaction. Sets of unchanged groups keep their addresses.
            stale = ((name, kind) for name, kind in (parts or {}).items() if name not in made.parts)
            deletes = "".join(f"delete {kind} {TABLE} {name}\n" for name, kind in stale)
            nft("-f", "-", script=f"add table {TABLE}\nflush table {TABLE}\n{deletes}{made.nft}")
            self._loaded = made
        self._serve({group.name: group.dnsmasq for group in made.groups})

    def _serve(self, wanted: dict[str, str]) -> None:
        """Run a dnsmasq per configuration. Raises StationError if one has ended."""
        ended: Text | None = None
        for name, (text, process) in list(self._servers.items()):
            if process.poll() is not None:
                program, status = f"dnsmasq ({name})", process.returncode
                ended = PROGRAM_EXIT(program=program, status=status)
            if process.poll() is not None or wanted.get(name) != text:
                self._end(name)
        for name in wanted.keys() - self._servers.keys():
            user = pwd.getpwuid(os.geteuid()).pw_name
            words = ["--keep-in-foreground", "--conf-file=-", f"--user={user}"]
            argv = pdeathsig.with_pdeathsig([require("dnsmasq", "dnsmasq-base"), *words])
            # An own process group: Ctrl-C ends it by `end`, after this process.
            process = subprocess.Popen(argv, stdin=subprocess.PIPE, process_group=0)
            self._servers[name] = (wanted[name], process)
            assert process.stdin is not None
            with process.stdin:
                process.stdin.write(wanted[name].encode())
        if ended:
            raise StationError(ended)

    def _end(self, name: str) -> None:
        _, process = self._servers.pop(name)
        pdeathsig.end(process, END_S)

    def end(self) -> None:
        """End all name servers; the firewall stays."""
        for name in list(self._servers):
            self._end(name)


def run(folder: Path) -> None:
    """Enforce the newest state until SIGTERM or SIGINT. Raises StationError."""
    check_programs()
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    gate = Gate(folder)
    try:
        gate.step()
        sd_notify.notify("READY=1")
        while not stop.wait(STEP_S):
            gate.step()
            sd_notify.notify("WATCHDOG=1")
    finally:
        gate.end()

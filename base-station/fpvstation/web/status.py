"""Verb `fpvstation status`: shows the state of a running station, once or continuously."""

import argparse
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from typing import TextIO

import msgspec

from fpvcar.recordings.export.progress import ELSEWHERE_S, bar_of, span, words_of
from fpvcar.runtime.units import MB, counted
from fpvstation.fetch.scheduler import CarState
from fpvstation.mirror.replicate import OfficeState
from fpvstation.web.health import StationHealth

EVERY_S, ASK_S = 1.0, 5.0
Ask = Callable[[], bytes]


def run(arguments: argparse.Namespace) -> int:
    """Run the verb; return the exit status, 1 if no station answers."""
    url = f"http://localhost:{arguments.port}/"

    def ask() -> bytes:
        with urllib.request.urlopen(url + "api/status", timeout=ASK_S) as answer:
            found: bytes = answer.read()
            return found

    try:
        if arguments.json:
            print(ask().decode())
        elif arguments.follow:
            follow(ask, sys.stdout)
        else:
            for line in lines_of(_decoded(ask()), time.time()):
                print(line)
    except KeyboardInterrupt:
        print()
    except (OSError, ValueError) as fault:  # msgspec's DecodeError is a ValueError
        print(f"fpvstation: {_why_not(url, fault)}", file=sys.stderr)
        return 1
    return 0


def _why_not(url: str, fault: Exception) -> str:
    """Return the reason why there is no status, and the next step."""
    reason = fault.reason if isinstance(fault, urllib.error.URLError) else fault
    if isinstance(fault, urllib.error.HTTPError) or not isinstance(fault, OSError):
        return (
            f"something answers at {url}, but it is no station: name the station's "
            "port with --port (8100 unless it was started with another one)"
        )
    words = reason.strerror if isinstance(reason, OSError) else ""
    return (
        f"no station answers at {url} ({words or 'no answer'}): start one with "
        "`fpvstation run`, or name the port of the one that runs with --port"
    )


def _decoded(body: bytes) -> StationHealth:
    return msgspec.json.decode(body, type=StationHealth)


def lines_of(now: StationHealth, now_s: float) -> Iterator[str]:
    """Yield a line for each car and office, then for the store."""
    for car in now.cars:
        ago = f"{span(now_s - car.seen_s)} ago" if car.seen_s else "never"
        yield (
            f"{car.folder}: {car.state}; seen {ago}; {_waits(car)}, {car.stored} "
            f"stored ({car.bytes / MB:.0f} MB){_fault(car, now_s)}"
        )
    for one in now.offices:
        yield (
            f"{one.place}: {one.state}; {_waits(one)}, {one.sent} sent "
            f"({one.bytes / MB:.0f} MB){_judged(one, now_s)}"
            f"{_fault(one, now_s)}"
        )
    if not now.cars:
        yield "no car yet: fpvstation pair ADDRESS"
    store = now.store
    yield (
        f"{store.path}: {counted(store.sessions, 'session')}, "
        f"{counted(store.segments, 'segment')}, "
        f"{store.bytes / MB:.0f} MB; {store.free / MB:.0f} of "
        f"{store.total / MB:.0f} MB are free"
    )
    for fault in now.faults(now_s):
        yield f"look at this: {fault}"


def _waits(one: CarState | OfficeState) -> str:
    if not one.waiting:
        return "nothing waits"
    rate = f", {one.rate / MB:.1f} MB/s" if one.rate else ""
    left = f", {span(one.waiting_bytes / one.rate)} left" if one.rate else ""
    return f"{one.waiting} wait ({one.waiting_bytes / MB:.0f} MB{rate}{left})"


def _judged(office: OfficeState, now_s: float) -> str:
    """Return the age of the verification of an office's oldest replica, as text."""
    ago = f"{span(now_s - office.oldest_s)} ago" if office.oldest_s else ""
    rotted = f", {counted(office.rotted, 'file')} bad there" if office.rotted else ""
    return f", every copy judged since {ago}{rotted}" if ago else rotted


def _fault(one: CarState | OfficeState, now_s: float) -> str:
    if not one.last_fault or one.last_fault == one.state:
        return ""
    return f"; {span(now_s - one.fault_s)} ago: {one.last_fault}"


def follow(ask: Ask, out: TextIO, sleep: Callable[[float], None] = time.sleep) -> None:
    """Draw a progress bar for each car and office until all queues are empty; in a log, a line
    from time to time. Raises the exceptions of `ask`."""
    terminal, drawn = out.isatty(), 0
    first = _decoded(ask())
    whole = {one: left for one, left, _ in _moving(first)}
    now = first
    while True:
        rows = []
        for one, left, rate in _moving(now):
            most = whole[one] = max(whole.get(one, left), left, 1)
            words = words_of(most - left, most, rate) if left else "all of it is there"
            rows.append(f"{one}: {bar_of(most - left, most)} {words}")
        if terminal and drawn:
            out.write(f"\x1b[{drawn}A")
        clear = "\x1b[K" if terminal else ""
        out.write("".join(f"{row}{clear}\n" for row in rows))
        out.flush()
        drawn = len(rows)
        if not any(left for _, left, _ in _moving(now)):
            return
        sleep(EVERY_S if terminal else ELSEWHERE_S)
        now = _decoded(ask())


def _moving(now: StationHealth) -> list[tuple[str, int, float]]:
    """Return name, queued bytes, and bytes per second."""
    cars = [(one.folder, one.waiting_bytes, one.rate) for one in now.cars]
    return cars + [(one.place, one.waiting_bytes, one.rate) for one in now.offices]

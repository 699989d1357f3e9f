"""Verb `fpvstation status`: shows the state of a running station, once or continuously."""

import argparse
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from typing import TextIO

import msgspec

from fpvcar.recordings.export.progress import ELSEWHERE_S, bar_of, progress_text, span
from fpvcar.runtime.units import MB, counted
from fpvstation.fetch.scheduler import CarState
from fpvstation.replicas.recalls import RecallState
from fpvstation.replicas.remote import RemoteState
from fpvstation.web.health import StationHealth

EVERY_S, ASK_S = 1.0, 5.0
FetchStatus = Callable[[], bytes]


def run(arguments: argparse.Namespace) -> int:
    """Run the verb; return the exit status, 1 if no station answers."""
    url = f"http://localhost:{arguments.port}/"

    def fetch() -> bytes:
        with urllib.request.urlopen(url + "api/status", timeout=ASK_S) as answer:
            body: bytes = answer.read()
            return body

    try:
        if arguments.json:
            print(fetch().decode())
        elif arguments.follow:
            follow(fetch, sys.stdout)
        else:
            for line in lines_of(_decoded(fetch()), time.time()):
                print(line)
    except KeyboardInterrupt:
        print()
    except (OSError, ValueError, msgspec.DecodeError) as fault:
        print(f"fpvstation: {_no_status(url, fault)}", file=sys.stderr)
        return 1
    return 0


def _no_status(url: str, fault: Exception) -> str:
    """Return the reason why there is no status, and the next step."""
    reason = fault.reason if isinstance(fault, urllib.error.URLError) else fault
    if isinstance(fault, urllib.error.HTTPError) or not isinstance(fault, OSError):
        return (
            f"no station answers at {url}, but another program: name its port with "
            "--port (default: 8100)"
        )
    detail = reason.strerror if isinstance(reason, OSError) else ""
    return (
        f"no station answers at {url} ({detail or 'no answer'}): start one with "
        "`fpvstation run`, or name the port of a running one with --port"
    )


def _decoded(body: bytes) -> StationHealth:
    return msgspec.json.decode(body, type=StationHealth)


def lines_of(health: StationHealth, now_s: float) -> Iterator[str]:
    """Yield a line for each car, remote and recall, then for the store."""
    for car in health.cars:
        ago = f"{span(now_s - car.seen_s)} ago" if car.seen_s else "never"
        yield (
            f"{car.folder}: {car.state}; seen {ago}; {_pending(car)}, {car.stored} "
            f"stored ({car.bytes / MB:.0f} MB){_fault(car, now_s)}"
        )
    for remote in health.remotes:
        yield (
            f"{remote.place}: {_remote_state(remote)}; {_pending(remote)}, {remote.sent} sent "
            f"({remote.bytes / MB:.0f} MB){_verification(remote, now_s)}"
            f"{_fault(remote, now_s)}"
        )
    for recall in health.recalls:
        if recall.active or recall.fault:
            yield f"{recall.session}: {_recall_state(recall)}"
    if not health.cars:
        yield "no car is paired: fpvstation pair ADDRESS"
    store = health.store
    yield (
        f"{store.path}: {counted(store.sessions, 'session')}, "
        f"{counted(store.segments, 'segment')}, "
        f"{store.bytes / MB:.0f} MB; {store.free / MB:.0f} of "
        f"{store.total / MB:.0f} MB are free"
    )
    if store.archived:
        sessions = counted(store.archived, "session")
        yield f"archived: {sessions}, {store.archived_bytes / MB:.0f} MB"
    if health.snapshots:
        newest = f"{span(now_s - health.snapshot_s)} ago"
        yield f"{counted(health.snapshots, 'snapshot')}, the newest {newest}"
    for fault in health.faults(now_s):
        yield f"warning: {fault}"


def _recall_state(recall: RecallState) -> str:
    """Return state and progress of a recall, as text."""
    figures = f"{recall.done / MB:.0f} of {recall.total / MB:.0f} MB"
    if recall.rate:
        left = span((recall.total - recall.done) / recall.rate)
        figures += f", {recall.rate / MB:.1f} MB/s, {left} left"
    fault = f"; {recall.fault}" if recall.fault else ""
    return f"recall from {recall.place}: {recall.state}, {figures}{fault}"


def _remote_state(remote: RemoteState) -> str:
    """Return state and progress of a remote, as text."""
    waits = remote.waits_until and remote.state == "ok"
    state = f"waits until {remote.waits_until}" if waits else str(remote.state)
    total = remote.complete + remote.waiting
    return f"{state}; {remote.complete} of {total} sessions there" if remote.waiting else state


def _pending(peer: CarState | RemoteState) -> str:
    if not peer.waiting:
        return "nothing pending"
    rate = f", {peer.rate / MB:.1f} MB/s" if peer.rate else ""
    remaining = f", {span(peer.waiting_bytes / peer.rate)} left" if peer.rate else ""
    return f"{peer.waiting} pending ({peer.waiting_bytes / MB:.0f} MB{rate}{remaining})"


def _verification(remote: RemoteState, now_s: float) -> str:
    """Return the age of the verification of a remote's oldest replica, as text."""
    ago = f"{span(now_s - remote.oldest_s)} ago" if remote.oldest_s else ""
    rotted = f", {counted(remote.rotted, 'file')} bad there" if remote.rotted else ""
    return f", oldest verification {ago}{rotted}" if ago else rotted


def _fault(peer: CarState | RemoteState, now_s: float) -> str:
    if not peer.last_fault or peer.last_fault == peer.state:
        return ""
    return f"; {span(now_s - peer.fault_s)} ago: {peer.last_fault}"


def follow(fetch: FetchStatus, out: TextIO, sleep: Callable[[float], None] = time.sleep) -> None:
    """Draw a progress bar for each car, remote and recall until all queues are empty; in a log, a
    line from time to time. Raises the exceptions of `fetch`."""
    terminal, drawn = out.isatty(), 0
    first = _decoded(fetch())
    sizes = {name: queued for name, queued, _ in _queues(first)}
    health = first
    while True:
        rows = []
        for name, queued, rate in _queues(health):
            size = sizes[name] = max(sizes.get(name, queued), queued, 1)
            text = progress_text(size - queued, size, rate) if queued else "complete"
            rows.append(f"{name}: {bar_of(size - queued, size)} {text}")
        if terminal and drawn:
            out.write(f"\x1b[{drawn}A")
        clear = "\x1b[K" if terminal else ""
        out.write("".join(f"{row}{clear}\n" for row in rows))
        out.flush()
        drawn = len(rows)
        if not any(queued for _, queued, _ in _queues(health)):
            return
        sleep(EVERY_S if terminal else ELSEWHERE_S)
        health = _decoded(fetch())


def _queues(health: StationHealth) -> list[tuple[str, int, float]]:
    """Return name, queued bytes, and bytes per second."""
    cars = [(car.folder, car.waiting_bytes, car.rate) for car in health.cars]
    remotes = [(remote.place, remote.waiting_bytes, remote.rate) for remote in health.remotes]
    recalls = [
        (recall.session, recall.active * (recall.total - recall.done), recall.rate)
        for recall in health.recalls
    ]
    return cars + remotes + recalls

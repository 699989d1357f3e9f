"""Verbs `fpvstation snapshots ...`: set up, list, restore, and send to another host."""

import argparse
import datetime
import shlex
import sys
import time
from collections.abc import Callable
from pathlib import Path

from fpvcar.recordings.export.progress import Progress
from fpvcar.runtime.units import MB, counted
from fpvstation import settings
from fpvstation.cli.verbs import open_store
from fpvstation.errors import StationError
from fpvstation.replicas.rdcp import Rdcp
from fpvstation.replicas.remote import CopyProgress
from fpvstation.replicas.restore import session_of
from fpvstation.snapshots import restore as restoring
from fpvstation.snapshots import tools
from fpvstation.snapshots.send import Sender, Target
from fpvstation.store.identity import MARKER
from fpvstation.store.replica_log import ReplicaLog

ETC = Path("/etc")
AddVerb = Callable[[str, Callable[[argparse.Namespace], int], str], argparse.ArgumentParser]


def add_to(add: AddVerb, add_config: Callable[[argparse.ArgumentParser], None]) -> None:
    """Add the verbs. `add` adds a verb with the option --store."""
    setup = add("setup", set_up, "write a configuration of btrbk, and a timer; needs root")
    setup.add_argument(
        "--keep",
        default=tools.KEEP,
        metavar="TIMES",
        help="hourly, daily, weekly, monthly snapshots to keep (default: %(default)s)",
    )
    setup.add_argument(
        "--send", default="", metavar="HOST:DIR", help="send each snapshot to this host, too"
    )
    setup.add_argument(
        "--etc",
        type=Path,
        default=ETC,
        metavar="DIR",
        help="folder of the configuration (default: %(default)s)",
    )
    show = add("list", listing, "list the snapshots")
    show.add_argument("session", nargs="?", default="", help="only those with this session")
    restore = add("restore", restore_session, "restore a session, or one file of it")
    restore.add_argument("session", metavar="SESSION[/FILE]", help="session, or one of its files")
    restore.add_argument(
        "--at", required=True, metavar="TIME", help='14:00, or "2026-11-27 14:00", local time'
    )
    send = add("send", send_all, "send new snapshots to a btrfs folder on another host; needs root")
    send.add_argument("target", metavar="HOST:DIR", help="folder there, or a folder of this host")
    add_config(send)


def _root(arguments: argparse.Namespace) -> Path:
    """Return the folder of the store. Raises StationError."""
    root: Path = arguments.store.expanduser().absolute()
    if not (root / MARKER).is_file():
        raise StationError(f"{root} is not a store: name one with --store DIR")
    return root


def set_up(arguments: argparse.Namespace) -> int:
    """Prepare the store, and write the configuration; name the next step."""
    root, send = _root(arguments), ""
    if arguments.send:
        target = Target(arguments.send).place
        if not tools.PLAIN_PATH.fullmatch(target.replace(":", "/")):
            raise StationError(f'--send "{target}" refused: expected HOST:DIR, without spaces')
        send = f"{sys.executable} -m fpvstation snapshots send --store {root} {target}"
    for path in tools.set_up(root, arguments.etc, arguments.keep, send):
        print(f"written: {path}")
    print(f"start the timer: systemctl daemon-reload && systemctl enable --now {tools.UNIT}.timer")
    return 0


def listing(arguments: argparse.Namespace) -> int:
    """List the snapshots; return 1 if there are none."""
    root = _root(arguments)
    session = _session(arguments, arguments.session) if arguments.session else ""
    count = 0
    for snapshot in tools.snapshots_of(root):
        segments = restoring.listed_in(snapshot, session) if session else {}
        if segments or not session:
            count += 1
            suffix = f"  {counted(len(segments), 'segment')}" if session else ""
            print(f"{restoring.local(snapshot.at_s)}  {snapshot.path}{suffix}")
    if not count:
        where = f"with {session}" if session else "yet: sudo fpvstation snapshots setup"
        print(f"fpvstation: {root}: no snapshot {where}", file=sys.stderr)
    return 0 if count else 1


def _session(arguments: argparse.Namespace, name: str) -> str:
    store, disk = open_store(arguments.store)
    return session_of(name, store, disk, ReplicaLog(disk))


def restore_session(arguments: argparse.Namespace) -> int:
    """Restore from the newest snapshot before a time; return 1 if a segment is bad there."""
    root = _root(arguments)
    time_s = restoring.time_of(arguments.at, datetime.datetime.now())
    snapshot = restoring.at(tools.snapshots_of(root), time_s)
    store, _ = open_store(root)
    name, file = restoring.session_and_file(arguments.session)
    session = _session(arguments, name)
    result = restoring.restore(store, root, session, file, snapshot)
    for fault in result.faults:
        print(f"fpvstation: {fault}", file=sys.stderr)
    restored = sum(result.restored.values())
    print(
        f"{session}: {counted(restored, 'segment')} restored from the snapshot of "
        f"{restoring.local(snapshot.at_s)}, {result.present} already here and good"
    )
    for missing in result.missing:
        print(
            f"fpvstation: {missing}: bad in that snapshot, too: try a remote, "
            f"fpvstation restore {shlex.quote(session)}",
            file=sys.stderr,
        )
    return 1 if result.missing else 0


def send_all(arguments: argparse.Namespace) -> int:
    """Send the snapshots that are missing at the other host."""
    root = _root(arguments)
    store, _ = open_store(root)
    options = settings.load(arguments.config).replicas.options
    target, bar = Target(arguments.target), Progress(sys.stderr, 1, 0.0)

    def on_progress(progress: CopyProgress) -> None:
        nonlocal bar
        if progress.total is not None:
            bar = bar if progress.moved else Progress(sys.stderr, progress.total, time.monotonic())
            bar.to(progress.done, time.monotonic())

    count = 0
    try:
        for sent in Sender(root, store.id, target, Rdcp(target.place, root, options)).run(
            on_progress
        ):
            bar.end()
            count += 1
            print(
                f"{sent.name}: received, {sent.size / MB:.1f} MB, {sent.moved / MB:.1f} MB of it "
                "moved now",
                flush=True,
            )
    finally:
        bar.end()
    print(f"{target.place}: {counted(count, 'snapshot')} received; up to date")
    return 0

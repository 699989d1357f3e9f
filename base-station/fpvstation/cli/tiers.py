"""Verbs `archive` and `recall`: sessions move to the archive of the settings, and back."""

import argparse
import asyncio
import sys
import time

from fpvcar.recordings.export.progress import Progress
from fpvcar.runtime.texts import fault_text
from fpvcar.runtime.units import MB, counted
from fpvstation import settings
from fpvstation.cli.verbs import open_store, session_named
from fpvstation.errors import StationError
from fpvstation.replicas.remote import OnProgress, PlaceFault
from fpvstation.replicas.remotes import remotes_of
from fpvstation.replicas.tiers import DueSession, Tiers, archive_of


def archive(arguments: argparse.Namespace) -> int:
    """Archive one session, or those that are due; return 1 if any failed."""
    if bool(arguments.session) == arguments.due:
        raise StationError(
            "expected SESSION or --due: `archive --due --dry-run` names the due ones"
        )
    tiers, configured = _tiers_of(arguments)
    if arguments.due and not (configured.after or configured.above):
        raise StationError(f'{arguments.config}: [tiers] needs after = "90 days" or above = "80 %"')
    with tiers.alone():
        faults = asyncio.run(tiers.resume())
        if arguments.due:
            due = list(tiers.due(configured))
        else:
            store, _ = open_store(arguments.store)
            session = session_named(arguments.session, store)
            due = [DueSession(session, store.extent(session)[0], "named")]
        for item in due:
            if arguments.dry_run:
                print(f"{item.session}: {item.bytes / MB:.0f} MB would be archived: {item.reason}")
                continue
            try:
                moved = asyncio.run(_with_bar(item.bytes, tiers, item.session))
            except (StationError, PlaceFault) as error:
                faults.append(fault_text(error))
            else:
                print(f"{item.session}: {moved / MB:.0f} MB archived in {configured.archive}")
    if not due:
        print("no session is due")
    for fault in faults:
        print(f"fpvstation: {fault}", file=sys.stderr)
    return 1 if faults else 0


async def _with_bar(size: int, tiers: Tiers, session: str) -> int:
    bar = Progress(sys.stderr, size, time.monotonic())
    try:
        return await tiers.archive(session, _drawn(bar))
    finally:
        bar.end()


def _drawn(bar: Progress) -> OnProgress:
    return lambda progress: bar.to(progress.done, time.monotonic())


def recall(arguments: argparse.Namespace) -> int:
    """Bring a session back from the archive; return 1 if any segment is lost there."""
    tiers, configured = _tiers_of(arguments)
    store, _ = open_store(arguments.store)
    session = session_named(arguments.session, store)
    size = store.extent(session)[0]
    with tiers.alone():
        bar = Progress(sys.stderr, size, time.monotonic())
        try:
            lost = asyncio.run(tiers.recall(session, _drawn(bar), arguments.lost))
        finally:
            bar.end()
    for name in lost:
        print(
            f"fpvstation: {name}: bad or missing in {configured.archive}, where it stays; a "
            "running station fetches it if its car or a remote has it",
            file=sys.stderr,
        )
    print(f"{session}: recalled, {size / MB:.0f} MB; {counted(len(lost), 'segment')} lost")
    return 1 if lost else 0


def _tiers_of(arguments: argparse.Namespace) -> tuple[Tiers, settings.TierSettings]:
    configured = settings.load(arguments.config)
    if not configured.tiers.archive:
        raise StationError(
            f'{arguments.config} has no archive: add [tiers] and archive = "/mnt/archive"'
        )
    store, disk = open_store(arguments.store)
    root, replicas = arguments.store.expanduser().absolute(), configured.replicas
    place = archive_of(configured.tiers.archive, root)
    remotes = remotes_of(replicas, root, "recall")
    tiers = Tiers(store, disk, place, replicas.targets, asyncio.to_thread, remotes=remotes)
    return tiers, configured.tiers

"""Verbs `fpvstation batch ...` and `fpvstation worker`: jobs over all sessions of a store."""

import argparse
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from fpvcar import __version__
from fpvcar.recordings.export.progress import Progress
from fpvcar.recordings.repair.damage import INCOMPLETE as INCOMPLETE_STATUS
from fpvcar.runtime.arguments import within
from fpvcar.runtime.units import counted
from fpvstation.batch import batch
from fpvstation.batch.session_job import BAD, FAILED, GOOD, INCOMPLETE, Job, Outcome
from fpvstation.cli.query_verbs import FORMS, TABLE_ROWS
from fpvstation.cli.snapshot_verbs import AddVerb
from fpvstation.cli.verbs import open_store
from fpvstation.errors import StationError
from fpvstation.query import output
from fpvstation.query.engine import Engine, Result
from fpvstation.settings import BUCKET_SCHEME
from fpvstation.store.replica_log import ReplicaLog
from fpvstation.store.sums_file import StoredSegment

ADDRESS, BUCKET = "tcp://HOST:8786", "s3://BUCKET/PREFIX"
MANUAL = """\
Each session is a task of its own. Exit status: 0 all sessions are good, 3 recorded data is missing
in some, 1 a session is bad or failed.

  fpvstation batch replay                                  on this machine
  dask scheduler                                           on one of several machines
  fpvstation worker tcp://HOST:8786                        on each of them
  fpvstation batch replay --cluster tcp://HOST:8786

The workers read the store at the same path, or from a bucket of [replicas] with --bucket.
"""


def add_to(add: AddVerb) -> None:
    """Add the kinds of jobs. `add` adds a verb with the option --store."""
    replay = add("replay", run, "list each decision that the gate of this version makes otherwise")
    replay.add_argument(
        "--page",
        default="http://localhost:8100",
        metavar="URL",
        help="page of the station, for links (default: %(default)s)",
    )
    check = add("verify", run, "compare all checksums; nothing is moved or fetched")
    out = add("export", run, "export each session, as fpvcar export does")
    out.add_argument(
        "out", type=os.path.abspath, metavar="DIR", help="folder that all workers can write"
    )
    _add_forms(out, ("mp4", "csv", "parquet"), True)
    ask = add("query", run, "run SQL on samples and events of each session, without sidecars")
    ask.add_argument("sql", help="the query; its rows get a first column `session`")
    _add_forms(ask, FORMS, False)
    for kind, verb in (("replay", replay), ("verify", check), ("export", out), ("query", ask)):
        verb.set_defaults(kind=kind)
        verb.formatter_class = argparse.RawDescriptionHelpFormatter
        verb.description = f"{verb.description}\n\n{MANUAL}"
        verb.add_argument("--cluster", default="", metavar=ADDRESS, help="Dask scheduler to use")
        _add_workers(verb)
        verb.add_argument(
            "--bucket", default="", metavar=BUCKET, help="read from this bucket, not the store"
        )
        verb.add_argument(
            "--limit",
            dest="limit_s",
            type=within(float, 0.1, 1e6),
            default=600.0,
            metavar="S",
            help="end a session that takes longer (default: %(default)g)",
        )
        verb.add_argument(
            "--memory",
            dest="memory_mb",
            type=within(int, 128, 10**6),
            default=1024,
            metavar="MB",
            help="end a session that needs more memory (default: %(default)s)",
        )


def _add_forms(verb: argparse.ArgumentParser, forms: Iterable[str], required: bool) -> None:
    group = verb.add_mutually_exclusive_group(required=required)
    for form in forms:
        group.add_argument(f"--{form}", dest="form", action="store_const", const=form)


def add_worker(verb: argparse.ArgumentParser) -> None:
    """Add the options of `fpvstation worker`."""
    verb.add_argument("cluster", metavar=ADDRESS, help="Dask scheduler")
    _add_workers(verb)


def _add_workers(verb: argparse.ArgumentParser) -> None:
    verb.add_argument(
        "--workers",
        type=within(int, 1, 1024),
        default=os.cpu_count() or 1,
        metavar="N",
        help="processes on this machine (default: one per processor)",
    )


def work(arguments: argparse.Namespace) -> int:
    """Be a worker until a signal. Raises StationError."""
    return batch.serve(arguments.cluster, arguments.workers)


def run(arguments: argparse.Namespace) -> int:
    """Do a job over all sessions; print its result. Raises StationError."""
    if arguments.bucket and not arguments.bucket.startswith(BUCKET_SCHEME):
        raise StationError(f'"{arguments.bucket}" refused: expected {BUCKET}')
    is_query = arguments.kind == "query"
    if is_query:
        _check_query(arguments.sql)
    jobs = list(_jobs(arguments))
    outcomes = sorted(_outcomes(arguments, jobs), key=lambda outcome: outcome.session)
    if is_query:
        _print_rows(arguments.form, outcomes)
    report = sys.stderr if is_query else sys.stdout
    for outcome in outcomes:
        if outcome.result != GOOD:
            print(f"{outcome.session}  {outcome.result}", *outcome.lines, sep="\n  ", file=report)
    counts = Counter(outcome.result for outcome in outcomes)
    totals = ", ".join(f"{kind} {counts[kind]}" for kind in (GOOD, INCOMPLETE, BAD, FAILED))
    print(f"{counted(len(outcomes), 'session')}: {totals}", file=report)
    return 1 if counts[BAD] or counts[FAILED] else INCOMPLETE_STATUS * bool(counts[INCOMPLETE])


def _jobs(arguments: argparse.Namespace) -> Iterator[Job]:
    """Yield the job of each session with segments there."""
    store, disk = open_store(arguments.store)
    replicas, root = ReplicaLog(disk), str(arguments.store.expanduser().absolute())
    options = {
        name: value for name, value in vars(arguments).items() if name in Job.__struct_fields__
    }
    for session in sorted(store.known()):
        segments = set(store.listed(session))
        if arguments.bucket:
            gone = replicas.evicted(session).items()
            segments |= {StoredSegment(f"{session}/{name}", sha256) for name, sha256 in gone}
        if segments:
            size = store.extent(session)[0]
            yield Job(session, sorted(segments), root, size, __version__, **options)


def _outcomes(arguments: argparse.Namespace, jobs: list[Job]) -> Iterator[Outcome]:
    """Yield the outcomes as they arrive, with a progress bar."""
    sizes, done = {job.session: job.size for job in jobs}, 0
    bar = Progress(sys.stderr, sum(sizes.values()), time.monotonic())
    with batch.connected(arguments.cluster, min(arguments.workers, len(jobs))) as client:
        if jobs and not client.scheduler_info()["workers"]:
            bar.say(f"no worker yet: fpvstation worker {arguments.cluster}")
        try:
            for outcome in batch.outcomes(client, jobs):
                yield outcome
                done += sizes[outcome.session]
                bar.to(done, time.monotonic())
                if outcome.result in (BAD, FAILED):
                    bar.say(f"{outcome.session}: {outcome.result}")
        finally:
            bar.end()


def _check_query(sql: str) -> None:
    """Raises StationError for a query that is wrong."""
    if "sessions" in sql.lower():
        raise StationError("batch query refused: it reads samples and events of one session each")
    with tempfile.TemporaryDirectory() as folder:
        Engine(Path(folder), "none").query(sql)


def _print_rows(form: str | None, outcomes: list[Outcome]) -> None:
    columns = next((outcome.columns for outcome in outcomes if outcome.columns), [])
    rows = ((outcome.session, *row) for outcome in outcomes for row in outcome.rows)
    write = FORMS.get(form or "", output.write_table)
    if write(sys.stdout, Result(["session", *columns], rows, tuple), None if form else TABLE_ROWS):
        print(f"there are more than {TABLE_ROWS} rows: --csv prints all", file=sys.stderr)

"""Verbs `fpvstation query`, `export` and `grep`: questions about all recordings."""

import argparse
import contextlib
import os
import shutil
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

from fpvcar.datasets import options as datasets
from fpvcar.recordings.repair.damage import INCOMPLETE
from fpvcar.runtime.arguments import within
from fpvcar.runtime.units import counted
from fpvstation.cli.snapshot_verbs import AddVerb
from fpvstation.cli.verbs import open_store
from fpvstation.errors import StationError
from fpvstation.query import output, sidecar
from fpvstation.query.engine import MEMORY_LEAST_MB, MEMORY_MB, Engine, left_out
from fpvstation.query.grep import grep
from fpvstation.query.keeper import folder_of
from fpvstation.service import state_of

TABLE_ROWS = 1000
"""Rows of a table in a terminal; the other forms have no limit."""
FORMS = {"csv": output.write_csv, "json": output.write_json}
QUERY = """\
answer a question in SQL about all recordings

  fpvstation query "SELECT car, count(*) FROM events WHERE kind = 'stop' GROUP BY car"
  fpvstation query "DESCRIBE samples"

samples has a row for each 100 ms; events has stops, marks, drivers, faults and log lines;
sessions has a row for each session. Times are UTC. A filter on month ('2026-11'), car or session
skips the files of all others. Nothing can be written. docs/query.md lists all columns.
"""


EXPORT = """\
export the sessions of a query as one dataset for training

  fpvstation export "SELECT session FROM sessions WHERE month = '2026-11'" --lerobot laps
  fpvstation export "SELECT DISTINCT session FROM samples WHERE driver = 'Ann'" --donkey ann

The same command continues an interrupted export. Datasets: docs/ways-out/learn.md.
"""


def add_to(add: AddVerb) -> None:
    """Add the verbs. `add` adds a verb with the option --store."""
    ask = add("query", run_query, "answer a question in SQL about all recordings")
    ask.description, ask.formatter_class = QUERY, argparse.RawDescriptionHelpFormatter
    ask.add_argument("sql", help='the query; "-" reads it from stdin')
    form = ask.add_mutually_exclusive_group()
    form.add_argument("--csv", action="store_true", help="print CSV")
    form.add_argument("--json", action="store_true", help="print one JSON object: columns, rows")
    form.add_argument("--parquet", type=Path, metavar="FILE", help="write a new Parquet file")
    ask.add_argument(
        "--rows",
        type=within(int, 1, 10**12),
        metavar="N",
        help=f"end after so many rows (default: {TABLE_ROWS} in a table, otherwise all)",
    )
    ask.add_argument(
        "--memory",
        type=within(int, MEMORY_LEAST_MB, 10**6),
        default=MEMORY_MB,
        metavar="MB",
        help="limit of the query's memory (default: %(default)s)",
    )
    ask.add_argument(
        "--threads", type=within(int, 1, 1024), metavar="N", help="processors (default: all)"
    )
    out = add("export", run_export, "export the sessions of a query as one dataset for training")
    out.description, out.formatter_class = EXPORT, argparse.RawDescriptionHelpFormatter
    out.add_argument("sql", metavar="QUERY", help="query with a column `session`")
    datasets.add_to(out, required=True)
    search = add("grep", run_grep, "search names, marks, causes and log lines of all recordings")
    search.add_argument("pattern", help="regular expression; upper and lower case are the same")
    search.add_argument(
        "--most",
        type=within(int, 1, 10**6),
        default=TABLE_ROWS,
        metavar="N",
        help="print the newest N lines (default: %(default)s)",
    )


def run_query(arguments: argparse.Namespace) -> int:
    """Print the result of a query. Raises StationError."""
    store, _ = open_store(arguments.store)
    litter = list[Path]()
    with _ending_at_once(litter):  # before the libraries start threads
        engine = Engine(state_of(arguments.store), store.id, arguments.memory, arguments.threads)
        return _answer(arguments, engine, litter)


def _answer(arguments: argparse.Namespace, engine: Engine, litter: list[Path]) -> int:
    result = engine.query(sys.stdin.read() if arguments.sql == "-" else arguments.sql)
    form = next((form for form in FORMS if getattr(arguments, form)), "")
    most = arguments.rows or (None if form or arguments.parquet else TABLE_ROWS)
    try:
        if arguments.parquet:
            more = output.write_parquet(arguments.parquet, result, most, litter)
        else:
            more = FORMS.get(form, output.write_table)(sys.stdout, result, most)
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    if more:
        _say(f"there are more than {most} rows: --rows N, or --csv, prints more")
    for session in engine.damaged:
        _say(f"{session}: its sidecar was damaged, and is left out: fpvstation rebuild")
    _say_left_out(engine.missing())
    return 0


def _say_left_out(sessions: int) -> None:
    if sessions:
        _say(
            f"{counted(sessions, 'session')} left out: a running station adds a session 90 s after "
            "its last segment, fpvstation rebuild all of them"
        )


@contextlib.contextmanager
def _ending_at_once(litter: Sequence[Path]) -> Iterator[None]:
    """On Ctrl-C remove the folders in `litter`, and end this process at once: DuckDB itself may go
    on for minutes."""
    over, numbers = signal.SIGUSR1, {signal.SIGINT, signal.SIGUSR1}

    def watch() -> None:
        if signal.sigwait(numbers) == signal.SIGINT:
            for folder in litter:
                shutil.rmtree(folder, ignore_errors=True)
            os._exit(130)  # 128 + SIGINT, the shell's convention

    before = signal.pthread_sigmask(signal.SIG_BLOCK, numbers)  # new threads inherit it
    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        signal.pthread_kill(watcher.ident or 0, over)
        watcher.join()
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def run_export(arguments: argparse.Namespace) -> int:
    """Export the sessions of a query as one dataset. Raises StationError."""
    store, _ = open_store(arguments.store)
    root = arguments.store.expanduser().absolute()
    with _ending_at_once([]):
        result = Engine(state_of(arguments.store), store.id).query(arguments.sql)
        if "session" not in result.columns:
            columns = ", ".join(result.columns)
            raise StationError(f"no column `session` in the query, but {columns}: SELECT session")
        at = result.columns.index("session")
        sessions = sorted({str(row[at]) for row in result.rows})
    if not sessions:
        raise StationError("no session in the result of the query: nothing to export")
    segments, missing = list[Path](), False
    for session in sessions:
        listed = [] if store.is_away(session) else store.listed(session)
        segments += [root / segment.path for segment in listed]
        if not listed:
            missing = True
            _say(f"{session} is not in this store, and left out: fpvstation recall or restore")
    if not segments:
        raise StationError("none of these sessions is in this store: nothing to export")
    status = datasets.export("fpvstation export", arguments, segments)
    return INCOMPLETE if missing and not (status or arguments.partial) else status


def run_grep(arguments: argparse.Namespace) -> int:
    """Print the lines with a pattern; return 1 if there are none, as grep does. Raises
    StationError."""
    store, _ = open_store(arguments.store)
    matches = grep(state_of(arguments.store), store.id, arguments.pattern, arguments.most + 1)
    if len(matches) > arguments.most:
        _say(f"older lines left out: --most N prints more than {arguments.most}")
    for match in matches[-arguments.most :]:
        line = f"{match.session}:{match.utc}:{match.kind}:{match.text}"
        print("".join(letter if letter.isprintable() else "?" for letter in line))
    texts = sidecar.indexed(folder_of(state_of(arguments.store), store.id))
    _say_left_out(left_out(state_of(arguments.store), store.id, texts))
    return 0 if matches else 1


def _say(text: str) -> None:
    print(f"fpvstation: {text}", file=sys.stderr)

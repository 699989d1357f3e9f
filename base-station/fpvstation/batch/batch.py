"""Jobs over a whole store on Dask distributed: a task per session, on local processes or a cluster.

Dask gives a task of a worker that dies to another one, and tries again after a fault. A session
that still fails has an outcome like the others.
"""

import contextlib
import importlib
import logging
from collections.abc import Iterator, Sequence
from typing import Any

from fpvstation.batch import session_job
from fpvstation.batch.session_job import FAILED, Job, Outcome
from fpvstation.errors import StationError

CONNECT_S = 5
RETRIES = 2
MISSING = "batch needs Dask distributed: pip install 'fpvcar[batch]'"
SETTINGS = {
    "distributed.scheduler.worker-ttl": "60s",  # a worker that is silent for so long is given up
    "logging": {"distributed": "critical", "distributed.client": "critical"},
}
"""Settings of Dask for local workers."""


def _dask() -> Any:
    """Return the library. Raises StationError if it is missing."""
    try:
        importlib.import_module("dask").config.set(SETTINGS)
        logging.getLogger("tornado").setLevel(logging.CRITICAL)
        return importlib.import_module("distributed")
    except ImportError:
        raise StationError(MISSING) from None


@contextlib.contextmanager
def connected(address: str, workers: int) -> Iterator[Any]:
    """Yield a client of the cluster at an address; "": of so many processes here. Raises
    StationError."""
    dask = _dask()
    with contextlib.ExitStack() as stack:
        cluster: Any = address
        if not address:
            cluster = stack.enter_context(
                dask.LocalCluster(
                    n_workers=workers,
                    threads_per_worker=1,
                    memory_limit=0,
                    dashboard_address=None,
                    silence_logs=logging.CRITICAL,
                )
            )
        try:
            client = stack.enter_context(dask.Client(cluster, timeout=CONNECT_S))
        except (OSError, ValueError, ImportError) as fault:
            raise StationError(
                f"no Dask scheduler at {address}: {fault}: start one with `dask scheduler`, and "
                f"workers with `fpvstation worker {address}`"
            ) from None
        yield client


def outcomes(client: Any, jobs: Sequence[Job]) -> Iterator[Outcome]:
    """Have the jobs done; yield their outcomes as they arrive."""
    dask = _dask()
    futures = client.map(session_job.run, jobs, pure=False, retries=RETRIES)
    sessions = {future.key: job.session for future, job in zip(futures, jobs, strict=True)}
    done = dask.as_completed(futures, with_results=True, raise_errors=False)
    del futures  # a result that was received is released
    for future, result in done:
        if not isinstance(result, Outcome):
            error = result[1] if isinstance(result, tuple) else result
            result = Outcome(sessions[future.key], FAILED, [str(error)])
        yield result


def serve(address: str, workers: int) -> int:
    """Be a Dask worker until a signal. Raises StationError if there is no scheduler."""
    with connected(address, 0):
        pass
    options = ["--nthreads=1", f"--nworkers={workers}", "--memory-limit=0", "--no-dashboard"]
    command = importlib.import_module("distributed.cli.dask_worker").main
    return int(command([address, *options], standalone_mode=False) or 0)

"""All servers of `run` under seeded fuzzers: alive, terse in the log, memory flat.

The effects on a driver are in test_hostile.py. SOAK_S is the length of the long form.
"""

import ast
import asyncio
import os
import re
import ssl
import time
from collections import Counter
from pathlib import Path

import pytest
from benchmarks.memory import resident_mb
from testkit.driver import Driver, free, set_off, sit_down, stand_up
from testkit.harness import STRIP, RunningBench, apart, started, wait_for
from websockets.asyncio.client import connect

from fpvcar.http.endpoints import CROWDED_LOGS
from fpvcar.http.limits import LINES_BURST, LINES_PER_S
from tests.e2e.hostile.fuzzers import EACH, TLS, enough
from tests.e2e.hostile.test_hostile import GROWTH_MB, descriptors, start

pytestmark = [pytest.mark.e2e, pytest.mark.soak]

SHORT_S = 3.0
MEET_S, MEET_AGAIN_S = 3.0, 0.2
"""A page gets in before any timer of the car has ended the strangers' connections."""
STRANGERS = re.compile(r"127\.0\.0\.6[6-9]|^aiohttp|^asyncio")
"""Log lines that only the strangers cause."""
KINDS = 3
"""Largest number of kinds of such lines in one log."""


async def met(port: int, context: ssl.SSLContext | None) -> float:
    """Return the time until a page gets its welcome; the page may only watch.

    This uses one thread: two in one TLS connection, as the synchronous client has them, hang.
    """
    begin_s = time.monotonic()
    where = f"{'ws' if context is None else 'wss'}://localhost:{port}/ws/drive"
    async with asyncio.timeout(MEET_S), connect(where, ssl=context, compression=None) as page:
        await page.send('{"kind":"hello","v":1,"client":"a-real-page"}')
        assert '"welcome"' in str(await page.recv())
        return time.monotonic() - begin_s


def attacked(bench: RunningBench, seconds: float) -> dict[str, "Counter[str]"]:
    """Run all fuzzers at once; return the counts of each. A page gets in during that, over http
    and https."""
    attacks = {name: start(name, bench.port, seconds) for name in EACH}
    attacks[TLS] = start(TLS, bench.port + 1, seconds)
    context = ssl.create_default_context(cafile=bench.state / "root.crt")
    pages: list[float] = []
    try:
        while any(one.poll() is None for one in attacks.values()):
            pages.append(apart(lambda: asyncio.run(met(bench.port, None))))
            pages.append(apart(lambda: asyncio.run(met(bench.port + 1, context))))
            time.sleep(MEET_AGAIN_S)
    except BaseException:
        for one in attacks.values():
            one.kill()
        raise
    print(f"\n{len(pages)} pages, the slowest in {max(pages) * 1000:.0f} ms; ", end="")
    said = {name: one.communicate()[0] for name, one in attacks.items()}
    assert not any(one.returncode for one in attacks.values()), said
    return {name: Counter[str](ast.literal_eval(one)) for name, one in said.items()}


def test_run_survives_fuzzed_http_sockets_handshakes_and_tls(
    soaking: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    seconds = float(os.environ.get("SOAK_S", "120")) if soaking else SHORT_S
    with started(tmp_path, STRIP, "--host=0.0.0.0") as bench:
        recordings = bench.state / "recordings"  # then all files are open
        wait_for(lambda: bool(list(recordings.glob("*.part"))), "it does not record")
        run = bench.pid("run")
        fds, memory_mb = descriptors(run), resident_mb(run)
        quiet, begin_s = len(bench.log().splitlines()), time.monotonic()
        with capsys.disabled():
            counts = attacked(bench, seconds)
        wait_for(lambda: descriptors(run) <= fds, f"more than {fds} descriptors", 20.0)
        late_mb, lasted_s = resident_mb(run), time.monotonic() - begin_s
        lines = bench.log().splitlines()[quiet:]
        with Driver(bench.port) as driver, bench.watch() as watch:
            sit_down(driver)
            free(driver)
            set_off(driver, watch)
            stand_up(driver)
        assert bench.pid("run") == run and "Traceback" not in bench.log()
    told = Counter(line.partition(": ")[0] for line in lines if STRANGERS.search(line))
    said = {name: dict(one) for name, one in counts.items()}
    with capsys.disabled():
        print(f"{said}, {memory_mb:.1f} -> {late_mb:.1f} MB, {dict(told)}", end="")
    for name, count in counts.items():
        assert "500" not in count and enough(count), name
    assert told and set(told) <= set(CROWDED_LOGS)
    assert max(told.values()) <= KINDS * (LINES_BURST + LINES_PER_S * lasted_s)
    assert late_mb < memory_mb + GROWTH_MB

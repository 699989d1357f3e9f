"""Coverage-guided fuzzers: `python -m tests.fuzz TARGET .. --seconds 10`.

Atheris guides where it exists (x86-64); elsewhere the seeds are mutated blindly. Prints the
executions, the inputs that found new code, and the crash. The input of a crash is written to
--crashes.

Several targets run one after another, each in a process of its own. These are forked from a process
with everything imported, because importing takes seconds. Each begins with the line "== TARGET" and
ends with "== status N".
"""

import argparse
import hashlib
import multiprocessing
import random
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

MAX_BYTES = 4096


def blindly(
    target: Callable[[bytes], None], seeds: list[bytes], seconds: float, folder: Path
) -> int:
    """Mutate seeds until the time is over; return 1 at the first crash."""
    dice, count, end_s = random.Random(1), 0, time.monotonic() + seconds
    while time.monotonic() < end_s:
        data = bytearray(dice.choice(seeds))
        for _ in range(dice.randrange(1, 8)):
            at = dice.randrange(len(data) + 1)
            data[at : at + dice.randrange(3)] = dice.randbytes(dice.randrange(4))
        count += 1
        try:
            target(bytes(data))
        except Exception:
            name = hashlib.sha1(data).hexdigest()
            (folder / f"crash-{name}").write_bytes(data)
            raise
    print(f"executions={count} guided=0", flush=True)
    return 0


def guided(
    target: Callable[[bytes], None], seeds: list[bytes], seconds: int, folder: Path
) -> NoReturn:
    """Mutate the inputs that found new code until the time is over, and end the process."""
    import atheris  # type: ignore[import-untyped,unused-ignore]

    with tempfile.TemporaryDirectory() as corpus:
        for number, seed in enumerate(seeds):
            (Path(corpus) / f"seed-{number:04d}").write_bytes(seed)
        options = {
            "max_total_time": seconds,
            "max_len": MAX_BYTES,
            "timeout": 10,
            "rss_limit_mb": 1024,
            "artifact_prefix": f"{folder}/",
            "print_final_stats": 1,
            "seed": 1,
        }
        words = [f"-{name}={value}" for name, value in options.items()]
        atheris.Setup([sys.argv[0], *words, corpus], target)
        atheris.Fuzz()
    raise AssertionError("the fuzzer returned")


def main() -> int:
    parser = argparse.ArgumentParser("python -m tests.fuzz", description=__doc__)
    parser.add_argument("targets", nargs="+", metavar="TARGET")
    parser.add_argument("--seconds", type=int, default=10)
    parser.add_argument("--crashes", type=Path, default=Path("."))
    given = parser.parse_args()
    try:
        import atheris  # type: ignore[import-untyped,unused-ignore]
    except ImportError:
        from tests.fuzz import oracles, seeds
    else:
        with atheris.instrument_imports(include=["fpvcar", "fpvbench"]):
            from tests.fuzz import oracles, seeds

    def fuzz(name: str) -> int:
        target, known = oracles.PARSERS[name], seeds.seeds(name)
        if "atheris" in sys.modules:
            guided(target, known, given.seconds, given.crashes)
        return blindly(target, known, given.seconds, given.crashes)

    if len(given.targets) == 1:
        return fuzz(given.targets[0])
    worst = 0
    for name in given.targets:
        print(f"== {name}", flush=True)
        child = multiprocessing.get_context("fork").Process(
            target=lambda name=name: sys.exit(fuzz(name))
        )
        child.start()
        child.join()
        print(f"== status {child.exitcode}", flush=True)
        worst = max(worst, abs(child.exitcode or 0))
    return worst


if __name__ == "__main__":
    sys.exit(main())

"""One coverage-guided fuzzer: `python -m tests.fuzz TARGET --seconds 10`.

Atheris guides where it exists (x86-64); elsewhere the seeds are mutated blindly. Prints
the executions, the inputs that found new code, and the crash, whose input is written
to --crashes.
"""

import argparse
import hashlib
import random
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

MAX_BYTES = 4096


def blindly(
    target: Callable[[bytes], None], seeds: list[bytes], seconds: float, folder: Path
) -> int:
    """Mutates seeds until the time is over; 1 at the first crash."""
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


def main() -> int:
    parser = argparse.ArgumentParser("python -m tests.fuzz", description=__doc__)
    parser.add_argument("target")
    parser.add_argument("--seconds", type=int, default=10)
    parser.add_argument("--crashes", type=Path, default=Path("."))
    given = parser.parse_args()
    try:
        import atheris  # type: ignore[import-untyped,unused-ignore]
    except ImportError:
        from tests.fuzz import oracles, seeds

        target = oracles.PARSERS[given.target]
        return blindly(target, seeds.seeds(given.target), given.seconds, given.crashes)
    with atheris.instrument_imports(include=["fpvcar"]):
        from tests.fuzz import oracles, seeds
    target = oracles.PARSERS[given.target]
    with tempfile.TemporaryDirectory() as corpus:
        for number, seed in enumerate(seeds.seeds(given.target)):
            (Path(corpus) / f"seed-{number:04d}").write_bytes(seed)
        options = {
            "max_total_time": given.seconds, "max_len": MAX_BYTES, "timeout": 10,
            "rss_limit_mb": 1024, "artifact_prefix": f"{given.crashes}/",
            "print_final_stats": 1, "seed": 1,
        }  # fmt: skip
        words = [f"-{name}={value}" for name, value in options.items()]
        atheris.Setup([sys.argv[0], *words, corpus], target)
        atheris.Fuzz()  # ends the process
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""`python -m tests.mutation`: check that some test fails for each fault put into guarded code."""

import argparse
import random
import sys
import time
from collections.abc import Sequence

from tests.mutation import run
from tests.mutation.equivalents import EQUIVALENTS
from tests.mutation.mutants import Mutant

PROGRESS = 100
"""Mutants between two lines of progress on stderr."""


def main() -> int:
    """Return 0 if every mutant was killed, except for the listed ones with their reasons."""
    parser = argparse.ArgumentParser("python -m tests.mutation", description=__doc__)
    parser.add_argument("--only", default=",".join(run.TESTS), help="modules")
    parser.add_argument("--sample", type=int, help="number of mutants, drawn by the seed")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    names = given.only.split(",")
    start_s = time.monotonic()
    run.prepare()
    run.check_unchanged(names)
    every = run.all_mutants(names)
    chosen = every
    if given.sample is not None:
        chosen = random.Random(given.seed).sample(every, min(given.sample, len(every)))
    verdicts = list[run.Verdict]()
    for verdict in run.verdicts(chosen):
        verdicts.append(verdict)
        if len(verdicts) % PROGRESS == 0:
            print(f"{len(verdicts)} of {len(chosen)} mutants", file=sys.stderr, flush=True)
    survivors = [verdict.mutant.key for verdict in verdicts if not verdict.killed]
    faults = report(names, chosen, survivors)
    for verdict in verdicts:
        if verdict.timeout:
            print(f"killed by timeout: {verdict.mutant.key}")
    if given.sample is None:
        keys = {mutant.key for _, mutant in every}
        ends = [name.rpartition(".")[2] for name in names]
        listed = [key for key in EQUIVALENTS if key.partition(".")[0] in ends]
        faults += [f"listed, but no mutant: {key}" for key in listed if key not in keys]
        faults += [
            f"listed, but killed: {key}" for key in listed if key in keys and key not in survivors
        ]
    late, took_s = sum(verdict.timeout for verdict in verdicts), time.monotonic() - start_s
    print(f"{len(chosen)} of {len(every)} mutants, {late} by timeout, {took_s:.0f} s")
    print("\n".join(faults) or "no test gap")
    return 1 if faults else 0


def report(
    names: Sequence[str], chosen: Sequence[tuple[str, Mutant]], survivors: Sequence[str]
) -> list[str]:
    """Print a line for each module; return the survivors that are not listed."""
    print(f"{'module':26}{'mutants':>9}{'killed':>9}{'equivalent':>12}{'survived':>10}")
    faults = []
    for name in names:
        keys = [mutant.key for module, mutant in chosen if module == name]
        alive = [key for key in keys if key in survivors]
        gaps = [key for key in alive if key not in EQUIVALENTS]
        listed = len(alive) - len(gaps)
        print(f"{name:26}{len(keys):9}{len(keys) - len(alive):9}", end="")
        print(f"{listed:12}{len(gaps):10}")
        faults += [f"survived: {key}" for key in gaps]
    return faults


if __name__ == "__main__":
    sys.exit(main())

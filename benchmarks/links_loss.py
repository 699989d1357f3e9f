"""The edge of the Wi-Fi: some packets are lost at random, in both directions."""

from collections.abc import Iterator, Sequence

from benchmarks.links import Shown, course, far_away, now_ms, shown
from benchmarks.rig import Given, say
from benchmarks.rows import Aim, Result, row

SETTLES_MS = 2000
LOSSY_MS = 25_000
FREEZE_MS = 150.0
SAMPLE_MS = 10.0
AIMS = {
    0.0: (Aim(p99=28, worst=120), 0), 0.01: (Aim(p99=28, worst=120), 0),
    0.03: (Aim(p99=32, worst=120), 0), 0.10: (Aim(p99=80), 3),
}  # fmt: skip
"""Share lost: age of each picture at its paint, and how many freezes may be."""


def ages_ms(pictures: Sequence[Shown]) -> list[float]:
    """How old what is on the glass was, each 10 ms: it ages until the next picture."""
    found: list[float] = []
    for before, after in zip(pictures, pictures[1:], strict=False):
        steps = int((after.at_ms - before.at_ms) / SAMPLE_MS) + 1
        found += [before.age_ms + step * SAMPLE_MS for step in range(steps)]
    return found


def lossy(given: Given, share: float) -> Iterator[Result]:
    """One bench, one page on another host."""
    name = f"{share:.0%} lost each way"
    say(f"links: {name}")
    aim, freezes_most = AIMS[share]
    with far_away(given) as (lan, _, page):
        page.wait_for_timeout(SETTLES_MS)
        lan.drop(share)
        page.wait_for_timeout(SETTLES_MS)
        shown(page)
        begin_ms = now_ms()
        page.wait_for_timeout(LOSSY_MS)
        pictures = shown(page)
    if len(pictures) < 2:
        raise RuntimeError(f"{name}: {len(pictures)} pictures were seen")
    gaps = [b.at_ms - a.at_ms for a, b in zip(pictures, pictures[1:], strict=False)]
    fps = len(gaps) / sum(gaps) * 1000.0
    freezes = sum(gap > FREEZE_MS for gap in gaps)
    yield row("links", f"{name}: capture to glass", "ms",
              [one.age_ms for one in pictures], aim)  # fmt: skip
    yield row("links", f"{name}: age on the glass", "ms", ages_ms(pictures),
              Aim(p95=120))  # fmt: skip
    yield row("links", f"{name}: rate", "fps", [fps], Aim(least=27))
    yield row("links", f"{name}: freezes over {FREEZE_MS:g} ms", "", [float(freezes)],
              Aim(worst=freezes_most))  # fmt: skip
    yield course(f"{name}: age", pictures, begin_ms)


def rows(given: Given) -> Iterator[Result]:
    """As the link gets worse."""
    for share in AIMS:
        yield from lossy(given, share)

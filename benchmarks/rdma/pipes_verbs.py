"""Throughput of rdsend and rdrecv over RDMA verbs, against ib_send_bw: VMs with Soft-RoCE.

Both run by emulation, so a rate is comparable only to others of the same boot.
"""

import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from testkit.vm import speed
from testkit.vm.ends import Ends, bring_tools
from testkit.vm.machine import Vm, pair

from benchmarks.rdma.pairs import PART, Run, compare
from benchmarks.rig import say
from benchmarks.rows import RATIO, Aim, Note, Result, row

ONE_VM, TWO_VMS = 256 << 20, 32 << 20
ONE_WAY_MS = 10
SMALL = 64 << 10
NONE = ("--checksum", "none")
PERFTEST = "ib_send_bw"


def run(rate: Callable[[], float]) -> Callable[[], Run]:
    """Return a measurement for compare()."""
    return lambda: Run(rate() / 1e6)


@contextmanager
def apart(sender: Vm, receiver: Vm, size: int) -> Iterator[Ends]:
    """Yield the two ends, and make the file to send."""
    ends = Ends(sender, receiver)
    try:
        speed.make_data(ends, size)
        yield ends
    finally:
        ends.close()


def one_vm(share: Path, pairs: int) -> Iterator[Result]:
    """Measure page cache to /dev/null, and pipes against that."""
    say(f"{PART}: a VM starts")
    with Vm(share) as vm, apart(vm, vm, ONE_VM) as ends:
        perftest = run(partial(speed.ib_send_bw, ends, 8 << 20, 2, ONE_VM))
        plain = run(partial(speed.rdsend, ends, *NONE))
        for name, ours, least in (
            ("verbs, no checksum", plain, 0.95),
            ("verbs, XXH3", run(partial(speed.rdsend, ends)), 0.88),
            ("verbs, encrypted", run(partial(speed.rdsend, ends, "--encrypt")), None),
        ):
            yield from compare(name, ours, perftest, least, PERFTEST, pairs)
        for name, ours in (
            ("verbs, from a pipe", run(partial(speed.rdsend, ends, *NONE, piped=True))),
            ("verbs, into a pipe", run(partial(speed.rdsend, ends, *NONE, into=speed.INTO_PIPE))),
        ):
            yield from compare(name, ours, plain, 0.95, "file", pairs)


def two_vms(share: Path, pairs: int) -> Iterator[Result]:
    """Measure a long link: a sender that waits for an answer to each message moves one per round
    trip."""
    say(f"{PART}: two VMs start")
    way = f"verbs, {ONE_WAY_MS} ms each way"
    with pair(share) as vms, apart(vms.first, vms.second, TWO_VMS) as ends:
        speed.shape(vms, f"delay {ONE_WAY_MS}ms")
        perftest = run(partial(speed.ib_send_bw, ends, 1 << 20, 16, TWO_VMS))
        for name, piped in ((f"{way}, file", False), (f"{way}, pipe", True)):
            ours = run(partial(speed.rdsend, ends, piped=piped))
            yield from compare(name, ours, perftest, 0.9, PERFTEST, pairs)
        say(f"{PART}: {way}, 64 KiB")
        rates = [speed.rdsend(ends, "--chunk", str(SMALL)) for _ in range(pairs)]
        yield row(PART, f"{way}, 64 KiB", "MB/s", [rate / 1e6 for rate in rates])
        at_most = SMALL / (2 * ONE_WAY_MS / 1000)
        ratios = [rate / at_most for rate in rates]
        yield row(
            PART,
            f"{way}, 64 KiB / stop-and-wait",
            RATIO,
            ratios,
            Aim(least=4.0),
            f"{min(ratios):.2f} to {max(ratios):.2f}",
        )


def rows(tools: Path, pairs: int) -> Iterator[Result]:
    """Measure with one VM, then with two."""
    if not shutil.which("qemu-system-x86_64"):
        yield Note(PART, "qemu-system-x86_64 is not installed: nothing over RDMA")
        return
    with tempfile.TemporaryDirectory() as home:
        share = Path(home)
        bring_tools(tools, share)
        speed.bring_splice(share)
        yield from one_vm(share, pairs)
        yield from two_vms(share, pairs)

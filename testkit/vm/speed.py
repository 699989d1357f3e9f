"""Speed of ib_send_bw and of our tools in VMs, and between them.

The figures are meaningful only in proportion to each other, within one boot.
"""

import json
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

from testkit.vm.ends import RDMA, TOOLS, Ends
from testkit.vm.machine import Pair

HERE = Path(__file__).parent
MIB = 1 << 20
ASKED_MOST = 10
"""perftest's clock is calibrated cycles: on a busy host it may report 0 bytes moved."""
DATA = "big"
FROM_PIPE = f"{TOOLS}/splice <{DATA} |"
INTO_PIPE = ("--", "sh", "-c", f"exec {TOOLS}/splice >/dev/null")


def bring_splice(share: Path) -> None:
    """Compile the producer and consumer at a pipe, for `FROM_PIPE` and `INTO_PIPE`."""
    words = ["cc", "-O2", "-o", str(share / "splice"), str(HERE / "splice.c")]
    subprocess.run(words, check=True, timeout=60)


def make_data(ends: Ends, size: int) -> None:
    """Make the file to send, in the sender's memory."""
    ends.sender.check(f"head -c {size} /dev/zero >/dev/shm/{DATA}")


def shape(vms: Pair, how: str) -> None:
    """Shape both ends of the cable, in the words of tc-netem(8)."""
    for vm in (vms.first, vms.second):
        vm.check(f"tc qdisc replace dev eth1 root netem {how} limit 10000")


def ib_send_bw(ends: Ends, message: int, depth: int, size: int) -> float:
    """Return bytes a second of perftest, with `depth` messages at a time on one queue pair."""
    words = f"ib_send_bw -d rxe0 -F -s {message} -t {depth} -r {depth}"
    words += f" -n {size // message}"
    said = ""
    for _ in range(ASKED_MOST):
        ends.receiver.check(
            f"({words} >/dev/null 2>&1 </dev/null &);"
            " until ss -ltn | grep -q :18515; do sleep 0.1; done"
        )
        said = ends.sender.check(f"{words} {ends.receiver.address}")
        found = re.search(rf"^ *{message} +\d+ +\S+ +(\S+)", said, re.M)
        assert found, said
        if float(found.group(1)) > 0.0:
            return float(found.group(1)) * MIB
    raise AssertionError(f"no rate in {ASKED_MOST} runs: {said}")


def rdsend(
    ends: Ends, *chosen: str, into: Sequence[str] = ("/dev/null",), piped: bool = False
) -> float:
    """Return bytes a second of our tools, from the file or from a pipe; `chosen` are options."""
    options = [*RDMA, *chosen]
    receiver = ends.receive(*into, options=options)
    sender = ends.send(
        *([] if piped else [DATA]), options=[*options, "--json"], wrap=FROM_PIPE if piped else ""
    )
    sent, received = sender.ended(), receiver.ended()
    assert sent.status == received.status == 0, (sent, received)
    told = json.loads(sent.err.splitlines()[-1])
    assert told["transport"] == "rdma", told
    return float(told["bytes_per_s"])

"""Throughput of tunnels to another site over a link of 1 Gbit/s, with CPU time of both ends.

Two network namespaces, one TCP stream. The ways take turns, so that a busy machine slows them
all; a tunnel starts anew for each run.
"""

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, redirect_stdout
from dataclasses import replace
from pathlib import Path

from testkit.network import tunnel
from testkit.network.lan import Lan

from benchmarks.rdma.pairs import Run
from benchmarks.rdma.pipes import ENCRYPT, Bench, prepared
from benchmarks.rig import Settings, say
from benchmarks.rows import RATIO, Aim, Note, Result, row

PART = "tunnel"
LINK_BITS_PER_S, QUEUE_BYTES, BURST_BYTES = 1_000_000_000, 2 << 20, 1 << 18
SIZE, REPEATS = 128 << 20, 4
RAW, OURS, WIREGUARD, RDCP = "no tunnel", "OpenVPN, our settings", "wireguard-go", "rdcp --encrypt"
UDP, TCP = "OpenVPN, its defaults (UDP)", "OpenVPN, its defaults over TCP"
TUNED = "data-ciphers tun-mtu mssfix txqueuelen tcp-queue-limit tcp-nodelay socket-flags"
NEEDED = ("iperf3", "openvpn", "wg-quick", tunnel.USERSPACE)


def untuned(made: Path, protocol: str) -> Path:
    """Take our settings out of the configuration of OpenVPN; keep keys and addresses."""
    for end in ("site", "station"):
        config = tunnel.config_of(made, end)
        text = re.sub(rf"^({'|'.join(TUNED.split())}) ?.*\n", "", config.read_text(), flags=re.M)
        if protocol == "udp":
            text = re.sub(r"^proto tcp-\w+$", "proto udp", text, flags=re.M)
        config.write_text(text)
    return made


@contextmanager
def wireguard(made: Path, lan: Lan) -> Iterator[Sequence[int]]:
    """Run WireGuard on both hosts; yield the process ids."""
    with tunnel.wireguard(made, site=lan.enter, station=tunnel.HERE):
        commands = {path: path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline")}
        name = made.name.removeprefix("tunnel-").encode()
        yield [
            int(path.parent.name)
            for path, command in commands.items()
            if tunnel.USERSPACE.encode() in command and name in command.split(b"\0")
        ]


def version() -> str:
    """Return the version of wireguard-go: those before 2023 handle each packet alone."""
    done = subprocess.run(
        [tunnel.USERSPACE, "--version"], capture_output=True, text=True, check=True
    )
    return done.stdout.splitlines()[0]


def cpu_s(pids: Sequence[int]) -> float:
    """Return the CPU time of the processes so far."""
    times = [Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split() for pid in pids]
    return sum(int(ours) + int(kernels) for *_, ours, kernels in (time[:13] for time in times)) / (
        os.sysconf("SC_CLK_TCK")
    )


def through(up: AbstractContextManager[Sequence[int]], bench: Bench, address: str) -> Run:
    """Measure a stream through a tunnel, with the CPU time of its processes."""
    with up as pids:
        if not tunnel.reaches(address):
            raise RuntimeError(f"{address} is not reached")
        before_s = cpu_s(pids)
        run = replace(bench, host=address).iperf3()
        return replace(run, sender_s=cpu_s(pids) - before_s)


def ways(bench: Bench, lan: Lan, home: Path) -> dict[str, Callable[[], Run]]:
    """Return a function that measures each way once."""
    folders: dict[str, Path] = {}
    for way in (OURS, UDP, TCP, WIREGUARD):
        kind = "wireguard" if way == WIREGUARD else "openvpn"
        with open(os.devnull, "w") as null, redirect_stdout(null):
            folders[way] = tunnel.written(kind, lan, home / str(len(folders)))
    untuned(folders[UDP], "udp")
    untuned(folders[TCP], "tcp")
    site = tunnel.address(folders[OURS], "site")  # by the name, which all have
    return {
        RAW: lambda: through(nullcontext(()), bench, lan.far),
        OURS: lambda: through(tunnel.openvpn(folders[OURS], lan), bench, site),
        UDP: lambda: through(tunnel.openvpn(folders[UDP], lan), bench, site),
        TCP: lambda: through(tunnel.openvpn(folders[TCP], lan), bench, site),
        WIREGUARD: lambda: through(wireguard(folders[WIREGUARD], lan), bench, site),
        RDCP: lambda: replace(bench, options=ENCRYPT).send(),
    }


def rows(settings: Settings, size: int = SIZE) -> Iterator[Result]:
    """Measure each way beside no tunnel."""
    if absent := [program for program in NEEDED if not shutil.which(program)]:
        yield Note(PART, f"not installed: {', '.join(absent)}")
        return
    if os.geteuid() != 0:
        yield Note(PART, "network namespaces need root")
        return
    runs: dict[str, list[Run]] = {}
    with (
        Lan(offload=True) as lan,
        prepared(size, 0) as bench,
        tempfile.TemporaryDirectory() as home,
    ):
        lan.narrow(LINK_BITS_PER_S, QUEUE_BYTES, BURST_BYTES)
        bench.enter, bench.host = lan.enter, lan.far
        measure = ways(bench, lan, Path(home))
        for number in range(min(REPEATS, settings.runs)):
            for way in sorted(measure, reverse=bool(number % 2)):
                say(f"{PART}: {way}, {number}")
                runs.setdefault(way, []).append(measure[way]())
    raw = [run.mb_per_s for run in runs[RAW]]
    for way in measure:
        rates = [run.mb_per_s for run in runs[way]]
        note = version() if way == WIREGUARD else ""
        yield row(PART, way, "Mbit/s", [rate * 8 for rate in rates], note=note)
        if way == RAW:
            continue
        aim = Aim(least=0.95) if way == OURS else None
        ratios = [ours / theirs for ours, theirs in zip(rates, raw, strict=True)]
        yield row(PART, f"{way} / {RAW}", RATIO, ratios, aim)
        both_s = [run.sender_s + run.receiver_s for run in runs[way]]
        yield row(PART, f"{way}: CPU of both ends", "s/GB", [s * 1e9 / size for s in both_s])

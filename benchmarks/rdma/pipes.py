"""Throughput of rdsend, rdrecv and rdpipe over TCP: against iperf3 and ssh, in interleaved pairs.

The data comes from the page cache and goes to /dev/null. Over RDMA: pipes_verbs.py.
"""

import json
import os
import select
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from testkit.network.lan import Lan
from testkit.network.sshd import Sshd

from benchmarks.rdma import pipes_verbs
from benchmarks.rdma.pairs import PAIRS, PART, Run, compare
from benchmarks.rig import Settings, say
from benchmarks.rows import Aim, Note, Result, Row, row

SOURCE = Path(__file__).parents[2] / "base-station" / "rdma"
SHAPED_BITS_PER_S = 10_000_000_000
CHAIN_BITS_PER_S = 2_000_000_000
"""Rate below half of the CPUs' limit, as they carry both hops of a chain."""
BURST_BYTES, QUEUE_BYTES = 1 << 20, 8 << 20
CUBIC = "cubic"
ECHOES = 20
NONE = ("--checksum", "none")
PLAIN, ENCRYPT = ("--plain",), ("--encrypt",)
LIMIT_S = 120.0
ENVIRONMENT = {**os.environ, "RDPIPE_KEY": "a key for the benchmark"}
# Producer and consumer of negligible cost, so that the pipe is measured.
PYTHON = (sys.executable, "-I", "-S", "-c")  # starts within some 10 ms
PRODUCE = "import os, sys\nwhile os.splice(int(sys.argv[1]), 1, 1 << 20): pass"
CONSUME = (
    "import os, sys\nout = os.open('/dev/null', os.O_WRONLY)\n"
    "while os.splice(0, out, 1 << 20): pass"
)


@dataclass
class Bench:
    """Tools under test, and the file that they send."""

    tools: Path
    data: Path
    size: int
    pairs: int = PAIRS
    enter: Sequence[str] = ()
    """Prefix of a command to run it on the receiver's host."""
    host: str = "127.0.0.1"
    options: Sequence[str] = ()

    def receive(self, *target: str) -> tuple["subprocess.Popen[bytes]", str]:
        """Start an rdrecv; return it and its port."""
        read_fd, announce_fd = os.pipe()
        receiver = subprocess.Popen(
            [
                *self.enter,
                str(self.tools / "rdrecv"),
                "--announce-fd",
                str(announce_fd),
                *self.options,
                "0",
                *target,
            ],
            pass_fds=[announce_fd],
            env=ENVIRONMENT,
        )
        os.close(announce_fd)
        with open(read_fd) as lines:
            line = lines.readline()
        if not line.startswith("port="):
            raise RuntimeError(f"rdrecv ended ({receiver.wait()})")
        return receiver, line.split()[0].removeprefix("port=")

    def send(self, *target: str, piped: bool = False) -> Run:
        """Measure one transfer, from the file or from a pipe."""
        receiver, port = self.receive(*(target or ("/dev/null",)))
        command = [str(self.tools / "rdsend"), "--json", *self.options]
        command += [self.host, port]
        producer = None
        if piped:
            with self.data.open("rb") as file:
                producer = subprocess.Popen(
                    [*PYTHON, PRODUCE, str(file.fileno())],
                    stdout=subprocess.PIPE,
                    pass_fds=[file.fileno()],
                )
            assert producer.stdout
            select.select([producer.stdout], [], [], LIMIT_S)  # the producer has started
        else:
            command.append(str(self.data))
        sender = subprocess.Popen(
            command,
            env=ENVIRONMENT,
            stderr=subprocess.PIPE,
            stdin=producer.stdout if producer else subprocess.DEVNULL,
        )
        if producer and producer.stdout:
            producer.stdout.close()
        assert sender.stderr
        stderr = sender.stderr.read().decode(errors="replace")
        sender_s, receiver_s = reaped(sender), reaped(receiver)
        if producer:
            producer.wait()
        if sender.returncode or receiver.returncode:
            raise RuntimeError(f"a transfer failed: {stderr}")
        result = json.loads(stderr.splitlines()[-1])
        if result["bytes"] != self.size:
            raise RuntimeError(f"{result['bytes']} bytes went, not {self.size}")
        return Run(result["bytes_per_s"] / 1e6, sender_s, receiver_s)

    def iperf3(self) -> Run:
        """Measure the same number of bytes in one stream of iperf3."""
        with socket.create_server(("", 0)) as free:
            port = str(free.getsockname()[1])
        server = subprocess.Popen(
            [*self.enter, "iperf3", "-s", "-1", "-p", port, "--forceflush"], stdout=subprocess.PIPE
        )
        try:
            assert server.stdout
            while b"listening" not in (line := server.stdout.readline()):
                if not line:
                    raise RuntimeError("iperf3 -s ended")
            ended = subprocess.run(
                ["iperf3", "-J", "-c", self.host, "-p", port, "-n", str(self.size)],
                capture_output=True,
                check=True,
                timeout=LIMIT_S,
            )
            server.communicate(timeout=LIMIT_S)
        finally:
            if server.poll() is None:
                server.kill()
                server.communicate()
        result = json.loads(ended.stdout)["end"]
        return Run(result["sum_received"]["bits_per_second"] / 8e6)

    def compare(
        self,
        name: str,
        ours: Callable[[], Run],
        theirs: Callable[[], Run],
        least: float | None,
        beside: str,
    ) -> Iterator[Row]:
        """Compare like pairs.py, with the CPU cost of both our ends as a note."""
        return compare(
            name, ours, theirs, least, beside, self.pairs, lambda runs: cost(runs, self.size)
        )


def reaped(process: "subprocess.Popen[bytes]") -> float:
    """Wait for the end of a process; return the CPU seconds of it and its children."""
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return used.ru_utime + used.ru_stime


def cost(runs: Sequence[Run], size: int) -> str:
    """Return CPU seconds per GB at both ends as text."""
    sender_s = statistics.median(run.sender_s for run in runs) * 1e9 / size
    receiver_s = statistics.median(run.receiver_s for run in runs) * 1e9 / size
    return f"CPU s/GB: {sender_s:.2f} to send, {receiver_s:.2f} to receive"


@contextmanager
def prepared(size: int, pairs: int) -> Iterator[Bench]:
    """Build the tools, and make a file in memory."""
    subprocess.run(["make", "-s", "-C", str(SOURCE)], check=True)
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=memory) as home:
        data, block = Path(home) / "data", os.urandom(1 << 20)
        with data.open("wb") as file:
            for _ in range(size >> 20):
                file.write(block)
        yield Bench(SOURCE, data, size >> 20 << 20, pairs)


def loopback(bench: Bench) -> Iterator[Result]:
    """Measure against iperf3, and pipes against the file."""
    for options, name, least in (
        ((), "loopback, XXH3", 0.7),
        (NONE, "loopback, no checksum", 0.75),
        (ENCRYPT, "loopback, encrypted", 0.5),
    ):
        bench.options = options
        yield from bench.compare(name, bench.send, bench.iperf3, least, "iperf3")
    yield cipher()
    for options, name in (((), "XXH3"), (NONE, "no checksum")):
        bench.options = options
        yield from at_pipes(bench, name)


def cipher() -> Result:
    """Measure the encryption rate of one core, the upper limit of an encrypted transfer."""
    command = "openssl speed -seconds 1 -bytes 262144 -mr -evp aes-256-gcm"
    try:
        ended = subprocess.run(
            command.split(), capture_output=True, text=True, check=True, timeout=LIMIT_S
        )
    except (OSError, subprocess.CalledProcessError) as fault:
        return Note(PART, f"openssl speed: {fault}")
    rate = float(ended.stdout.split(":")[-1])
    return row(PART, "openssl speed, AES-256-GCM, one core", "MB/s", [rate / 1e6])


def at_pipes(bench: Bench, link: str) -> Iterator[Result]:
    """Measure a pipe at either end, against the file and /dev/null."""
    consumer = ("--", *PYTHON, CONSUME)
    for ours, label in (
        (lambda: bench.send(piped=True), "from a pipe"),
        (lambda: bench.send(*consumer), "into a pipe"),
    ):
        yield from bench.compare(f"{label}, {link}", ours, bench.send, 0.95, "file")


def cable(bench: Bench) -> Iterator[Result]:
    """Measure a veth pair shaped to 10 Gbit/s, with Linux' default TCP and this host's."""
    host = Path("/proc/sys/net/ipv4/tcp_congestion_control").read_text().strip()
    with Lan(offload=True) as lan:
        lan.narrow(SHAPED_BITS_PER_S, QUEUE_BYTES, BURST_BYTES)
        bench.enter, bench.host, bench.options = lan.enter, lan.far, ()
        for algorithm in sorted({host, CUBIC}, key=lambda algorithm: algorithm == CUBIC):
            lan.congestion(algorithm)
            for options, mode, least in ((PLAIN, "XXH3", 0.98), (ENCRYPT, "encrypted", 0.95)):
                bench.options = options
                name = f"10 Gbit/s, {mode}, {algorithm}"
                yield from bench.compare(name, bench.send, bench.iperf3, least, "iperf3")
        # Over loopback a producer takes CPU time from the two ends; here it does not.
        yield from at_pipes(bench, "10 Gbit/s")


def chain(bench: Bench) -> Iterator[Result]:
    """Measure from here to the far host and back, each way shaped, against one hop."""
    with Lan(offload=True) as lan:
        for back in (False, True):
            lan.narrow(CHAIN_BITS_PER_S, QUEUE_BYTES, BURST_BYTES, back)
        bench.enter, bench.host, bench.options = lan.enter, lan.far, ()
        near = Bench(bench.tools, bench.data, bench.size)

        def two_hops() -> Run:
            receiver, port = near.receive("/dev/null")
            rdsend = str(bench.tools / "rdsend")
            key = f"RDPIPE_KEY={ENVIRONMENT['RDPIPE_KEY']}"
            run = bench.send("--", "env", key, rdsend, lan.near, port)
            if reaped(receiver) < 0 or receiver.returncode:
                raise RuntimeError("the last of the chain failed")
            return run

        yield from bench.compare("2 Gbit/s, A-B-C", two_hops, bench.send, 0.95, "A-B")


def echo(bench: Bench, count: int) -> Iterator[Result]:
    """Measure `echo` through rdpipe to this host, against `ssh host true`."""
    with tempfile.TemporaryDirectory() as home:
        server = Sshd(Path(home))
        try:
            far = ["--ssh", server.command, "--remote-path", str(bench.tools)]
            commands = {
                "rdpipe": [str(bench.tools / "rdpipe"), *far, "host:cat"],
                "ssh": ["ssh", "-F", f"{home}/ssh_config", "host", "true"],
            }
            times_ms: dict[str, list[float]] = {name: [] for name in commands}
            for number in range(count + 1):
                say(f"{PART}: echo {number}")
                for name in sorted(commands, reverse=bool(number % 2)):
                    since_s = time.monotonic()
                    ended = subprocess.run(
                        commands[name], input=b"hello\n", capture_output=True, timeout=LIMIT_S
                    )
                    times_ms[name].append((time.monotonic() - since_s) * 1000)
                    if ended.returncode or (name == "rdpipe") != bool(ended.stdout):
                        raise RuntimeError(f"{name}: {ended.stderr!r}")
        finally:
            server.close()
    ours, theirs = times_ms["rdpipe"][1:], times_ms["ssh"][1:]  # the first run warms the caches
    yield row(PART, "echo through rdpipe", "ms", ours)
    yield row(PART, "ssh host true", "ms", theirs)
    above = [one - two for one, two in zip(ours, theirs, strict=True)]
    yield row(PART, "echo above ssh", "ms", above, Aim(median=80.0))


def rsh(bench: Bench, count: int) -> Iterator[Result]:
    """Measure the time between the end of a command and that of its rdpipe --rsh."""
    with tempfile.TemporaryDirectory() as home:
        server = Sshd(Path(home))
        words = [str(bench.tools / "rdpipe"), "--ssh", server.command, "--remote-path"]
        words += [str(bench.tools), "--rsh", "host", "date +%s.%N"]
        after_ms = []
        try:
            for _ in range(count):
                process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
                assert process.stdout
                ended_s = float(process.stdout.read())
                process.wait(timeout=LIMIT_S)  # with stdin open
                after_ms.append((time.time() - ended_s) * 1000)
                process.communicate()
        finally:
            server.close()
    yield row(PART, "rdpipe --rsh after its command", "ms", after_ms, Aim(median=100.0))


def rows(settings: Settings, size: int = 1 << 30) -> Iterator[Result]:
    """Measure loopback, a shaped cable, a chain, an echo, and RDMA in VMs."""
    iperf3 = shutil.which("iperf3") is not None
    with prepared(size, min(PAIRS, settings.runs)) as bench:
        if iperf3:
            yield from loopback(bench)
        else:
            yield Note(PART, "iperf3 is not installed")
        if iperf3 and os.geteuid() == 0:
            yield from cable(bench)
            yield from chain(bench)
        elif iperf3:
            yield Note(PART, "cables between network namespaces need root")
        yield from echo(bench, min(ECHOES, settings.runs))
        yield from rsh(bench, min(ECHOES, settings.runs))
        yield from pipes_verbs.rows(bench.tools, bench.pairs)

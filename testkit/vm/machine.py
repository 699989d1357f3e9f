"""A running VM: commands go in by ssh, folders by a 9p share."""

import contextlib
import shlex
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import Self

from testkit.network.ports import free_port
from testkit.vm.image import PIPES, Image, Recipe, image

BOOT_S = 1500.0
"""The boot of a steady VM takes three minutes on half a core; a long limit is harmless, as the
boot time is not tested."""
COMMAND_S = 300.0
FAST = ("-accel", "tcg,thread=multi")
STEADY = ("-accel", "tcg,thread=single", "-icount", "shift=0,sleep=off")
"""The VM's clock counts instructions, a nanosecond each, and jumps to the next timer when the
VM is idle. So its measurements are the same on a busy host. Only the durations of the
host's work for it, disk and network, mean nothing."""
MEMORY_MB = 1024


class Machine(AbstractContextManager["Machine"]):
    """A computer of QEMU that takes commands by ssh. On leaving the block its power is cut.

    `key` lets the tests in; without `known_hosts` the first host key is accepted.
    """

    def __init__(self, key: Path, known_hosts: Path | None, boot_s: float) -> None:
        self._boot_s = boot_s
        self._home = tempfile.TemporaryDirectory(prefix="vm-")
        self.home = Path(self._home.name)
        self.console = self.home / "console"
        self.ssh_port = free_port()
        known = known_hosts or self.home / "known_hosts"
        (self.home / "ssh_config").write_text(
            f"Host vm\n  HostName 127.0.0.1\n  Port {self.ssh_port}\n  User root\n"
            f"  IdentityFile {key}\n  IdentitiesOnly yes\n"
            f"  UserKnownHostsFile {known}\n  HostKeyAlias vm\n"
            "  GlobalKnownHostsFile none\n"
            f"  StrictHostKeyChecking {'yes' if known_hosts else 'accept-new'}\n"
            f"  LogLevel ERROR\n  ControlMaster auto\n  ControlPath {self.home}/ssh\n"
            "  ControlPersist yes\n  ConnectTimeout 5\n"
        )
        self.ssh = ["ssh", "-F", str(self.home / "ssh_config"), "vm"]

    def _start(self, *words: str) -> None:
        """Start QEMU; it ends with this process."""
        with (self.home / "qemu").open("wb") as said:
            self._process = subprocess.Popen(
                ["setpriv", "--pdeathsig=KILL", *words],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=said,
            )

    def __enter__(self) -> Self:
        try:
            self.wait()
        except BaseException:
            self.close()
            raise
        return self

    def wait(self) -> None:
        """Wait until the VM takes commands."""
        until = time.monotonic() + self._boot_s
        while time.monotonic() < until and self._process.poll() is None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                done = subprocess.run(
                    [*self.ssh, "true"],
                    timeout=COMMAND_S,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                )
                if done.returncode == 0:
                    return
            time.sleep(0.2)
        said = (self.home / "qemu").read_text()
        raise AssertionError(f"the VM did not come up: {said}\n{self.log()}")

    def log(self) -> str:
        """Return the VM's console: its kernel's messages."""
        return self.console.read_text(errors="replace") if self.console.exists() else ""

    def run(
        self, command: str, timeout_s: float = COMMAND_S, stdin: str = ""
    ) -> "subprocess.CompletedProcess[str]":
        """Run a command line in the VM's shell, with any exit status."""
        return subprocess.run(
            [*self.ssh, command], input=stdin, capture_output=True, text=True, timeout=timeout_s
        )

    def check(self, command: str, timeout_s: float = COMMAND_S) -> str:
        """Run a command that must succeed; return its output."""
        done = self.run(command, timeout_s)
        assert done.returncode == 0, (command, done.returncode, done.stdout, done.stderr)
        return done.stdout

    def start(self, *words: str) -> "subprocess.Popen[bytes]":
        """Start a command that keeps running. Each word is quoted, so it stays one word."""
        return subprocess.Popen(
            [*self.ssh, shlex.join(words)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def close(self) -> None:
        """Cut the power of the VM."""
        subprocess.run(
            [*self.ssh[:-1], "-O", "exit", "vm"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=20,
        )
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()
        self._home.cleanup()

    def __exit__(self, *_: object) -> None:
        self.close()


class Vm(Machine):
    """A VM that boots on construction. On leaving the block it ends, and all its writes are
    lost.

    `share` is the folder that the VM sees as /share, for reading and writing. `cable` holds the
    two sockets of a pair's cable, ours first. `address` is that of its data interface eth1. Writes
    to `disk`, a copy of the image's root, outlive the VM.
    """

    def __init__(
        self,
        share: Path,
        address: str = "10.0.0.1",
        cpus: int = 2,
        cable: tuple[Path, Path] | None = None,
        recipe: Recipe = PIPES,
        disk: Path | None = None,
        steady: bool = False,
    ) -> None:
        self.address, self.steady = address, steady
        files = image(recipe)
        super().__init__(files.key, files.known_hosts, BOOT_S)
        data = "user,id=data,restrict=on"
        if cable:
            data = (
                f"dgram,id=data,local.type=unix,local.path={cable[0]},"
                f"remote.type=unix,remote.path={cable[1]}"
            )
        self._boot(files, disk, share, data, cpus)

    def _boot(self, files: Image, disk: Path | None, share: Path, data: str, cpus: int) -> None:
        root = disk or files.root
        snapshot = "off" if disk else "on"
        self._start(
            "qemu-system-x86_64",
            *(STEADY if self.steady else FAST),
            # TCG runs `rep movsb` byte by byte: memcpy is 8 times faster without.
            "-cpu",
            "max,erms=off,fsrm=off",
            "-smp",
            str(cpus),
            "-m",
            str(MEMORY_MB),
            "-nodefaults",
            "-no-user-config",
            "-display",
            "none",
            *([] if disk else ["-no-reboot"]),
            "-serial",
            f"file:{self.console}",
            "-kernel",
            str(files.kernel),
            "-initrd",
            str(files.initrd),
            "-append",
            "console=ttyS0 quiet panic=-1 mitigations=off "
            f"random.trust_cpu=on data={self.address}/24",
            "-drive",
            f"file={root},if=virtio,format=raw,cache=unsafe,snapshot={snapshot}",
            "-device",
            "virtio-rng-pci",
            "-netdev",
            f"user,id=ssh,hostfwd=tcp:127.0.0.1:{self.ssh_port}-:22",
            "-device",
            "virtio-net-pci,netdev=ssh,romfile=",
            "-netdev",
            data,
            "-device",
            "virtio-net-pci,netdev=data,host_mtu=9000,romfile=,"
            f"mac=52:54:00:00:00:{int(self.address.rpartition('.')[2]):02x}",
            "-virtfs",
            f"local,path={share},mount_tag=share,security_model=none",
        )


class Pair:
    """Two VMs of one processor each, 10.0.0.1 and 10.0.0.2, with a cable between."""

    def __init__(self, share: Path, home: Path) -> None:
        self._ends = home / "one", home / "two"
        one, two = self._ends
        self.first = Vm(share, "10.0.0.1", 1, (one, two))
        self.second = Vm(share, "10.0.0.2", 1, (two, one))

    def cut(self) -> None:
        """Block all traffic without notifying either end.

        Not `ip link set down`: that leaves packets in the driver. rxe waits 50 s for them, frees
        the queue pair, and the kernel panics when the link is up again.
        """
        for end in self._ends:
            end.rename(f"{end}.cut")

    def mend(self) -> None:
        """Plug the cable in again; do nothing if it is plugged in."""
        for end in self._ends:
            with contextlib.suppress(FileNotFoundError):
                Path(f"{end}.cut").rename(end)


@contextmanager
def pair(share: Path) -> Iterator[Pair]:
    """Boot two VMs side by side."""
    with ExitStack() as stack:
        home = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="cable-")))
        both = Pair(share, home)
        stack.callback(both.second.close)
        stack.callback(both.first.close)
        both.first.wait()
        both.second.wait()
        yield both

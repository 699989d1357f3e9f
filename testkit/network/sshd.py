"""An sshd of the tests' own, here or on another host of a Lan, and an ssh with names for it."""

import getpass
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from testkit.network.ports import free_port

SSHD = shutil.which("sshd", path="/usr/sbin:/usr/local/sbin:/usr/bin")


def _key(path: Path) -> str:
    subprocess.run(
        ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(path)], check=True, timeout=20
    )
    return path.with_suffix(".pub").read_text()


class Sshd:
    """Server whose keys, configuration and log all are below `folder`. `enter`: prefix of a
    command on its host."""

    def __init__(self, folder: Path, address: str = "127.0.0.1", enter: Sequence[str] = ()) -> None:
        assert SSHD, "sshd is missing: install openssh-server"
        self.folder, self.address = folder, address
        self.port = free_port()
        host_key = _key(folder / "host_key")
        (folder / "authorized").write_text(_key(folder / "user_key"))
        (folder / "known").write_text(f"[{address}]:{self.port} {host_key}")
        self._server_config().write_text(
            f"Port {self.port}\nListenAddress {address}\n"
            f"HostKey {folder}/host_key\nAuthorizedKeysFile {folder}/authorized\n"
            "PidFile none\nUsePAM no\nStrictModes no\nPasswordAuthentication no\n"
            "PermitRootLogin prohibit-password\nMaxStartups 100\nPrintMotd no\n"
            # no .bashrc runs: its programs may outlive a test, or hang
            f"SetEnv RDPIPE_TEST={folder} HOME={folder}\n"
        )
        (folder / "ssh_config").write_text(
            f"Host *\n  HostName {address}\n"
            f"  Port {self.port}\n  User {getpass.getuser()}\n"
            f"  IdentityFile {folder}/user_key\n  IdentitiesOnly yes\n"
            f"  UserKnownHostsFile {folder}/known\n  GlobalKnownHostsFile none\n"
            "  StrictHostKeyChecking yes\n  LogLevel ERROR\n"
        )
        if os.geteuid() == 0:
            Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
        self.process = subprocess.Popen(
            [*enter, SSHD, "-D", "-f", str(self._server_config()), "-E", str(folder / "log")],
            stdin=subprocess.DEVNULL,
        )
        self._wait()

    def _server_config(self) -> Path:
        return self.folder / "sshd_config"

    def _wait(self) -> None:
        until = time.monotonic() + 10
        while time.monotonic() < until and self.process.poll() is None:
            with socket.socket() as probe:
                if probe.connect_ex((self.address, self.port)) == 0:
                    return
            time.sleep(0.02)
        raise AssertionError((self.folder / "log").read_text())

    @property
    def command(self) -> str:
        """Return the argument of `--ssh`."""
        return f"ssh -F '{self.folder}/ssh_config'"

    def close(self) -> None:
        self.process.terminate()
        self.process.wait(timeout=60)

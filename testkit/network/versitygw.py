"""versitygw, a real S3 server whose objects are plain files with extended attributes, for tests.

It is built from the Go module proxy before the tests, at the version below: see prepared.py.
"""

import os
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from types import TracebackType

from testkit.network.ports import free_port
from testkit.prepared import Prepared, build

VERSION = "v1.7.0"
MODULE = "github.com/versity/versitygw/cmd/versitygw"
BUILD_S, START_S = 1200, 60.0
REGION = "eu-test-1"
BUCKET = "drives"


class Versitygw(Prepared):
    """The server's program. Go keeps nothing else of the build."""

    kind = "versitygw"
    title = f"S3 server (versitygw {VERSION})"
    takes_s = 90.0

    def recipe(self) -> str:
        return f"{MODULE}@{VERSION}"

    def fill(self, folder: Path) -> None:
        with tempfile.TemporaryDirectory(dir=folder.parent) as temporary:
            variables = {
                "CGO_ENABLED": "0",
                "GOBIN": str(folder),
                "GOCACHE": f"{temporary}/cache",
                "GOFLAGS": "-modcacherw",
                "GOMODCACHE": f"{temporary}/modules",
            }
            build(["go", "install", self.recipe()], BUILD_S, variables)


VERSITYGW = Versitygw()


class Gateway:
    """Server on 127.0.0.1 with one bucket. Its files are below `folder`."""

    def __init__(self, folder: Path, region: str = REGION) -> None:
        self.folder, self._region = folder, region
        self.files = folder / "buckets" / BUCKET
        self.files.mkdir(parents=True)
        self.port = free_port()
        self.access, self.secret = "station", "secret of the station"
        self.process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> "Gateway":
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        fault: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.kill()

    def environment(self, port: int) -> dict[str, str]:
        """Return the variables of a client that connects to this port."""
        return {
            "AWS_CONFIG_FILE": str(self.folder / "config"),
            "AWS_SHARED_CREDENTIALS_FILE": str(self.folder / "credentials"),
            "AWS_ACCESS_KEY_ID": self.access,
            "AWS_SECRET_ACCESS_KEY": self.secret,
            "AWS_REGION": self._region,
            "AWS_EC2_METADATA_DISABLED": "true",
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
        }

    def start(self) -> None:
        """Start the server, and wait until it accepts connections."""
        argv = [
            str(VERSITYGW.folder / "versitygw"),
            "--port",
            f"127.0.0.1:{self.port}",
            "--region",
            self._region,
        ]
        argv += ["posix", str(self.folder / "buckets")]
        keys = {"ROOT_ACCESS_KEY": self.access, "ROOT_SECRET_KEY": self.secret}
        log = self.folder / "log"
        with log.open("ab") as output:
            self.process = subprocess.Popen(
                argv,
                env={**os.environ, **keys},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
            )
        until = time.monotonic() + START_S
        while time.monotonic() < until and self.process.poll() is None:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            time.sleep(0.02)
        raise AssertionError(log.read_text())

    def kill(self) -> None:
        """Kill the server at once."""
        if self.process:
            self.process.kill()
            self.process.wait()
            self.process = None

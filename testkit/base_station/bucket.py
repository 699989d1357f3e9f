"""Station whose remote is a bucket of a real S3 server, behind a proxy that causes faults."""

import asyncio
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fpvcar.runtime.texts import Text, fault_text
from fpvcar.runtime.units import MIB
from fpvstation.replicas.remote import PlaceFault
from fpvstation.replicas.s3 import S3
from fpvstation.replicas.s3_bucket import Bucket
from fpvstation.store.sums_file import SUMS_FILE
from testkit.base_station.builder import Station
from testkit.network.s3_proxy import S3Proxy
from testkit.network.versitygw import BUCKET, Gateway

TARGET = f"s3://{BUCKET}/replicas"
LARGE = 12 * MIB


class S3Station(Station):
    """Station whose remote, and archive, is a bucket behind a proxy."""

    def __init__(self, home: Path, gateway: Gateway, proxy: S3Proxy) -> None:
        super().__init__(home, TARGET)
        self.gateway, self.proxy = gateway, proxy
        self.there = gateway.files / "replicas"

    async def act(self, function: Callable[..., Any], *arguments: Any) -> Any:
        return await asyncio.to_thread(function, *arguments)

    def remote(self) -> S3:
        return S3(TARGET, self.root)

    def bucket(self, name: str = BUCKET) -> Bucket:
        return Bucket(f"s3://{name}", name, "replicas/")

    async def replicated(self) -> str:
        """Replicate once; return the fault in English, or ""."""
        return str(await self.replication_fault() or "")

    async def replication_fault(self) -> Text | None:
        """Replicate once; return the fault."""
        replicator = self.replicator_of(self.remote())
        try:
            await replicator.once(True)
        except PlaceFault as fault:
            return fault_text(fault)
        return next(iter(replicator.state.bad.values()), None)

    def check_whole(self) -> None:
        """Check that the bucket has exactly the store's sessions, by `sha256sum`."""
        for listed in self.root.glob(f"*/*/*/{SUMS_FILE}"):
            folder = self.there / listed.parent.relative_to(self.root)
            argv = ["sha256sum", "--quiet", "--strict", "-c", SUMS_FILE]
            subprocess.run(argv, cwd=folder, check=True, timeout=60)
            names = {path.name for path in folder.iterdir()}
            assert names == {path.name for path in listed.parent.iterdir()}
            assert (folder / SUMS_FILE).read_bytes() == listed.read_bytes()

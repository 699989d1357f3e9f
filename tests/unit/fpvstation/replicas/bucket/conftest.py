"""Fixtures: an S3 server, and a store whose remote is there."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from testkit.base_station.bucket import S3Station
from testkit.network.s3_proxy import S3Proxy
from testkit.network.versitygw import Gateway

from fpvcar.runtime.units import MIB
from fpvstation.replicas import s3, s3_bucket


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[Gateway]:
    with Gateway(tmp_path / "s3") as made:
        yield made


@pytest.fixture
async def rig(
    tmp_path: Path, gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[S3Station]:
    async with S3Proxy(gateway.port) as proxy:
        for name, text in gateway.environment(proxy.port).items():
            monkeypatch.setenv(name, text)
        yield S3Station(tmp_path, gateway, proxy)


@pytest.fixture
def in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let files of more than 5 MiB be uploaded in parts of 5 MiB, the least of S3."""
    monkeypatch.setattr(s3, "PART", 5 * MIB)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a fault be reported after the second attempt."""
    monkeypatch.setattr(s3_bucket, "ATTEMPTS", 2)

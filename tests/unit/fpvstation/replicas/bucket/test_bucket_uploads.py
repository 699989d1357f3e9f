"""Uploads of segments to a real S3 server: verified, continued, and never of damaged bytes."""

import asyncio
import base64
import hashlib
import os
import signal
import sys

import pytest
from testkit.base_station.bucket import LARGE, TARGET, S3Station
from testkit.base_station.stored import DATA, NAME, SECOND, SESSION, THIRD, put
from testkit.network.s3_proxy import S3Proxy
from testkit.network.versitygw import BUCKET

from fpvcar.runtime.units import MIB
from fpvstation.replicas import s3
from fpvstation.replicas.remote import CopyProgress, PlaceFault, quiet

SENDING = """
import asyncio, sys
from pathlib import Path
from fpvstation.replicas import s3
from fpvstation.store.disk import Folder
from fpvstation.store.store import Store
s3.PART = 5 << 20
target, root, session = sys.argv[1:]
listed = Store(Folder(Path(root))).listed(session)
asyncio.run(s3.S3(target, Path(root)).send(session, listed, False))
"""
"""Program that uploads one session."""


def parts_of(proxy: S3Proxy) -> list[str]:
    """Return the number of each uploaded part."""
    return [path.split("partNumber=")[1][0] for path in proxy.uploads() if "partNumber=" in path]


async def test_server_rejects_bytes_changed_on_the_way(rig: S3Station) -> None:
    put(rig.store)
    rig.proxy.flips = 1
    assert "BadDigest" in await rig.replicated()
    assert not (rig.there / SESSION / NAME).exists()
    assert await rig.replicated() == ""
    rig.check_whole()
    checksum = base64.b64encode(hashlib.sha256(DATA).digest()).decode()
    assert rig.proxy.checksums[f"/{BUCKET}/replicas/{SESSION}/{NAME}"] == checksum


async def test_verified_upload_is_not_read_back(rig: S3Station) -> None:
    put(rig.store)
    assert await rig.replicated() == ""
    assert f"GET /{BUCKET}/replicas/{SESSION}/{NAME}" not in rig.proxy.requests
    remote, listed = rig.remote(), rig.store.listed(SESSION)
    assert await remote.check(SESSION, listed) == []
    assert rig.proxy.requests[-1] == f"GET /{BUCKET}/replicas/{SESSION}/{NAME}"


async def test_killed_server_repeats_only_the_file_in_transfer(
    rig: S3Station, impatient: None
) -> None:
    for name in (NAME, SECOND, THIRD):
        put(rig.store, name, os.urandom(3 * MIB))

    def kill_at_second() -> None:
        if SECOND in rig.proxy.uploads()[-1]:
            rig.gateway.kill()

    rig.proxy.upload_hook = kill_at_second
    assert "check the network, and AWS_ENDPOINT_URL" in await rig.replicated()
    assert rig.copies.of(SESSION).get(TARGET) is None
    rig.proxy.upload_hook = lambda: None
    rig.gateway.start()
    assert await rig.replicated() == ""
    rig.check_whole()
    assert sum(NAME in path for path in rig.proxy.uploads()) == 1


async def test_large_file_repeats_only_the_refused_part(rig: S3Station, in_parts: None) -> None:
    put(rig.store, NAME, os.urandom(LARGE))
    (listed,) = rig.store.listed(SESSION)
    rig.proxy.refused, rig.proxy.refusals = "PUT", [(503, "SlowDown")]
    told = list[CopyProgress]()
    await rig.remote().send(SESSION, [listed], False, told.append)
    assert sorted(parts_of(rig.proxy)) in (
        ["1", "1", "2", "3"],
        ["1", "2", "2", "3"],
        ["1", "2", "3", "3"],
    )
    assert told[-1].moved == told[-1].total
    assert sum("partNumber=" in path for path in rig.proxy.checksums) == 3
    rig.check_whole()


async def test_large_file_survives_a_restart_of_the_server(rig: S3Station, in_parts: None) -> None:
    put(rig.store, NAME, os.urandom(40 * MIB))
    rig.proxy.delay_s = 0.02

    def restart_at_the_last_part() -> None:
        if "8" in parts_of(rig.proxy):
            rig.proxy.upload_hook = lambda: None
            rig.gateway.kill()
            rig.gateway.start()

    rig.proxy.upload_hook = restart_at_the_last_part
    assert await rig.replicated() == ""
    parts = parts_of(rig.proxy)
    assert parts.count("8") == 2 and parts.count("1") == parts.count("2") == 1
    rig.check_whole()


async def test_killed_station_continues_with_the_parts_at_the_server(
    rig: S3Station, in_parts: None
) -> None:
    put(rig.store, NAME, os.urandom(40 * MIB))
    rig.proxy.delay_s = 0.01
    argv = [sys.executable, "-c", SENDING, TARGET, str(rig.root), SESSION]
    station = await asyncio.create_subprocess_exec(*argv)

    def kill_at_the_sixth_part() -> None:
        if len(parts_of(rig.proxy)) >= 6:  # two may begin between two calls
            rig.proxy.upload_hook = lambda: None
            station.kill()

    rig.proxy.upload_hook = kill_at_the_sixth_part
    assert await station.wait() == -signal.SIGKILL
    rig.proxy.reset()
    assert await rig.replicated() == ""
    parts = parts_of(rig.proxy)
    assert set(parts) == set("12345678")
    assert len(parts) <= 8 + s3.PARTS_AT_ONCE, "only parts in transfer are sent twice"
    assert sum(path.endswith("?uploads") for path in rig.proxy.requests) == 1, "one upload"
    rig.check_whole()


async def test_large_file_of_another_writer_is_not_replaced(rig: S3Station, in_parts: None) -> None:
    put(rig.store, NAME, os.urandom(LARGE))
    theirs = rig.there / SESSION / NAME

    def write_theirs() -> None:
        theirs.parent.mkdir(parents=True, exist_ok=True)
        theirs.write_bytes(b"theirs")

    rig.proxy.upload_hook = write_theirs
    listed = rig.store.listed(SESSION)
    await rig.remote().send(SESSION, listed, False, quiet)
    assert theirs.read_bytes() == b"theirs"
    assert await rig.remote().check(SESSION, listed) == [NAME]


@pytest.mark.parametrize("part", [5 * MIB, 32 * MIB])
async def test_damaged_segment_is_not_uploaded(
    rig: S3Station, monkeypatch: pytest.MonkeyPatch, part: int
) -> None:
    monkeypatch.setattr(s3, "PART", part)
    put(rig.store, NAME, os.urandom(LARGE))
    listed = rig.store.listed(SESSION)
    with (rig.root / SESSION / NAME).open("r+b") as file:
        file.write(b"????")
    with pytest.raises(PlaceFault, match="damaged here since it was verified: fpvstation verify"):
        await rig.remote().send(SESSION, listed, False, quiet)
    assert not (rig.there / SESSION / NAME).exists()


async def test_cancelled_upload_ends(rig: S3Station) -> None:
    put(rig.store, NAME, os.urandom(LARGE))
    rig.proxy.delay_s = 3600.0
    uploading = asyncio.Event()
    rig.proxy.upload_hook = uploading.set
    sending = asyncio.create_task(rig.replicated())
    await uploading.wait()
    sending.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(sending, 60.0)
    rig.proxy.delay_s = 0.0
    assert await rig.replicated() == ""
    rig.check_whole()

"""Refusals of an S3 server: keys, region, clock, and a second writer."""

import asyncio
import os
import sys
from pathlib import Path

import pytest
from testkit.base_station.bucket import TARGET, S3Station
from testkit.base_station.stored import SECOND, SESSION, put
from testkit.network.versitygw import REGION

from fpvcar.http.languages import translated
from fpvstation.replicas.remote import PlaceFault
from fpvstation.replicas.s3_bucket import BucketFile
from fpvstation.store.identity import MARKER


async def test_revoked_keys_are_named_and_new_ones_need_no_restart(
    rig: S3Station, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    file = Path(os.environ["AWS_SHARED_CREDENTIALS_FILE"])

    def write_keys() -> None:
        file.write_text(
            f"[default]\naws_access_key_id = {rig.gateway.access}\n"
            f"aws_secret_access_key = {rig.gateway.secret}\n"
        )

    write_keys()
    put(rig.store)
    replicator = rig.replicator_of(rig.remote())
    await replicator.once(True)
    rig.gateway.kill()
    rig.gateway.access, rig.gateway.secret = "rotated", "another secret"
    rig.gateway.start()
    put(rig.store, SECOND)
    with pytest.raises(PlaceFault, match="set the right AWS_ACCESS_KEY_ID"):
        await replicator.once(True)
    assert [replica.place for replica in rig.copies.states(SESSION, [])][1:] == [TARGET]
    write_keys()
    await replicator.once(True)
    assert not replicator.state.bad
    rig.check_whole()


@pytest.mark.parametrize(
    ("variable", "text", "reason"),
    [
        ("AWS_SECRET_ACCESS_KEY", "wrong", "SignatureDoesNotMatch: "),
        ("AWS_ENDPOINT_URL", "nas:7070", "Invalid endpoint: nas:7070: check the network, and AWS"),
        ("AWS_ACCESS_KEY_ID", "", "Unable to locate credentials: set the right AWS"),
    ],
)
async def test_wrong_setting_is_named(
    rig: S3Station, monkeypatch: pytest.MonkeyPatch, variable: str, text: str, reason: str
) -> None:
    put(rig.store)
    monkeypatch.setenv(variable, text)
    assert reason in await rig.replicated()
    assert not rig.there.exists()


async def test_wrong_region_is_corrected_by_the_answer_of_the_server(
    rig: S3Station, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(rig.store)
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    assert await rig.replicated() == ""
    rig.check_whole()


async def test_region_that_no_answer_corrects_is_named(rig: S3Station) -> None:
    put(rig.store)
    rig.proxy.refusals = [(400, "AuthorizationHeaderMalformed")] * 99
    step = f"region {REGION} refused: set AWS_REGION to the bucket's region"
    assert step in await rig.replicated()
    assert not rig.there.exists()
    rig.proxy.refusals = []
    assert await rig.replicated() == ""


async def test_wrong_clock_is_named(rig: S3Station) -> None:
    put(rig.store)
    rig.proxy.shift_s = -3600.0
    assert "RequestTimeTooSkewed" in (fault := await rig.replicated())
    assert "set the clock of this machine" in fault
    rig.proxy.shift_s = 0.0
    assert await rig.replicated() == ""


@pytest.mark.parametrize(
    ("code", "step"),
    [
        ("ExpiredToken", "get new temporary keys"),
        ("AccessDenied", "allow these keys s3:PutObject there"),
        ("QuotaExceeded", "make room there"),
    ],
)
async def test_refusal_names_the_next_step(rig: S3Station, code: str, step: str) -> None:
    put(rig.store)
    rig.proxy.refusals = [(403, code)]
    fault = await rig.replication_fault()
    assert fault and step in str(fault)
    # A page translates the step; the server's own words stay.
    german = translated("de", fault)
    assert german.startswith(str(fault).partition(step)[0]) and step not in german
    assert await rig.replicated() == ""


async def test_missing_bucket_is_no_missing_file(rig: S3Station) -> None:
    bucket = rig.bucket("absent")
    for call in (bucket.read("x"), bucket.files("x"), bucket.write("x", b"", None)):
        with pytest.raises(PlaceFault, match="NoSuchBucket.*make the bucket, or correct"):
            await call
    assert await rig.bucket().read("x") is None


async def test_missing_library_is_named(rig: S3Station, monkeypatch: pytest.MonkeyPatch) -> None:
    put(rig.store)
    monkeypatch.setitem(sys.modules, "boto3", None)
    assert "pip install 'fpvcar[s3]'" in await rig.replicated()


async def test_bucket_of_another_store_gets_no_data(rig: S3Station, tmp_path: Path) -> None:
    put(rig.store)
    assert await rig.replicated() == ""
    before = sorted(rig.gateway.files.rglob("*"))
    other = S3Station(tmp_path / "other", rig.gateway, rig.proxy)
    put(other.store, SECOND)
    assert "of another store" in (fault := await other.replicated())
    assert "give each store its own folder" in fault
    assert sorted(rig.gateway.files.rglob("*")) == before


async def test_two_stores_claim_a_bucket_once(rig: S3Station, tmp_path: Path) -> None:
    rigs = [rig, *(S3Station(tmp_path / f"{n}", rig.gateway, rig.proxy) for n in range(4))]
    claims = (rig.remote().claim(rig.store.id, False) for rig in rigs)
    faults = await asyncio.gather(*claims, return_exceptions=True)
    assert [str(fault) for fault in faults if fault].count("None") == 0
    assert sum(fault is None for fault in faults) == 1
    (owner,) = (rig for rig, fault in zip(rigs, faults, strict=True) if fault is None)
    assert (rig.there / MARKER).read_bytes() == (owner.root / MARKER).read_bytes()


async def test_file_of_another_writer_is_not_replaced(rig: S3Station) -> None:
    bucket = rig.bucket()
    first = await bucket.write("file", b"first", None)
    assert first and await bucket.write("file", b"second", None) is None
    assert await bucket.write("file", b"third", BucketFile(5, first))
    with pytest.raises(PlaceFault, match="PreconditionFailed.*let only one station write"):
        await bucket.write("file", b"late", BucketFile(5, first))
    assert await bucket.read("file") == b"third"

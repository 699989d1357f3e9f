"""Buckets that omit, cut, damage or refuse: nothing is deleted that is not right here."""

from pathlib import Path

import pytest
from testkit.base_station.bucket import LARGE, TARGET, S3Station
from testkit.base_station.stored import DATA, NAME, SECOND, SESSION, THIRD, put

from fpvstation.replicas import s3
from fpvstation.replicas.remote import PlaceFault

FILES = {NAME: DATA, SECOND: b"second" * 999}
CHECKSUM = ("x-amz-checksum-sha256", "x-amz-sdk-checksum-algorithm", "x-amz-checksum-algorithm")
CONDITION = ("if-none-match", "if-match")


def check_here(rig: S3Station) -> None:
    assert {path.name: path.read_bytes() for path in (rig.root / SESSION).glob("*.mcap")} == FILES
    assert not list(rig.there.rglob("*.mcap")) and not list(rig.root.glob(".archived/*/*/*"))


@pytest.mark.parametrize("lie", ["omitted", "absent", "halved", "flipped"])
async def test_recall_from_a_bucket_that_lies_loses_nothing(rig: S3Station, lie: str) -> None:
    for name, data in FILES.items():
        put(rig.store, name, data)
    await rig.tiers().archive(SESSION)
    file = rig.there / SESSION / SECOND
    if lie == "flipped":
        file.write_bytes(b"S" + FILES[SECOND][1:])
    else:
        setattr(rig.proxy, lie, SECOND)
    lost = await rig.tiers().recall(SESSION)
    assert lost == ([] if lie == "omitted" else [SECOND])
    assert (rig.root / SESSION / NAME).read_bytes() == DATA
    if lost:
        assert file.exists() and not any(
            request.startswith("DELETE") and SECOND in request for request in rig.proxy.requests
        )
    rig.proxy.reset()
    if lie == "flipped":
        assert await rig.tiers().recall(SESSION) == [SECOND]
        file.write_bytes(FILES[SECOND])
    if lost:
        assert await rig.tiers().recall(SESSION) == []
    check_here(rig)


async def test_bucket_with_no_right_file_keeps_its_session(rig: S3Station) -> None:
    put(rig.store)
    await rig.tiers().archive(SESSION)
    rig.proxy.absent = NAME
    with pytest.raises(PlaceFault, match="no right file of this session"):
        await rig.tiers().recall(SESSION)
    assert rig.store.archived(SESSION) and (rig.there / SESSION / NAME).exists()


async def test_missing_right_to_delete_is_named_before_the_first_session(rig: S3Station) -> None:
    put(rig.store)
    rig.proxy.denied = {"DELETE"}
    with pytest.raises(PlaceFault, match="AccessDenied.*allow these keys s3:DeleteObject there"):
        await rig.tiers().archive(SESSION)
    assert rig.store.archived(SESSION) is None and (rig.root / SESSION / NAME).exists()


async def test_recall_without_the_right_to_delete_ends(rig: S3Station) -> None:
    for name, data in FILES.items():
        put(rig.store, name, data)
    await rig.tiers().archive(SESSION)
    rig.proxy.denied = {"DELETE"}
    with pytest.raises(PlaceFault, match="allow these keys s3:DeleteObject there"):
        await rig.tiers().recall(SESSION)
    assert rig.store.archived(SESSION) is None, "the session is here"
    put(rig.store, THIRD, b"late")
    (fault,) = await rig.tiers().resume()
    assert "s3:DeleteObject" in str(fault)
    rig.proxy.reset()
    assert await rig.tiers().resume() == []
    (rig.root / SESSION / THIRD).unlink()
    check_here(rig)


@pytest.mark.parametrize("size", [1000, LARGE], ids=["whole", "in parts"])
@pytest.mark.parametrize(
    "headers", [CHECKSUM, CONDITION, CHECKSUM + CONDITION], ids=["checksum", "condition", "both"]
)
async def test_feature_that_a_server_refuses_is_left_out(
    rig: S3Station, in_parts: None, headers: tuple[str, ...], size: int
) -> None:
    put(rig.store, NAME, bytes(size))
    rig.proxy.unsupported = {
        header: (400, "InvalidArgument") if header in CHECKSUM else (501, "NotImplemented")
        for header in headers
    }
    assert await rig.replicated() == ""
    rig.check_whole()
    (rig.there / SESSION / NAME).write_bytes(b"rotted" + bytes(size - 6))
    remote = rig.remote()
    listed = rig.store.listed(SESSION)
    assert await remote.check(SESSION, listed) == [NAME]
    await remote.send(SESSION, listed, True)
    before = len(rig.proxy.requests)
    assert await remote.check(SESSION, listed) == []
    read = any("GET" in line and NAME in line for line in rig.proxy.requests[before:])
    assert read == (headers != CONDITION), "an upload without SHA-256 is read back"
    rig.check_whole()


async def test_refused_feature_is_remembered(rig: S3Station) -> None:
    put(rig.store)
    rig.proxy.unsupported = {"x-amz-checksum-sha256": (400, "InvalidArgument")}
    remote = rig.remote()
    await remote.send(SESSION, rig.store.listed(SESSION), False)
    assert rig.proxy.checksums
    rig.proxy.checksums.clear()
    (rig.there / SESSION / NAME).unlink()
    await remote.send(SESSION, rig.store.listed(SESSION), False)
    assert not rig.proxy.checksums


async def test_server_without_conditions_keeps_files_of_another_writer(
    rig: S3Station, tmp_path: Path
) -> None:
    rig.proxy.unsupported = dict.fromkeys(CONDITION, (501, "NotImplemented"))
    put(rig.store)
    assert await rig.replicated() == ""
    other = S3Station(tmp_path / "other", rig.gateway, rig.proxy)
    put(other.store, SECOND)
    assert "of another store" in await other.replicated()
    bucket = rig.bucket()
    assert await bucket.write("file", b"first", None)
    assert await bucket.write("file", b"second", None) is None
    assert await bucket.read("file") == b"first"


@pytest.mark.parametrize(
    ("status", "code", "step"),
    [
        (503, "SlowDown", "the next try continues"),
        (400, "BadDigest", "the next try continues"),
        (400, "InvalidBucketName", "will refuse it again"),
        (501, "NotImplemented", "will refuse it again"),
    ],
)
async def test_permanent_and_passing_refusals_are_told_apart(
    rig: S3Station, impatient: None, status: int, code: str, step: str
) -> None:
    put(rig.store)
    rig.proxy.refusals = [(status, code)] * 99
    assert step in await rig.replicated()


async def test_marks_of_folders_and_foreign_files_are_not_fetched(rig: S3Station) -> None:
    put(rig.store)
    assert await rig.replicated() == ""
    client = rig.bucket()
    for key in (f"{SESSION}/notes.txt", f"{SESSION}/deeper/x"):
        await client.write(key, b"foreign", None)
    await client.run(client.call, "put_object", f"{SESSION}/", Body=b"")
    assert set(await rig.remote().fetch(SESSION)) == {NAME, "SHA256SUMS"}
    (rig.root / SESSION / NAME).unlink()
    assert (await rig.restore(rig.remote())).restored == {TARGET: 1}


async def test_file_that_a_list_omits_is_restored(rig: S3Station) -> None:
    put(rig.store)
    assert await rig.replicated() == ""
    rig.proxy.omitted = NAME
    assert await rig.remote().check(SESSION, rig.store.listed(SESSION)) == []
    (rig.root / SESSION / NAME).unlink()
    rig.store.verify_segment(rig.store.listed(SESSION)[0])
    assert await rig.replicated() == ""
    assert (rig.root / SESSION / NAME).read_bytes() == DATA


async def test_library_prints_nothing_of_its_own(
    rig: S3Station, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    assert await rig.bucket().read("absent") is None
    assert "credentials" not in caplog.text


async def test_large_file_is_read_once_for_a_recall(rig: S3Station, in_parts: None) -> None:
    assert s3.PART < LARGE
    put(rig.store, NAME, bytes(LARGE))
    await rig.tiers().archive(SESSION)
    before = len(rig.proxy.requests)
    assert await rig.tiers().recall(SESSION) == []
    gets = [line for line in rig.proxy.requests[before:] if "GET" in line and NAME in line]
    assert len(gets) == 1

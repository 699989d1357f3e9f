"""Office in a bucket of a real S3 server, with faults of server, network, keys and clocks."""

import asyncio
import base64
import contextlib
import hashlib
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from fpvcar.runtime.units import MIB
from fpvstation.__main__ import main
from fpvstation.mirror import s3, s3_bucket
from fpvstation.mirror.replicate import CopyProgress, OfficeFault, Replicator, quiet
from fpvstation.mirror.restore import Restore
from fpvstation.mirror.s3 import S3
from fpvstation.mirror.s3_bucket import Bucket, BucketFile
from fpvstation.mirror.tiers import Tiers, archive_of
from fpvstation.store.disk import Folder
from fpvstation.store.identity import MARKER
from fpvstation.store.replica_log import ReplicaLog
from fpvstation.store.store import Store
from fpvstation.store.sums_file import SUMS_FILE
from tests.soak.seeds import chosen
from tests.support.base_station.s3_proxy import S3Proxy
from tests.support.base_station.versitygw import BUCKET, Gateway
from tests.unit.fpvstation.store.test_store import CAR, DATA, NAME, SESSION, put

TARGET = f"s3://{BUCKET}/office"
SECOND, THIRD = (NAME.replace("0001", number) for number in ("0002", "0003"))
LARGE = 12 * MIB
SEEDS, SEEDS_SOAK = 3, 100
SENDING = """
import asyncio, sys
from pathlib import Path
from fpvstation.mirror import s3
from fpvstation.store.disk import Folder
from fpvstation.store.store import Store
s3.PART = 5 << 20
target, root, session = sys.argv[1:]
listed = Store(Folder(Path(root))).listed(session)
asyncio.run(s3.S3(target, Path(root)).send(session, listed, False))
"""
"""Program that uploads one session."""


async def act(function: Callable[..., Any], *arguments: Any) -> Any:
    return await asyncio.to_thread(function, *arguments)


class Rig:
    """Store whose office is a bucket behind a proxy."""

    def __init__(self, root: Path, gateway: Gateway, proxy: S3Proxy) -> None:
        self.root, self.gateway, self.proxy = root, gateway, proxy
        self.there = gateway.files / "office"
        root.mkdir()
        disk = Folder(root)
        self.store, self.copies = Store(disk), ReplicaLog(disk)
        self.store.open("")

    def office(self) -> S3:
        return S3(TARGET, self.root)

    def bucket(self, name: str = BUCKET) -> Bucket:
        return Bucket(f"s3://{name}", name, "office/")

    async def relayed(self) -> str:
        """Relay once; return the fault, or ""."""
        relay = Replicator(self.office(), self.store, self.copies, act)
        try:
            await relay.once(True)
        except OfficeFault as fault:
            return str(fault)
        return "; ".join(relay.state.bad.values())

    def check_whole(self) -> None:
        """Check that the bucket has exactly the store's sessions, by `sha256sum`."""
        for listed in self.root.glob(f"*/*/*/{SUMS_FILE}"):
            folder = self.there / listed.parent.relative_to(self.root)
            argv = ["sha256sum", "--quiet", "--strict", "-c", SUMS_FILE]
            subprocess.run(argv, cwd=folder, check=True, timeout=60)
            names = {path.name for path in folder.iterdir()}
            assert names == {path.name for path in listed.parent.iterdir()}
            assert (folder / SUMS_FILE).read_bytes() == listed.read_bytes()


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[Gateway]:
    with Gateway(tmp_path / "s3") as made:
        yield made


@pytest.fixture
async def rig(
    tmp_path: Path, gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Rig]:
    async with S3Proxy(gateway.port) as proxy:
        for name, text in gateway.environment(proxy.port).items():
            monkeypatch.setenv(name, text)
        yield Rig(tmp_path / "store", gateway, proxy)


@pytest.fixture
def in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let files of more than 5 MiB be uploaded in parts of 5 MiB, the least of S3."""
    monkeypatch.setattr(s3, "PART", 5 * MIB)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a fault be reported after the second attempt."""
    monkeypatch.setattr(s3_bucket, "ATTEMPTS", 2)


def parts_of(proxy: S3Proxy) -> list[str]:
    """Return the number of each uploaded part."""
    return [path.split("partNumber=")[1][0] for path in proxy.uploads() if "partNumber=" in path]


# Uploads


async def test_server_rejects_bytes_changed_on_the_way(rig: Rig) -> None:
    put(rig.store)
    rig.proxy.flips = 1
    assert "SHA256Mismatch" in await rig.relayed()
    assert not (rig.there / SESSION / NAME).exists()
    assert await rig.relayed() == ""
    rig.check_whole()
    checksum = base64.b64encode(hashlib.sha256(DATA).digest()).decode()
    assert rig.proxy.checksums[f"/{BUCKET}/office/{SESSION}/{NAME}"] == checksum


async def test_verified_upload_is_not_read_back(rig: Rig) -> None:
    put(rig.store)
    assert await rig.relayed() == ""
    assert f"GET /{BUCKET}/office/{SESSION}/{NAME}" not in rig.proxy.requests
    office, listed = rig.office(), rig.store.listed(SESSION)
    assert await office.check(SESSION, listed) == []
    assert rig.proxy.requests[-1] == f"GET /{BUCKET}/office/{SESSION}/{NAME}"


async def test_killed_server_repeats_only_the_file_in_transfer(rig: Rig, impatient: None) -> None:
    for name in (NAME, SECOND, THIRD):
        put(rig.store, name, os.urandom(3 * MIB))

    def kill_at_second() -> None:
        if SECOND in rig.proxy.uploads()[-1]:
            rig.gateway.kill()

    rig.proxy.upload_hook = kill_at_second
    assert "check AWS_ENDPOINT_URL and the network" in await rig.relayed()
    assert rig.copies.of(SESSION).get(TARGET) is None
    rig.proxy.upload_hook = lambda: None
    rig.gateway.start()
    assert await rig.relayed() == ""
    rig.check_whole()
    assert sum(NAME in path for path in rig.proxy.uploads()) == 1


async def test_large_file_repeats_only_the_refused_part(rig: Rig, in_parts: None) -> None:
    put(rig.store, NAME, os.urandom(LARGE))
    (listed,) = rig.store.listed(SESSION)
    rig.proxy.refused, rig.proxy.refusals = "PUT", [(503, "SlowDown")]
    told = list[CopyProgress]()
    await rig.office().send(SESSION, [listed], False, told.append)
    assert sorted(parts_of(rig.proxy)) in (
        ["1", "1", "2", "3"],
        ["1", "2", "2", "3"],
        ["1", "2", "3", "3"],
    )
    assert told[-1].moved == told[-1].total
    assert sum("partNumber=" in path for path in rig.proxy.checksums) == 3
    rig.check_whole()


async def test_large_file_survives_a_restart_of_the_server(rig: Rig, in_parts: None) -> None:
    put(rig.store, NAME, os.urandom(40 * MIB))
    rig.proxy.delay_s = 0.02

    def restart_at_the_last_part() -> None:
        if "8" in parts_of(rig.proxy):
            rig.proxy.upload_hook = lambda: None
            rig.gateway.kill()
            rig.gateway.start()

    rig.proxy.upload_hook = restart_at_the_last_part
    assert await rig.relayed() == ""
    parts = parts_of(rig.proxy)
    assert parts.count("8") == 2 and parts.count("1") == parts.count("2") == 1
    rig.check_whole()


async def test_killed_station_continues_with_the_parts_at_the_server(
    rig: Rig, in_parts: None
) -> None:
    put(rig.store, NAME, os.urandom(40 * MIB))
    rig.proxy.delay_s = 0.01
    argv = [sys.executable, "-c", SENDING, TARGET, str(rig.root), SESSION]
    station = await asyncio.create_subprocess_exec(*argv)

    def kill_at_the_sixth_part() -> None:
        if len(parts_of(rig.proxy)) == 6 and station.returncode is None:
            station.kill()

    rig.proxy.upload_hook = kill_at_the_sixth_part
    assert await station.wait() == -signal.SIGKILL
    rig.proxy.reset()
    assert await rig.relayed() == ""
    parts = parts_of(rig.proxy)
    assert set(parts) == set("12345678")
    assert len(parts) <= 8 + s3.PARTS_AT_ONCE, "only parts in transfer are sent twice"
    assert sum(path.endswith("?uploads") for path in rig.proxy.requests) == 1, "one upload"
    rig.check_whole()


async def test_large_file_of_another_writer_is_not_replaced(rig: Rig, in_parts: None) -> None:
    put(rig.store, NAME, os.urandom(LARGE))
    theirs = rig.there / SESSION / NAME

    def write_theirs() -> None:
        theirs.parent.mkdir(parents=True, exist_ok=True)
        theirs.write_bytes(b"theirs")

    rig.proxy.upload_hook = write_theirs
    listed = rig.store.listed(SESSION)
    await rig.office().send(SESSION, listed, False, quiet)
    assert theirs.read_bytes() == b"theirs"
    assert await rig.office().check(SESSION, listed) == [NAME]


@pytest.mark.parametrize("part", [5 * MIB, 32 * MIB])
async def test_damaged_segment_is_not_uploaded(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, part: int
) -> None:
    monkeypatch.setattr(s3, "PART", part)
    put(rig.store, NAME, os.urandom(LARGE))
    listed = rig.store.listed(SESSION)
    with (rig.root / SESSION / NAME).open("r+b") as file:
        file.write(b"????")
    with pytest.raises(OfficeFault, match="damaged here since it was verified; it is not sent"):
        await rig.office().send(SESSION, listed, False, quiet)
    assert not (rig.there / SESSION / NAME).exists()


async def test_cancelled_upload_ends(rig: Rig) -> None:
    put(rig.store, NAME, os.urandom(LARGE))
    rig.proxy.delay_s = 3600.0
    uploading = asyncio.Event()
    rig.proxy.upload_hook = uploading.set
    sending = asyncio.create_task(rig.relayed())
    await uploading.wait()
    sending.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(sending, 60.0)
    rig.proxy.delay_s = 0.0
    assert await rig.relayed() == ""
    rig.check_whole()


# Faults of server and network


@pytest.mark.parametrize("status", [500, 503])
async def test_short_fault_of_the_server_is_retried_at_once(rig: Rig, status: int) -> None:
    put(rig.store)
    rig.proxy.refusals = [(status, "InternalError")] * 2
    assert await rig.relayed() == ""
    rig.check_whole()


async def test_long_fault_of_the_server_is_reported_and_ends(rig: Rig, impatient: None) -> None:
    put(rig.store)
    rig.proxy.refusals = [(503, "SlowDown")] * 1000
    assert await rig.relayed() == f"{TARGET}: SlowDown: no: the copy is retried"
    rig.proxy.refusals = []
    assert await rig.relayed() == ""
    rig.check_whole()


async def test_truncated_answers_are_continued(rig: Rig) -> None:
    put(rig.store, NAME, os.urandom(LARGE))
    assert await rig.relayed() == ""
    rig.proxy.truncated_least, rig.proxy.truncations = MIB, 3
    assert await rig.office().check(SESSION, rig.store.listed(SESSION)) == []
    assert rig.proxy.truncations == 0


async def test_truncated_list_is_a_fault_and_not_an_absence(rig: Rig) -> None:
    put(rig.store)
    assert await rig.relayed() == ""
    rig.proxy.truncations = 1000
    with pytest.raises(OfficeFault, match="the copy is retried"):
        await rig.office().check(SESSION, rig.store.listed(SESSION))


async def test_interrupted_download_continues(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    data = os.urandom(LARGE)
    put(rig.store, NAME, data)
    assert await rig.relayed() == ""
    office, told = rig.office(), list[CopyProgress]()
    monkeypatch.setattr(s3_bucket, "ATTEMPTS", 1)
    rig.proxy.truncated_least, rig.proxy.truncations = MIB, 1

    def refuse_the_rest(progress: CopyProgress) -> None:
        told.append(progress)
        rig.proxy.refusals = [(503, "SlowDown")] * 1000

    with pytest.raises(OfficeFault, match="SlowDown"):
        await office.fetch(SESSION, refuse_the_rest)
    moved, rig.proxy.refusals = told[-1].moved, []
    assert moved >= LARGE // 4
    rig.proxy.truncations = 0
    paths = await office.fetch(SESSION, told.append)
    assert moved + told[-1].moved == told[-1].total == told[-1].done
    assert (rig.root / paths[NAME]).read_bytes() == data


async def test_silent_server_is_reported(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    put(rig.store, NAME, os.urandom(LARGE))
    assert await rig.relayed() == ""
    monkeypatch.setattr(s3_bucket, "SILENCE_S", 1.0)
    monkeypatch.setattr(s3_bucket, "ATTEMPTS", 1)
    rig.proxy.delay_s = 60.0
    for call in (
        rig.office().check(SESSION, rig.store.listed(SESSION)),
        rig.bucket().read(f"{SESSION}/{NAME}"),
        rig.bucket().write("file", DATA, None),
    ):
        with pytest.raises(OfficeFault, match="timed out|timeout"):
            await call


async def test_stopped_server_is_named(
    rig: Rig, impatient: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    put(rig.store)
    fault = await rig.relayed()
    assert "Could not connect" in fault and "check AWS_ENDPOINT_URL and the network" in fault


# Keys, region, clock


async def test_revoked_keys_are_named_and_new_ones_need_no_restart(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
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
    relay = Replicator(rig.office(), rig.store, rig.copies, act)
    await relay.once(True)
    rig.gateway.kill()
    rig.gateway.access, rig.gateway.secret = "rotated", "another secret"
    rig.gateway.start()
    put(rig.store, SECOND)
    with pytest.raises(OfficeFault, match="correct AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"):
        await relay.once(True)
    assert [replica.place for replica in rig.copies.states(SESSION, [])][1:] == [TARGET]
    write_keys()
    await relay.once(True)
    assert not relay.state.bad
    rig.check_whole()


@pytest.mark.parametrize(
    ("variable", "text", "reason"),
    [
        ("AWS_SECRET_ACCESS_KEY", "wrong", "SignatureDoesNotMatch: "),
        ("AWS_ENDPOINT_URL", "nas:7070", "Invalid endpoint: nas:7070: set AWS_ENDPOINT_URL to"),
        ("AWS_ACCESS_KEY_ID", "", "Unable to locate credentials: set AWS_ACCESS_KEY_ID"),
    ],
)
async def test_wrong_setting_is_named(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, variable: str, text: str, reason: str
) -> None:
    put(rig.store)
    monkeypatch.setenv(variable, text)
    assert reason in await rig.relayed()
    assert not rig.there.exists()


async def test_wrong_region_is_corrected_by_the_answer_of_the_server(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(rig.store)
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    assert await rig.relayed() == ""
    rig.check_whole()


async def test_wrong_clock_is_named(rig: Rig) -> None:
    put(rig.store)
    rig.proxy.shift_s = -3600.0
    assert "RequestTimeTooSkewed" in (fault := await rig.relayed())
    assert "set the clock of this machine" in fault
    rig.proxy.shift_s = 0.0
    assert await rig.relayed() == ""


@pytest.mark.parametrize(
    ("code", "step"),
    [
        ("ExpiredToken", "get new temporary keys"),
        ("AccessDenied", "allow these keys s3:ListBucket, s3:GetObject, s3:PutObject"),
        ("QuotaExceeded", "make room there"),
    ],
)
async def test_refusal_names_the_next_step(rig: Rig, code: str, step: str) -> None:
    put(rig.store)
    rig.proxy.refusals = [(403, code)]
    assert step in await rig.relayed()
    assert await rig.relayed() == ""


async def test_missing_bucket_is_no_missing_file(rig: Rig) -> None:
    bucket = rig.bucket("absent")
    for call in (bucket.read("x"), bucket.files("x"), bucket.write("x", b"", None)):
        with pytest.raises(OfficeFault, match="NoSuchBucket.*make the bucket, or correct"):
            await call
    assert await rig.bucket().read("x") is None


async def test_missing_library_is_named(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    put(rig.store)
    monkeypatch.setitem(sys.modules, "boto3", None)
    assert "pip install 'fpvcar[s3]'" in await rig.relayed()


# Two writers


async def test_bucket_of_another_store_gets_no_data(rig: Rig, tmp_path: Path) -> None:
    put(rig.store)
    assert await rig.relayed() == ""
    before = sorted(rig.gateway.files.rglob("*"))
    other = Rig(tmp_path / "other", rig.gateway, rig.proxy)
    put(other.store, SECOND)
    assert "of another store" in (fault := await other.relayed())
    assert "give each store its own prefix" in fault
    assert sorted(rig.gateway.files.rglob("*")) == before


async def test_two_stores_claim_a_bucket_once(rig: Rig, tmp_path: Path) -> None:
    rigs = [rig, *(Rig(tmp_path / f"{n}", rig.gateway, rig.proxy) for n in range(4))]
    claims = (rig.office().claim(rig.store.id, False) for rig in rigs)
    faults = await asyncio.gather(*claims, return_exceptions=True)
    assert [str(fault) for fault in faults if fault].count("None") == 0
    assert sum(fault is None for fault in faults) == 1
    (owner,) = (rig for rig, fault in zip(rigs, faults, strict=True) if fault is None)
    assert (rig.there / MARKER).read_bytes() == (owner.root / MARKER).read_bytes()


async def test_file_of_another_writer_is_not_replaced(rig: Rig) -> None:
    bucket = rig.bucket()
    first = await bucket.write("file", b"first", None)
    assert first and await bucket.write("file", b"second", None) is None
    assert await bucket.write("file", b"third", BucketFile(5, first))
    with pytest.raises(OfficeFault, match="PreconditionFailed.*let only one station write"):
        await bucket.write("file", b"late", BucketFile(5, first))
    assert await bucket.read("file") == b"third"


# Commands


async def test_documented_commands_verify_and_restore(
    rig: Rig, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    put(rig.store)
    put(rig.store, SECOND, b"second")
    assert await rig.relayed() == ""
    config = tmp_path / "station.toml"
    config.write_text(f'[office]\ntarget = "{TARGET}"\n')
    options = [f"--store={rig.root}", f"--config={config}"]

    def run(*argv: str) -> int:
        return main([*argv, *options])

    assert await asyncio.to_thread(run, "verify", "--office") == 0
    assert f"{TARGET}: good: 2 segments; bad: 0" in capsys.readouterr().out
    (rig.there / SESSION / SECOND).write_bytes(b"sEcond")
    assert await asyncio.to_thread(run, "verify", "--office") == 1
    assert f"{SESSION}/{SECOND}: bad or missing there" in capsys.readouterr().err
    (rig.there / SESSION / SECOND).write_bytes(b"second")
    for name in (NAME, SECOND):
        (rig.root / SESSION / name).unlink()
    assert await asyncio.to_thread(run, "restore", SESSION) == 0
    assert f"2 segments restored from {TARGET}" in capsys.readouterr().out
    assert (rig.root / SESSION / NAME).read_bytes() == DATA
    assert not list(rig.root.glob(".incoming/restore"))
    assert await asyncio.to_thread(run, "restore", "Arrow-20261122T100000Z") == 1
    assert "is not there" in capsys.readouterr().err


# Archive


async def test_session_moves_to_a_bucket_and_back(rig: Rig, impatient: None) -> None:
    put(rig.store)
    put(rig.store, SECOND, os.urandom(LARGE))
    listed, disk = rig.store.listed(SESSION), Folder(rig.root)
    before = {path.name: path.read_bytes() for path in (rig.root / SESSION).iterdir()}

    def tiers() -> Tiers:
        return Tiers(rig.store, disk, archive_of(TARGET, rig.root), (), act)

    def kill_at_second() -> None:
        if SECOND in rig.proxy.uploads()[-1]:
            rig.gateway.kill()

    rig.proxy.upload_hook = kill_at_second
    with pytest.raises(OfficeFault, match="the copy is retried"):
        await tiers().archive(SESSION)
    assert {path.name for path in (rig.root / SESSION).iterdir()} == before.keys()
    rig.proxy.reset()
    rig.gateway.start()
    await tiers().archive(SESSION)
    assert not (rig.root / CAR).exists() and rig.store.listed(SESSION) == listed
    assert {path.name: path.read_bytes() for path in (rig.there / SESSION).iterdir()} == before
    assert rig.store.is_away(SESSION)
    rig.gateway.kill()
    with pytest.raises(OfficeFault, match="check AWS_ENDPOINT_URL"):
        await tiers().recall(SESSION)
    rig.gateway.start()
    assert await tiers().recall(SESSION) == []
    assert {path.name: path.read_bytes() for path in (rig.root / SESSION).iterdir()} == before
    assert not list(rig.there.rglob("*.mcap")) and rig.store.archived(SESSION) is None
    assert not list(rig.root.glob(".incoming/archive/*"))


async def test_damaged_record_of_a_bucket_loses_no_session(rig: Rig) -> None:
    put(rig.store)
    disk = Folder(rig.root)
    await Tiers(rig.store, disk, archive_of(TARGET, rig.root), (), act).archive(SESSION)
    (record,) = rig.root.glob(".archived/*/*/*.json")
    record.write_bytes(record.read_bytes()[:-9])
    assert rig.store.archived(SESSION) is None
    work = Restore(SESSION, rig.store, disk, rig.copies, act, lambda place, progress: None)
    result = await work.run([rig.office()])
    assert result.restored == {TARGET: 1} and not result.missing
    assert (rig.root / SESSION / NAME).read_bytes() == DATA


# Random faults


class Faults:
    """Faults of one random schedule, one at a time."""

    def __init__(self, rig: Rig, random: Random) -> None:
        self._rig, self._random = rig, random
        self._keys = rig.gateway.access, rig.gateway.secret
        self.cancelled_s: float | None = None
        """Time after which the relay is cancelled; None if it is not."""

    def cause(self) -> None:
        """Cause a random fault."""
        proxy, random = self._rig.proxy, self._random
        kinds = ["kill", "down", "5xx", "slow", "cut", "flip", "clock", "keys", "cancel"]
        kind, self.cancelled_s = random.choice(kinds), None
        if kind == "cancel":
            self.cancelled_s = random.uniform(0.0, 0.3)
        elif kind == "kill":
            at = random.randrange(4)
            proxy.upload_hook = lambda: self._kill(at + len(proxy.uploads()))
        elif kind == "down":
            self._rig.gateway.kill()
        elif kind == "5xx":
            proxy.refusals = [(random.choice([500, 503]), "InternalError")] * random.choice([2, 99])
        elif kind == "slow":
            proxy.delay_s = 0.02
        elif kind == "cut":
            proxy.truncations = random.choice([1, 99])
        elif kind == "flip":
            proxy.flips = random.randrange(1, 4)
        elif kind == "clock":
            proxy.shift_s = random.choice([-3600.0, 3600.0])
        else:
            self._restart("rotated", "another secret")

    def _kill(self, count: int) -> None:
        if len(self._rig.proxy.uploads()) >= count:
            self._rig.gateway.kill()

    def _restart(self, *keys: str) -> None:
        gateway = self._rig.gateway
        gateway.kill()
        gateway.access, gateway.secret = keys
        gateway.start()

    def mend(self) -> None:
        """End all faults."""
        self._rig.proxy.reset()
        self._restart(*self._keys)


@pytest.mark.soak
async def test_random_faults_end_with_a_whole_bucket(
    rig: Rig, soaking: bool, in_parts: None, impatient: None
) -> None:
    seeds = chosen(SEEDS_SOAK) if soaking else range(SEEDS)
    for seed in seeds:
        random = Random(seed)
        print(f"SOAK_SEED={seed} SOAK_SEEDS=1")
        faults = Faults(rig, random)
        session = f"Plague-20261121T19{seed % 60:02d}00Z"
        recorded = dict[str, bytes]()
        for number in range(1, 7):
            name = f"{session}-{number:04d}.mcap"
            recorded[name] = random.randbytes(random.choice([0, 100, 300_000, 7 * MIB]))
            put(rig.store, name, recorded[name])
            faults.cause()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(rig.relayed(), faults.cancelled_s)
            faults.mend()
            for file in rig.there.rglob("*.mcap"):  # a published file is whole
                assert file.read_bytes() == recorded[file.name], file
        assert await rig.relayed() == ""
        rig.check_whole()
        kept = rig.root / "Plague" / "2026-11-21" / session
        for name in random.sample(sorted(recorded), 3):
            (kept / name).unlink()
        for segment in list(rig.store.segments()):
            rig.store.verify_segment(segment)
        assert await rig.relayed() == ""
        assert {file.name: file.read_bytes() for file in kept.glob("*.mcap")} == recorded
        for folder in (rig.root / "Plague", rig.root / ".copies", rig.there / "Plague"):
            shutil.rmtree(folder)

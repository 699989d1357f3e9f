"""Faults of an S3 server and of the network, one by one and at random."""

import asyncio
import contextlib
import os
import shutil
from random import Random

import pytest
from testkit.base_station.bucket import LARGE, TARGET, S3Station
from testkit.base_station.stored import DATA, NAME, SESSION, put

from fpvcar.runtime.units import MIB
from fpvstation.replicas import s3_bucket
from fpvstation.replicas.remote import CopyProgress, PlaceFault
from tests.soak.seeds import chosen

SEEDS, SEEDS_SOAK = 3, 100


@pytest.mark.parametrize("status", [500, 503])
async def test_short_fault_of_the_server_is_retried_at_once(rig: S3Station, status: int) -> None:
    put(rig.store)
    rig.proxy.refusals = [(status, "InternalError")] * 2
    assert await rig.replicated() == ""
    rig.check_whole()


async def test_long_fault_of_the_server_is_reported_and_ends(
    rig: S3Station, impatient: None
) -> None:
    put(rig.store)
    rig.proxy.refusals = [(503, "SlowDown")] * 1000
    assert await rig.replicated() == f"{TARGET}: SlowDown: no: the next try continues the copy"
    rig.proxy.refusals = []
    assert await rig.replicated() == ""
    rig.check_whole()


async def test_truncated_answers_are_continued(rig: S3Station) -> None:
    put(rig.store, NAME, os.urandom(LARGE))
    assert await rig.replicated() == ""
    rig.proxy.truncated_least, rig.proxy.truncations = MIB, 3
    assert await rig.remote().check(SESSION, rig.store.listed(SESSION)) == []
    assert rig.proxy.truncations == 0


async def test_truncated_list_is_a_fault_and_not_an_absence(rig: S3Station) -> None:
    put(rig.store)
    assert await rig.replicated() == ""
    rig.proxy.truncations = 1000
    with pytest.raises(PlaceFault, match="the next try continues the copy"):
        await rig.remote().check(SESSION, rig.store.listed(SESSION))


async def test_interrupted_download_continues(
    rig: S3Station, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = os.urandom(LARGE)
    put(rig.store, NAME, data)
    assert await rig.replicated() == ""
    remote, told = rig.remote(), list[CopyProgress]()
    monkeypatch.setattr(s3_bucket, "ATTEMPTS", 1)
    rig.proxy.truncated_least, rig.proxy.truncations = MIB, 1

    def refuse_the_rest(progress: CopyProgress) -> None:
        told.append(progress)
        rig.proxy.refusals = [(503, "SlowDown")] * 1000

    with pytest.raises(PlaceFault, match="SlowDown"):
        await remote.fetch(SESSION, refuse_the_rest)
    moved, rig.proxy.refusals = told[-1].moved, []
    assert moved >= LARGE // 4
    rig.proxy.truncations = 0
    paths = await remote.fetch(SESSION, told.append)
    assert moved + told[-1].moved == told[-1].total == told[-1].done
    assert (rig.root / paths[NAME]).read_bytes() == data


async def test_silent_server_is_reported(rig: S3Station, monkeypatch: pytest.MonkeyPatch) -> None:
    put(rig.store, NAME, os.urandom(LARGE))
    assert await rig.replicated() == ""
    monkeypatch.setattr(s3_bucket, "SILENCE_S", 1.0)
    monkeypatch.setattr(s3_bucket, "ATTEMPTS", 1)
    rig.proxy.delay_s = 60.0
    for call in (
        rig.remote().check(SESSION, rig.store.listed(SESSION)),
        rig.bucket().read(f"{SESSION}/{NAME}"),
        rig.bucket().write("file", DATA, None),
    ):
        with pytest.raises(PlaceFault, match="timed out|timeout"):
            await call


async def test_stopped_server_is_named(
    rig: S3Station, impatient: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    put(rig.store)
    fault = await rig.replicated()
    assert "Could not connect" in fault and "check the network, and AWS_ENDPOINT_URL" in fault


class Faults:
    """Faults of one random schedule, one at a time."""

    def __init__(self, rig: S3Station, random: Random) -> None:
        self._rig, self._random = rig, random
        self._keys = rig.gateway.access, rig.gateway.secret
        self.cancelled_s: float | None = None
        """Time after which the replicator is cancelled; None if it is not."""

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
    rig: S3Station, soaking: bool, in_parts: None, impatient: None
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
                await asyncio.wait_for(rig.replicated(), faults.cancelled_s)
            faults.mend()
            for file in rig.there.rglob("*.mcap"):  # a published file is whole
                assert file.read_bytes() == recorded[file.name], file
        assert await rig.replicated() == ""
        rig.check_whole()
        kept = rig.root / "Plague" / "2026-11-21" / session
        for name in random.sample(sorted(recorded), 3):
            (kept / name).unlink()
        for segment in list(rig.store.segments()):
            rig.store.verify_segment(segment)
        assert await rig.replicated() == ""
        assert {file.name: file.read_bytes() for file in kept.glob("*.mcap")} == recorded
        for folder in (rig.root / "Plague", rig.root / ".copies", rig.there / "Plague"):
            shutil.rmtree(folder)

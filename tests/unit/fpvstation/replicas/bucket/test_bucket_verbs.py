"""Verbs with a bucket: verify, restore, archive and recall."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest
from testkit.base_station.bucket import LARGE, TARGET, S3Station
from testkit.base_station.queries import session_files
from testkit.base_station.stored import CAR, DATA, NAME, SECOND, SESSION, put

from fpvstation.replicas.remote import PlaceFault
from tests.unit.fpvstation.conftest import Run


async def test_documented_commands_verify_and_restore(
    rig: S3Station, tmp_path: Path, run: Run
) -> None:
    put(rig.store)
    put(rig.store, SECOND, b"second")
    assert await rig.replicated() == ""
    config = tmp_path / "station.toml"
    config.write_text(f'[replicas]\ntarget = "{TARGET}"\n')
    options = [f"--store={rig.root}", f"--config={config}"]

    async def said(status: int, *argv: str) -> str:
        answer = await asyncio.to_thread(run, *argv, *options)
        assert answer.status == status, answer
        return answer.err if status else answer.out

    assert f"{TARGET}: good: 2 segments; bad: 0" in await said(0, "verify", "--remotes")
    (rig.there / SESSION / SECOND).write_bytes(b"sEcond")
    assert f"{SESSION}/{SECOND}: bad or missing there" in await said(1, "verify", "--office")
    (rig.there / SESSION / SECOND).write_bytes(b"second")
    for name in (NAME, SECOND):
        (rig.root / SESSION / name).unlink()
    assert f"2 segments restored from {TARGET}" in await said(0, "restore", SESSION)
    assert (rig.root / SESSION / NAME).read_bytes() == DATA
    assert not list(rig.root.glob(".incoming/restore"))
    assert "not found" in await said(1, "restore", "Arrow-20261122T100000Z")


async def test_session_moves_to_a_bucket_and_back(rig: S3Station, impatient: None) -> None:
    put(rig.store)
    put(rig.store, SECOND, os.urandom(LARGE))
    listed = rig.store.listed(SESSION)
    before = {path.name: path.read_bytes() for path in (rig.root / SESSION).iterdir()}

    def kill_at_second() -> None:
        if SECOND in rig.proxy.uploads()[-1]:
            rig.gateway.kill()

    rig.proxy.upload_hook = kill_at_second
    with pytest.raises(PlaceFault, match="the next try continues the copy"):
        await rig.tiers().archive(SESSION)
    assert {path.name for path in (rig.root / SESSION).iterdir()} == before.keys()
    rig.proxy.reset()
    rig.gateway.start()
    await rig.tiers().archive(SESSION)
    assert not (rig.root / CAR).exists() and rig.store.listed(SESSION) == listed
    assert {path.name: path.read_bytes() for path in (rig.there / SESSION).iterdir()} == before
    assert rig.store.is_away(SESSION)
    rig.gateway.kill()
    with pytest.raises(PlaceFault, match="check the network"):
        await rig.tiers().recall(SESSION)
    rig.gateway.start()
    assert await rig.tiers().recall(SESSION) == []
    assert {path.name: path.read_bytes() for path in (rig.root / SESSION).iterdir()} == before
    assert not list(rig.there.rglob("*.mcap")) and rig.store.archived(SESSION) is None
    assert not list(rig.root.glob(".incoming/archive/*"))


async def test_damaged_record_of_a_bucket_loses_no_session(rig: S3Station) -> None:
    put(rig.store)
    await rig.tiers().archive(SESSION)
    (record,) = rig.root.glob(".archived/*/*/*.json")
    record.write_bytes(record.read_bytes()[:-9])
    assert rig.store.archived(SESSION) is None
    result = await rig.restore(rig.remote())
    assert result.restored == {TARGET: 1} and not result.missing
    assert (rig.root / SESSION / NAME).read_bytes() == DATA


async def test_batch_reads_sessions_from_a_bucket(
    rig: S3Station, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STATE_DIRECTORY", str(tmp_path / "state"))
    for number in (1, 2):
        name = f"Plague-20251121T20000{number}Z"
        for path in session_files(tmp_path, name, number, 3.0):
            put(rig.store, path.name, path.read_bytes())
    assert await rig.replicated() == ""
    first, second = sorted(rig.store.sessions())
    for path in rig.root.glob("*/*/*/*.mcap"):
        path.unlink()

    async def batch(*words: str) -> tuple[int, str]:
        argv = ["fpvstation", "batch", *words, f"--store={rig.root}", f"--bucket={TARGET}"]
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-m", *argv, "--workers=1"), stdout=subprocess.PIPE
        )
        out, _ = await process.communicate()
        return process.returncode or 0, out.decode()

    good = "2 sessions: good 2, incomplete 0, bad 0, failed 0\n"
    assert await batch("replay") == (0, good)
    (damaged,) = (rig.there / second).glob("*-0002.mcap")
    damaged.write_bytes(damaged.read_bytes()[:-1] + b"!")
    status, out = await batch("verify")
    assert status == 1 and out.startswith(f"{second}  bad\n  {damaged.name}: bad or missing")
    assert "good 1, incomplete 0, bad 1" in out
    assert not list(rig.root.glob("*/*/*/*.mcap"))

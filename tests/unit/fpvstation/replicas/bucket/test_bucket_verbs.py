"""Verbs with a bucket: verify, restore, archive and recall."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest
from testkit.base_station.bucket import LARGE, SECOND, TARGET, Rig, act
from testkit.base_station.queries import session_files
from testkit.base_station.stored import CAR, DATA, NAME, SESSION, put

from fpvstation.__main__ import main
from fpvstation.replicas.remote import PlaceFault
from fpvstation.replicas.restore import Restore
from fpvstation.replicas.tiers import Tiers, archive_of
from fpvstation.store.disk import Folder


async def test_documented_commands_verify_and_restore(
    rig: Rig, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    put(rig.store)
    put(rig.store, SECOND, b"second")
    assert await rig.replicated() == ""
    config = tmp_path / "station.toml"
    config.write_text(f'[replicas]\ntarget = "{TARGET}"\n')
    options = [f"--store={rig.root}", f"--config={config}"]

    def run(*argv: str) -> int:
        return main([*argv, *options])

    assert await asyncio.to_thread(run, "verify", "--remotes") == 0
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
    assert "not found" in capsys.readouterr().err


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
    with pytest.raises(PlaceFault, match="the next try continues the copy"):
        await tiers().archive(SESSION)
    assert {path.name for path in (rig.root / SESSION).iterdir()} == before.keys()
    rig.proxy.reset()
    rig.gateway.start()
    await tiers().archive(SESSION)
    assert not (rig.root / CAR).exists() and rig.store.listed(SESSION) == listed
    assert {path.name: path.read_bytes() for path in (rig.there / SESSION).iterdir()} == before
    assert rig.store.is_away(SESSION)
    rig.gateway.kill()
    with pytest.raises(PlaceFault, match="check the network"):
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
    result = await work.run([rig.remote()])
    assert result.restored == {TARGET: 1} and not result.missing
    assert (rig.root / SESSION / NAME).read_bytes() == DATA


async def test_batch_reads_sessions_from_a_bucket(
    rig: Rig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
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

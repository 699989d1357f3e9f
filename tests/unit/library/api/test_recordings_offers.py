"""Further offers of the recordings page: contact sheets, tables, fetched files."""

import importlib
import importlib.util
import io
import zipfile
from pathlib import Path

import pytest
from testkit.recordings import NAME, ask, one_drive, units

BASE = "/api/recordings"


async def test_contact_sheet_has_a_key_frame_of_each_second(tmp_path: Path) -> None:
    async with ask(one_drive(tmp_path)) as client:
        answer = await client.get(f"{BASE}/{NAME}/sheet?from=1&seconds=2")
        assert answer.status == 200, await answer.text()
        found = units(await answer.read())
        assert len(found) == 2 and all(header.key for header, _ in found)
        first, second = (header.capture_us for header, _ in found)
        assert 0.6e6 < second - first < 1.4e6
        answer = await client.get(f"{BASE}/{NAME}/sheet?seconds=61")
        assert answer.status == 400 and "0 to 60" in await answer.text()


@pytest.mark.parametrize("kind", ["csv", "parquet"])
async def test_tables_are_exported_without_recordings(tmp_path: Path, kind: str) -> None:
    async with ask(one_drive(tmp_path)) as client:
        wanted = {"kind": kind, "files": [NAME]}
        answer = await client.post(BASE + "/exports", json=wanted)
        one = await answer.json()
        assert one["name"].endswith(f"-{kind}.zip")
        answer = await client.get(f"{BASE}/exports/{one['id']}/file")
        with zipfile.ZipFile(io.BytesIO(await answer.read())) as made:
            assert made.testzip() is None
            inside = set(made.namelist())
            assert f"tables/battery.{kind}" in inside
            assert not any(name.endswith(".mcap") for name in inside)
            assert "*.mcap" not in made.read("README.txt").decode()
            table = made.read(f"tables/range-front.{kind}")
        rows = (
            len(table.splitlines()) - 1
            if kind == "csv"
            else importlib.import_module("pyarrow.parquet").read_table(io.BytesIO(table)).num_rows
        )
        assert rows == 40


async def test_parquet_is_not_offered_without_pyarrow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    async with ask(one_drive(tmp_path)) as client:
        assert not (await (await client.get(BASE + "/drives")).json())["parquet"]
        wanted = {"kind": "parquet", "files": [NAME]}
        answer = await client.post(BASE + "/exports", json=wanted)
        assert answer.status == 404 and "use CSV" in await answer.text()


async def test_drives_list_names_copies_on_a_station(tmp_path: Path) -> None:
    folder = one_drive(tmp_path)
    async with ask(folder) as client:
        said = await (await client.get(BASE + "/drives")).json()
        assert said["copies"] == {}
        (folder / f"{NAME}.ack").touch()
        said = await (await client.get(BASE + "/drives")).json()
        (drive,) = said["drives"]
        assert said["copies"] == {
            drive["id"]: [{"place": "station", "verified_s": 0.0, "whole": True, "tier": ""}]
        }

"""Downloads: a file whole and in part, without a way out of the folder; contact sheets, tables."""

import importlib
import importlib.util
import io
import os
import zipfile
from pathlib import Path

import pytest
from testkit.recordings import NAME, Client, units
from yarl import URL

BASE = "/api/recordings"


async def test_file_is_downloaded_whole_and_in_part(folder: Path, client: Client) -> None:
    data = (folder / NAME).read_bytes()
    url = f"/api/recordings/{NAME}"
    answer = await client.get(url)
    assert answer.status == 200 and await answer.read() == data
    assert answer.headers["Content-Disposition"] == (f'attachment; filename="{NAME}"')
    for text, wanted in (
        ("bytes=0-99", data[:100]),
        ("bytes=100-", data[100:]),
        ("bytes=-50", data[-50:]),
    ):
        part = await client.get(url, headers={"Range": text})
        assert part.status == 206 and await part.read() == wanted
    beyond = await client.get(url, headers={"Range": f"bytes={len(data)}-"})
    assert beyond.status == 416
    assert (await client.head(url)).content_length == len(data)


@pytest.mark.parametrize(
    "name",
    [
        "..%2Fsecret.mcap",
        "../secret.mcap",
        "%2e%2e/secret.mcap",
        "..",
        ".",
        "link.mcap",
        "..%5Csecret.mcap",
        "%00",
        "secret.mcap",
        "notes.txt",
        "x" * 300,
        f"{NAME}%2f..%2f{NAME}",
        "%ff",
    ],
)
async def test_names_do_not_lead_outside_the_folder(
    folder: Path, name: str, client: Client
) -> None:
    (folder / "link.mcap").symlink_to(folder.parent / "secret.mcap")
    (folder / "notes.txt").write_text("not for everybody")
    for end in ("", "/units", "/table", "/thumbnail"):
        answer = await client.get(f"/api/recordings/{name}{end}")
        body = await answer.read()
        listed = name == "." and answer.status == 200  # the list itself
        assert answer.status == 404 or listed, (name, end, answer.status)
        assert b"secret" not in body.replace(b"secret.mcap", b"")


async def test_name_with_dots_and_spaces_is_downloaded(folder: Path, client: Client) -> None:
    odd = "my..car v1.2 ä.mcap"
    os.rename(folder / NAME, folder / odd)
    answer = await client.get(f"/api/recordings/{odd}")
    assert answer.status == 200
    said = answer.headers["Content-Disposition"]
    assert 'filename="my..car v1.2 _.mcap"' in said
    assert said.endswith("filename*=UTF-8''my..car%20v1.2%20%C3%A4.mcap")


async def test_file_name_cannot_inject_headers(folder: Path, client: Client) -> None:
    os.rename(folder / NAME, folder / 'a"\r\nX-Evil: 1\\.mcap')
    answer = await client.get(URL("/api/recordings/a%22%0D%0AX-Evil:%201%5C.mcap", encoded=True))
    assert answer.status == 200 and "X-Evil" not in answer.headers
    said = answer.headers["Content-Disposition"]
    assert said.startswith('attachment; filename="a___X-Evil: 1_.mcap"; filename*=')
    assert answer.headers["X-Content-Type-Options"] == "nosniff"


async def test_download_resumes_only_with_the_same_file(folder: Path, client: Client) -> None:
    data = (folder / NAME).read_bytes()
    url = f"/api/recordings/{NAME}"

    async def asked(**head: str) -> tuple[int, bytes]:
        answer = await client.get(
            url, headers={name.replace("_", "-"): text for name, text in head.items()}
        )
        return answer.status, await answer.read()

    etag = (await client.head(url)).headers["ETag"]
    part = "bytes=10-19"
    assert await asked(If_Match=etag, Range=part) == (206, data[10:20])
    assert (await asked(If_Match='"other"', Range=part))[0] == 412
    assert (await asked(If_Match=f"W/{etag}", Range=part))[0] == 412
    assert (await asked(If_Match="*", Range=part))[0] == 206
    assert await asked(If_None_Match=etag) == (304, b"")
    assert (await asked(If_None_Match=f'"x", W/{etag}'))[0] == 304
    assert (await asked(If_None_Match='"other"'))[0] == 200
    assert await asked(If_Range=etag, Range=part) == (206, data[10:20])
    assert await asked(If_Range='"other"', Range=part) == (200, data)
    for odd in ("bytes=5-3", "bytes=0-1,4-5", "lines=1-2", "bytes=-", "bytes=x-"):
        answer = await client.get(url, headers={"Range": odd})
        assert answer.status == 416, odd
        assert answer.headers["Content-Range"] == f"bytes */{len(data)}"
    assert await asked(Range=f"bytes=-{len(data) * 2}") == (206, data)
    far = await client.head(url, headers={"Range": "bytes=0-9"})
    assert far.status == 206 and far.content_length == 10
    assert far.headers["Content-Range"] == f"bytes 0-9/{len(data)}"
    os.utime(folder / NAME, (7, 7))
    assert (await asked(If_Match=etag))[0] == 412


async def test_contact_sheet_has_a_key_frame_of_each_second(client: Client) -> None:
    answer = await client.get(f"{BASE}/{NAME}/sheet?from=1&seconds=2")
    assert answer.status == 200, await answer.text()
    found = units(await answer.read())
    assert len(found) == 2 and all(header.key for header, _ in found)
    first, second = (header.capture_us for header, _ in found)
    assert 0.6e6 < second - first < 1.4e6
    answer = await client.get(f"{BASE}/{NAME}/sheet?seconds=61")
    assert answer.status == 400 and "0 to 60" in await answer.text()


@pytest.mark.parametrize("kind", ["csv", "parquet"])
async def test_tables_are_exported_without_recordings(kind: str, client: Client) -> None:
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
    monkeypatch: pytest.MonkeyPatch, client: Client
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    assert not (await (await client.get(BASE + "/drives")).json())["parquet"]
    wanted = {"kind": "parquet", "files": [NAME]}
    answer = await client.post(BASE + "/exports", json=wanted)
    assert answer.status == 404 and "use CSV" in await answer.text()


async def test_drives_list_names_copies_on_a_station(folder: Path, client: Client) -> None:
    said = await (await client.get(BASE + "/drives")).json()
    assert said["copies"] == {}
    (folder / f"{NAME}.ack").touch()
    said = await (await client.get(BASE + "/drives")).json()
    (drive,) = said["drives"]
    assert said["copies"] == {
        drive["id"]: [{"place": "station", "verified_s": 0.0, "whole": True, "tier": ""}]
    }

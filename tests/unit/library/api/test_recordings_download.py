"""Route /api/recordings/NAME: a file whole and in part; no name escapes the folder."""

import os
from pathlib import Path

import pytest
from testkit.recordings import NAME, ask, one_drive
from yarl import URL


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return one_drive(tmp_path)


async def test_file_is_downloaded_whole_and_in_part(folder: Path) -> None:
    data = (folder / NAME).read_bytes()
    async with ask(folder) as client:
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
async def test_names_do_not_lead_outside_the_folder(folder: Path, name: str) -> None:
    (folder / "link.mcap").symlink_to(folder.parent / "secret.mcap")
    (folder / "notes.txt").write_text("not for everybody")
    async with ask(folder) as client:
        for end in ("", "/units", "/table", "/thumbnail"):
            answer = await client.get(f"/api/recordings/{name}{end}")
            body = await answer.read()
            listed = name == "." and answer.status == 200  # the list itself
            assert answer.status == 404 or listed, (name, end, answer.status)
            assert b"secret" not in body.replace(b"secret.mcap", b"")


async def test_name_with_dots_and_spaces_is_downloaded(folder: Path) -> None:
    odd = "my..car v1.2 ä.mcap"
    os.rename(folder / NAME, folder / odd)
    async with ask(folder) as client:
        answer = await client.get(f"/api/recordings/{odd}")
        assert answer.status == 200
        said = answer.headers["Content-Disposition"]
        assert 'filename="my..car v1.2 _.mcap"' in said
        assert said.endswith("filename*=UTF-8''my..car%20v1.2%20%C3%A4.mcap")


async def test_file_name_cannot_inject_headers(folder: Path) -> None:
    os.rename(folder / NAME, folder / 'a"\r\nX-Evil: 1\\.mcap')
    async with ask(folder) as client:
        answer = await client.get(
            URL("/api/recordings/a%22%0D%0AX-Evil:%201%5C.mcap", encoded=True)
        )
        assert answer.status == 200 and "X-Evil" not in answer.headers
        said = answer.headers["Content-Disposition"]
        assert said.startswith('attachment; filename="a___X-Evil: 1_.mcap"; filename*=')
        assert answer.headers["X-Content-Type-Options"] == "nosniff"


async def test_download_resumes_only_with_the_same_file(folder: Path) -> None:
    data = (folder / NAME).read_bytes()
    async with ask(folder) as client:
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

"""Folder in a bucket of an S3 server, by the client library boto3. Faults are PlaceFaults.

boto3 reads address, region and keys from the environment and the profile files of `aws`.
"""

import asyncio
import contextlib
import hashlib
import logging
import os
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any, NamedTuple, TypeVar

from fpvcar.runtime.texts import NOT_INSTALLED, SAYS
from fpvstation.replicas.remote import PlaceFault
from fpvstation.replicas.s3_server import (
    ABSENT,
    SHARED,
    UNSUPPORTED,
    Checksums,
    Exists,
    FileMissing,
    ServerFeatures,
    checksums_of,
    code_of,
    fault_of,
)

LIBRARY = "pip install 'fpvcar[s3]'"
CHUNK = 4 << 20
SILENCE_S, CONNECTING_S, ATTEMPTS = 60.0, 10.0, 5
"""Limits of one request, and how often boto3 sends it before a fault is reported."""
AMAZON = "amazonaws.com"
UNSIGNED = {"payload_signing_enabled": False}
"""Setting of boto3: an upload has its checksum in a signed header, so do not hash the body once
more for the signature. That is the default for https only."""
Result = TypeVar("Result")


class BucketFile(NamedTuple):
    """Published file. `etag`: the server's name for this version, or ""."""

    size: int
    etag: str


ANY = BucketFile(-1, "")
"""Version of an upload without a condition."""


class Bucket:
    """Folder in a bucket. Every call may raise PlaceFault; the connection is then `failed`."""

    def __init__(
        self, place: str, name: str, prefix: str, server: ServerFeatures | None = None
    ) -> None:
        """Set the folder. `place`: its name in faults; `prefix`: "" or a path with "/" at its
        end."""
        self.place, self._name, self._prefix = place, name, prefix
        self.server = server or ServerFeatures()
        self._client: Any = None
        self.failed = False

    async def files(self, folder: str) -> dict[str, BucketFile]:
        """Return the files of a folder by their path; {} if it is missing."""
        return await self.run(self._files, folder)

    def _files(self, folder: str) -> dict[str, BucketFile]:
        pages = self._client.get_paginator("list_objects_v2").paginate(
            Bucket=self._name, Prefix=f"{self._prefix}{folder}/", Delimiter="/"
        )
        return {
            entry["Key"].removeprefix(self._prefix): BucketFile(
                entry["Size"], entry.get("ETag", "")
            )
            for page in pages
            for entry in page.get("Contents", ())
            if not entry["Key"].endswith("/")  # the mark of a folder, as consoles write it
        }

    async def read(self, path: str) -> bytes | None:
        """Return the content of a small file; None if it is missing."""
        try:
            return b"".join([chunk async for chunk in self.chunks(path)])
        except FileMissing:
            return None

    async def chunks(self, path: str, offset: int = 0) -> AsyncIterator[bytes]:
        """Yield the content of a file from an offset; a cut answer is continued. Raises
        FileMissing."""
        tries, begun, etag = ATTEMPTS, offset, ""
        while True:
            version = {"IfMatch": etag} if etag else {}
            start = {"Range": f"bytes={offset}-"} if offset else {}
            answer = await self.run(self.call, "get_object", path, **version, **start)
            etag, body = answer.get("ETag", ""), answer["Body"]
            end = offset + answer["ContentLength"]
            try:
                while chunk := await self.run(body.read, CHUNK):
                    offset += len(chunk)
                    yield chunk
            except PlaceFault:
                tries = ATTEMPTS if offset > begun else tries - 1
                begun = offset
                if not tries or offset >= end:
                    raise
            else:
                return
            finally:
                body.close()

    async def write(
        self, path: str, data: bytes, old: BucketFile | None, sha256: str = ""
    ) -> str | None:
        """Write a file as a whole, verified by the server, in place of exactly this version;
        return its ETag. `old` is None for a new file: if there is one, it stays, and the
        result is None. `sha256`: checksum of the data, in hex, if it is known."""
        sha256 = sha256 or hashlib.sha256(data).hexdigest()
        try:
            answer = await self.run(
                self.send, "put_object", path, checksums_of(data, sha256), old, Body=data
            )
        except Exists:
            if old:
                raise
            return None
        return str(answer["ETag"])

    def send(
        self,
        operation: str,
        path: str,
        checksums: Checksums,
        old: BucketFile | None = ANY,
        **arguments: Any,
    ) -> Any:
        """Call an upload with the optional features of the server; one that it refuses is left
        out from then on. In a thread of `run`. `old`: version to replace, None for a new file."""
        from botocore.exceptions import ClientError

        server, is_conditional = self.server, old is not ANY
        before = server.checksums, server.conditions
        while True:
            optional = dict(checksums[0] if server.checksums else checksums[1])
            if is_conditional:
                if server.conditions:
                    optional |= _condition(old)
                else:
                    self._compare(path, old)
            try:
                return self.call(operation, path, **arguments, **optional)
            except ClientError as error:
                if not server.drop(error, bool(checksums[0]), is_conditional):
                    server.checksums, server.conditions = before
                    raise

    def _compare(self, path: str, old: BucketFile | None) -> None:
        """Compare the version of a file, where the server has no conditions. Raises Exists."""
        from botocore.exceptions import ClientError

        try:
            etag = self.call("head_object", path)["ETag"]
        except ClientError as error:
            if code_of(error) not in ABSENT:
                raise
            etag = None
        if etag != (old.etag if old else None):
            raise Exists(SAYS(place=self.place, reason=SHARED()))

    async def remove(self, paths: list[str]) -> None:
        """Delete files; absent is fine."""
        for path in paths:
            await self.run(self.call, "delete_object", path)

    def call(self, operation: str, path: str, **arguments: Any) -> Any:
        """Call an operation of the client on a file; in a thread of `run`."""
        key = self._prefix + path
        return getattr(self._client, operation)(Bucket=self._name, Key=key, **arguments)

    def uploads(self, path: str) -> list[str]:
        """Return the ids of incomplete uploads of a file, the newest first; in a thread of
        `run`."""
        from botocore.exceptions import ClientError

        key = self._prefix + path
        try:
            found = self._client.list_multipart_uploads(Bucket=self._name, Prefix=key)
        except ClientError as error:
            if code_of(error) not in UNSUPPORTED:
                raise
            return []
        uploads = [upload for upload in found.get("Uploads", ()) if upload["Key"] == key]
        uploads.sort(key=lambda upload: upload["Initiated"], reverse=True)
        return [upload["UploadId"] for upload in uploads]

    def parts(self, path: str, upload: str) -> dict[int, Any]:
        """Return the parts of an incomplete upload by number; in a thread of `run`."""
        pages = self._client.get_paginator("list_parts").paginate(
            Bucket=self._name, Key=self._prefix + path, UploadId=upload
        )
        return {part["PartNumber"]: part for page in pages for part in page.get("Parts", ())}

    async def run(self, function: Callable[..., Result], *positional: Any, **named: Any) -> Result:
        """Run a blocking call in a daemon thread, and convert its errors. A cancelled station
        leaves the thread behind; it ends with its request."""

        def work() -> Result:
            with self._faults():
                self._connect()
                return function(*positional, **named)

        return await _in_daemon(work)

    def _connect(self) -> None:
        if self._client is None:
            try:
                import boto3
            except ImportError:
                missing = NOT_INSTALLED(program="boto3", command=LIBRARY)
                raise PlaceFault(missing) from None
            from botocore.config import Config

            logging.getLogger("botocore").setLevel(logging.WARNING)  # "Found credentials in ..."
            config = Config(
                connect_timeout=CONNECTING_S,
                read_timeout=SILENCE_S,
                retries={"mode": "standard", "total_max_attempts": ATTEMPTS},
                request_checksum_calculation="when_required",
                response_checksum_validation="when_required",
                s3=UNSIGNED,
            )
            session = boto3.Session(region_name=os.environ.get("AWS_REGION") or None)
            client = session.client("s3", config=config)
            if AMAZON not in client.meta.endpoint_url:  # few servers have a name per bucket
                config = config.merge(Config(s3={**UNSIGNED, "addressing_style": "path"}))
                client = session.client("s3", config=config)
            self._client = client

    @contextlib.contextmanager
    def _faults(self) -> Iterator[None]:
        try:
            yield
        except PlaceFault:
            raise
        except Exception as error:
            self.failed = True
            region = self._client.meta.region_name if self._client else ""
            raise fault_of(self.place, error, region) from None


def _condition(old: BucketFile | None) -> dict[str, str]:
    """Return the condition of a write that replaces exactly this version."""
    if old is None:
        return {"IfNoneMatch": "*"}
    return {"IfMatch": old.etag} if old.etag else {}


async def _in_daemon(work: Callable[[], Result]) -> Result:
    """Run blocking work in a daemon thread, for which the end of the process does not wait."""
    loop = asyncio.get_running_loop()
    future = loop.create_future()

    def finish(result: Result | None, error: BaseException | None) -> None:
        if not future.done():
            if error:
                future.set_exception(error)
            else:
                future.set_result(result)

    def main() -> None:
        ended: tuple[Result | None, BaseException | None]
        try:
            ended = work(), None
        except BaseException as error:
            ended = None, error
        with contextlib.suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(finish, *ended)

    threading.Thread(target=main, name="bucket", daemon=True).start()
    result: Result = await future
    return result

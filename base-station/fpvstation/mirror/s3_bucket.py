"""Folder in a bucket of an S3 server, by the client library boto3. Faults are OfficeFaults.

boto3 reads address, region and keys from the environment and the profile files of `aws`.

An upload in parts stays at the server until it is complete. `Upload` finds it there again after a
kill, and sends only parts whose SHA-256 the server does not have.
"""

import asyncio
import base64
import contextlib
import hashlib
import os
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any, NamedTuple, TypeVar

from fpvcar.runtime.sentences import sentence
from fpvstation.mirror.office import OfficeFault

LIBRARY = "pip install 'fpvcar[s3]'"
CHUNK = 4 << 20
SILENCE_S, CONNECTING_S, ATTEMPTS = 60.0, 10.0, 5
"""Limits of one request, and how often boto3 sends it before a fault is reported."""
AMAZON = "amazonaws.com"
UNSIGNED = {"payload_signing_enabled": False}
"""Setting of boto3: an upload has its checksum in a signed header, so do not hash the body once
more for the signature. That is the default for https only."""
STEPS = {
    "AccessDenied": "bucket_access",
    "AuthorizationHeaderMalformed": "bucket_region",
    "ConfigParseError": "bucket_profile",
    "ExpiredToken": "bucket_token",
    "ExpiredTokenException": "bucket_token",
    "IllegalLocationConstraintException": "bucket_region",
    "InsufficientStorage": "make_room",
    "InvalidAccessKeyId": "bucket_keys",
    "InvalidToken": "bucket_token",
    "NoCredentialsError": "bucket_keys",
    "NoSuchBucket": "bucket_absent",
    "PartialCredentialsError": "bucket_keys",
    "PermanentRedirect": "bucket_region",
    "PreconditionFailed": "bucket_shared",
    "ProfileNotFound": "bucket_profile",
    "QuotaExceeded": "make_room",
    "RequestTimeTooSkewed": "bucket_clock",
    "SignatureDoesNotMatch": "bucket_keys",
    "XAdminUserNotFound": "bucket_keys",
    "XMinioStorageFull": "make_room",
}
"""Code of a server, or error of the client -> key of the next step."""
REASON_MOST = 300
Result = TypeVar("Result")


class FileMissing(OfficeFault):
    """Absence of a file in a bucket that is there."""


class BucketFile(NamedTuple):
    """Published file. `etag`: the server's name for this version, or ""."""

    size: int
    etag: str


class Bucket:
    """Folder in a bucket. Every call may raise OfficeFault; the connection is then `failed`."""

    def __init__(self, place: str, name: str, prefix: str) -> None:
        """Set the folder. `place`: its name in faults; `prefix`: "" or a path with "/" at its
        end."""
        self.place, self._name, self._prefix = place, name, prefix
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
            except OfficeFault:
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
        condition = _condition(old)
        try:
            answer = await self.run(
                self.call,
                "put_object",
                path,
                Body=data,
                ChecksumSHA256=_in_base64(sha256 or hashlib.sha256(data).hexdigest()),
                **condition,
            )
        except Exists:
            if old:
                raise
            return None
        return str(answer["ETag"])

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
        key = self._prefix + path
        found = self._client.list_multipart_uploads(Bucket=self._name, Prefix=key)
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
                missing = sentence("not_installed", program="boto3", command=LIBRARY)
                raise OfficeFault(missing) from None
            from botocore.config import Config

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
        except OfficeFault:
            raise
        except Exception as error:
            self.failed = True
            region = self._client.meta.region_name if self._client else ""
            raise _fault_of(self.place, error, region) from None


class Exists(OfficeFault):
    """Refusal of a write: the file is there already, or has another version."""


def _fault_of(place: str, error: Exception, region: str) -> OfficeFault:
    """Return the fault for an error of the client. Raises other errors."""
    from botocore.exceptions import BotoCoreError, ClientError
    from botocore.parsers import ResponseParserError

    if isinstance(error, ClientError):
        code = str(error.response.get("Error", {}).get("Code", "no code"))
        reason = f"{code}: {error.response.get('Error', {}).get('Message') or 'no message'}"
        kinds = {"NoSuchKey": FileMissing, "PreconditionFailed": Exists}
        kind, step = kinds.get(code, OfficeFault), STEPS.get(code, "bucket_again")
    elif isinstance(error, BotoCoreError | ResponseParserError | ValueError | OSError):
        kind, reason = OfficeFault, str(error) or repr(error)
        step = STEPS.get(type(error).__name__, "bucket_network")
    else:
        raise error
    reason = " ".join(reason.split())[:REASON_MOST].rstrip(".")
    advice = sentence("says", place=reason, reason=sentence(step, region=region))
    return kind(sentence("says", place=place, reason=advice))


def _condition(old: BucketFile | None) -> dict[str, str]:
    """Return the condition of a write that replaces exactly this version."""
    if old is None:
        return {"IfNoneMatch": "*"}
    return {"IfMatch": old.etag} if old.etag else {}


def _in_base64(sha256: str) -> str:
    """Return a checksum as S3 writes it."""
    return base64.b64encode(bytes.fromhex(sha256)).decode()


class Upload:
    """Upload of one file in parts. It continues an earlier one of the same file."""

    def __init__(self, bucket: Bucket, path: str) -> None:
        self._bucket, self._path = bucket, path
        self._id, self._present = "", dict[int, Any]()
        self._parts = dict[int, dict[str, Any]]()

    async def open(self) -> None:
        """Find the earlier upload, or begin one."""
        await self._bucket.run(self._open)

    def _open(self) -> None:
        if uploads := self._bucket.uploads(self._path):
            self._id = uploads[0]
            self._present = self._bucket.parts(self._path, self._id)
        else:
            self._id = self._bucket.call(
                "create_multipart_upload", self._path, ChecksumAlgorithm="SHA256"
            )["UploadId"]

    async def part(self, number: int, data: bytes) -> int:
        """Send a part, verified by the server; return its bytes, or 0 if it was there."""
        digest = await asyncio.to_thread(hashlib.sha256, data)
        sha256 = _in_base64(digest.hexdigest())
        old = self._present.get(number)
        moved = 0
        if old and (old["Size"], old.get("ChecksumSHA256")) == (len(data), sha256):
            etag = old["ETag"]
        else:
            arguments = {"UploadId": self._id, "PartNumber": number}
            answer = await self._bucket.run(
                self._bucket.call,
                "upload_part",
                self._path,
                Body=data,
                ChecksumSHA256=sha256,
                **arguments,
            )
            etag, moved = answer["ETag"], len(data)
        self._parts[number] = {"PartNumber": number, "ETag": etag, "ChecksumSHA256": sha256}
        return moved

    async def complete(self, old: BucketFile | None) -> str | None:
        """Publish the file in place of exactly this version; return its ETag. `old` is
        None for a new file: if there is one, it stays, and the result is None."""
        parts = [self._parts[number] for number in sorted(self._parts)]
        try:
            answer = await self._bucket.run(
                self._bucket.call,
                "complete_multipart_upload",
                self._path,
                UploadId=self._id,
                MultipartUpload={"Parts": parts},
                **_condition(old),
            )
        except Exists:
            await self._bucket.run(
                self._bucket.call, "abort_multipart_upload", self._path, UploadId=self._id
            )
            if old:
                raise
            return None
        return str(answer["ETag"])


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

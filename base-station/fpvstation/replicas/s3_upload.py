"""Upload of a file to a bucket in parts.

It stays at the server until it is complete. After a kill it is found there again, and only parts
that the server does not have are sent.
"""

import asyncio
import base64
import hashlib
from typing import Any

from fpvstation.replicas.s3_bucket import Bucket, BucketFile
from fpvstation.replicas.s3_server import Checksums, Exists, checksums_of


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
            algorithm: Checksums = {"ChecksumAlgorithm": "SHA256"}, {}
            answer = self._bucket.send("create_multipart_upload", self._path, algorithm)
            self._id = answer["UploadId"]

    async def part(self, number: int, data: bytes) -> int:
        """Send a part, verified by the server; return its bytes, or 0 if it was there."""
        digest = await asyncio.to_thread(hashlib.sha256, data)
        checksums = await asyncio.to_thread(checksums_of, data, digest.hexdigest())
        old, moved = self._present.get(number), 0
        if old and old["Size"] == len(data) and _is_part(old, checksums):
            etag = old["ETag"]
        else:
            answer = await self._bucket.run(
                self._bucket.send,
                "upload_part",
                self._path,
                checksums,
                Body=data,
                UploadId=self._id,
                PartNumber=number,
            )
            etag, moved = answer["ETag"], len(data)
        self._parts[number] = {"PartNumber": number, "ETag": etag, **checksums[0]}
        return moved

    async def complete(self, old: BucketFile | None) -> str | None:
        """Publish the file in place of exactly this version; return its ETag. `old` is
        None for a new file: if there is one, it stays, and the result is None."""
        parts = [self._parts[number] for number in sorted(self._parts)]
        if not self._bucket.server.checksums:
            for part in parts:
                del part["ChecksumSHA256"]
        try:
            answer = await self._bucket.run(
                self._bucket.send,
                "complete_multipart_upload",
                self._path,
                ({}, {}),
                old,
                UploadId=self._id,
                MultipartUpload={"Parts": parts},
            )
        except Exists:
            await self._bucket.run(
                self._bucket.call, "abort_multipart_upload", self._path, UploadId=self._id
            )
            if old:
                raise
            return None
        return str(answer["ETag"])


def _is_part(old: dict[str, Any], checksums: Checksums) -> bool:
    """Return True if the server has verified these bytes as a part."""
    verified = old.get("ChecksumSHA256")
    if verified:
        return bool(verified == checksums[0]["ChecksumSHA256"])
    md5 = base64.b64decode(checksums[1]["ContentMD5"]).hex()
    return bool(old["ETag"].strip('"') == md5)

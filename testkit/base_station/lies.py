"""Lies of an archive or a bucket, each as a patch of the station's process.

omitted     a list of the bucket lacks a file
cut         each file of the bucket ends at its half
flipped     a bit of each file of the bucket flips on its way
unreadable  the archive's disk fails to read a file (EIO)
"""

import errno
import os
import shutil
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from random import Random
from typing import Any

from fpvstation.replicas import folder_archive
from fpvstation.replicas.s3_bucket import Bucket, BucketFile
from fpvstation.store import disk

SUFFIX = ".mcap"


def _omitted(random: Random) -> None:
    files = Bucket._files

    def lie(bucket: Bucket, folder: str) -> dict[str, BucketFile]:
        found = files(bucket, folder)
        hidden = random.choice([path for path in found if path.endswith(SUFFIX)] or [""])
        return {path: file for path, file in found.items() if path != hidden}

    Bucket._files = lie  # type: ignore[method-assign, assignment]


def _bent(bend: Callable[[bytes], bytes]) -> None:
    chunks = Bucket.chunks

    async def lie(bucket: Bucket, path: str, offset: int = 0) -> AsyncIterator[bytes]:
        async for chunk in chunks(bucket, path, offset):
            yield bend(chunk) if path.endswith(SUFFIX) else chunk

    Bucket.chunks = lie  # type: ignore[method-assign, assignment]


def _cut(random: Random) -> None:
    _bent(lambda chunk: chunk[: len(chunk) // 2])


def _flipped(random: Random) -> None:
    _bent(lambda chunk: bytes([chunk[0] ^ 1]) + chunk[1:])


def _unreadable(random: Random) -> None:
    copy, digest, number = shutil.copy2, disk.sha256_of, random.choice("123")

    def check(path: Path) -> None:
        if str(path).startswith("/proc/self/fd/") and path.stem.endswith(number):
            raise OSError(errno.EIO, os.strerror(errno.EIO), str(path))

    def lie(source: Path, target: Path) -> Any:
        check(source)
        return copy(source, target)

    def lie_about(path: Path) -> str:
        check(path)
        return digest(path)

    shutil.copy2 = lie  # type: ignore[assignment]
    folder_archive.sha256_of = lie_about  # type: ignore[attr-defined]


LIES = (_omitted, _cut, _flipped, _unreadable)

"""Answers of an S3 server: its optional features, its refusals, and the next step after each.

Servers differ in what they support: some refuse the SHA-256 of an upload, or a condition on the
version that it replaces. A refused feature is left out from then on:

    SHA-256 of an upload        MD5 in its place; the station then reads the file back
    If-Match, If-None-Match     the version is compared before the upload
    list of incomplete uploads  each upload begins anew
"""

import base64
import hashlib
from typing import Any

from fpvcar.runtime.texts import SAYS, Phrase
from fpvstation.replicas.remote import MAKE_ROOM, PlaceFault

ACCESS = Phrase("bucket_access", "allow these keys {right} there")
REGION = Phrase("bucket_region", "region {region} refused: set AWS_REGION to the bucket's region")
TOKEN = Phrase("bucket_token", "get new temporary keys, or use keys that do not expire")
KEYS = Phrase(
    "bucket_keys",
    "set the right AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or write them into "
    "~/.aws/credentials",
)
PROFILE = Phrase("bucket_profile", "correct AWS_PROFILE, or the profile files")
NO_BUCKET = Phrase("bucket_absent", "make the bucket, or correct `target` in station.toml")
SHARED = Phrase("bucket_shared", "let only one station write there")
CLOCK = Phrase("bucket_clock", "set the clock of this machine: sudo timedatectl set-ntp true")
NETWORK = Phrase(
    "bucket_network",
    "check the network, and AWS_ENDPOINT_URL (https://HOST:PORT); the next try continues the copy",
)
AGAIN = Phrase("bucket_again", "the next try continues the copy")
REFUSED = Phrase(
    "bucket_refused", "the server will refuse it again: check its settings, or use another one"
)
STEPS = {
    "403": ACCESS,
    "AccessDenied": ACCESS,
    "AuthorizationHeaderMalformed": REGION,
    "ConfigParseError": PROFILE,
    "ExpiredToken": TOKEN,
    "ExpiredTokenException": TOKEN,
    "IllegalLocationConstraintException": REGION,
    "InsufficientStorage": MAKE_ROOM,
    "InvalidAccessKeyId": KEYS,
    "InvalidToken": TOKEN,
    "NoCredentialsError": KEYS,
    "NoSuchBucket": NO_BUCKET,
    "PartialCredentialsError": KEYS,
    "PermanentRedirect": REGION,
    "PreconditionFailed": SHARED,
    "ProfileNotFound": PROFILE,
    "QuotaExceeded": MAKE_ROOM,
    "RequestTimeTooSkewed": CLOCK,
    "SignatureDoesNotMatch": KEYS,
    "XAdminUserNotFound": KEYS,
    "XMinioStorageFull": MAKE_ROOM,
}
"""Code of a server, or error of the client -> next step."""
RIGHTS = {
    "DeleteObject": "s3:DeleteObject",
    "ListObjectsV2": "s3:ListBucket",
    "ListMultipartUploads": "s3:ListBucketMultipartUploads",
    "ListParts": "s3:ListMultipartUploadParts",
    "AbortMultipartUpload": "s3:AbortMultipartUpload",
    "GetObject": "s3:GetObject",
    "HeadObject": "s3:GetObject",
}
"""Right of each operation; of the others s3:PutObject."""
ABSENT = ("404", "NoSuchKey")
UNSUPPORTED = ("InvalidArgument", "InvalidRequest", "NotImplemented", "NotSupported", "501")
"""Codes of a server for a feature that it does not have."""
PASSING = (
    "BadDigest",
    "IncompleteBody",
    "InvalidDigest",
    "InvalidPart",
    "NoSuchUpload",
    "OperationAborted",
    "RequestTimeout",
    "SlowDown",
    "XAmzContentChecksumMismatch",
    "XAmzContentSHA256Mismatch",
)
PASSING_STATUS = (408, 409, 412, 425, 429)
"""Refusals of one request that may succeed later, among those of the client's side."""
REASON_MOST = 300
Checksums = tuple[dict[str, str], dict[str, str]]
"""Arguments of an upload: with the SHA-256, and for a server that refuses it."""


class FileMissing(PlaceFault):
    """Absence of a file in a bucket that is there."""


class Exists(PlaceFault):
    """Refusal of a write: the file is there already, or has another version."""


class ServerFeatures:
    """Optional features of one server, until it refuses them."""

    def __init__(self) -> None:
        self.checksums = self.conditions = True

    def drop(self, error: Any, checksums: bool, conditions: bool) -> bool:
        """Drop the feature that a server has refused, one of those in the request. Return False
        if the refusal has another reason."""
        if code_of(error) not in UNSUPPORTED:
            return False
        in_checksums = checksums and self.checksums
        named = "checksum" in str(error.response["Error"].get("Message", "")).lower()
        if conditions and self.conditions and not (named and in_checksums):
            self.conditions = False
        elif in_checksums:
            self.checksums = False
        else:
            return False
        return True


def checksums_of(data: bytes, sha256: str) -> Checksums:
    """Return the arguments for the upload of these bytes."""
    md5 = hashlib.md5(data, usedforsecurity=False).digest()
    return {"ChecksumSHA256": in_base64(sha256)}, {"ContentMD5": base64.b64encode(md5).decode()}


def in_base64(sha256: str) -> str:
    """Return a checksum as S3 writes it."""
    return base64.b64encode(bytes.fromhex(sha256)).decode()


def code_of(error: Any) -> str:
    """Return the server's code of a ClientError."""
    return str(error.response.get("Error", {}).get("Code", "no code"))


def fault_of(place: str, error: Exception, region: str) -> PlaceFault:
    """Return the fault for an error of the client. Raises other errors."""
    from botocore.exceptions import BotoCoreError, ClientError
    from botocore.parsers import ResponseParserError

    kind, right = PlaceFault, ""
    if isinstance(error, ClientError):
        code = code_of(error)
        reason = f"{code}: {error.response.get('Error', {}).get('Message') or 'no message'}"
        kinds = {**dict.fromkeys(ABSENT, FileMissing), "PreconditionFailed": Exists}
        kind = kinds.get(code, PlaceFault)
        step = STEPS.get(code, REFUSED if _is_permanent(error) else AGAIN)
        right = RIGHTS.get(error.operation_name, "s3:PutObject")
    elif isinstance(error, BotoCoreError | ResponseParserError | ValueError | OSError):
        reason = str(error) or repr(error)
        step = STEPS.get(type(error).__name__, NETWORK)
    else:
        raise error
    reason = " ".join(reason.split())[:REASON_MOST].rstrip(".")
    advice = SAYS(place=reason, reason=step(region=region, right=right))
    return kind(SAYS(place=place, reason=advice))


def _is_permanent(error: Any) -> bool:
    """Return True if the same request will be refused again."""
    status = int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
    refused = 400 <= status < 500 and status not in PASSING_STATUS
    return (refused or status == 501) and code_of(error) not in PASSING

"""The golden vectors, against a second implementation. The C tests read the same file."""

from pathlib import Path

import pytest
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from tests.rdma import records

VECTORS = Path(__file__).parents[1] / "vectors" / "rdma_records.txt"


def lines(kind: str) -> list[list[str]]:
    rows = (line.split() for line in VECTORS.read_text().splitlines())
    return [row[1:] for row in rows if row and row[0] == kind]


@pytest.mark.parametrize("row", lines("record"))
def test_headers(row: list[str]) -> None:
    kind, length, number, written = int(row[0]), int(row[1]), int(row[2]), row[3]
    made = records.HEADER.pack(records.MAGIC, kind, 0, length, number)
    assert made.hex() == written


@pytest.mark.parametrize("row", lines("hello"))
def test_hellos(row: list[str]) -> None:
    version, role, transport, protection, checksum, aes, chunk, credits_ = map(int, row[:8])
    hello = records.Hello(
        role, version, transport, protection, checksum, aes, chunk, credits_, bytes.fromhex(row[8])
    )
    assert hello.whole().hex() == row[9]


@pytest.mark.parametrize("row", lines("ending"))
def test_endings(row: list[str]) -> None:
    assert records.ENDING.pack(int(row[0]), int(row[1])).hex() == row[2]


@pytest.mark.parametrize("row", lines("proof"))
def test_proofs(row: list[str]) -> None:
    key, sender, receiver, expected = (bytes.fromhex(row[i]) for i in (0, 2, 3, 4))
    assert records.proof(key, int(row[1]), sender, receiver) == expected


@pytest.mark.parametrize("row", lines("key"))
def test_keys(row: list[str]) -> None:
    """Keys also equal HKDF of a third implementation."""
    key, sender, receiver, expected = (bytes.fromhex(row[i]) for i in (0, 2, 3, 4))
    role = int(row[1])
    info = b"rdpipe4 seal " + (b"sender" if role == records.SENDER else b"receiver")
    made = HKDF(SHA256(), 32, sender + receiver, info).derive(key)
    assert made == expected == records.sealing_key(key, role, sender, receiver)


@pytest.mark.parametrize("row", lines("sealed"))
def test_seals(row: list[str]) -> None:
    key, sender, receiver, plain, sealed = (
        bytes.fromhex(row[i].replace("-", "")) for i in (0, 2, 3, 5, 6)
    )
    seals = records.Seals(key, int(row[1]), sender, receiver, int(row[4]))
    _, kind, _, _, number = records.HEADER.unpack(sealed[:16])
    assert seals.seal(kind, plain, number) == sealed
    seals.controls = int(row[4])
    assert seals.open(kind, number, sealed[16:]) == plain

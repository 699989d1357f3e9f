"""The golden vectors, against a second implementation. The C tests read the same file."""

from pathlib import Path

import pytest
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from tests.rdma import records

VECTORS = Path(__file__).parents[2] / "vectors" / "rdma_records.txt"


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
    key = bytes.fromhex(row[8])
    body = records.HELLO_BODY.pack(
        version, role, transport, protection, checksum, aes, 0, chunk, credits_, key
    )
    assert records.record(records.HELLO, body).hex() == row[9]


@pytest.mark.parametrize("row", lines("exchange"))
def test_exchanges(row: list[str]) -> None:
    private, public, shared = map(bytes.fromhex, row)
    assert records.exchange(private, public) == shared


@pytest.mark.parametrize("row", lines("ending"))
def test_endings(row: list[str]) -> None:
    assert records.ENDING.pack(int(row[0]), int(row[1])).hex() == row[2]


def shared_of(row: list[str]) -> records.Shared:
    key, exchanged, sender, receiver = map(bytes.fromhex, row)
    return records.Shared(key, sender, receiver, exchanged)


@pytest.mark.parametrize("row", lines("secret"))
def test_secrets(row: list[str]) -> None:
    """They also equal HKDF of a third implementation."""
    purpose, role, expected = row[4], int(row[5]), bytes.fromhex(row[6])
    shared = shared_of(row[:4])
    info = f"rdpipe4 {purpose} {'sender' if role == records.SENDER else 'receiver'}".encode()
    hkdf = HKDF(SHA256(), 32, shared.sender + shared.receiver, info)
    assert hkdf.derive(shared.key + shared.exchanged) == expected == shared.derive(purpose, role)


@pytest.mark.parametrize("row", lines("sealed"))
def test_seals(row: list[str]) -> None:
    plain, sealed = (bytes.fromhex(row[i].replace("-", "")) for i in (6, 7))
    seals = records.Seals(shared_of(row[:4]), int(row[4]), int(row[5]))
    _, kind, _, _, number = records.HEADER.unpack(sealed[:16])
    assert seals.seal(kind, plain, number) == sealed
    seals.controls = int(row[5])
    assert seals.open(kind, number, sealed[16:]) == plain

"""The golden vectors, against a second hand. The C tests read the same file."""

from pathlib import Path

import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

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
    version, role, transport, cipher, checksum, chunk, credits_ = map(int, row[:7])
    hello = records.Hello(
        role,
        version,
        transport,
        cipher,
        checksum,
        chunk,
        credits_,
        bytes.fromhex(row[7]),
    )
    assert hello.whole().hex() == row[8]


@pytest.mark.parametrize("row", lines("ending"))
def test_endings(row: list[str]) -> None:
    assert records.ENDING.pack(int(row[0]), int(row[1])).hex() == row[2]


@pytest.mark.parametrize("row", lines("proof"))
def test_proofs(row: list[str]) -> None:
    key, sender, receiver, expected = (bytes.fromhex(row[i]) for i in (0, 2, 3, 4))
    assert records.proof(key, int(row[1]), sender, receiver) == expected


@pytest.mark.parametrize("row", lines("sealed"))
def test_seals(row: list[str]) -> None:
    key, sender, receiver, sealed = (bytes.fromhex(row[i]) for i in (0, 2, 3, 5))
    secret = records.sealing_key(key, int(row[1]), sender, receiver)
    header, body = sealed[:16], sealed[16:]
    plain = AESGCM(secret).decrypt(bytes(4) + header[8:16], body, header)
    assert plain.hex() == row[4]

"""Names of files, and their marks."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from testkit.recorder.recording import UTC_NS, name

from fpvcar.recordings import names

FIRST = "Plague-20261121T193100Z-0001.mcap"


def test_names_contain_car_time_and_number() -> None:
    name = names.recording_name("Plague", UTC_NS)
    assert name == "Plague-20261121T193100Z"
    assert names.file_name(name, 1) == FIRST
    assert names.file_name(name, 12345, ".mcap.part").endswith("-12345.mcap.part")
    found = names.parse(FIRST)
    assert found is not None and found.recording == name
    assert (found.car, found.number, found.suffix) == ("Plague", 1, ".mcap")
    assert names.recording_name("a", -5) == "a-19700101T000000Z"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x.mcap",
        "Plague-20261121T193100Z-1.mcap",
        "../" + FIRST,
        FIRST + "\n",
        FIRST + ".a.b",
        "Plague-20261121T193100-0001.mcap",
    ],
)
def test_foreign_file_names_do_not_parse(text: str) -> None:
    assert names.parse(text) is None


@given(
    st.from_regex(r"[A-Za-z0-9-]{1,24}", fullmatch=True),
    st.integers(0, 2**62),
    st.integers(1, 10**7),
)
def test_file_names_round_trip(car: str, when: int, number: int) -> None:
    name = names.recording_name(car, when)
    found = names.parse(names.file_name(name, number))
    assert found is not None and (found.recording, found.number) == (name, number)


def test_files_have_their_markers() -> None:
    found = names.files_of(
        [
            (name(2), 5),
            (name(1), 7),
            (name(1) + ".ack", 0),
            ("notes.txt", 3),
            (name(2) + ".keep", 0),
            (name(3) + ".part", 1),
        ]
    )
    assert [one.name.text for one in found] == [name(1), name(2), name(3) + ".part"]
    assert [(one.acknowledged, one.kept) for one in found] == [
        (True, False),
        (False, True),
        (False, False),
    ]


def test_folders_are_replaced_by_their_recordings(tmp_path: Path) -> None:
    full, empty, said = tmp_path / "full", tmp_path / "empty", list[str]()
    full.mkdir()
    empty.mkdir()
    first, second = full / name(1), full / name(2)
    for path in (second, first, full / "notes.txt"):
        path.touch()
    alone = tmp_path / "alone.mcap"
    assert names.files([full, empty, alone], said.append) == [first, second, alone]
    assert said == [f"{empty}: no recordings in it"]

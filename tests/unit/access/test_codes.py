"""Codes, wrong tries, Host and Origin."""

import secrets
import stat
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from fpvcar.access.codes import (
    TRIES,
    CodeCheck,
    Codes,
    Rights,
    load_codes,
    load_key,
    new_codes,
    video_id,
)
from fpvcar.runtime import files

CODES = Codes("123456", "abcd2345")


def test_new_codes_have_their_lengths_and_differ() -> None:
    made = [new_codes() for _ in range(50)]
    assert all(len(c.drive) == 6 and c.drive.isdigit() for c in made)
    assert all(len(c.grown_up) == 8 for c in made)
    assert len({c.grown_up for c in made}) == 50


def test_drive_code_may_be_any_six_digits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(secrets, "randbelow", lambda limit: limit - 1)
    assert new_codes().drive == "999999"


@pytest.fixture
def codes() -> CodeCheck:
    return CodeCheck(CODES)


def test_code_gives_the_rights_of_its_kind(codes: CodeCheck) -> None:
    assert codes.unlock(" 123456 ", "a", 0.0) == Rights(drive=True, grown_up=False)
    assert codes.unlock("abcd2345", "a", 0.0) == Rights(drive=True, grown_up=True)
    assert codes.unlock("", "a", 0.0) is None
    assert codes.unlock("12345ä", "a", 0.0) is None
    assert codes.unlock("123456\udcff", "a", 0.0) is None, "no UTF-8 in a header"


def test_sixth_wrong_try_a_minute_per_address_waits(codes: CodeCheck) -> None:
    for second in range(5):
        assert codes.wait_s("000000", "a", second) == 0.0
        assert codes.unlock("000000", "a", second) is None
    assert codes.wait_s("000000", "a", 5.0) == 55.0
    assert codes.unlock("123456", "a", 5.0) is None, "no code is looked at meanwhile"
    assert codes.unlock("123456", "b", 5.0) is not None, "others are not shut out"
    assert codes.wait_s("000000", "a", 60.0) == 0.0
    assert codes.unlock("123456", "a", 60.0) is not None
    assert codes.wait_s("000000", "a", 60.0) == 0.0


def test_each_wrong_try_counts_for_a_minute(codes: CodeCheck) -> None:
    for now_s in (0.0, 10.0, 20.0, 30.0, 40.0):
        codes.unlock("000000", "a", now_s)
    assert codes.unlock("123456", "a", 59.95) is None
    codes.unlock("000000", "a", 60.0)
    assert codes.wait_s("000000", "a", 60.0) == 10.0


def test_right_code_clears_the_wrong_tries(codes: CodeCheck) -> None:
    for code in ("000000", "123456", "000000"):
        for _ in range(TRIES - 1):
            codes.unlock(code, "a", 0.0)
    assert codes.wait_s("000000", "a", 0.0) == 0.0


def test_guesses_from_many_addresses_share_one_limit(codes: CodeCheck) -> None:
    assert codes.unlock("123456", "home", 0.0) is not None
    for number in range(20):
        assert codes.wait_s("000000", f"10.0.0.{number}", 1.0) == 0.0
        codes.unlock("000000", f"10.0.0.{number}", 1.0)
    assert codes.wait_s("000000", "10.0.1.1", 2.0) == 59.0
    assert codes.unlock("123456", "10.0.1.1", 2.0) is None, "no code is looked at"
    assert codes.wait_s("000000", "home", 2.0) == 0.0, "who had a right code is not kept out"
    assert codes.unlock("abcd2345", "home", 2.0) is not None
    assert codes.wait_s("000000", "10.0.1.1", 61.0) == 0.0


def wait_after(tries: list[str]) -> CodeCheck:
    """Enter wrong codes within a second, each from another network."""
    codes = CodeCheck(CODES)
    for number, code in enumerate(tries):
        codes.unlock(code, f"10.{number >> 8}.{number & 255}.1", 1.0 + number / 1000)
    return codes


def test_guesses_at_the_drive_code_do_not_keep_out_grown_ups() -> None:
    codes = wait_after(["000000"] * 20)
    assert codes.wait_s("123456", "new", 2.0) == 59.0
    assert codes.wait_s(" 123456\n", "new", 2.0) == 59.0, "spaces change no kind"
    assert codes.wait_s("abcd2345", "new", 2.0) == 0.0
    assert codes.unlock("abcd2345", "new", 2.0) == Rights(drive=True, grown_up=True)


def test_guesses_at_the_grown_ups_code_do_not_keep_out_drivers() -> None:
    assert wait_after(["aaaaaaaa"] * 199).wait_s("abcd2345", "new", 2.0) == 0.0
    codes = wait_after(["aaaaaaaa"] * 200)
    assert codes.wait_s("abcd2345", "new", 2.0) == 59.0
    assert codes.unlock("123456", "new", 2.0) == Rights(drive=True)


def test_wrong_invitations_keep_out_only_their_own_network() -> None:
    token = "0123456789abcdef" * 2
    codes = wait_after([token] * 600)
    for code in (token, "123456", "abcd2345"):
        assert codes.wait_s(code, "new", 2.0) == 0.0
    for _ in range(TRIES):
        codes.unlock(token, "new", 2.0)
    assert codes.wait_s(token, "new", 3.0) == 59.0


def test_known_networks_are_bounded(codes: CodeCheck) -> None:
    for number in range(128):
        assert codes.unlock("123456", f"10.0.0.{number}", 0.0) is not None
    assert len(codes._trusted) == 64


def test_network_that_returns_is_forgotten_last(codes: CodeCheck) -> None:
    networks = ["home", *(f"10.0.0.{number}" for number in range(63)), "home", "10.0.1.1"]
    for network in networks:
        assert codes.unlock("123456", network, 0.0) is not None
    assert "home" in codes._trusted and "10.0.0.0" not in codes._trusted


def test_ipv6_network_shares_one_limit_of_tries(codes: CodeCheck) -> None:
    for host in range(5):
        codes.unlock("000000", f"2001:db8::{host:x}", 0.0)
    assert codes.wait_s("000000", "2001:db8::99", 1.0) == 59.0
    assert codes.wait_s("000000", "2001:db8:0:1::99", 1.0) == 0.0
    assert codes.wait_s("000000", "::ffff:10.0.0.1", 1.0) == 0.0


def test_wrong_tries_are_forgotten_and_bounded(codes: CodeCheck) -> None:
    for number in range(3000):  # slowly, so that the rate limit does not apply
        codes.unlock("000000", f"10.0.{number >> 8}.{number & 255}", 4.0 * number)
    assert len(codes._wrong) == 1000
    oldest = next(iter(codes._wrong))
    codes.unlock("000000", "10.0.11.183", 4.0 * 3000)
    assert oldest in codes._wrong, "a network that is known already takes no other's place"
    assert codes.wait_s("000000", "10.0.11.180", 4.0 * 3000 + 61.0) == 0.0


def test_video_id_is_stable_and_hides_the_client() -> None:
    key, client = bytes(32), "0123456789abcdef0123456789abcdef"
    made = video_id(key, client)
    assert made == video_id(key, client) and len(made) == 32
    assert made != video_id(bytes([1]) * 32, client)
    assert made != video_id(key, made) and made != client


def test_codes_are_made_once_and_private(tmp_path: Path) -> None:
    first = load_codes(tmp_path)
    assert load_codes(tmp_path) == first
    mode = stat.S_IMODE((tmp_path / "codes.json").stat().st_mode)
    assert mode == 0o600


@pytest.mark.parametrize(
    "rubbish",
    [
        b"",
        b"{}",
        b'{"drive": 1}',
        b"\xff",
        b'{"drive":"\xff"',
        b'{"drive":"","grown_up":""}',
        b'{"drive":"123456","grown_up":""}',
        b'{"drive":"","grown_up":"be3k4tbs"}',
        b'{"drive":"12345","grown_up":"be3k4tbs"}',
        b'{"drive":"123456","grown_up":"1"}',
    ],
)
def test_damaged_or_short_codes_are_set_aside_and_replaced(
    tmp_path: Path, rubbish: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    """An empty code would grant all rights to a request without a code."""
    (tmp_path / "codes.json").write_bytes(rubbish)
    codes = load_codes(tmp_path)
    assert len(codes.drive) == 6 and len(codes.grown_up) == 8
    assert load_codes(tmp_path) == codes
    assert (tmp_path / "codes.json.bad").read_bytes() == rubbish
    assert "kept as codes.json.bad, created again" in caplog.text


def test_codes_with_a_field_of_a_later_version_stay(tmp_path: Path) -> None:
    (tmp_path / "codes.json").write_text('{"drive":"123456","grown_up":"be3k4tbs","days":30}')
    codes = load_codes(tmp_path)
    assert (codes.drive, codes.grown_up) == ("123456", "be3k4tbs")


def test_signing_key_is_made_once_and_private(tmp_path: Path) -> None:
    with ThreadPoolExecutor(4) as pool:
        first, *others = pool.map(load_key, [tmp_path] * 4)
    assert len(first) == 32
    assert {*others, load_key(tmp_path)} == {first}
    path = tmp_path / "signing.key"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    path.write_bytes(first[:5])
    made = load_key(tmp_path)
    assert len(made) == 32 and made != first
    assert load_key(tmp_path) == made
    assert (tmp_path / "signing.key.bad").read_bytes() == first[:5]


def test_key_replaces_a_link_to_nothing(tmp_path: Path) -> None:
    path = tmp_path / "signing.key"
    path.symlink_to(tmp_path / "nowhere")
    assert load_key(tmp_path) == path.read_bytes()
    assert not path.is_symlink()


def test_simultaneous_starts_get_the_same_codes(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as starters:
        found = list(starters.map(load_codes, [tmp_path] * 32))
    assert len(set(found)) == 1
    assert [entry.name for entry in tmp_path.iterdir()] == ["codes.json"]


def test_start_gets_the_codes_of_a_process_that_was_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = files.write_whole

    def be_late(path: Path, chunks: Iterable[bytes], replace: bool = True) -> None:
        write(path, [b'{"drive": "123456", "grown_up": "be3k4tbs"}'])
        write(path, chunks, replace)

    monkeypatch.setattr(files, "write_whole", be_late)
    assert load_codes(tmp_path) == Codes("123456", "be3k4tbs")

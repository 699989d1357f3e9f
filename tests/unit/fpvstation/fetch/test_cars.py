"""List of cars, and the accepted addresses."""

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from fpvcar.wire.station import Pairing
from fpvstation.errors import StationError
from fpvstation.fetch.cars import FILE, Cars, url_of


@pytest.mark.parametrize(
    ("address", "url"),
    [
        ("192.168.1.5", "https://192.168.1.5:8081"),
        ("plague.local", "https://plague.local:8081"),
        ("https://10.0.0.3:9001", "https://10.0.0.3:9001"),
        ("[fd00::5]", "https://[fd00::5]:8081"),
        ("localhost", "http://localhost:8080"),
        ("http://127.0.0.1:18080/", "http://127.0.0.1:18080"),
        ("[::1]:8080", "http://[::1]:8080"),
    ],
)
def test_address_gives_its_url(address: str, url: str) -> None:
    assert url_of(address) == url


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("http://192.168.1.5", "over plain http"),
        ("", "refused: expected"),
        ("a b", "refused: expected"),
        ("plague.local:99999", "port 99999 refused: expected 1 to 65535"),
        ("plague.local:0", "port 0 refused"),
        ("ftp://x", "refused: expected"),
        ("x" * 200 + "/y", "refused: expected"),
    ],
)
def test_refused_addresses(address: str, words: str) -> None:
    with pytest.raises(StationError, match=words):
        url_of(address)


def pairing(name: str, car: str, station: str = "s") -> Pairing:
    return Pairing(name, car, station, "00" * 32)


def test_two_cars_of_one_name_have_a_folder_each(tmp_path: Path) -> None:
    cars = Cars(tmp_path)
    one = cars.add(pairing("Plague", "1" * 16), "https://a:1", "ff")
    other = cars.add(pairing("Plague", "2" * 16), "https://b:1", "ee")
    assert (one.folder, other.folder) == ("Plague", "Plague-222222")
    again = cars.add(pairing("Plague", "2" * 16, "t"), "https://c:1", "dd")
    assert again.folder == other.folder and len(cars.all()) == 2
    assert (tmp_path / FILE).stat().st_mode & 0o077 == 0, "it holds keys"
    with pytest.raises(StationError, match="several cars"):
        cars.find("Plague")
    cars.remove(cars.find("https://c:1"))
    assert cars.all() == [one] and cars.find("Plague") == one
    with pytest.raises(StationError, match="paired cars: Plague"):
        cars.find("Arrow")


@pytest.mark.parametrize("rubbish", [b"[{", b'[{"name":"\xff"', b'[{"x":' + b"[" * 5000])
def test_damaged_list_of_cars_names_the_next_step(tmp_path: Path, rubbish: bytes) -> None:
    (tmp_path / FILE).write_bytes(rubbish)
    with pytest.raises(StationError, match="delete it, then fpvstation pair ADDRESS"):
        Cars(tmp_path).all()


def test_cars_changed_by_several_writers_at_once_keeps_every_change(tmp_path: Path) -> None:
    old = Cars(tmp_path).add(pairing("old", "0"), "https://a", "f")
    start = threading.Barrier(5)

    def add(number: int) -> None:
        start.wait()
        for more in range(5):
            made = pairing(f"car{number}-{more}", f"{number}.{more}")
            Cars(tmp_path).add(made, "https://a", "f")

    def change() -> None:
        start.wait()
        Cars(tmp_path).renew(old, "new")

    with ThreadPoolExecutor(5) as pool:
        for done in [*map(lambda n: pool.submit(add, n), range(4)), pool.submit(change)]:
            done.result()
    cars = Cars(tmp_path).all()
    assert len(cars) == 21 and Cars(tmp_path).find("old").fingerprint == "new"

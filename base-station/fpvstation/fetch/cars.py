"""Cars of a station: addresses, pinned certificates and keys, in one file.

The file is readable by its owner only: with a key a machine may fetch that car's recordings.
"""

import re
from collections.abc import Collection, Iterable
from contextlib import AbstractContextManager
from pathlib import Path

import msgspec

from fpvcar.http.addresses import is_loopback
from fpvcar.runtime import files
from fpvcar.runtime.texts import FILE_DAMAGED
from fpvcar.wire.station import Pairing
from fpvstation.errors import StationError
from fpvstation.store.disk import locked

FILE, LOCK = "cars.json", ".cars.lock"
PORT, HTTPS_PORT, PORT_MOST = 8080, 8081, 65535
ADDRESS = re.compile(r"(?:(https?)://)?(\[[0-9a-fA-F:.%]+\]|[\w.-]+)(?::(\d{1,5}))?/?")


class Car(msgspec.Struct, frozen=True):
    """Paired car. `folder` is its folder in the store; `fingerprint` is the SHA-256 of its
    certificate in hex, "" without https."""

    name: str
    id: str
    url: str
    fingerprint: str
    station: str
    key: str
    folder: str


def url_of(address: str) -> str:
    """Return the base URL of a car: https, or http on this machine. Raises StationError."""
    parts = ADDRESS.fullmatch(address)
    if parts is None:
        raise StationError(
            f'address "{address[:80]}" refused: expected e.g. 192.168.1.5, '
            "plague.local or https://192.168.1.5:8081"
        )
    scheme, host, port = parts.groups()
    local = is_loopback(host.strip("[]"))
    if scheme is None:
        scheme = "http" if local else "https"
    if scheme == "http" and not local:
        raise StationError(
            f"{address} refused over plain http, which exposes the key; "
            f"use https://{host}:{HTTPS_PORT}"
        )
    if port and not 0 < int(port) <= PORT_MOST:
        raise StationError(f"{address}: port {port} refused: expected 1 to {PORT_MOST}")
    return f"{scheme}://{host}:{port or (PORT if scheme == 'http' else HTTPS_PORT)}"


class Cars:
    """List of cars, in a station's state directory."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / FILE

    def all(self) -> list[Car]:
        """Return all cars. Raises StationError if the file cannot be read."""
        try:
            return msgspec.json.decode(self._path.read_bytes(), type=list[Car])
        except FileNotFoundError:
            return []
        except (OSError, ValueError, msgspec.DecodeError, RecursionError) as fault:
            values = {"path": self._path, "reason": fault, "command": "fpvstation pair ADDRESS"}
            raise StationError(FILE_DAMAGED(**values)) from None

    def add(self, pairing: Pairing, url: str, fingerprint: str) -> Car:
        """Add a car to the list; replace its entry if it was paired before."""
        with self._changing():
            cars = self.all()
            old = [car for car in cars if car.id == pairing.id]
            others = [car for car in cars if car.id != pairing.id]
            taken = [car.folder for car in others]
            added = Car(
                name=pairing.car,
                id=pairing.id,
                url=url,
                fingerprint=fingerprint,
                station=pairing.station,
                key=pairing.key,
                folder=old[0].folder if old else _folder(pairing, taken),
            )
            self._save([*others, added])
        return added

    def renew(self, car: Car, fingerprint: str) -> None:
        """Store a car's new certificate; do nothing if the car was forgotten or paired again in
        the meantime."""
        new = msgspec.structs.replace(car, fingerprint=fingerprint)
        with self._changing():
            self._save([new if entry == car else entry for entry in self.all()])

    def find(self, name: str) -> Car:
        """Return the car of that name, folder, id or URL. Raises StationError."""
        cars = self.all()
        matches = [car for car in cars if name in (car.name, car.folder, car.id, car.url)]
        if len(matches) != 1:
            folders = ", ".join(car.folder for car in cars) or "none"
            problem = "matches several cars" if matches else "matches no car"
            raise StationError(f'"{name[:40]}" {problem}; paired cars: {folders}')
        return matches[0]

    def remove(self, car: Car) -> None:
        """Remove a car from the list; its recordings stay."""
        with self._changing():
            self._save([entry for entry in self.all() if entry.id != car.id])

    def _changing(self) -> AbstractContextManager[None]:
        """Lock the list: `pair` and `forget` change it while a station runs."""
        return locked(self._path.with_name(LOCK))

    def _save(self, cars: Iterable[Car]) -> None:
        files.write_whole(self._path, [msgspec.json.encode(list(cars))])


def _folder(pairing: Pairing, taken: Collection[str]) -> str:
    """Return a car's folder: its name, extended by its id if another car has that name."""
    return f"{pairing.car}-{pairing.id[:6]}" if pairing.car in taken else pairing.car

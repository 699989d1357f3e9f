"""Diagnosis of a card that is not running: reads its files, queries no machine."""

from collections.abc import Collection, Sequence
from pathlib import Path

from fpvcar.config import Profile
from fpvcar.devices import backends
from fpvcar.devices.backends import BackEnd
from fpvcar.doctor.report import Unasked


class OfflineImage:
    """Machine of an offline card: nearly every query returns `Unasked`."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._why = Unasked(f"{root} is not the running system")

    def backend(self, profile: Profile) -> BackEnd:
        """Return the back end by the profile or the card's files."""
        return backends.backend_of(profile, self._root)

    def command(self, *argv: str) -> Unasked:
        return self._why

    def pins(self, profile: Profile) -> Unasked:
        return self._why

    def holders(self, gpios: Sequence[int]) -> Unasked:
        return self._why

    def answering(self, profile: Profile, places: Collection[tuple[int, int]]) -> Unasked:
        return self._why

    def running(self) -> Unasked:
        return self._why

    def trip(self) -> Unasked:
        return self._why

    def turn(self, profile: Profile) -> Unasked:
        return self._why

    def camera(self, profile: Profile) -> Unasked:
        return self._why

    def speed(self, directory: Path) -> Unasked:
        return self._why

    def writable(self, state: Path) -> Unasked:
        """Return `Unasked`: the card's files are left unchanged."""
        return self._why

    def utc_s(self) -> None:
        """Return None: the clock is stopped."""

    def power_save(self, interface: str) -> Unasked:
        return self._why

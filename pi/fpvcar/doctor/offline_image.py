"""A card that does not run: its files are read, and no machine is asked."""

from collections.abc import Collection, Sequence
from pathlib import Path

from fpvcar.config import Profile
from fpvcar.devices import backends
from fpvcar.devices.backends import BackEnd
from fpvcar.doctor.report import Unasked


class Card:
    """Answers as live.Live does."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._why = Unasked(f"{root} does not run here")

    def backend(self, profile: Profile) -> BackEnd:
        """As the profile says, or as the card's files do."""
        return backends.backend_of(profile, self._root)

    def command(self, *argv: str) -> Unasked:
        """Not here, as all that follows."""
        return self._why

    def pins(self, profile: Profile) -> Unasked:
        """Not here."""
        return self._why

    def holders(self, gpios: Sequence[int]) -> Unasked:
        """Not here."""
        return self._why

    def answering(self, profile: Profile, places: Collection[tuple[int, int]]) -> Unasked:
        """Not here."""
        return self._why

    def running(self) -> Unasked:
        """Not here."""
        return self._why

    def trip(self) -> Unasked:
        """Not here."""
        return self._why

    def turn(self, profile: Profile) -> Unasked:
        """Not here."""
        return self._why

    def camera(self, profile: Profile) -> Unasked:
        """Not here."""
        return self._why

    def speed(self, directory: Path) -> Unasked:
        """Not here."""
        return self._why

    def writable(self, state: Path) -> Unasked:
        """Not here: its files are left as they are."""
        return self._why

    def utc_s(self) -> None:
        """Its clock stands."""

    def power_save(self, interface: str) -> Unasked:
        """Not here."""
        return self._why

"""Settings of a station: an optional TOML file.

[office] target = "nas:/srv/drives"       # in rdcp's notation: HOST:DIR, or a folder second =
"attic:/srv/drives"     # a second office copies_required = 2              # before a car may
forget; the store's own is one options = ["--rate", "5M"]       # more options of rdcp
"""

import os
from pathlib import Path
from typing import Annotated

from msgspec import Meta

from fpvcar.config import ConfigError, Section
from fpvcar.config.profiles import converted, read_toml

FILE = "station.toml"


class Office(Section, frozen=True):
    """Destinations that finished sessions are mirrored to."""

    target: str = ""
    second: str = ""
    copies_required: Annotated[int, Meta(ge=1, le=3)] = 1
    options: tuple[str, ...] = ()

    @property
    def targets(self) -> tuple[str, ...]:
        """All targets that are set."""
        return tuple(target for target in (self.target, self.second) if target)


class Settings(Section, frozen=True):
    office: Office = Office()


def usual_path() -> Path:
    """Return the file in $CONFIGURATION_DIRECTORY (set by systemd) or ~/.config/fpvstation."""
    assigned, base = (os.environ.get("CONFIGURATION_DIRECTORY"), os.environ.get("XDG_CONFIG_HOME"))
    default = (Path(base) if base else Path.home() / ".config") / "fpvstation"
    return (Path(assigned) if assigned else default) / FILE


def load(path: Path) -> Settings:
    """Read the file; an absent file gives the defaults. Raises ConfigError."""
    if not path.exists():
        return Settings()
    table = read_toml(path)
    try:
        settings = converted(table, Settings)
    except ConfigError as fault:
        raise ConfigError(f"{path}: {fault}") from None
    office = settings.office
    if office.copies_required > 1 + len(office.targets):
        raise ConfigError(
            f"{path}: office.copies_required = {office.copies_required} refused: expected at "
            f"most {1 + len(office.targets)}, the store and its offices: add an office"
        )
    if office.target == office.second != "":
        raise ConfigError(f"{path}: office.second is the same as office.target: one copy, not two")
    return settings

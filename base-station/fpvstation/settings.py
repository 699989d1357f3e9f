"""Settings of a station: an optional TOML file.

[office]
target = "nas:/srv/drives"       # HOST:DIR as for rdcp, a folder, or s3://BUCKET/PREFIX
second = "attic:/srv/drives"     # a second office
copies_required = 2              # before a car may forget; the store's own is one
options = ["--rate", "5M"]       # more options of rdcp
"""

import os
import re
from pathlib import Path
from typing import Annotated

from msgspec import Meta

from fpvcar.config import ConfigError, Section
from fpvcar.config.profiles import converted, read_toml

FILE = "station.toml"
BUCKET_SCHEME = "s3://"
BUCKET = re.compile(r"s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](/[\w-][\w.-]*)*/?", re.ASCII)


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
    for target in office.targets:
        if target.startswith(BUCKET_SCHEME) and not BUCKET.fullmatch(target):
            raise ConfigError(
                f'{path}: office target "{target}" refused: expected s3://BUCKET/PREFIX, with a '
                "bucket of 3 to 63 of a-z 0-9 . - and folders of A-Z a-z 0-9 . _ -"
            )
    if office.copies_required > 1 + len(office.targets):
        raise ConfigError(
            f"{path}: office.copies_required = {office.copies_required} refused: expected at "
            f"most {1 + len(office.targets)}, the store and its offices: add an office"
        )
    if office.target == office.second != "":
        raise ConfigError(f"{path}: office.second is the same as office.target: one copy, not two")
    return settings

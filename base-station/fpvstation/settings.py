"""Settings of a station: an optional TOML file.

[replicas]
target = "nas:/srv/drives"       # HOST:DIR as for rdcp, a folder, or s3://BUCKET/PREFIX
second = "attic:/srv/drives"     # a second remote, as at another site
window = "22:00-06:00"           # the second remote is used in these hours only
rate = "5M"                      # and gets at most so many bytes a second
copies_required = 2              # before a car may forget; the store's own is one
options = ["--plain"]            # more options of rdcp

[tiers]
archive = "/mnt/archive"         # a folder of another disk, or s3://BUCKET/PREFIX
after = "90 days"                # sessions of that age move there,
above = "80 %"                   # and the oldest ones while the store's disk is that full

[mqtt]
broker = "mqtts://nas.local"     # or mqtt://HOST:PORT, without TLS
user = "fpvstation"
password_file = "/etc/fpvstation/mqtt-password"
ca = "/etc/fpvstation/ca.crt"    # certificate authority, if the system does not know it
stop = true                      # let the broker's clients stop the cars
stills = true                    # publish a picture of each car every ten seconds
"""

import logging
import math
import os
import re
from datetime import datetime, time
from pathlib import Path
from typing import Annotated, NamedTuple, Self

from msgspec import Meta

from fpvcar.config import ConfigError, Mqtt, Section
from fpvcar.config.network import refuse_mqtt
from fpvcar.config.profiles import converted, read_toml

FILE = "station.toml"
BUCKET_SCHEME = "s3://"
BUCKET = re.compile(r"s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](/[\w-][\w.-]*)*/?", re.ASCII)
RATE = re.compile(r"[0-9]*[1-9][0-9]*[KMGTkmgt]?", re.ASCII)
"""Rates of rdcp: bytes per second, or with a unit of powers of 1024."""
log = logging.getLogger("fpvstation")


class Window(NamedTuple):
    """Daily hours by the wall clock, also across midnight: `begin` is in it, `end` is not.

    A daylight-saving change shortens or lengthens it; on the day that skips all its minutes it
    stays closed.
    """

    begin: time
    end: time

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse "22:00-06:00". Raises ValueError."""
        if not re.fullmatch(r"\d\d:\d\d-\d\d:\d\d", text, re.ASCII):
            raise ValueError(text)
        begin, end = map(time.fromisoformat, text.split("-"))
        if begin == end:
            raise ValueError(text)
        return cls(begin, end)

    def is_open(self, utc_s: float) -> bool:
        """Return whether this moment is in it, by the local time of this machine."""
        now = datetime.fromtimestamp(utc_s).time()
        if self.begin < self.end:
            return self.begin <= now < self.end
        return now >= self.begin or now < self.end


class ReplicaSettings(Section, frozen=True):
    """Remotes that get a replica of each finished session: offices by rdcp, and buckets."""

    target: str = ""
    second: str = ""
    window: str = ""
    rate: str = ""
    copies_required: Annotated[int, Meta(ge=1, le=3)] = 1
    options: tuple[str, ...] = ()

    @property
    def targets(self) -> tuple[str, ...]:
        """All targets that are set."""
        return tuple(target for target in (self.target, self.second) if target)

    def options_of(self, target: str) -> tuple[str, ...]:
        """Return the options of rdcp for a target."""
        bounded = self.rate and target == self.second
        return (*self.options, "--rate", self.rate) if bounded else self.options

    @property
    def windows(self) -> dict[str, Window]:
        """Windows of the targets that have one."""
        return {self.second: Window.parse(self.window)} if self.window else {}


class TierSettings(Section, frozen=True):
    """Archive of old sessions. Without `after` and `above` no session is due."""

    archive: str = ""
    after: Annotated[str, Meta(pattern=r"^(\d{1,5} days?)?$")] = ""
    above: Annotated[str, Meta(pattern=r"^(\d{1,2} ?%)?$")] = ""

    @property
    def after_s(self) -> float:
        """Age from which a session is due."""
        return int(self.after.split()[0]) * 86400.0 if self.after else math.inf

    @property
    def above_share(self) -> float:
        """Share of the disk above which the oldest sessions are due."""
        return int(self.above.rstrip(" %")) / 100 if self.above else math.inf


class Settings(Section, frozen=True):
    replicas: ReplicaSettings = ReplicaSettings()
    tiers: TierSettings = TierSettings()
    mqtt: Mqtt = Mqtt()


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
    if "office" in table and "replicas" not in table:  # the former name, of buckets too
        log.warning("%s: [office] is called [replicas] now: rename it there", path)
        table["replicas"] = table.pop("office")
    try:
        settings = converted(table, Settings)
        _check(settings)
    except ConfigError as fault:
        raise ConfigError(f"{path}: {fault}") from None
    return settings


def _check(settings: Settings) -> None:
    """Raise ConfigError for values that do not go together."""
    refuse_mqtt(settings.mqtt)
    replicas, archive = settings.replicas, settings.tiers.archive
    for target in (*replicas.targets, archive):
        if target.startswith(BUCKET_SCHEME) and not BUCKET.fullmatch(target):
            raise ConfigError(
                f'target "{target}" refused: expected s3://BUCKET/PREFIX, with a '
                "bucket of 3 to 63 of a-z 0-9 . - and folders of A-Z a-z 0-9 . _ -"
            )
    if archive in replicas.targets and archive:
        raise ConfigError("tiers.archive is a remote, too: name another place")
    if archive and not archive.startswith((BUCKET_SCHEME, "/")):
        raise ConfigError(
            f'tiers.archive "{archive}" refused: expected /FOLDER or s3://BUCKET/PREFIX'
        )
    if replicas.copies_required > 1 + len(replicas.targets):
        raise ConfigError(
            f"replicas.copies_required = {replicas.copies_required} refused: expected at "
            f"most {1 + len(replicas.targets)}, the store and its remotes: add a remote"
        )
    if replicas.target == replicas.second != "":
        raise ConfigError("replicas.second is replicas.target, too: one copy, not two")
    for key, value in (("window", replicas.window), ("rate", replicas.rate)):
        if value and not replicas.second:
            raise ConfigError(
                f'replicas.{key} = "{value}" refused: it is for replicas.second, which is '
                "missing: name the remote at the other site there"
            )
    try:
        _ = replicas.windows
    except ValueError:
        raise ConfigError(
            f'replicas.window = "{replicas.window}" refused: expected two different times '
            'of day, like "22:00-06:00"; leave it out to copy at any time'
        ) from None
    if replicas.rate and replicas.second.startswith(BUCKET_SCHEME):
        raise ConfigError(
            f'replicas.rate = "{replicas.rate}" refused: it works with rdcp only, not with '
            f"{replicas.second}: leave it out"
        )
    if replicas.rate and not RATE.fullmatch(replicas.rate):
        raise ConfigError(
            f'replicas.rate = "{replicas.rate}" refused: expected bytes per second above '
            '0, like "5M" (K, M, G: powers of 1024)'
        )

"""Configuration: the network, and one file per group of clients.

/etc/fpvsites/fpvsites.toml        lan, upstream, others, keep_s
/etc/fpvsites/groups/school.toml   clients, sites, hours of the group "school"
"""

import contextlib
import ipaddress
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, NamedTuple

import msgspec
from msgspec import Meta

from fpvcar.config import ConfigError, Section
from fpvcar.config.profiles import converted, read_toml
from fpvcar.runtime.texts import Phrase

SITES_GROUP = Phrase("sites_group", 'group "{group}" is unknown; groups: {groups}')

FILE, GROUPS = "fpvsites.toml", "groups"
GROUPS_MOST = 32
DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
GROUP_NAME = re.compile(r"[a-z][a-z0-9_]{0,15}")
INTERFACE = re.compile(r"[\w.-]{1,15}", re.A)
LABEL = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?<!-)")
MAC = re.compile(r"[0-9a-f]{2}(:[0-9a-f]{2}){5}")
SPAN = re.compile(r"(\w{3})(?:-(\w{3}))? (\d\d):(\d\d)-(\d\d):(\d\d)", re.A)
CLOCK = re.compile(r"(\d\d):(\d\d)", re.A)
DAY_MINUTES = 24 * 60


class Span(NamedTuple):
    """Weekly span of time; days are 0 (Monday) to 6, times minutes since midnight."""

    days: tuple[int, ...]
    start: int
    end: int


class Group(Section, frozen=True):
    """Clients that share their sites and their timetable."""

    clients: tuple[str, ...] = ()
    """MAC addresses."""
    sites: tuple[str, ...] = ()
    """Names; each also allows the names below it."""
    everything: bool = False
    """Allow every site, within the hours."""
    hours: tuple[str, ...] | None = None
    """Spans as "Mon-Fri 08:00-12:30"; no key: always."""

    @property
    def spans(self) -> tuple[Span, ...] | None:
        """Hours as spans; None for always. Raises ConfigError."""
        return None if self.hours is None else tuple(map(span_of, self.hours))


class Config(Section, frozen=True):
    """Network and groups. `others` names the group of all clients that no group lists; without
    it they reach nothing. An address stays allowed for `keep_s` after its name was resolved."""

    lan: str
    upstream: tuple[str, ...]
    others: str = ""
    keep_s: Annotated[int, Meta(ge=5, le=86400)] = 600
    groups: dict[str, Group] = {}

    def group(self, name: str) -> Group:
        """Return a group. Raises ConfigError for an unknown name."""
        if name in self.groups:
            return self.groups[name]
        known = ", ".join(self.groups) or "–"
        raise ConfigError(SITES_GROUP(group=name, groups=known))


def load(folder: Path) -> Config:
    """Read all files of a folder. Raises ConfigError, which names the file and the fault."""
    path = folder / FILE
    if not path.exists():
        raise ConfigError(f"{path} is missing: copy the example of docs/sites.md there")
    table = read_toml(path)
    if "groups" in table:
        raise ConfigError(f"{path}: unknown key groups; a group is a file {GROUPS}/NAME.toml")
    groups, owners = dict[str, Group](), dict[str, str]()
    for file in sorted((folder / GROUPS).glob("*.toml")):
        group = read_toml(file)
        with _named(file):
            groups[file.stem] = _normalized(file.stem, converted(group, Group), owners)
    if len(groups) > GROUPS_MOST:
        raise ConfigError(f"{folder / GROUPS}: {len(groups)} groups; at most {GROUPS_MOST}: merge")
    with _named(path):
        config = msgspec.structs.replace(converted(table, Config), groups=groups)
        _check_network(config)
    return config


@contextlib.contextmanager
def _named(path: Path) -> Iterator[None]:
    """Put the name of the file before a fault."""
    try:
        yield
    except ConfigError as fault:
        raise ConfigError(f"{path}: {fault}") from None


def _check_network(config: Config) -> None:
    if not INTERFACE.fullmatch(config.lan):
        raise ConfigError(
            f'lan = "{config.lan}" refused: expected an interface, as wlan0: `ip link` lists them'
        )
    if not config.upstream:
        raise ConfigError("upstream is empty: name a DNS server by its address, as 9.9.9.9")
    for address in config.upstream:
        try:
            ipaddress.ip_address(address)
        except ValueError:
            raise ConfigError(
                f'upstream "{address}" refused: expected an IP address, as 9.9.9.9'
            ) from None
    if config.others:
        config.group(config.others)


def _normalized(name: str, group: Group, owners: dict[str, str]) -> Group:
    """Return the group with normalized names and addresses; `owners` maps MACs to groups."""
    if not GROUP_NAME.fullmatch(name):
        raise ConfigError(
            f'group "{name}" refused: expected up to 16 of a-z, 0-9, _, starting with a letter: '
            "rename the file"
        )
    if group.everything and group.sites:
        raise ConfigError("everything = true and sites exclude each other: remove one of them")
    clients = tuple(dict.fromkeys(map(mac_of, group.clients)))
    for mac in clients:
        if (owner := owners.setdefault(mac, name)) != name:
            raise ConfigError(f"client {mac} is in group {owner} already: remove one of them")
    sites = tuple(dict.fromkeys(map(site_of, group.sites)))
    _ = group.spans
    return msgspec.structs.replace(group, clients=clients, sites=sites)


def mac_of(text: str) -> str:
    """Return a client's MAC address in lower case with colons. Raises ConfigError."""
    mac = text.lower().replace("-", ":")
    if not MAC.fullmatch(mac) or int(mac[1], 16) & 1:
        raise ConfigError(
            f'client "{text}" refused: expected the MAC of one device, as 02:00:5e:10:00:01; '
            "`ip neigh` lists those in the network"
        )
    return mac


def site_of(text: str) -> str:
    """Return a site's name in lower case. Raises ConfigError."""
    name = text.lower().rstrip(".")
    if "*" in name:
        below = name.strip("*.")
        advice = f'write "{below}", it covers' if "." in below else "a name of two parts covers"
        raise ConfigError(
            f'site "{text}" refused: a wildcard is not allowed; {advice} the names below it, too '
            "(everything = true allows all)"
        )
    labels = name.split(".")
    valid = all(map(LABEL.fullmatch, labels)) and len(name) <= 253 and not labels[-1].isdecimal()
    if not valid or len(labels) < 2:
        raise ConfigError(
            f'site "{text}" refused: expected a name of at least two parts, as example.org: '
            "no address, no https://, no path; other letters than a-z in their xn-- form"
        )
    return name


def span_of(text: str) -> Span:
    """Parse "Mon-Fri 08:00-12:30" or "Sat 10:00-24:00". Raises ConfigError."""
    match = SPAN.fullmatch(text)
    if match is not None:
        first, last, *figures = match.groups()
        start, end = minutes_of(figures[0], figures[1]), minutes_of(figures[2], figures[3])
        if first in DAYS and (last or first) in DAYS and 0 <= start < end:
            begin, stop = DAYS.index(first), DAYS.index(last or first)
            days = tuple((begin + day) % 7 for day in range((stop - begin) % 7 + 1))
            return Span(days, start, end)
    raise ConfigError(
        f'hours "{text}" refused: expected "Mon-Fri 08:00-12:30" or "Sat 10:00-24:00", the end '
        "after the start; divide a span over midnight into two"
    )


def minutes_of(hours: str, minutes: str) -> int:
    """Return minutes since midnight, at most 24:00; -1 for an invalid time."""
    total = int(hours) * 60 + int(minutes)
    return total if int(minutes) < 60 and total <= DAY_MINUTES else -1

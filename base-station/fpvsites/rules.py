"""Rules of one moment: pure functions from configuration, switches and time.

    rules(config, switches, now) -> text for nft, and a dnsmasq configuration per group

Each group has its own dnsmasq, which resolves the group's sites only and puts each answer into the
group's set; the firewall passes new connections to addresses in that set. A connection carries
the group's mark. The mark is a hash of the permissions, so a change of them cuts old connections.
"""

import datetime
import zlib
from collections.abc import Iterable, Mapping
from typing import Literal, NamedTuple

from fpvcar.config import ConfigError, Section
from fpvcar.runtime.texts import Phrase
from fpvsites.config import CLOCK, DAY_MINUTES, Config, Group, Span, minutes_of

SITES_TIME = Phrase(
    "sites_time",
    'time "{time}" refused: it is {now}; expected a later time today, HH:MM, at most 24:00',
)

Mode = Literal["everything", "sites", "nothing"]
TABLE = "inet fpvsites"
PORT = 5301
"""DNS port of the first group."""
OFTEN = 10
"""A client resolves a name again after keep_s / OFTEN."""
BYPASSES = (
    "use-application-dns.net",
    "mask.icloud.com",
    "mask-h2.icloud.com",
    "dns.google.com",
    "cloudflare-dns.com",
    "dns.apple.com",
    "doh.opendns.com",
    "dns.nextdns.io",
)
"""Names that never resolve, also below an allowed site: public DoH servers, Firefox's canary, which
turns off its own DoH, and Apple's, which turn off Private Relay."""


PRIVATE = (
    "0.0.0.0/8",
    "10.0.0.0/8",
    "100.64.0.0/10",
    "127.0.0.0/8",
    "169.254.0.0/16",
    "172.16.0.0/12",
    "192.168.0.0/16",
)


class Switch(Section, frozen=True):
    """Exception from the timetable until a time (seconds, UTC)."""

    mode: Mode
    until_s: float


class GroupRules(NamedTuple):
    """Permissions of one group. `until`: the time of the next change, None for never."""

    name: str
    mode: Mode
    until: datetime.datetime | None
    dnsmasq: str


class Rules(NamedTuple):
    """Rules in force at one moment. `parts`: names of all sets and chains in `nft`."""

    nft: str
    parts: frozenset[str]
    groups: tuple[GroupRules, ...]


def switch_until(text: str, now: datetime.datetime) -> float:
    """Return the time of HH:MM today in seconds, UTC. Raises ConfigError."""
    match = CLOCK.fullmatch(text)
    minutes = minutes_of(match[1], match[2]) if match else -1
    if until := [at_s for at_s in _instants(now, minutes) if at_s > now.timestamp()]:
        return until[0]
    raise ConfigError(SITES_TIME(time=text, now=f"{now:%H:%M}"))


def permission(
    group: Group, switch: Switch | None, now: datetime.datetime
) -> tuple[Mode, datetime.datetime | None]:
    """Return the mode of a group, and the time of its next change."""
    if switch is not None and now.timestamp() < switch.until_s:
        return switch.mode, datetime.datetime.fromtimestamp(switch.until_s, now.tzinfo)
    spans, allowed = group.spans, "everything" if group.everything else "sites"
    if spans is None:
        return allowed, None  # type: ignore[return-value]
    is_open, now_s = _open(spans, now), now.timestamp()
    edges = {edge for span in spans for edge in (span.start, span.end)}
    for day in range(8):
        for at_s in _changes(now, day, edges):
            at = datetime.datetime.fromtimestamp(at_s, now.tzinfo)
            if at_s > now_s and _open(spans, at) != is_open:
                return (allowed if is_open else "nothing"), at  # type: ignore[return-value]
    return (allowed if is_open else "nothing"), None  # type: ignore[return-value]


def _changes(now: datetime.datetime, day: int, edges: Iterable[int]) -> list[float]:
    """Return the instants of a day, sorted, at which a timetable may change: its edges and, if the
    clocks are set on that day, each half hour."""
    begin_s, end_s = _instants(now, 0, day)[0], _instants(now, DAY_MINUTES, day)[-1]
    found = {at_s for minutes in edges for at_s in _instants(now, minutes, day)}
    if end_s - begin_s != DAY_MINUTES * 60:
        found |= {begin_s + half_hour * 1800 for half_hour in range(51)}
    return sorted(found)


def _instants(now: datetime.datetime, minutes: int, day: int = 0) -> list[float]:
    """Return the instants in seconds, UTC, at which the clocks show a time of a day: two if they
    are set back over it. A time that they skip gets that before and that after."""
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0, fold=0)
    wall = midnight + datetime.timedelta(days=day, minutes=minutes)
    return sorted({wall.replace(fold=fold).timestamp() for fold in (0, 1)})


def _open(spans: tuple[Span, ...], now: datetime.datetime) -> bool:
    """Return whether a timetable is open at the time that the clocks show."""
    minutes = now.hour * 60 + now.minute
    return any(now.weekday() in days and start <= minutes < end for days, start, end in spans)


def rules(config: Config, switches: Mapping[str, Switch], now: datetime.datetime) -> Rules:
    """Return the rules of a moment; `now` has a time zone, the timetable's."""
    groups, sets, chains, parts, marks = [], [], [], {"forward", "dns", "input"}, {}
    for number, (name, group) in enumerate(config.groups.items()):
        mode, until = permission(group, switches.get(name), now)
        content = repr((name, mode, group.sites if mode == "sites" else (), config.keep_s))
        mark = zlib.crc32(content.encode()) | 1
        key = f"{name}_{mark:08x}"
        marks[name] = (key, mark, until, mode)
        groups.append(GroupRules(name, mode, until, _dnsmasq(config, group, mode, number, key)))
        chains += _chain(key, mark, mode, until)
        parts.add(key)
        if mode == "sites":
            sets += _sets(key, config.keep_s)
            parts |= {f"sites_{key}", f"used_{key}"}
    lines = [f"table {TABLE} {{", *sets, *chains, *_hooks(config, marks), "}"]
    return Rules("\n".join(lines) + "\n", frozenset(parts), tuple(groups))


def _sets(key: str, keep_s: int) -> list[str]:
    return [
        f"set sites_{key} {{ type ipv4_addr; timeout {keep_s}s; }}",
        f"set used_{key} {{ type ipv4_addr; flags dynamic,timeout; "
        f"timeout {2 * _ask_s(keep_s)}s; }}",
    ]


def _ask_s(keep_s: int) -> int:
    return max(1, keep_s // OFTEN)


def _chain(key: str, mark: int, mode: Mode, until: datetime.datetime | None) -> list[str]:
    """Return a group's chain. It closes at `until` by the kernel's clock, in every failure."""
    body = []
    if mode != "nothing" and until is not None:
        body.append(f"meta time >= {int(until.timestamp())} drop")
    if mode == "everything":
        body.append(f"ct mark set {mark} accept")
    elif mode == "sites":
        body += [
            # Below an allowed name anyone may answer with an address in the networks beside.
            f"ip daddr {{ {', '.join(PRIVATE)} }} drop",
            f"ct mark {mark} accept",
            "meta l4proto { tcp, udp } th dport 853 drop",
            # A second answer does not extend an address's timeout. Recent use bridges the time
            # from its end to the client's next question.
            f"ip daddr @sites_{key} update @used_{key} {{ ip daddr }} ct mark set {mark} accept",
            f"ip daddr @used_{key} ct mark set {mark} accept",
        ]
    return [f"chain {key} {{", *body, "drop", "}"]


def _hooks(
    config: Config, marks: Mapping[str, tuple[str, int, datetime.datetime | None, Mode]]
) -> list[str]:
    lan, dns = f'iifname "{config.lan}"', "meta l4proto { tcp, udp } th dport"
    jumps, ports, own, replies = [], [], [], []
    for number, (name, group) in enumerate(config.groups.items()):
        key, mark, until, mode = marks[name]
        jumps += [f"{mac} : goto {key}" for mac in group.clients]
        ports += [f"{mac} : {PORT + number}" for mac in group.clients]
        own += [f"{mac} . {PORT + number}" for mac in group.clients]
        if mode != "nothing":
            limit = f"meta time < {int(until.timestamp())} " if until else ""
            replies.append(f'oifname "{config.lan}" ct mark {mark} {limit}accept')
    forward, redirect, answer = [], [], []
    last = PORT + max(len(config.groups), 2) - 1
    closed = f"{dns} {{ 53, 853, {PORT}-{last} }} drop"
    if jumps:
        forward.append(f"{lan} ether saddr vmap {{ {', '.join(jumps)} }}")
        redirect.append(f"{lan} {dns} 53 redirect to :ether saddr map {{ {', '.join(ports)} }}")
        known = ", ".join(mac for group in config.groups.values() for mac in group.clients)
        pairs = f"ether saddr . th dport {{ {', '.join(own)} }}"
        answer.append(f"{lan} meta l4proto {{ tcp, udp }} {pairs} ct status dnat accept")
        answer.append(f"{lan} ether saddr {{ {known} }} {closed}")
    if config.others:
        port = PORT + list(config.groups).index(config.others)
        forward.append(f"{lan} goto {marks[config.others][0]}")
        redirect.append(f"{lan} {dns} 53 redirect to :{port}")
        answer.append(f"{lan} {dns} {port} ct status dnat accept")
    return [
        "chain forward {",
        "type filter hook forward priority filter; policy accept;",
        *forward,
        f"{lan} drop",
        *replies,
        f'oifname "{config.lan}" drop',
        "}",
        "chain dns {",
        "type nat hook prerouting priority dstnat; policy accept;",
        *redirect,
        "}",
        # Only a redirected question reaches a dnsmasq, and only that of the client's group: the
        # kernel still redirects a port that asked before a change as it did then.
        "chain input {",
        "type filter hook input priority filter; policy accept;",
        *answer,
        f"{lan} {closed}",
        "}",
    ]


def _dnsmasq(config: Config, group: Group, mode: Mode, number: int, key: str) -> str:
    """Return the configuration of a group's dnsmasq. A name without a server is refused."""
    lines = [
        f"port={PORT + number}",
        f"interface={config.lan}",
        "except-interface=lo",
        "bind-dynamic",
        "no-resolv",
        "no-hosts",
        "no-poll",
        "pid-file=",
        "log-facility=-",
        # An answer from the cache would not renew the set.
        "cache-size=0",
        f"max-ttl={_ask_s(config.keep_s)}",
    ]
    if mode == "sites":
        # An HTTPS or SVCB record hints at addresses that no A record opens.
        lines += [
            "filter-AAAA",
            "filter-rr=SVCB,HTTPS",
            f"nftset=/#/4#{TABLE.replace(' ', '#')}#sites_{key}",
        ]
        lines += [f"server=/{name}/" for name in BYPASSES]
        lines += [f"server=/{name}/{server}" for name in group.sites for server in config.upstream]
    elif mode == "everything":
        lines += [f"server={server}" for server in config.upstream]
    return "\n".join(lines) + "\n"

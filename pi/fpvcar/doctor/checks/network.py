"""Checks of the Wi-Fi, the car's host name, and TCP's retransmission time-out."""

from fpvcar.config import Profile
from fpvcar.doctor.facts import Facts
from fpvcar.doctor.report import Findings, Kind, Severity, Unasked
from fpvcar.http.addresses import taken
from fpvcar.sensors import computer

RIVALS_MOST = 4
TIMEOUT_US = 50_000
"""Upper limit of TCP's time-out: above it, a packet lost twice is a visible freeze."""
NO_WIFI = "this computer has no Wi-Fi"

POWER_SAVE = Kind(
    "wifi-power-save",
    Severity.WARNING,
    "No picture, or a late one",
    "Wi-Fi power save is on ({interface})",
    "Some commands and frames are then delayed by a second or more.",
    "sudo fpvcar setup, then sudo reboot; until then: sudo iw dev {interface} set power_save off",
)
WEAK_SIGNAL = Kind(
    "wifi-weak",
    Severity.WARNING,
    "No picture, or a late one",
    "weak Wi-Fi: {dbm:.0f} dBm",
    "Below {least:.0f} dBm packets are lost: the picture freezes and the car stops.",
    "drive closer to the router, or use the car's own network: docs/install.md",
)
CROWDED_CHANNEL = Kind(
    "wifi-channel",
    Severity.NOTE,
    "No picture, or a late one",
    "{rivals} other strong networks on channel {channel} of the car's Wi-Fi",
    "Networks on one channel wait for each other, so some frames are late.",
    "set the router to another channel (1, 6 or 11), or to 5 GHz if the Pi supports it",
)
NAME_TAKEN = Kind(
    "name",
    Severity.WARNING,
    "No page, or a slow one",
    "the host name of the car is {name}, not {expected}",
    "Another computer has that name, so browsers open that computer or nothing.",
    "open http://{name}:8080/, or rename the car: sudo fpvcar setup --name NAME",
)
NAME_NOT_ANNOUNCED = Kind(
    "name-old",
    Severity.WARNING,
    "No page, or a slow one",
    "the car is announced as {name}, not yet as {expected}",
    "Its host name has changed since avahi started, or cloud-init has set the image's name again.",
    "sudo fpvcar setup (sets the name, restarts avahi); until then open http://{name}:8080/",
)
SLOW_RETRANSMIT = Kind(
    "tcp",
    Severity.NOTE,
    "No picture, or a late one",
    "TCP waits at least {ms:.0f} ms before it retransmits a lost packet",
    "On weak Wi-Fi this delays frames.",
    "sudo fpvcar setup",
)
FIXED_RETRANSMIT = Kind(
    "tcp-kernel",
    Severity.NOTE,
    "No picture, or a late one",
    "TCP's retransmission time-out is fixed: kernel {kernel} is older than 6.11",
    "It is 200 ms, which delays frames on weak Wi-Fi.",
    "sudo apt full-upgrade, then sudo reboot; Raspberry Pi OS Trixie has a newer kernel",
)


def wifi(facts: Facts) -> Findings:
    """Check power save, signal strength, and other networks on the channel."""
    if facts.wifi is None:
        yield Unasked(NO_WIFI)
        return
    if isinstance(facts.power_save, Unasked):
        yield facts.power_save
    elif facts.power_save:
        yield POWER_SAVE.finding(interface=facts.wifi)
    dbm = computer.health_of(facts.computer).wifi_dbm
    if dbm is None:
        yield Unasked("signal strength: the car is in no network, or opens its own")
    elif dbm < computer.WEAK_DBM:
        yield WEAK_SIGNAL.finding(dbm=dbm, least=computer.WEAK_DBM)
    if isinstance(facts.air, Unasked):
        yield facts.air
    elif facts.air.rivals > RIVALS_MOST:
        yield CROWDED_CHANNEL.finding(rivals=facts.air.rivals, channel=facts.air.channel)


def expected_name(profile: Profile) -> str:
    """Return the car's host name if no other host has that name."""
    return f"{profile.car.name.lower()}.local"


def name(facts: Facts) -> Findings:
    """Check that the car has the host name of its profile."""
    if isinstance(facts.profile, str):
        yield Unasked("the profile is invalid")
    elif isinstance(facts.name, Unasked):
        yield facts.name
    elif facts.name.lower() != expected_name(facts.profile):
        expected = expected_name(facts.profile)
        kind = NAME_TAKEN if taken(expected, facts.name) else NAME_NOT_ANNOUNCED
        yield kind.finding(name=facts.name, expected=expected)


def tcp(facts: Facts) -> Findings:
    """Check that TCP's time-out can be shortened, and is."""
    least_us = facts.least_timeout_us
    if facts.model is None:
        yield Unasked("this is no Raspberry Pi")
    elif least_us is None:
        yield FIXED_RETRANSMIT.finding(kernel=facts.os.kernel)
    elif least_us > TIMEOUT_US:
        yield SLOW_RETRANSMIT.finding(ms=least_us / 1000.0)

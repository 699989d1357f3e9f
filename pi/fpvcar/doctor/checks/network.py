"""Checks of the Wi-Fi, the car's host name, and TCP's retransmission time-out."""

from fpvcar.config import Profile
from fpvcar.doctor.facts import Facts
from fpvcar.doctor.report import Kind, Said, Severity, Unasked
from fpvcar.sensors import computer

RIVALS_MOST = 4
TIMEOUT_US = 50_000
"""Upper limit of TCP's time-out: above it, a packet lost twice is a visible freeze."""
NO_WIFI = "there is no Wi-Fi on this computer"

SAVES_POWER = Kind(
    "wifi-power-save",
    Severity.WARNING,
    "No picture, or a late one",
    "Wi-Fi power save is on ({interface})",
    "With it a command or a picture takes a second and more, now and then.",
    "sudo fpvcar setup, then sudo reboot; until then: sudo iw dev {interface} set power_save off",
)
WEAK = Kind(
    "wifi-weak",
    Severity.WARNING,
    "No picture, or a late one",
    "weak Wi-Fi: {dbm:.0f} dBm",
    "Below {least:.0f} packets are lost: the picture stands, the car stops.",
    "drive nearer to the router, or let the car open its own network: docs/install.md",
)
CROWDED = Kind(
    "wifi-channel",
    Severity.NOTE,
    "No picture, or a late one",
    "{rivals} other networks are heard well on channel {channel} of the car's Wi-Fi",
    "Who shares a channel waits for the others: the picture is late now and then.",
    "set the router to another channel (1, 6 or 11), or to 5 GHz where the Pi has it",
)
TAKEN = Kind(
    "name",
    Severity.WARNING,
    "No page, or a slow one",
    "the network knows the car as {name}, not as {wanted}",
    "Another computer has that name: who opens it gets that one, or nothing.",
    "open http://{name}:8080/, or another name: sudo fpvcar setup --name NAME",
)
PATIENT = Kind(
    "tcp",
    Severity.NOTE,
    "No picture, or a late one",
    "TCP waits {ms:.0f} ms at least until it repeats a packet that was lost",
    "Where Wi-Fi is weak, pictures that could be there sooner are late.",
    "sudo fpvcar setup",
)
FIXED = Kind(
    "tcp-kernel",
    Severity.NOTE,
    "No picture, or a late one",
    "TCP's least time to repeat a lost packet cannot be set: kernel {kernel} is older than 6.11",
    "It is 200 ms: where Wi-Fi is weak, pictures that could be there sooner are late.",
    "sudo apt full-upgrade, then sudo reboot; Raspberry Pi OS Trixie has a newer one",
)


def wifi(facts: Facts) -> Said:
    """Check power save, signal strength, and other networks on the channel."""
    if facts.wifi is None:
        yield Unasked(NO_WIFI)
        return
    if isinstance(facts.power_save, Unasked):
        yield facts.power_save
    elif facts.power_save:
        yield SAVES_POWER.found(interface=facts.wifi)
    dbm = computer.health_of(facts.computer).wifi_dbm
    if dbm is None:
        yield Unasked("its strength: the car is in no network, or opens one")
    elif dbm < computer.WEAK_DBM:
        yield WEAK.found(dbm=dbm, least=computer.WEAK_DBM)
    if isinstance(facts.air, Unasked):
        yield facts.air
    elif facts.air.rivals > RIVALS_MOST:
        yield CROWDED.found(rivals=facts.air.rivals, channel=facts.air.channel)


def wanted(profile: Profile) -> str:
    """Return the car's host name if no other host has that name."""
    return f"{profile.car.name.lower()}.local"


def name(facts: Facts) -> Said:
    """Check that the car has the host name of its profile."""
    if isinstance(facts.profile, str):
        yield Unasked("the profile is refused")
    elif isinstance(facts.name, Unasked):
        yield facts.name
    elif facts.name.lower() != wanted(facts.profile):
        yield TAKEN.found(name=facts.name, wanted=wanted(facts.profile))


def tcp(facts: Facts) -> Said:
    """Check that TCP's time-out can be shortened, and is."""
    least_us = facts.least_timeout_us
    if facts.model is None:
        yield Unasked("this is no Raspberry Pi")
    elif least_us is None:
        yield FIXED.found(kernel=facts.os.kernel)
    elif least_us > TIMEOUT_US:
        yield PATIENT.found(ms=least_us / 1000.0)

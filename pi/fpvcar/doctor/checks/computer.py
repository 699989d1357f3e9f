"""Checks of the car's computer: supply, heat, memory, card, clock, certificate.

sensors/computer.py interprets the computer's values, as for the page.
"""

from fpvcar.doctor.facts import Facts
from fpvcar.doctor.report import Broken, Kind, Said, Severity, Unasked
from fpvcar.runtime import wall_clock as wall
from fpvcar.sensors import computer, sd_card

NO_ROOM_MB = 8.0
"""Free space below which codes and certificate may fail to be written."""
SLOW_MB_PER_S = 1.0
"""Lower limit of the card's speed. A drive needs 0.3 MB/s; the system uses the rest."""
STALL_S = 1.0
"""Upper limit of one write. A pulled battery may cost a second of data; a longer write costs
more."""
NO_FIRMWARE = "no firmware of a Raspberry Pi answers here"

LOW = Kind(
    "under-voltage",
    Severity.FAULT,
    "It stops by itself",
    "under-voltage now",
    "The battery or its cable is weak: the car has half its throttle, and may restart.",
    "charge the battery; a regulator of 3 A and more, with short thick wires",
)
WAS_LOW = Kind(
    "under-voltage-earlier",
    Severity.WARNING,
    "It stops by itself",
    "there was under-voltage since the start",
    "It comes with the motors' starts: the next dip may restart the computer.",
    "charge the battery; a regulator of 3 A and more; 470 µF at the motor driver",
)
SLOWED = Kind(
    "throttled",
    Severity.WARNING,
    "No picture, or a late one",
    "the processor is slowed down now",
    "Pictures and commands are late while it is.",
    "let it cool, and give it air; charge the battery",
)
HOT = Kind(
    "hot",
    Severity.WARNING,
    "No picture, or a late one",
    "the processor has {celsius:.0f} degrees",
    "From {most:.0f} on every Raspberry Pi slows down.",
    "a heat sink, and holes in the body above it; a lower camera.fps",
)
SHORT = Kind(
    "memory",
    Severity.WARNING,
    "It stops by itself",
    "memory is nearly full: {free:.0f} MB left",
    "The kernel ends programs when nothing is left.",
    "close other programs; Raspberry Pi OS Lite has no desktop",
)
FULL = Kind(
    "card-full",
    Severity.WARNING,
    "Nothing is recorded",
    "the card is nearly full: {free:.0f} MB left where {place} is",
    "Recording stops when there is no room.",
    "bring recordings home, or delete some on the page; sudo journalctl "
    "--vacuum-size=50M; sudo apt clean",
)
NO_ROOM = Kind(
    "card-no-room",
    Severity.FAULT,
    "The car does not start",
    "the card is full: {free:.0f} MB left where {place} is",
    "The car cannot write its codes and its certificate, and does not start.",
    "sudo journalctl --vacuum-size=50M; sudo apt clean; then recordings in {place}",
)
READ_ONLY = Kind(
    "card-read-only",
    Severity.FAULT,
    "Nothing is recorded",
    "the card is read-only where {place} is",
    "The kernel met errors on it, or it is mounted so: nothing is kept.",
    "dmesg says why; fetch the recordings, then sudo fsck it, or replace it",
)
NOT_WRITABLE = Kind(
    "state",
    Severity.FAULT,
    "The car does not start",
    "nothing can be written in {place}: {words}",
    "The car keeps its codes, its certificate and its recordings there.",
    "sudo apt install --reinstall fpvcar (it sets the owner); df -h {place}",
)
WORN = Kind(
    "card-worn",
    Severity.WARNING,
    "Nothing is recorded",
    "the card is worn: {used:.0%} of its life, by its own count",
    "It may fail at any time, with all that is on it.",
    "fetch the recordings and replace the card",
)
SLOW = Kind(
    "card-slow",
    Severity.WARNING,
    "Nothing is recorded",
    "the card is slow: {mb_per_s:.1f} MB/s, and up to {longest_s:.1f} s for a write",
    "Parts of a drive may be missing in its recording.",
    "a card of class A1 or A2, or a USB stick: recording.directory in {path}",
)
CLOCK = Kind(
    "clock",
    Severity.WARNING,
    "No page, or a slow one",
    "the clock is wrong: {shown} UTC",
    "No certificate can be made, so https is off; recordings get this date.",
    'a network with internet, or sudo date -s "2026-12-31 12:00"; then sudo systemctl '
    "restart fpvcar",
)
OLD_RECORDINGS = Kind(
    "recordings-clock",
    Severity.NOTE,
    "Nothing is recorded",
    "recordings that were made while the clock was wrong: {count}",
    "They are whole, but their date is not, and as the oldest they are the first to "
    "go when room is needed.",
    "bring them home now: the page Recordings, Film (mp4), or a base station",
)
ENDED = Kind(
    "certificate",
    Severity.WARNING,
    "No page, or a slow one",
    "the certificate of https ended {days:.0f} days ago",
    "Browsers refuse https with it.",
    "sudo systemctl restart fpvcar (it makes a new one)",
)


def power(facts: Facts) -> Said:
    """Check for under-voltage now and since the start."""
    bits = computer.health_of(facts.computer).throttled
    if bits is None:
        yield Unasked(NO_FIRMWARE)
        return
    if bits & computer.UNDER_VOLTAGE:
        yield LOW.found()
    elif bits & computer.UNDER_VOLTAGE << computer.SINCE:
        yield WAS_LOW.found()


def heat(facts: Facts) -> Said:
    """Check the temperature, and the firmware's throttling."""
    health = computer.health_of(facts.computer)
    if health.celsius is None:
        yield Unasked("this computer does not say its temperature")
    elif health.celsius >= computer.HOT_C:
        yield HOT.found(celsius=health.celsius, most=computer.HOT_C)
        return
    bits = health.throttled or 0
    slowed = bits & (computer.THROTTLED | computer.CAPPED)
    # under-voltage is the cause then, and reported
    if slowed and not bits & computer.UNDER_VOLTAGE:
        yield SLOWED.found()


def memory(facts: Facts) -> Said:
    """Check the memory available to programs."""
    free = computer.health_of(facts.computer).memory_free_mb
    if free is None:
        yield Unasked("this computer does not say how much is free")
    elif free < computer.SHORT_MB:
        yield SHORT.found(free=free)


def card_room(facts: Facts) -> Said:
    """Check the free space, and that the card is writable."""
    found, place = sd_card.card_of(facts.computer), facts.state
    if found.read_only:
        yield READ_ONLY.found(place=place)
        return
    free = computer.health_of(facts.computer).disk_free_mb
    if free is None:
        yield Unasked(f"{place}: not there, or not allowed")
    elif free < NO_ROOM_MB:
        yield NO_ROOM.found(free=free, place=place)
        return
    elif free < computer.FULL_MB:
        yield FULL.found(free=free, place=place)
    if isinstance(facts.writable, Unasked):
        yield facts.writable
    elif isinstance(facts.writable, Broken):
        yield NOT_WRITABLE.found(place=place, words=facts.writable.words)


def card_life(facts: Facts) -> Said:
    """Check the wear, if the card counts it."""
    used = sd_card.card_of(facts.computer).used
    if used is None:
        yield Unasked("this card does not count its wear (few SD cards do)")
    elif used >= sd_card.WORN:
        yield WORN.found(used=min(used, 1.0))


def card_speed(facts: Facts) -> Said:
    """Check the speed of the card by writing a few MB."""
    speed = facts.speed
    if isinstance(speed, Unasked):
        yield speed
    elif speed.mb_per_s < SLOW_MB_PER_S or speed.longest_s > STALL_S:
        yield SLOW.found(
            mb_per_s=speed.mb_per_s, longest_s=speed.longest_s, path=facts.profile_path
        )


def clock(facts: Facts) -> Said:
    """Check the clock now, and at the start of recordings."""
    utc_s = facts.computer.utc_s
    if utc_s is None:
        yield Unasked("no clock runs there")
    elif not wall.sane(utc_s):
        yield CLOCK.found(shown=wall.shown(utc_s))
    if isinstance(facts.old_recordings, Unasked):
        yield facts.old_recordings
    elif facts.old_recordings:
        yield OLD_RECORDINGS.found(count=facts.old_recordings)


def certificate(facts: Facts) -> Said:
    """Check the validity of the certificate. `run` renews it when it starts."""
    days = facts.certificate_days
    if isinstance(days, Unasked):
        yield days
    elif days < 0.0:
        yield ENDED.found(days=-days)

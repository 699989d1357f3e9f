"""Checks of the car's computer: supply, heat, memory, card, clock, certificate.

sensors/computer.py interprets the computer's values, as for the page.
"""

from fpvcar.doctor.facts import Facts
from fpvcar.doctor.report import Broken, Findings, Kind, Severity, Unasked
from fpvcar.runtime import clock as wall
from fpvcar.sensors import computer, sd_card

LEAST_FREE_MB = 8.0
"""Free space below which codes and certificate may fail to be written."""
SLOW_MB_PER_S = 1.0
"""Lower limit of the card's speed. A drive needs 0.3 MB/s; the system uses the rest."""
STALL_S = 1.0
"""Upper limit of one write. A pulled battery may cost a second of data; a longer write costs
more."""
NO_FIRMWARE = "the firmware of a Raspberry Pi does not answer"

UNDER_VOLTAGE = Kind(
    "under-voltage",
    Severity.FAULT,
    "It stops by itself",
    "under-voltage now",
    "The battery or its cable is weak: throttle is halved, and the computer may restart.",
    "charge the battery; use a regulator of at least 3 A, with short thick wires",
)
EARLIER_UNDER_VOLTAGE = Kind(
    "under-voltage-earlier",
    Severity.WARNING,
    "It stops by itself",
    "under-voltage occurred since the start",
    "Starting motors lower the voltage; the next drop may restart the computer.",
    "charge the battery; use a regulator of at least 3 A, and 470 µF at the motor driver",
)
THROTTLED_CPU = Kind(
    "throttled",
    Severity.WARNING,
    "No picture, or a late one",
    "the firmware is throttling the processor",
    "Video and commands are late while the processor is slow.",
    "let it cool and improve the airflow; charge the battery",
)
HOT = Kind(
    "hot",
    Severity.WARNING,
    "No picture, or a late one",
    "the processor is at {celsius:.0f} °C",
    "From {most:.0f} °C on, a Raspberry Pi slows down.",
    "fit a heat sink, open the body above it, or lower camera.fps",
)
LOW_MEMORY = Kind(
    "memory",
    Severity.WARNING,
    "It stops by itself",
    "memory is nearly full: {free:.0f} MB left",
    "The kernel kills programs when memory runs out.",
    "close other programs, or install Raspberry Pi OS Lite, without a desktop",
)
NEARLY_FULL = Kind(
    "card-full",
    Severity.WARNING,
    "Nothing is recorded",
    "the SD card is nearly full: {free:.0f} MB free at {place}",
    "Recording stops when the card is full.",
    "copy recordings to another computer and delete them on the page; sudo journalctl "
    "--vacuum-size=50M; sudo apt clean",
)
FULL = Kind(
    "card-no-room",
    Severity.FAULT,
    "The car does not start",
    "the SD card is full: {free:.0f} MB free at {place}",
    "The car cannot write its codes and certificate, so it does not start.",
    "sudo journalctl --vacuum-size=50M; sudo apt clean; then delete recordings in {place}",
)
READ_ONLY = Kind(
    "card-read-only",
    Severity.FAULT,
    "Nothing is recorded",
    "the SD card is read-only at {place}",
    "The kernel found errors, or it was mounted read-only: no data is saved.",
    "read dmesg for the reason; copy the recordings, then run sudo fsck or replace the card",
)
VOLATILE = Kind(
    "recordings-volatile",
    Severity.FAULT,
    "Nothing is recorded",
    "recordings are not kept after power-off: {place} is in memory (tmpfs or overlay)",
    "An overlay without recurse=0 also covers the partition of the recordings.",
    "copy the recordings; then overlayroot=tmpfs:recurse=0 in cmdline.txt, and sudo reboot: "
    "docs/install.md",
)
NOT_WRITABLE = Kind(
    "state",
    Severity.FAULT,
    "The car does not start",
    "cannot write to {place}: {fault}",
    "The car stores its codes, certificate and recordings there.",
    "sudo apt install --reinstall fpvcar (sets the owner); df -h {place}",
)
WORN = Kind(
    "card-worn",
    Severity.WARNING,
    "Nothing is recorded",
    "the SD card is worn: it reports {used:.0%} of its life used",
    "It may fail at any time and lose all data.",
    "copy the recordings and replace the card",
)
SLOW = Kind(
    "card-slow",
    Severity.WARNING,
    "Nothing is recorded",
    "the SD card is slow: {mb_per_s:.1f} MB/s, longest write {longest_s:.1f} s",
    "Recordings may have gaps.",
    "use a card of class A1 or A2, or a USB stick: set recording.directory in {path}",
)
WRONG_CLOCK = Kind(
    "clock",
    Severity.WARNING,
    "No page, or a slow one",
    "the clock is wrong: {shown} UTC",
    "HTTPS is off, as no certificate can be created; recordings get this date.",
    'connect to the internet, or sudo date -s "2026-12-31 12:00"; then sudo systemctl '
    "restart fpvcar",
)
OLD_RECORDINGS = Kind(
    "recordings-clock",
    Severity.NOTE,
    "Nothing is recorded",
    "recordings made while the clock was wrong: {count}",
    "They are complete, but with a wrong date, and as the oldest they are deleted first "
    "when space is needed.",
    "copy them now: Film (mp4) on the page Recordings, or a base station",
)
EXPIRED_CERTIFICATE = Kind(
    "certificate",
    Severity.WARNING,
    "No page, or a slow one",
    "the HTTPS certificate expired {days:.0f} days ago",
    "Browsers reject an expired certificate.",
    "sudo systemctl restart fpvcar (creates a new one)",
)


def power(facts: Facts) -> Findings:
    """Check for under-voltage now and since the start."""
    bits = computer.health_of(facts.computer).throttled
    if bits is None:
        yield Unasked(NO_FIRMWARE)
        return
    if bits & computer.UNDER_VOLTAGE:
        yield UNDER_VOLTAGE.finding()
    elif bits & computer.UNDER_VOLTAGE << computer.SINCE:
        yield EARLIER_UNDER_VOLTAGE.finding()


def heat(facts: Facts) -> Findings:
    """Check the temperature, and the firmware's throttling."""
    health = computer.health_of(facts.computer)
    if health.celsius is None:
        yield Unasked("this computer reports no temperature")
    elif health.celsius >= computer.HOT_C:
        yield HOT.finding(celsius=health.celsius, most=computer.HOT_C)
        return
    bits = health.throttled or 0
    slowed = bits & (computer.THROTTLED | computer.CAPPED)
    # under-voltage is the cause then, and reported
    if slowed and not bits & computer.UNDER_VOLTAGE:
        yield THROTTLED_CPU.finding()


def memory(facts: Facts) -> Findings:
    """Check the memory available to programs."""
    free = computer.health_of(facts.computer).memory_free_mb
    if free is None:
        yield Unasked("this computer does not report free memory")
    elif free < computer.SHORT_MB:
        yield LOW_MEMORY.finding(free=free)


def card_room(facts: Facts) -> Findings:
    """Check the free space, and that the card is writable and keeps recordings."""
    card, place = sd_card.card_of(facts.computer), facts.state
    if card.read_only:
        yield READ_ONLY.finding(place=place)
        return
    if facts.model is not None and sd_card.volatile(facts.computer.mounts, facts.recordings):
        yield VOLATILE.finding(place=facts.recordings)
    free = computer.health_of(facts.computer).disk_free_mb
    if free is None:
        yield Unasked(f"{place}: missing or not readable")
    elif free < LEAST_FREE_MB:
        yield FULL.finding(free=free, place=place)
        return
    elif free < computer.FULL_MB:
        yield NEARLY_FULL.finding(free=free, place=place)
    if isinstance(facts.writable, Unasked):
        yield facts.writable
    elif isinstance(facts.writable, Broken):
        yield NOT_WRITABLE.finding(place=place, fault=facts.writable.fault)


def card_life(facts: Facts) -> Findings:
    """Check the wear, if the card counts it."""
    used = sd_card.card_of(facts.computer).used
    if used is None:
        yield Unasked("this card does not count its wear (few SD cards do)")
    elif used >= sd_card.WORN:
        yield WORN.finding(used=min(used, 1.0))


def card_speed(facts: Facts) -> Findings:
    """Check the speed of the card by writing a few MB."""
    speed = facts.speed
    if isinstance(speed, Unasked):
        yield speed
    elif speed.mb_per_s < SLOW_MB_PER_S or speed.longest_s > STALL_S:
        yield SLOW.finding(
            mb_per_s=speed.mb_per_s, longest_s=speed.longest_s, path=facts.profile_path
        )


def clock(facts: Facts) -> Findings:
    """Check the clock now, and at the start of recordings."""
    utc_s = facts.computer.utc_s
    if utc_s is None:
        yield Unasked("the clock does not run")
    elif not wall.plausible(utc_s):
        yield WRONG_CLOCK.finding(shown=wall.utc_text(utc_s))
    if isinstance(facts.old_recordings, Unasked):
        yield facts.old_recordings
    elif facts.old_recordings:
        yield OLD_RECORDINGS.finding(count=facts.old_recordings)


def certificate(facts: Facts) -> Findings:
    """Check the validity of the certificate. `run` renews it when it starts."""
    days = facts.certificate_days
    if isinstance(days, Unasked):
        yield days
    elif days < 0.0:
        yield EXPIRED_CERTIFICATE.finding(days=-days)

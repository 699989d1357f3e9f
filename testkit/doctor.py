"""Healthy car for doctor: its files below a folder, its answers played.

root = healthy(tmp_path)              # a card, as setup leaves it
played = PlayedMachine()              # programs that run on it
report = examined(root, played)       # no findings
"""

from collections.abc import Collection, Sequence
from pathlib import Path

from fpvcar import __version__
from fpvcar.cli import setup
from fpvcar.cli.command_line import parser
from fpvcar.cli.doctor import car_paths
from fpvcar.config import Profile, raspberry_pi_os
from fpvcar.devices.backends import BackEnd
from fpvcar.doctor import checks, collect
from fpvcar.doctor.facts import CardSpeed, DeadManTest, MotorTest, Running
from fpvcar.doctor.report import Answer, Report, Unasked, Works

BOOT = "boot/firmware/config.txt"
GONE = ""
"""Content that marks a missing file."""
MODEL = "Raspberry Pi Zero 2 W Rev 1.0\0"
PI_3 = "Raspberry Pi 3 Model A Plus Rev 1.0"
"""Board that reports under-voltage, in contrast to a Zero."""
PERSIST = "sys/module/pinctrl_bcm2835/parameters/persist_gpio_outputs"
THROTTLED = "sys/devices/platform/soc/soc:firmware/get_throttled"
WIRELESS = """\
Inter-| sta-|   Quality        |   Discarded packets
 face | tus | link level noise |  nwid  crypt   frag  retry   misc
 wlan0: 0000   62.  {dbm}.  -256        0      0      0      0      3
"""
FILES = {
    BOOT: "dtparam=audio=on\n",
    "boot/firmware/cmdline.txt": "console=tty1 root=PARTUUID=0 rootwait\n",
    "etc/os-release": 'PRETTY_NAME="Debian GNU/Linux 13 (trixie)"\nVERSION_CODENAME=trixie\n',
    raspberry_pi_os.MODEL: MODEL,
    "proc/sys/kernel/osrelease": "6.12.34+rpt-rpi-v8\n",
    collect.LEAST_TIMEOUT: "30000\n",
    "proc/meminfo": "MemTotal: 430000 kB\nMemAvailable: 210000 kB\n",
    "proc/loadavg": "0.21 0.10 0.05 1/120 777\n",
    "proc/uptime": "812.4 3000.1\n",
    "proc/net/wireless": WIRELESS.format(dbm=-52),
    "proc/self/mounts": "/dev/mmcblk0p2 / ext4 rw,noatime 0 0\n",
    PERSIST: "N\n",
    THROTTLED: "0\n",
    "sys/class/thermal/thermal_zone0/temp": "45000\n",
    "sys/block/mmcblk0/device/life_time": "0x01 0x02\n",
    "sys/block/mmcblk0/device/pre_eol_info": "0x01\n",
    "dev/i2c-1": "a device\n",
    "var/lib/fpvcar/codes.json": "{}\n",
    "var/lib/dpkg/status": "\n".join(
        f"Package: {name}\nStatus: install ok installed\nVersion: 1\n"
        for name in (
            "openssl",
            "avahi-daemon",
            "network-manager",
            "dnsmasq-base",
            "python3-picamera2",
            "python3-libcamera",
            "libcamera0.5",
            "libcamera-ipa",
        )
    ),
}
UNIT = "Id={}\nLoadState=loaded\nActiveState=active\nNRestarts=0\nWatchdogUSec=5s\n"
SAID: dict[str, str | Unasked] = {
    "systemctl show --property=Id": "\n".join(map(UNIT.format, raspberry_pi_os.UNITS)),
    "systemctl show --property=RuntimeWatchdogUSec": "RuntimeWatchdogUSec=15s\n",
    "journalctl": "",
    "nmcli": "*:6:80\n :6:30\n :1:90\n",
    "pinctrl": "17: ip    pd | lo // GPIO17 = input\n27: op -- pd | lo // GPIO27\n"
    "24: ip    pd | lo // GPIO24 = input\n23: ip    pd | lo // GPIO23 = input\n",
    "busctl": 's "rusty.local"\n',
    "openssl": "notAfter=Nov  1 00:00:00 2099 GMT\n",
}
"""Output of programs, by the beginning of their command line."""


class PlayedMachine:
    """Healthy machine; a test changes one part to be ill."""

    def __init__(self) -> None:
        self.said = dict(SAID)
        self.back_end: BackEnd = "linux"
        self.pins_answer: Answer = Works()
        self.held: dict[int, str] = {17: "fpvcar wheels"}
        self.present = {(1, 0x29), (1, 0x40)}
        self.car: Running | Unasked = Running(__version__, "ok")
        self.tripped: DeadManTest | Unasked = DeadManTest(0.21, True)
        self.turning = (MotorTest("drive", Works()), MotorTest("steer", Works()))
        self.filming: Answer = Works()
        self.card: CardSpeed | Unasked = CardSpeed(9.0, 0.1)
        self.written: Answer = Works()
        self.clock_s = 1_800_000_000.0
        self.rests: bool | Unasked = False

    def command(self, *argv: str) -> str | Unasked:
        line = " ".join(argv)
        return next(words for start, words in self.said.items() if line.startswith(start))

    def backend(self, profile: Profile) -> BackEnd:
        return self.back_end

    def pins(self, profile: Profile) -> Answer:
        return self.pins_answer

    def holders(self, gpios: Sequence[int]) -> dict[int, str]:
        return {gpio: self.held.get(gpio, "") for gpio in gpios}

    def answering(
        self, profile: Profile, places: Collection[tuple[int, int]]
    ) -> frozenset[tuple[int, int]]:
        return frozenset(self.present & set(places))

    def running(self) -> Running | Unasked:
        return self.car

    def trip(self) -> DeadManTest | Unasked:
        return self.tripped

    def turn(self, profile: Profile) -> tuple[MotorTest, ...]:
        return self.turning

    def camera(self, profile: Profile) -> Answer:
        return self.filming

    def speed(self, directory: Path) -> CardSpeed | Unasked:
        return self.card

    def writable(self, state: Path) -> Answer:
        return self.written

    def utc_s(self) -> float:
        return self.clock_s

    def power_save(self, interface: str) -> bool | Unasked:
        return self.rests


def put(root: Path, name: str, text: str) -> None:
    """Write a file below the root; GONE removes it."""
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    if text == GONE:
        path.unlink()
    else:
        path.write_text(text)


def healthy(root: Path) -> Path:
    """Make a card of a healthy car: Raspberry Pi OS, and `setup`."""
    for name, text in FILES.items():
        put(root, name, text)
    words = ["setup", "--root", str(root), "--board=mx1508-sensors", "--name=Rusty", "--resistors"]
    assert setup.main(parser().parse_args(words)) == 0
    return root


def change(root: Path, old: str, new: str) -> None:
    profile = (root / raspberry_pi_os.PROFILE).read_text()
    assert old in profile
    put(root, raspberry_pi_os.PROFILE, profile.replace(old, new))


def examined(root: Path, machine: PlayedMachine, *words: str) -> Report:
    """Return doctor's report of the card at `root` in this machine."""
    paths = car_paths(parser().parse_args(["doctor", "--root", str(root), *words]))
    return checks.examine(collect.facts(paths, machine))

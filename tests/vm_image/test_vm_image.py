"""The card image: its content, its first boot, a drive, a power cut and an upgrade."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from testkit.debs import CAR, changed

from fpvcar.cli import first_boot
from tests.vm_image.card import ImageCar, build, firmware, root_file
from tests.vm_units.car import INSIDE, bring

pytestmark = [pytest.mark.e2e, pytest.mark.vm, pytest.mark.soak, pytest.mark.long]
GB = 1_000_000_000
IMAGE_MOST, DOWNLOAD_MOST = 2 * GB, 1 * GB
ANSWERS = {"board": "mx1508", "name": "Elbow", "country": "FI"}
ENDED = (
    f"for n in $(seq 300); do [ $(systemctl is-active {first_boot.UNIT}) != inactive ] || exit 0;"
    " sleep 1; done; exit 1"
)
CAR_PAGE = 'id="link-chip"'
KEPT = "sha256sum /etc/fpvcar/car.toml /var/lib/fpvcar/codes.json /var/lib/fpvcar-network/own.key"
PIDS = "systemctl show --property=MainPID --value fpvcar fpvcar-wheels"
UPGRADED = (
    "for n in $(seq 200); do systemctl is-active --quiet fpvcar-upgrade || exit 0; sleep 1; done"
    "; exit 1"
)
HERE = "/share/tests/vm_units"


@pytest.fixture(scope="module")
def share(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("image-share")
    bring(made)
    return made


@pytest.fixture(scope="module")
def image(share: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("image"), share)


@pytest.fixture(scope="module")
def car(image: Path, share: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ImageCar]:
    made = ImageCar(image, share, tmp_path_factory.mktemp("card") / "card.img")
    try:
        yield made
    finally:
        made.vm.close()
        made.disk.unlink()


def test_image_and_download_are_small(image: Path) -> None:
    size, download = (path.stat().st_size for path in (image, image.with_suffix(".img.xz")))
    print(f"image: {size / GB:.2f} GB, compressed {download / GB:.2f} GB")
    assert size < IMAGE_MOST and download < DOWNLOAD_MOST


def test_imager_entry_describes_the_download(image: Path) -> None:
    (entry,) = json.loads(image.with_suffix(".json").read_text())["os_list"]
    assert entry["extract_size"] == image.stat().st_size
    assert entry["image_download_size"] == image.with_suffix(".img.xz").stat().st_size
    assert entry["url"].endswith("fpvcar.img.xz") and entry["icon"]
    assert "init_format" not in entry, "Imager's own settings would change nothing in this image"


def test_image_has_no_password_no_user_and_no_identity(image: Path) -> None:
    shadow = [line.split(":") for line in root_file(image, "cat /etc/shadow").splitlines()]
    assert len(shadow) > 10 and all(field[1][0] in "!*" for field in shadow)
    users = [line.split(":") for line in root_file(image, "cat /etc/passwd").splitlines()]
    assert [user[0] for user in users if 1000 <= int(user[2]) < 60000] == []
    assert "machine-id" in root_file(image, "ls -p /etc")
    assert root_file(image, "cat /etc/machine-id") == ""
    assert "sshd_config" in root_file(image, "ls -p /etc/ssh")
    assert "ssh_host" not in root_file(image, "ls -p /etc/ssh")


def test_image_lets_packages_restart_services(image: Path) -> None:
    programs = root_file(image, "ls -p /usr/sbin")
    assert "/sshd/" in programs and "policy-rc.d" not in programs


def test_firmware_partition_boots_a_pi(image: Path, tmp_path: Path) -> None:
    """Everything that the boot ROM and the firmware of a Pi look for is there."""
    firmware(image, "-s", "::*", tmp_path)
    config = (tmp_path / "config.txt").read_text()
    for name in ("kernel", "initramfs"):
        (file,) = re.findall(rf"^{name}[= ](\S+)", config, re.M)
        assert (tmp_path / file).exists()
    assert "\ndtparam=strict_gpiod\n" in config
    assert " root=LABEL=RASPIROOT " in f" {(tmp_path / 'cmdline.txt').read_text()} "
    for name in ("bootcode.bin", "start.elf", "start4.elf", "bcm2837-rpi-3-b.dtb"):
        assert (tmp_path / name).exists()
    assert len((tmp_path / Path(first_boot.KEY_FILE).name).read_text().strip()) >= 8


def test_first_boot_ends_at_a_page_and_answers_start_the_car(car: ImageCar) -> None:
    page_s = car.card.page("first start")
    told = car.answer(**ANSWERS)
    start_s = car.card.page(CAR_PAGE)
    print(f"first boot: page after {page_s:.0f} s, car after another {start_s:.0f} s")
    assert re.fullmatch("[0-9]{6}", told["drive"]) and told["grown_up"]
    car.card.wait()
    car.mount()
    car.check(ENDED)
    codes = json.loads(car.check("cat /var/lib/fpvcar/codes.json"))
    assert codes == {"drive": told["drive"], "grown_up": told["grown_up"]}
    assert car.check("hostname").strip() == "elbow"
    car.check("systemctl is-active fpvcar fpvcar-network")
    assert "disabled" in car.vm.run(f"systemctl is-enabled {first_boot.UNIT}").stdout
    assert "ieee80211_regdom=FI" in car.check("cat /etc/modprobe.d/fpvcar.conf")
    key = car.check("cat /boot/firmware/fpvcar-wifi-key.txt")
    assert car.check("cat /var/lib/fpvcar-network/own.key") == key
    assert told["key"] == key.strip()


def test_card_has_its_own_identity_and_its_whole_size(car: ImageCar) -> None:
    assert re.fullmatch("[0-9a-f]{32}", car.check("cat /etc/machine-id").strip())
    assert car.check("ls /etc/ssh/ssh_host_ed25519_key")
    assert int(car.check("findmnt -bno SIZE /")) > 2 * GB


def test_stranger_cannot_log_in(car: ImageCar) -> None:
    for method in ("password", "keyboard-interactive", "none"):
        words = "ssh -o StrictHostKeyChecking=no -o PreferredAuthentications=" + method
        refused = car.vm.run(f"{words} -o BatchMode=yes root@localhost true")
        assert refused.returncode == 255 and "Permission denied (publickey)" in refused.stderr


def test_car_of_the_image_drives(car: ImageCar) -> None:
    car.check("dpkg -i /share/fpvcar-bench_*.deb")
    car.check(f"sh {HERE}/pigpio.sh")
    car.check("fpvcar setup --name Elbow")
    car.check(f"sh {HERE}/camera.sh")
    with car.driven():
        pass


def test_power_cut_costs_seconds_of_recording_and_no_setting(car: ImageCar) -> None:
    kept = car.check(KEPT)
    with car.driven(), car.doing("set"):
        lost_s = car.cut_while_recording()
    assert car.check(f"{INSIDE} rest") == "rests\n"
    car.card.page(CAR_PAGE)
    status = car.status()
    assert status["stop"] and not any(status["duties"])
    assert car.check(KEPT) == kept
    assert json.loads(car.check("cat /var/lib/fpvcar/kept.json"))["limit"] in (0.4, 0.5)
    with car.driven():
        pass
    print(f"power cut: {lost_s():.1f} s of the recording lost")
    assert lost_s() <= 2.0
    assert "EXT4-fs error" not in car.check("dmesg")


def test_upgrade_of_the_package_keeps_the_car_driving(car: ImageCar) -> None:
    kept, pids = car.check(KEPT), car.check(PIDS)
    changed(car.share, "9.1")
    with car.driven():
        car.check("apt install --yes /share/9.1-*.deb")
    car.check(UPGRADED)
    versions = "dpkg-query -W -f '${Version} ' " + " ".join(CAR)
    assert car.check(versions).split() == ["9.1", "9.1"]
    car.card.page(CAR_PAGE)
    assert car.status()["version"] == "9.1"
    assert not set(pids.split()) & set(car.check(PIDS).split())
    assert car.check(KEPT) == kept
    with car.driven():
        pass

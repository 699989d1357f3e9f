"""The packages and units of a car, installed, driven, failing, in a VM with systemd.

For the limits of these tests see __init__.py, pigpio.sh and inside.py.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
from testkit.debs import CAR, changed
from testkit.vm.image import long_marks

from tests.vm_units.car import (
    CAMERA,
    LIMITS_S,
    LONG_S,
    RECORDINGS,
    TRIXIE,
    WHOLE,
    Car,
    assert_stops,
    booted,
)

pytestmark = long_marks(TRIXIE)
CAUSES = [one for one in LIMITS_S if one.split()[0] not in ("guardian", "whole", "both", "PWM")]
"""pigpiod is its own dead man. The reboot has a test of its own."""
POLICY = "/usr/sbin/policy-rc.d"
OPENED = """sh -c '
echo $$ >/sys/fs/cgroup/system.slice/fpvcar.service/cgroup.procs
exec setpriv --reuid=fpvcar --regid=fpvcar --groups=video,disk sh -c ": <%s"'"""


@pytest.fixture(scope="module")
def car(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Car]:
    with booted(tmp_path_factory) as made:
        made.install()
        made.check(CAMERA)
        yield made


def assert_drives(car: Car) -> None:
    """Assert that the car drives and stops in time."""
    stop = car.stop("run killed")
    assert stop.off_s <= stop.limit_s


@pytest.mark.parametrize("cause", CAUSES)
def test_car_stops_in_time_and_recovers_alone(
    car: Car, cause: str, pytestconfig: pytest.Config
) -> None:
    assert_stops(car, cause, pytestconfig)


def test_pins_off_program_ran_without_traceback(car: Car) -> None:
    """The program ran at each end of wheels and pigpiod, and also at the request of a process
    that found one of them mute."""
    said = car.check("journalctl --boot --output=cat")
    assert "pins-off: inputs now: GPIO" in said
    assert [line for line in said.splitlines() if "Traceback" in line] == []


def test_units_log_no_permission_denied(car: Car) -> None:
    said = car.check("journalctl --boot --output=cat")
    assert [line for line in said.splitlines() if "ermission denied" in line] == []


def test_camera_plugged_in_later_is_in_reach_of_the_unit(car: Car) -> None:
    """The filter of devices is that of the unit's control group, from its start. The kernel's
    vivid stands for a webcam."""
    assert car.vm.run("test -e /dev/video0").returncode, "it is not plugged in yet"
    show = "systemctl show --value --property=MainPID fpvcar"
    running = car.check(show)
    car.check("modprobe vivid n_devs=1 node_types=0x1 && udevadm settle")
    car.check(OPENED % "/dev/video0")
    assert car.vm.run(OPENED % "/dev/vda").returncode, "there is no filter"
    assert car.check(show) == running
    car.check("rmmod vivid")


def test_reboot_stops_wheels_before_pigpiod_and_car_drives_again(car: Car) -> None:
    with car.driven():
        car.reboot()
    before = car.check("journalctl --boot=-1 --output=cat")
    wheels, pins = "Stopped fpvcar-wheels.service", "Stopping pigpiod.service"
    assert before.rindex(wheels) < before.rindex(pins)
    assert_drives(car)
    car.check(WHOLE)


def test_power_cut_costs_only_seconds_of_recording(car: Car) -> None:
    keeps = "cd / && sha256sum etc/fpvcar/car.toml var/lib/fpvcar/*.*"
    kept = car.check(keeps)
    with car.driven():
        lost_s = car.cut_while_recording()
    assert car.check(keeps) == kept
    assert_drives(car)
    assert lost_s() <= 2.0


def broken(tree: Path) -> None:
    """Make `wheels` of a package end at once."""
    main = tree / "usr/lib/python3/dist-packages/fpvcar/wheels/__main__.py"
    if main.exists():
        main.write_text("raise SystemExit(1)\n")


def test_restart_delay_begins_again_when_the_timer_elapses(car: Car) -> None:
    """The service of the timer is started here; the timer itself waits for ten minutes."""
    assert_drives(car)
    show = "systemctl show --value --property"
    assert int(car.check(f"{show}=NRestarts fpvcar.service")) > 0
    assert car.check(f"{show}=ActiveState fpvcar-calm.timer").strip() == "active"
    assert car.check(f"{show}=NextElapseUSecMonotonic fpvcar-calm.timer").strip()
    pid = car.check(f"{show}=MainPID fpvcar.service")
    car.check("systemctl start --wait fpvcar-calm.service")
    assert int(car.check(f"{show}=NRestarts fpvcar.service")) == 0
    assert car.check(f"{show}=MainPID fpvcar.service") == pid, "the car is not restarted for it"


def test_working_upgrade_stays_and_broken_upgrade_reverts(car: Car) -> None:
    changed(car.share, "9.1")
    changed(car.share, "9.2", broken)
    with car.driven():
        car.check("dpkg -i /share/9.1-*.deb")
    assert_drives(car)
    assert "going back" in reverted(car, "9.2")
    assert_drives(car)


def reverted(car: Car, version: str) -> str:
    """Upgrade from 9.1; return the log of the check that goes back to it."""
    car.check(f"dpkg -i /share/{version}-*.deb")
    car.check(
        "for n in $(seq 200); do systemctl is-active --quiet fpvcar-upgrade || break; sleep 1; done"
    )
    versions = "dpkg-query -W -f '${Version} ' " + " ".join(CAR)
    assert car.check(versions).split() == ["9.1", "9.1"]
    return car.check("journalctl --output=cat -u fpvcar-upgrade")


def test_upgrade_after_which_the_old_services_run_on_reverts(car: Car) -> None:
    """The owner's policy-rc.d forbids the restart of services."""
    changed(car.share, "9.3")
    car.check(f"printf '#!/bin/sh\\nexit 101\\n' >{POLICY} && chmod +x {POLICY}")
    said = reverted(car, "9.3")
    car.check(f"rm {POLICY}")
    assert "60 s: fpvcar.service fpvcar-wheels.service version\n" in said
    assert "the page is of version 9.1, not 9.3\n" in said
    assert_drives(car)


def test_package_removal_leaves_recordings_and_no_unit(car: Car) -> None:
    """The recording that is being written is closed."""
    recorded = car.check(f"ls {RECORDINGS}").replace(".part", "").split()
    car.check("dpkg --remove fpvcar-bench fpvcar")
    assert recorded and set(recorded) <= set(car.check(f"ls {RECORDINGS}").split())
    for left in ("systemctl list-unit-files 'fpvcar*' -q", "pgrep -f /usr/bin/fpvcar"):
        assert car.vm.run(left, LONG_S).stdout == ""


def test_package_purge_leaves_only_recordings(car: Car) -> None:
    """Recordings stay, because a purge without a question has no consent to delete them."""
    recorded = car.check(f"ls {RECORDINGS}").split()
    car.check("DEBIAN_FRONTEND=noninteractive dpkg --purge fpvcar python3-fpvcar")
    assert set(recorded) <= set(car.check(f"ls {RECORDINGS}").split())
    left = car.check("find / -xdev -name '*fpvcar*' ! -path '/var/log/*'").split()
    assert left == ["/var/lib/fpvcar"]

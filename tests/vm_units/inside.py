"""Runs in the VM: drive the car, make a unit fail, and read the motor pins.

    inside.py "wheels killed"  -->  {"cause": ..., "off_s": 0.2, "whole_s": 1.9}
    inside.py drive                 drives until killed; prints "drives" once it drives
    inside.py set                   changes the speed limit until killed; prints "sets" after some
    inside.py rest                  prints "rests" if the motors are off for a second

The figures are the times after the cause at which the motors were off and at which the car drove
again.
"""

import contextlib
import itertools
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from testkit.driver import Driver, free, sit_down
from testkit.harness import PinWatch, wait_for

from fpvcar.config import profiles
from tests.vm_units.pins import watch as watched

PORT = 8080
PINS = profiles.load(Path("/etc/fpvcar/car.toml")).motor_pins()
WHOLE_S = 60.0
HELPERS = Path("/sys/fs/cgroup/system.slice/system-fpvcar\\x2dpins\\x2doff.slice")
REBOOT, PWM_BROKEN = "whole car rebooted", "PWM broken"
LIMITS = (0.4, 0.5)
"""Speed limits below the profile's."""
CLIENT = "0" * 32
"""A returning driver keeps the seat; a stranger gets it after 10 s."""


def systemctl(*words: str) -> str:
    done = subprocess.run(["systemctl", *words], capture_output=True, text=True)
    return done.stdout.strip()


def main_pid(unit: str) -> int:
    """Return the process that systemd started for a unit."""
    pid = int(systemctl("show", "--property=MainPID", "--value", unit))
    assert pid, f"{unit} does not run"
    return pid


def signalled(pid: int, number: signal.Signals) -> Callable[[], int]:
    """Return an action that sends a signal to a process."""

    def act() -> int:
        now_ns = time.monotonic_ns()
        os.kill(pid, number)
        return now_ns

    return act


def broken_pwm() -> int:
    """Make the PWM refuse each write from now on, until the next boot."""
    now_ns = time.monotonic_ns()
    Path("/run/sysfs/module/pwm_pca9685/parameters/refuse").write_text("1")
    return now_ns


def told(*words: str) -> Callable[[], int]:
    """Return an action that calls systemctl. systemd begins to act a moment later."""

    def act() -> int:
        now_ns = time.monotonic_ns()
        systemctl(*words)
        return now_ns

    return act


def killed_camera() -> Callable[[], int]:
    """Return an action that kills the camera's process. Its unit, which is that of `run`, stays."""
    words = ["pgrep", "--full", "/opt/camera.py"]
    (pid,) = subprocess.check_output(words, text=True).split()
    return signalled(int(pid), signal.SIGKILL)


def hung_helper() -> Callable[[], int]:
    """Return an action that hangs the pin daemon and the first helper that is started after
    that."""
    hang = signalled(main_pid(UNITS["pigpiod"]), signal.SIGSTOP)

    def hung() -> bool:
        for path in HELPERS.glob("*/cgroup.procs"):
            with contextlib.suppress(OSError):  # it has ended already
                for pid in path.read_text().split():
                    os.kill(int(pid), signal.SIGSTOP)
                    return True
        return False

    def act() -> int:
        now_ns = hang()
        wait_for(hung, "nobody asked for a helper", 3.0, every_s=0.005)
        return now_ns

    return act


def guardian() -> int:
    """Return the only child process of wheels."""
    wheels = main_pid(UNITS["wheels"])
    (child,) = Path(f"/proc/{wheels}/task/{wheels}/children").read_text().split()
    return int(child)


def both_killed() -> Callable[[], int]:
    """Return an action that kills `wheels` and its guardian, which is stopped first so that it
    does nothing."""
    pids = main_pid(UNITS["wheels"]), guardian()

    def act() -> int:
        os.kill(pids[1], signal.SIGSTOP)
        now_ns = time.monotonic_ns()
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        return now_ns

    return act


UNITS = {"run": "fpvcar", "wheels": "fpvcar-wheels", "pigpiod": "pigpiod"}
ODD: dict[str, Callable[[], Callable[[], int]]] = {
    "camera killed": killed_camera,
    "helper hung": hung_helper,
    "both killed": both_killed,
    PWM_BROKEN: lambda: broken_pwm,
    REBOOT: lambda: told("--no-block", "reboot"),
}
SIGNALS = {"killed": signal.SIGKILL, "hung": signal.SIGSTOP}


def acting(cause: str) -> Callable[[], int]:
    """Return the action for a cause such as "wheels killed"."""
    if cause in ODD:
        return ODD[cause]()
    part, how = cause.split()
    if part == "guardian":
        return signalled(guardian(), SIGNALS[how])
    unit = UNITS[part]
    if how in ("restarted", "stopped"):
        return told(how.removesuffix("ped").removesuffix("ed"), "--no-block", unit)
    return signalled(main_pid(unit), SIGNALS[how])


def seated() -> Driver:
    """Return a driver who may drive at once; wait until the car is complete."""
    until_s = time.monotonic() + WHOLE_S
    while True:
        try:
            driver = Driver(PORT, client=CLIENT, name="Ann", host="localhost")
            break
        except OSError:
            assert time.monotonic() < until_s, "nobody listens"
            time.sleep(0.1)
    try:
        wait_for(lambda: bool(driver.state), "no state", WHOLE_S)
        sit_down(driver)
        free(driver)
    except BaseException:
        driver.__exit__(None, None, None)
        raise
    return driver


def whole() -> Driver:
    """Return a driver who may drive; retry until the time is over."""
    until_s = time.monotonic() + WHOLE_S
    while True:
        try:
            return seated()
        except Exception:
            if time.monotonic() > until_s:
                raise


def run(driver: Driver, watch: PinWatch) -> None:
    """Drive until the motors run."""
    driver.drive(0.6, 0.0)
    wait_for(lambda: watch.now.driving, "does not drive", 5.0, every_s=0.002)
    time.sleep(0.3)
    assert watch.now.driving, f"it stopped by itself: {driver.state.get('stop')}"


def stop(cause: str) -> dict[str, object]:
    """Measure one stop and the car's return by itself. After a reboot, another driver drives."""
    for attempt in range(3):
        driver = whole()
        with driver, watched(PINS) as watch:
            act = acting(cause)
            try:
                run(driver, watch)
            except AssertionError:
                if attempt == 2:
                    raise
                continue  # by emulation a wish may be late
            since_ns = act()
            if cause == PWM_BROKEN:  # the kernel itself skips writes of an unchanged duty
                driver.drive(0.0, 0.0)
            deadline_s = time.monotonic() + 3.0
            while watch.now.driving and time.monotonic() < deadline_s:
                time.sleep(0.002)
            time.sleep(0.5)
            off_s = watch.stopped_after_s(since_ns)
            break
    if cause in (REBOOT, PWM_BROKEN):
        return {"cause": cause, "off_s": off_s, "whole_s": None}
    if cause.endswith(" stopped"):  # the unit stays stopped until it is started
        systemctl("start", *UNITS.values())
    for attempt in range(3):
        with whole() as driver, watched(PINS) as watch:
            try:
                run(driver, watch)
            except AssertionError:
                if attempt == 2:
                    raise
                continue  # a helper that was asked before the restart may stop it once more
            whole_s = (time.monotonic_ns() - since_ns) / 1e9
            driver.drive(0.0, 0.0)
            break
    return {"cause": cause, "off_s": off_s, "whole_s": whole_s}


def drive() -> None:
    """Drive until killed, while the caller cuts the power, reboots or upgrades."""
    with whole() as driver, watched(PINS) as watch:
        run(driver, watch)
        print("drives", flush=True)
        driver.closed.wait()


def change_settings() -> None:
    """Change the speed limit as a grown-up until killed. The car writes each change to its card."""
    code = json.loads(Path("/var/lib/fpvcar/codes.json").read_text())["grown_up"]
    with Driver(PORT, name="Mum", code=code, host="localhost") as mum:
        wait_for(lambda: bool(mum.state), "no state", WHOLE_S)
        for number, limit in enumerate(itertools.cycle(LIMITS)):
            mum.say(kind="limit", throttle=limit)
            if number == 10:
                print("sets", flush=True)
            time.sleep(0.02)


def rest() -> None:
    """Fail if a motor runs within a second."""
    with watched(PINS) as watch:
        time.sleep(1.0)
        assert not any(sample.driving for sample in [*watch.samples, watch.now]), watch.samples
    print("rests")


VERBS = {"drive": drive, "set": change_settings, "rest": rest}
if __name__ == "__main__":
    if sys.argv[1] in VERBS:
        VERBS[sys.argv[1]]()
        sys.exit()
    try:
        print(json.dumps(stop(sys.argv[1])))
    except Exception as fault:
        print(json.dumps({"cause": sys.argv[1], "fault": repr(fault)}))

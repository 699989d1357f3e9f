"""`fpvcar bench`: starts, supervises and ends the emulated car and `fpvcar run`.

pigpiod emulator --+-- chip (a mapped file) --+-- world
    ^              |                          |
    | TCP          +-- stand-in for units     +-- camera (child of run)
wheels <---------------- run  <--- browser
"""

import asyncio
import logging
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from fpvbench import attached, kernel, ports
from fpvbench import soc as chip
from fpvbench.pigpiod.nets import wire
from fpvbench.units import Unit, UnitFailed, leash, let_go
from fpvcar.access.banner import greeting, open_page
from fpvcar.config import BENCH_PINS, ConfigError, Profile, profiles
from fpvcar.config.pwm import MOST_HZ, over_peak
from fpvcar.http.addresses import in_url, reachable
from fpvcar.runtime import paths
from fpvcar.runtime.arguments import QUIET
from fpvcar.wheels.pins_off_client import SOCKET, words_of
from fpvcar.wifi.core import Machine
from fpvcar.wifi.fake import FakeRadio, Station
from fpvcar.wifi.service import Service, load_key, own_network, serve
from fpvcar.wire.network import SOCKET as NETWORK

READY_S = 20.0
NEAR_PINS = -10
"""Nice value of processes that stop the car, as in their units: no camera may delay them."""
STREET = {
    "Home": Station("home sweet home", 82),
    "Workshop": Station("workshop", 55),
    "Café": Station(strength=38),
    "Office": Station("", 21, "other"),
    "Attic": Station("attic attic", 60, hidden=True),
}
"""Wi-Fi networks in range, with their keys."""
RADIO_S = 2.0
log = logging.getLogger("fpvbench")


@dataclass(frozen=True)
class Options:
    """Options of the command line."""

    profile: Path
    overrides: tuple[str, ...]
    host: str
    port: int
    seed: int
    browser: bool
    stand_in: bool
    wires: tuple[str, ...] = ()
    """Pairs of GPIO that are wired together."""
    pipe_dir: Path | None = None
    """Folder of pigpiod's pipes; default: `dev` of the run-time directory."""
    really: tuple[str, ...] = ()
    """Overrides of the profile for the emulated hardware only."""
    verbose: bool = False
    """Whether all parts log their progress, too."""
    also: tuple[str, ...] = ()
    """Module that runs beside the car, with its options."""
    pins: str = ""
    """Pins and I2C: a key of BENCH_PINS, or "" for the profile's own."""


class Bench:
    """Units of one bench, in starting order."""

    def __init__(self, profile: Profile, options: Options, runtime: Path) -> None:
        self.profile, self.options, self.runtime = profile, options, runtime
        self.soc_path = runtime / "soc"
        chip.create(self.soc_path)
        self.soc = chip.attach(self.soc_path)
        quiet = "" if options.verbose else "1"
        self._env = env = {**os.environ, "RUNTIME_DIRECTORY": str(runtime), QUIET: quiet}
        self._helpers: set[asyncio.subprocess.Process] = set()
        files = ["--profile", str(options.profile)]
        profile_args = [*files, *(f"--set={line}" for line in options.overrides)]
        soc = ["--soc", str(self.soc_path)]
        if profile.pins.backend == "linux":
            kernel.create(runtime, profile.pins.pwm)
        car = "fpvbench.kernel" if profile.pins.backend == "linux" else "fpvcar"

        def unit(name: str, *argv: str, nice: int = 0) -> Unit:
            return Unit(name, argv, env, self._note_pids, nice=nice)

        self.pigpiod = Unit(
            "pigpiod",
            ["fpvbench.pigpiod", *soc, *self._pigpiod_options()],
            env,
            self._note_pids,
            ended=self._exec_stop_post,
            nice=NEAR_PINS,
        )
        self.world = unit(
            "world",
            "fpvbench.world.process",
            *soc,
            *profile_args,
            *(f"--set={line}" for line in options.really),
            f"--seed={options.seed}",
        )
        self.wheels = unit("wheels", car, "wheels", *profile_args, "--emulated", nice=NEAR_PINS)
        self.run = unit(
            "run",
            car,
            "run",
            *profile_args,
            *soc,
            f"--host={options.host}",
            f"--port={options.port}",
        )
        self.units = [self.pigpiod, self.world, self.wheels, self.run]
        self.also = Unit("".join(options.also[:1]), options.also, env, lambda: None, may_exit=True)

    def _pigpiod_options(self) -> list[str]:
        profile = self.profile
        options = ["--host", profile.pins.host, "--port", str(profile.pins.port)]
        options += ["--pipe-dir", str(self.options.pipe_dir or self.runtime / "dev")]
        options += [f"--wire={pins}" for pins in self.options.wires]
        if profile.pins.backend == "linux":
            options += ["--kernel", str(self.runtime / kernel.SOCKET)]
        return [*options, *attached.options_of(profile)]

    def _note_pids(self) -> None:
        """Write units.json with the process ids, for tests and debugging."""
        pids = {unit.name: unit.pid for unit in self.units}
        temporary = self.runtime / "units.json.new"
        temporary.write_bytes(msgspec.json.encode(pids))
        os.replace(temporary, self.runtime / "units.json")

    def _exec_stop_post(self) -> None:
        """Emulate ExecStopPost of pigpiod's unit."""
        if self.options.stand_in:
            let_go(self.soc, self._stop_pins(), self.profile.stop_chips())

    def _stop_pins(self) -> tuple[int, ...]:
        """Return the pins that stop the car as inputs. A pin of the bench's chip needs no reboot
        to get its PWM back."""
        return (*self.profile.stop_pins(), *self.profile.pins.pwm)

    async def _helper(self, _: object, writer: asyncio.StreamWriter) -> None:
        """Emulate the helper's socket unit: one process per request."""
        writer.close()
        if not self.options.stand_in:
            return
        stops = words_of(self._stop_pins(), self.profile.stop_chips())
        helper = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "fpvbench.pins_off",
            f"--soc={self.soc_path}",
            *stops,
            env=self._env,
            preexec_fn=lambda: leash(NEAR_PINS),
            stdin=asyncio.subprocess.DEVNULL,
            start_new_session=True,
        )
        self._helpers.add(helper)
        try:
            if await helper.wait() == 0:
                owner = self.pigpiod
                if self.profile.pins.backend == "linux":
                    # its lines are inputs now, regardless of later writes
                    owner = self.wheels
                log.warning("released the pins and restarted %s: it did not answer", owner.name)
                owner.kill()
        finally:
            self._helpers.discard(helper)

    async def _network(self) -> None:
        """Emulate the network service with a simulated radio."""
        car = self.profile.car.name
        network = own_network(car, load_key(paths.state_directory()))
        radio = FakeRadio(STREET, takes_s=RADIO_S)
        machine = Machine(self.profile.network.own, time.monotonic())
        service = Service(machine, radio, network, f"{car}.local")
        await serve(service, self.runtime / NETWORK)

    async def keep(self) -> None:
        """Run until a unit gives up (UnitFailed) or the task is cancelled."""
        helper = await asyncio.start_unix_server(self._helper, self.runtime / SOCKET)
        tasks = [asyncio.create_task(self.pigpiod.run())]
        tasks.append(asyncio.create_task(self._network()))
        pins = self.profile.pins
        listens = asyncio.create_task(_ready(pins.host, pins.port))
        try:
            await asyncio.wait([listens, *tasks], return_when="FIRST_COMPLETED")
            tasks += [asyncio.create_task(unit.run()) for unit in self.units[1:]]
            done, _ = await asyncio.wait(tasks, return_when="FIRST_COMPLETED")
            for task in done:
                task.result()
        finally:
            for units in ([self.also, self.run], [self.wheels], [self.world, self.pigpiod]):
                await asyncio.gather(*(unit.stop() for unit in units))
            for task in [listens, *tasks]:
                task.cancel()
            await asyncio.gather(listens, *tasks, return_exceptions=True)
            helper.close()
            for process in self._helpers:
                process.kill()


@contextmanager
def _runtime() -> Iterator[Path]:
    directory = os.environ.get("RUNTIME_DIRECTORY")
    path = Path(directory) if directory else Path(tempfile.mkdtemp(prefix="fpvcar-"))
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        yield path
    finally:
        if not directory:
            shutil.rmtree(path, ignore_errors=True)


async def _ready(host: str, port: int) -> None:
    async with asyncio.timeout(READY_S):
        while True:
            try:
                _, writer = await asyncio.open_connection(reachable(host), port)
            except OSError:
                await asyncio.sleep(0.05)
            else:
                writer.close()
                return


def emulated_pins(profile: Profile, pins: str) -> Iterator[str]:
    """Yield overrides for a back end of pins and I2C; "auto" would look at this computer."""
    backend = BENCH_PINS.get(pins, profile.pins.backend)
    backend = "pigpio" if backend == "auto" else backend
    yield f'pins.backend = "{backend}"'
    if pins or backend == "pigpio" or profile.i2c.backend == "auto":
        yield f'i2c.backend = "{backend}"'
    if backend == "pigpio":
        yield "pins.pwm = []"
    elif pins:  # the profile's motors are wired for pigpiod's faster PWM
        for overload in over_peak(profile, MOST_HZ):
            yield f"{overload.place}.resistor_ohm = {overload.resistor_ohm}"


def _emulated(profile: Profile) -> Iterator[str]:
    """Yield overrides for cameras that the bench replaces."""
    if profile.camera.source in ("picamera2", "rpicam"):
        yield 'camera.source = "bench"'
    for name, camera in profile.cameras.items():
        if camera.source in ("picamera2", "rpicam"):
            yield f'cameras.{name}.source = "bench"'


async def run(options: Options) -> int:
    """Run the bench until Ctrl-C. Raises ConfigError if it cannot start."""
    profile = profiles.load(options.profile, options.overrides)
    profiles.load(options.profile, [*options.overrides, *options.really])
    emulated = (*emulated_pins(profile, options.pins), *_emulated(profile))
    options = replace(options, overrides=(*options.overrides, *emulated))
    profile = profiles.load(options.profile, options.overrides)
    for pair in options.wires:
        try:
            wire(pair)
        except ValueError:
            expected = "expected two GPIO, as in --wire 22,27"
            raise ConfigError(f"--wire {pair}: {expected}") from None
    ports.refuse_shared(options.host, options.port, profile.pins.port)
    ports.refuse_busy(options.host, options.port, profile.pins.host, profile.pins.port)
    loop, ended = asyncio.get_running_loop(), asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        loop.add_signal_handler(number, ended.set)
    with _runtime() as runtime:
        bench = Bench(profile, options, runtime)
        keeping = asyncio.create_task(bench.keep())
        greeted = asyncio.create_task(_greet(options, profile, bench.also))
        stopping = asyncio.create_task(ended.wait())
        await asyncio.wait([keeping, stopping], return_when="FIRST_COMPLETED")
        status = 0 if stopping.done() else 1
        for task in (keeping, greeted, stopping):
            task.cancel()
        results = await asyncio.gather(keeping, greeted, return_exceptions=True)
        for fault in results:
            if isinstance(fault, UnitFailed):
                print(f"fpvcar: {fault}; see above", file=sys.stderr)
            elif isinstance(fault, Exception):
                print(f"fpvcar: {fault!r}", file=sys.stderr)
    if status == 0:
        print(f"\n  {profile.car.name} has stopped, and all its processes have ended.", flush=True)
    return status


async def _greet(options: Options, profile: Profile, also: Unit) -> None:
    """Print the banner once the page answers; then open a browser, and start `also`."""
    host, port, car = options.host, options.port, profile.car.name
    while True:
        try:
            await _ready(host, port)
        except TimeoutError:
            log.error("nothing answers at %s:%d yet", host, port)
        else:
            break
    proxied = profile.server.base_path != "/"
    print(greeting(host, port, car, profile.recording.directory, proxied), flush=True)
    beside = asyncio.create_task(also.run()) if options.also else None
    if options.browser and (hint := await open_page(f"http://{in_url(reachable(host))}:{port}/")):
        print(f"  {hint}", flush=True)
    if beside:
        await beside

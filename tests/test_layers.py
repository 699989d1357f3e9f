"""The layers of the car's packages: the permitted imports of each.

A package imports only from layers below its own. recordings.mcap imports nothing else of
fpvcar. Recordings and the command line load without any library of hardware or HTTP. One module
names the back ends. No module above devices/ touches a daemon's client.
"""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from fpvcar.app import FEATURES

PACKAGE = Path(__file__).resolve().parents[1] / "pi" / "fpvcar"
FLOORS = (
    ("__main__",),
    ("cli",),
    ("app", "hil"),
    tuple(sorted({"calibration", *(module.split(".")[0] for module in FEATURES)})),
    ("seat",),
    ("recorder", "datasets"),
    ("library",),
    ("access",),
    ("http",),
    ("recordings", "wheels"),
    ("drive", "mqtt", "video", "sensors"),
    ("devices", "wire", "wiring"),
    ("config",),
    ("runtime",),
)
"""Layers from the top down. `verbs` imports lazily the modules that a verb needs."""
SEAM = "devices.backends"
BACK_ENDS = ("devices.pigpio", "devices.linux", "devices.lgpio")


def floor_of(room: str) -> int:
    """Return how far below the top a package stands. Raises KeyError for one in no layer."""
    for number, rooms in enumerate(FLOORS):
        if room in rooms:
            return number
    raise KeyError(f"{room}: give it a floor in {Path(__file__).name}")


def imports(source: str) -> Iterator[tuple[int, str]]:
    """Yield (line, dotted name) of every import of fpvcar in a module, at any depth."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.split(".")[0] == "fpvcar":
                    yield node.lineno, alias.name.removeprefix("fpvcar").lstrip(".")
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, "an import that is relative hides where it leads"
            head, _, rest = (node.module or "").partition(".")
            if head == "fpvcar":
                for alias in node.names:
                    yield node.lineno, f"{rest}.{alias.name}".lstrip(".")


def modules() -> list[tuple[str, Path]]:
    """Return (dotted name below fpvcar, file) of every module."""
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        if parts[-1] == "__init__":
            parts = parts[:-1]
        if parts:
            found.append((".".join(parts), path))
    return found


def climbs(module: str, source: str) -> list[str]:
    """Return the imports of a module that are not below its own package."""
    room = module.split(".")[0]
    found = []
    for line, name in imports(source):
        other = name.split(".")[0]
        if other in ("", "__version__") or other == room:
            continue
        if floor_of(other) <= floor_of(room):
            found.append(f"{module}:{line} imports {name}")
    return found


def test_package_imports_only_lower_layers() -> None:
    found = [one for name, path in modules() for one in climbs(name, path.read_text())]
    assert found == []


def test_import_of_a_feature_by_another_or_by_the_core_is_reported() -> None:
    assert floor_of("intercom") == floor_of("buttons") == floor_of("seat") - 1
    source = "from fpvcar.intercom.socket import Intercom\n"
    assert climbs("buttons.socket", source) == ["buttons.socket:1 imports intercom.socket.Intercom"]
    assert climbs("seat.hub", source) == ["seat.hub:1 imports intercom.socket.Intercom"]


def test_import_of_higher_layer_is_reported() -> None:
    source = "def late():\n    from fpvcar.seat import hub\n"
    assert climbs("drive.gate", source) == ["drive.gate:2 imports seat.hub"]
    assert climbs("app", source) == []
    assert climbs("video.stream", "from fpvcar import sensors") == [
        "video.stream:1 imports sensors"
    ]
    with pytest.raises(KeyError, match="give it a floor"):
        climbs("drive.gate", "from fpvcar.attic import box")


def test_relative_import_is_refused() -> None:
    with pytest.raises(AssertionError, match="hides where it leads"):
        climbs("drive.gate", "from ..server import hub\n")


def test_mcap_imports_the_standard_library_only() -> None:
    """zstandard and lz4 are imported by name, and only when a file needs them."""
    for path in (PACKAGE / "recordings" / "mcap").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                names = [node.module or ""]
            for name in names:
                own = name.startswith("fpvcar.recordings.mcap")
                assert own or name.split(".")[0] in sys.stdlib_module_names, (path, name)


STATION = PACKAGE.parents[1] / "base-station" / "fpvstation"
STATION_MAY = (
    "runtime",
    "config",
    "wire.refusals",
    "wire.station",
    "wire.video",
    "recordings",
    "library",
    "mqtt",
    "datasets",
    "access.codes",
    "access.remembered_browsers",
    "access.rights",
    "http",
)
"""Parts of the car that a base station may import: those that read and serve recordings."""


def strange_to_a_station(module: str, source: str) -> list[str]:
    """Return the imports of the car that a module of fpvstation may not have."""
    return [
        f"{module}:{line} imports {name}"
        for line, name in imports(source)
        if name != "__version__"
        and not any(f"{name}.".startswith(f"{one}.") for one in STATION_MAY)
    ]


def test_station_imports_only_recording_modules() -> None:
    found = [
        one
        for path in sorted(STATION.rglob("*.py"))
        for one in strange_to_a_station(path.stem, path.read_text())
    ]
    assert found == []


def test_station_import_of_gate_is_reported() -> None:
    source = "from fpvcar.drive import gate\nfrom fpvcar.recordings import sums\n"
    assert strange_to_a_station("pull", source) == ["pull:1 imports drive.gate"]


SITES = STATION.parent / "fpvsites"
SITES_MAY = (
    "fpvcar.config",
    "fpvcar.runtime",
    "fpvcar.access",
    "fpvcar.http",
    "fpvcar.__version__",
    "fpvsites",
    "fpvstation.errors",
    "fpvstation.web.password",
)
"""Parts that fpvsites may import: the page's access checks, and itself."""
PURE = ("config", "rules", "state")


def strange_to_sites(module: str, source: str) -> list[str]:
    """Return the imports of fpvcar and fpvstation that a module of fpvsites may not have. Its core
    does not import the page or the gate."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("fpv"):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            strange = [one for one in names if not f"{one}.".startswith(_prefixes(SITES_MAY))]
            if module in PURE:
                strange += [one for one in names if one in ("fpvsites.gate", "fpvsites.page")]
            found += [f"{module}:{node.lineno} imports {one}" for one in strange]
    return found


def _prefixes(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(f"{name}." for name in names)


def test_sites_import_only_access_checks() -> None:
    paths = sorted(SITES.glob("*.py"))
    assert len(paths) >= 6
    assert [one for path in paths for one in strange_to_sites(path.stem, path.read_text())] == []
    source = "from fpvstation.store import store\nfrom fpvsites import gate\n"
    assert strange_to_sites("rules", source) == [
        "rules:1 imports fpvstation.store.store",
        "rules:2 imports fpvsites.gate",
    ]


def back_ends_named(module: str, source: str) -> list[str]:
    """Return a module's imports from a back end other than its own."""
    if module == SEAM or module.startswith("bench"):
        return []
    return [
        f"{module}:{line} imports {name}"
        for line, name in imports(source)
        for back_end in BACK_ENDS
        if name.startswith(back_end) and not module.startswith(back_end)
    ]


def test_back_end_is_named_only_by_the_seam() -> None:
    found = [one for name, path in modules() for one in back_ends_named(name, path.read_text())]
    assert found == []


@pytest.mark.parametrize("module", ["drive.gate", "devices.chips.hcsr04"])
def test_back_end_named_outside_seam_is_reported(module: str) -> None:
    source = "from fpvcar.devices.pigpio import edges\n"
    assert back_ends_named(module, source) == [f"{module}:1 imports devices.pigpio.edges"]
    assert back_ends_named("devices.pigpio.pins", source) == []
    assert back_ends_named(SEAM, source) == []


def clients_touched(source: str) -> list[str]:
    """Return the places that use the client of another object."""
    return [
        ast.unparse(node)
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Attribute)
        and isinstance(held := node.value, ast.Attribute)
        and held.attr in ("client", "_client")
        and not (isinstance(held.value, ast.Name) and held.value.id == "self")
    ]


def test_daemon_client_is_used_only_in_devices() -> None:
    found = [
        f"{module}: {one}"
        for module, path in modules()
        if not module.startswith(("devices.", "bench"))
        for one in clients_touched(path.read_text())
    ]
    assert found == []


def test_use_of_foreign_client_is_reported() -> None:
    for touched in ("pins.client.stop", "pins._client.x", "self.pins._client.sl.s"):
        assert clients_touched(f"a = {touched}()"), touched
    for own in ("self._client.send", "client.send", "pins.clients.send"):
        assert clients_touched(f"a = {own}()") == [], own


BLOCKED = """
import sys

class Wall:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {blocked!r}:
            raise ImportError(name + " is not there")

sys.meta_path.insert(0, Wall())
{code}
"""


def without(blocked: tuple[str, ...], code: str) -> subprocess.CompletedProcess[str]:
    """Run Python in a process in which some packages cannot be imported."""
    source = BLOCKED.format(blocked=set(blocked), code=code)
    return subprocess.run([sys.executable, "-c", source], capture_output=True, text=True)


HARDWARE_AND_HTTP = ("pigpio", "lgpio", "smbus2", "aiohttp")
LOADABLE = [
    "config",
    "config.profiles",
    "drive.gate",
    "drive.control",
    "drive.saved",
    *(name for name, path in modules() if name.split(".")[0] == "recordings"),
]


@pytest.mark.parametrize("name", LOADABLE)
def test_module_loads_without_hardware_libraries_and_http(name: str) -> None:
    done = without(HARDWARE_AND_HTTP, f"import fpvcar.{name}")
    assert done.returncode == 0, done.stderr


def test_help_needs_no_hardware_library() -> None:
    code = "from fpvcar.__main__ import main; main(['--help'])"
    done = without(HARDWARE_AND_HTTP, code)
    assert done.returncode == 0 and "fpvcar bench" in done.stdout, done.stderr


def test_car_loads_no_library_of_mqtt() -> None:
    """`fpvcar mqtt` is a process of its own."""
    code = "import sys, fpvcar.app, fpvcar.cli.command_line; assert 'paho' not in sys.modules"
    done = without(("paho",), code)
    assert done.returncode == 0, done.stderr


def test_blocked_library_cannot_be_imported() -> None:
    done = without(HARDWARE_AND_HTTP, "import smbus2")
    assert done.returncode == 1 and "smbus2 is not there" in done.stderr


FOLDERS = ("pi", "base-station", "benchmarks", "tools", "testkit")
"""Folders of Python that import nothing of the tests."""


def imports_of(source: str, strange: tuple[str, ...]) -> list[str]:
    """Return the modules that a source imports from given packages."""
    names: list[str] = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names.append(node.module or "")
    return [name for name in names if name.split(".")[0] in strange]


@pytest.mark.parametrize("folder", FOLDERS)
def test_tests_are_imported_by_tests_alone(folder: str) -> None:
    product = folder in ("pi", "base-station")
    strange = ("tests", "testkit", "benchmarks") if product else ("tests",)
    paths = sorted((PACKAGE.parents[1] / folder).rglob("*.py"))
    assert len(paths) > 5
    found = {str(path): imports_of(path.read_text(), strange) for path in paths}
    assert {path: names for path, names in found.items() if names} == {}
    assert imports_of("from tests.rdma import ends", strange) == ["tests.rdma"]

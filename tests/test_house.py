"""The house rules that a program can check: the chains of docs/, locks, imports."""

import ast
import os
import re
import ssl
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from testkit.profiles import minimal

from fpvcar.app import FEATURES
from fpvcar.cli.verbs import without_authorities
from fpvcar.config import profiles

ROOT = Path(__file__).resolve().parent.parent
CHAIN = re.compile(r"`((?:pi|web|base-station)/[\w/.-]+):(\w+(?:\.\w+)?)`")


def steps() -> list[tuple[str, str, str]]:
    """Return every `file:function` in README and docs/, after the name of its document."""
    return [
        (document.name, file, name)
        for document in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
        for file, name in CHAIN.findall(document.read_text(encoding="utf-8"))
    ]


def python_names(path: Path) -> set[str]:
    """Return functions, classes, and Class.method of a module."""
    names: set[str] = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            names.add(node.name)
        elif isinstance(node, ast.ClassDef):
            names.add(node.name)
            for inner in node.body:
                if isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef):
                    names |= {inner.name, f"{node.name}.{inner.name}"}
    return names


def script_names(path: Path) -> set[str]:
    """Return functions, classes and methods of an ES module, by their shape."""
    text = path.read_text(encoding="utf-8")
    named = re.findall(r"(?:function\*?|class|const|let)\s+(\w+)", text)
    methods = re.findall(r"^\s+(?:async\s+|static\s+|#)*(\w+)\(.*\)\s*{", text, re.M)
    return {*named, *methods}


def c_names(path: Path) -> set[str]:
    """Return functions that a C file defines: at column 0, after their return type."""
    text = path.read_text(encoding="utf-8")
    shape = r"^(?:\w+[ *]+)+(\w+)\([^;{}]*\)\s*{"
    return set(re.findall(shape, text, re.M))


NAMES = {".py": python_names, ".js": script_names, ".c": c_names}


def test_chain_steps_are_in_the_code() -> None:
    named = steps()
    assert len(named) >= 80
    rooms = {file.partition("/")[0] for _, file, _ in named}
    assert rooms == {"pi", "web", "base-station"}
    for document, file, name in named:
        path = ROOT / file
        assert path.is_file(), f"{document} names {file}"
        known = NAMES[path.suffix](path)
        assert name in known, f"{document}: {file}:{name}"


@pytest.mark.parametrize("name", ["bench", "car", "dev", "validators"])
def test_locks_pin_by_hash_and_hold_no_addresses(name: str) -> None:
    text = (ROOT / f"requirements-{name}.lock").read_text()
    assert "://" not in text
    assert " /" not in text, "a path of the machine that made it"
    pinned = re.findall(r"^([a-z0-9-]+)==", text, re.M)
    assert len(pinned) >= 10 and text.count("--hash=sha256:") >= len(pinned)


def test_node_lock_holds_no_addresses() -> None:
    assert "://" not in re.sub(
        r'"(?:url|funding)": "[^"]*"', "", (ROOT / "package-lock.json").read_text()
    )


def test_page_has_no_runtime_dependency() -> None:
    import json

    package = json.loads((ROOT / "package.json").read_text())
    assert not package.get("dependencies")


def imports_of(module: str) -> set[str]:
    """Return top-level packages that a fresh interpreter has after importing a module."""
    code = f"import {module}, sys; print(*{{name.split('.')[0] for name in sys.modules}})"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    return set(done.stdout.split())


def test_run_and_wheels_import_nothing_heavy() -> None:
    heavy = {"numpy", "mujoco", "av", "PIL", "pyarrow"}
    assert not heavy & imports_of("fpvcar.app, fpvcar.cli.command_line")
    assert not (heavy | {"asyncio", "aiohttp"}) & imports_of("fpvcar.wheels.__main__")


@pytest.mark.parametrize(
    ("module", "most"),
    [
        ("fpvcar.app, fpvcar.buttons.socket, fpvcar.doctor.api, fpvcar.wifi.api", 538),
        ("fpvcar.wheels.__main__", 147),
        ("fpvcar.devices.guardian", 72),
    ],
)
def test_process_imports_stay_within_limit(module: str, most: int) -> None:
    """Each module costs memory and time at the start, while the car stands still. Those that the
    interpreter itself loads depend on the system."""
    code = f"import sys; own = len(sys.modules); import {module}; print(len(sys.modules) - own)"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert int(done.stdout) <= most


def test_run_imports_a_feature_only_for_its_profiles() -> None:
    code = "import fpvcar.app, sys; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    loaded = [name for name in FEATURES if f"fpvcar.{name}" in done.stdout.split()]
    assert loaded == []
    rear = {"source": "bench", "width": 320, "height": 240}
    more = {"cameras": {"rear": rear}, "depth": {"source": "bench"}}
    for profile, names in (
        (minimal(), []),
        (minimal(**more, intercom={"speaker": "default"}), ["depth", "second_camera", "intercom"]),
    ):
        has = [name for name, loads in FEATURES.items() if loads(profiles.parse(profile))]
        every = {"buttons.socket", "wifi.api", "doctor.api"}
        assert [name.split(".")[0] for name in has if name not in every] == names


def test_run_loads_no_certificate_authorities(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", "/mine")
    monkeypatch.delenv("SSL_CERT_DIR", raising=False)
    with without_authorities():
        context = ssl.create_default_context()
    assert context.cert_store_stats()["x509_ca"] == 0
    assert os.environ["SSL_CERT_FILE"] == "/mine" and "SSL_CERT_DIR" not in os.environ


def test_hardware_libraries_are_imported_by_devices_only() -> None:
    hardware = re.compile(r"^\s*(?:import|from) (pigpio|lgpio|smbus2|picamera2)\b", re.M)
    package = ROOT / "pi" / "fpvcar"
    strangers = [
        str(path.relative_to(ROOT))
        for path in package.rglob("*.py")
        if hardware.search(path.read_text()) and "devices" not in path.parts
    ]
    assert strangers == []


def test_pin_numbers_stand_in_profiles_only() -> None:
    """No module of the car assigns a BCM number to a motor."""
    pattern = re.compile(r"\b(?:forward|reverse|gpio|pin)s?\s*=\s*\(?\d+")
    package = ROOT / "pi" / "fpvcar"
    found = [
        f"{path.name}: {match.group()}"
        for path in package.rglob("*.py")
        if "bench" not in path.parts
        for match in pattern.finditer(path.read_text())
    ]
    assert found == []


def test_unit_tests_have_no_e2e_mark() -> None:
    """tools/test.sh measures coverage by tests/unit alone."""
    units = (ROOT / "tests" / "unit").rglob("*.py")
    assert [path.name for path in units if "mark.e2e" in path.read_text()] == []


FOLDER_FILES = 18
FULL_FOLDERS = {"debian": 26}
"""Folders with more files, and their number: debhelper reads no sub-folders."""


def test_folders_have_few_files() -> None:
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout
    files = [Path(name) for name in listed.split("\0")[:-1]]
    counts = Counter(str(file.parent) for file in files if (ROOT / file).exists())
    crowded = {folder: count for folder, count in counts.items() if count > FOLDER_FILES}
    allowed = {folder: count for folder, count in FULL_FOLDERS.items() if folder in crowded}
    assert crowded.keys() == allowed.keys(), "make sub-folders"
    assert all(crowded[folder] <= most for folder, most in allowed.items())


CALLABLES_MOST, PROTOCOLS_MOST = 151, 36
"""Functions passed as arguments, and interfaces of one's own: each hides the next step from a
reader. Only back ends and parts that a test must replace need one. The limits only go down."""


def callables_in(source: str) -> int:
    """Return the number of `Callable` in the annotations of arguments, results and variables."""
    annotations: list[ast.expr | None] = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.arg | ast.AnnAssign):
            annotations.append(node.annotation)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            annotations.append(node.returns)
    return sum(ast.unparse(one).count("Callable[") for one in annotations if one is not None)


def protocols_in(source: str) -> list[str]:
    """Return the classes that are interfaces for type checkers."""
    return [
        node.name
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.ClassDef)
        and any(ast.unparse(base).partition("[")[0] == "Protocol" for base in node.bases)
    ]


def test_callables_and_protocols_are_few() -> None:
    sources = [path.read_text() for path in (ROOT / "pi" / "fpvcar").rglob("*.py")]
    assert sum(map(callables_in, sources)) <= CALLABLES_MOST
    protocols = [name for source in sources for name in protocols_in(source)]
    assert len(protocols) <= PROTOCOLS_MOST, protocols


def test_callables_and_protocols_are_counted() -> None:
    source = "def f(a: Callable[[], int]) -> 'Callable[[], Callable[[int], int]]': ..."
    assert callables_in(source) == 3
    assert protocols_in("class A(Protocol): ...\nclass B(A, Protocol[T]): ...") == ["A", "B"]

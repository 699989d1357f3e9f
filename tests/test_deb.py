"""The packages, as `make deb` builds them, inspected without installing them."""

import functools
import gzip
import os
import re
import subprocess
import sys
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from testkit.debs import CAR

from fpvcar import __version__
from fpvcar.cli.setup import boards
from fpvcar.config import profiles
from fpvcar.config.raspberry_pi_os import PORTAL, SMART_HOME, UNITS
from fpvcar.doctor.checks import board

pytestmark = pytest.mark.e2e
ROOT = Path(__file__).resolve().parent.parent
TRIXIE = {
    "aiohttp": "3.11.16",
    "msgspec": "0.19.0",
    "segno": "1.6.6",
    "smbus2": "0.4.3",
    "pigpio": "1.78",
}
"""Versions of the dependencies in Debian Trixie."""
PYTHON = ("fpvcar", "fpvcar-bench", "fpvsites", "fpvstation", "python3-fpvcar")
OLDER = ("fpvcar_0.0.1_all.deb", "rdpipe_0.0.1_armhf.deb")


@pytest.fixture(scope="module")
def built(
    tmp_path_factory: pytest.TempPathFactory,
) -> tuple[Path, subprocess.CompletedProcess[str]]:
    """The result of `make deb` where no index of armhf can be read."""
    out, empty = tmp_path_factory.mktemp("deb"), tmp_path_factory.mktemp("mirror")
    for name in OLDER:
        (out / name).touch()
    handler = functools.partial(SimpleHTTPRequestHandler, directory=str(empty))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as mirror:
        threading.Thread(target=mirror.serve_forever, args=(0.01,)).start()
        done = subprocess.run(
            [ROOT / "tools" / "deb.sh", out],
            capture_output=True,
            text=True,
            timeout=600,
            env={
                **os.environ,
                "ARCHES": "armhf",
                "MIRROR": f"http://127.0.0.1:{mirror.server_port}",
                "XDG_CACHE_HOME": str(empty),
                "DPKG_DEB_COMPRESSOR_TYPE": "none",
            },
        )
        mirror.shutdown()
    return out, done


@pytest.fixture(scope="module")
def debs(built: tuple[Path, subprocess.CompletedProcess[str]]) -> Path:
    return built[0]


def test_broken_index_of_one_architecture_leaves_the_other_packages(
    built: tuple[Path, subprocess.CompletedProcess[str]],
) -> None:
    out, done = built
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == "  deb: not built: rdpipe for armhf", done.stderr
    assert "warning: rdpipe for armhf not built" in done.stderr
    names = {path.name for path in out.glob("*.deb")}
    assert {name.split("_")[0] for name in names} == {*PYTHON, "rdpipe"}
    listed = {Path(line.strip()).name for line in done.stdout.splitlines()}
    assert listed == names - {"rdpipe_0.0.1_armhf.deb"}, "not built, and not deleted"
    assert "fpvcar_0.0.1_all.deb" not in names


def test_default_builds_for_this_computer_without_cross_compilers(tmp_path: Path) -> None:
    """A Raspberry Pi builds its own packages: a Debian of 1 GB has no place on its card."""
    environment = {name: text for name, text in os.environ.items() if name != "ARCHES"}
    done = subprocess.run(
        [ROOT / "tools" / "deb.sh", tmp_path / "out"],
        capture_output=True,
        text=True,
        timeout=600,
        env={
            **environment,
            "BUILD": "any",
            "MIRROR": "http://127.0.0.1:9",
            "XDG_CACHE_HOME": str(tmp_path / "cache"),
        },
    )
    assert done.returncode == 0, done.stderr
    architecture = output("dpkg", "--print-architecture").strip()
    (built,) = (tmp_path / "out").iterdir()
    assert built.name == f"rdpipe_{__version__}_{architecture}.deb"
    assert not (tmp_path / "cache").exists()


def test_version_comes_from_the_program(debs: Path) -> None:
    assert output("dpkg-deb", "--field", deb(debs, "fpvcar"), "Version").strip() == __version__


def deb(debs: Path, package: str) -> Path:
    (found,) = debs.glob(f"{package}_*.deb")
    return found


def output(*words: str | Path, env: dict[str, str] | None = None) -> str:
    return subprocess.run(
        words, check=True, capture_output=True, text=True, env={**os.environ, **(env or {})}
    ).stdout


@pytest.fixture(scope="module")
def unpacked(debs: Path) -> Path:
    """The package's files, laid out as on a Pi."""
    root = debs / "root"
    for package in CAR:
        output("dpkg-deb", "--extract", deb(debs, package), root)
    return root


def test_unpacked_program_runs(unpacked: Path) -> None:
    modules = unpacked / "usr/lib/python3/dist-packages"
    code = (
        "import fpvcar.__main__, fpvcar.runtime.paths as p; from fpvcar.cli import setup;"
        "print(p.WEB, p.HARDWARE, *setup.boards())"
    )
    web, hardware, *boards = output(
        sys.executable, "-c", code, env={"PYTHONPATH": str(modules)}
    ).split()
    assert web == str(modules / "fpvcar/web") and Path(web, "index.html").is_file()
    assert hardware == str(modules / "fpvcar/hardware") and "l298n" in boards
    assert (unpacked / "usr/bin/fpvcar").read_text().startswith("#!/usr/bin/python3")


def test_package_has_units_users_and_helper(unpacked: Path) -> None:
    units = unpacked / "lib/systemd/system"
    others = ("fpvcar-portal.service", "fpvcar-pins-off@.service")
    for name in (*UNITS, PORTAL, SMART_HOME, *others):
        assert (units / name).is_file(), name
    assert (units / "pigpiod.service.d/fpvcar.conf").is_file()
    for name in ("sysusers.d", "tmpfiles.d"):
        assert (unpacked / "usr/lib" / name / "fpvcar.conf").is_file(), name
    assert (unpacked / "lib/udev/rules.d/60-fpvcar.rules").is_file()
    assert (unpacked / "lib/systemd/system.conf.d/fpvcar.conf").is_file()
    assert not (unpacked / "etc").exists(), "what is there stays until a purge"
    helper = unpacked / "usr/lib/fpvcar/pins-off"
    assert helper.resolve().name == "pins_off.py" and helper.resolve().is_file()


def test_units_that_few_cars_need_are_not_enabled(debs: Path, tmp_path: Path) -> None:
    output("dpkg-deb", "--control", deb(debs, "fpvcar"), tmp_path / "control")
    postinst = (tmp_path / "control/postinst").read_text()
    for name in (*UNITS, SMART_HOME, "fpvcar-first-boot.service"):
        assert postinst.count(f"deb-systemd-helper enable '{name}'") == 1, name
        kept_off = f"if deb-systemd-helper debian-installed '{name}'" in postinst
        assert kept_off == (name not in UNITS), name
    suggested = output("dpkg-deb", "--field", deb(debs, "fpvcar"), "Suggests")
    assert "python3-paho-mqtt (>= 2.1)" in suggested


def test_dependencies_are_met_by_trixie(debs: Path) -> None:
    depends = ", ".join(
        output("dpkg-deb", "--field", deb(debs, package), "Depends").strip() for package in CAR
    )
    for library, version in TRIXIE.items():
        (wanted,) = (one for one in depends.split(", ") if one.startswith(f"python3-{library} "))
        least = wanted.split(">= ")[1].rstrip(")")
        output("dpkg", "--compare-versions", version, "ge", least)


def test_recommends_cover_the_shipped_profiles() -> None:
    """Each is recommended by itself, not as one of several: Raspberry Pi OS Lite has
    rpicam-apps-lite."""
    (recommended,) = re.findall(
        r"^Package: fpvcar\n(?:.+\n)*?Recommends: ((?:.+\n )*.+)\n",
        (ROOT / "debian" / "control").read_text(),
        re.M,
    )
    sources = {profiles.load(path).camera.source for path in boards().values()}
    cameras = {board.CAMERA_PACKAGES[one][0] for one in sources}
    wanted = {*cameras, *board.NETWORK_PACKAGES}
    assert wanted <= {one.strip() for one in recommended.split(",")}


def test_postinst_compiles_byte_code(debs: Path, tmp_path: Path) -> None:
    """The services may not write byte code, and without it a Zero W takes a minute to start."""
    output("dpkg-deb", "--control", deb(debs, "python3-fpvcar"), tmp_path / "control")
    assert "py3compile -p python3-fpvcar" in (tmp_path / "control/postinst").read_text()


def test_packages_share_no_file(debs: Path) -> None:
    files: list[str] = []
    for package in PYTHON:
        listed = output("dpkg-deb", "--contents", deb(debs, package)).splitlines()
        files += [line.split()[5] for line in listed if not line.startswith("d")]
    assert len(files) == len(set(files)) and len(files) > 200
    assert sum("/fpvbench/" in name for name in files) > 40


def test_station_package_has_program_units_and_user(
    debs: Path, unpacked: Path, tmp_path: Path
) -> None:
    root = tmp_path / "root"
    output("dpkg-deb", "--extract", deb(debs, "fpvstation"), root)
    for name in ("fpvstation.service", "fpvstation-verify.service", "fpvstation-verify.timer"):
        assert (root / "lib/systemd/system" / name).is_file(), name
        assert not (unpacked / "lib/systemd/system" / name).exists()
    assert (root / "usr/lib/sysusers.d/fpvstation.conf").is_file()
    assert (root / "usr/bin/fpvstation").read_text().startswith("#!/usr/bin/python3")
    places = [one / "usr/lib/python3/dist-packages" for one in (root, unpacked)]
    env = {"PYTHONPATH": ":".join(map(str, places))}
    said = output(sys.executable, "-m", "fpvstation", "--help", env=env)
    assert "fpvstation restore SESSION" in said
    output("dpkg-deb", "--control", deb(debs, "fpvstation"), tmp_path / "control")
    started = (tmp_path / "control/postinst").read_text()
    assert "fpvstation.service" in started and "fpvstation-verify.timer" in started


def test_sites_package_has_program_units_and_dependencies(debs: Path, tmp_path: Path) -> None:
    root = tmp_path / "root"
    for package in ("fpvsites", "fpvstation", "python3-fpvcar"):
        output("dpkg-deb", "--extract", deb(debs, package), root)
    for name in ("fpvsites.service", "fpvsites-page.service"):
        assert (root / "lib/systemd/system" / name).is_file(), name
    assert (root / "usr/lib/sysusers.d/fpvsites.conf").is_file()
    modules = root / "usr/lib/python3/dist-packages"
    assert (modules / "fpvcar/web/sites.html").is_file()
    said = output(sys.executable, "-m", "fpvsites", "--help", env={"PYTHONPATH": str(modules)})
    assert "fpvsites undo" in said
    depends = output("dpkg-deb", "--field", deb(debs, "fpvsites"), "Depends")
    assert "dnsmasq-base (>= 2.90)" in depends and "nftables" in depends


def test_library_package_starts_nothing_and_the_station_needs_no_car(
    debs: Path, tmp_path: Path
) -> None:
    root = tmp_path / "root"
    for package in ("python3-fpvcar", "fpvstation"):
        output("dpkg-deb", "--extract", deb(debs, package), root)
        depends = output("dpkg-deb", "--field", deb(debs, package), "Depends")
        assert not re.search(r"(^|, )(fpvcar|python3-pigpio|network-manager)\b", depends)
    units = [path.name for path in root.rglob("*.service") if "fpvstation" not in path.name]
    assert units == [] and not (root / "lib/systemd/system.conf.d").exists()
    library = output("dpkg-deb", "--contents", deb(debs, "python3-fpvcar"))
    assert "systemd" not in library and "/usr/bin" not in library
    assert output("dpkg-deb", "--field", deb(debs, "python3-fpvcar"), "Recommends").strip() == ""


@pytest.mark.parametrize("program", ["fpvcar", "fpvstation", "fpvsites"])
def test_program_has_a_manual_page_of_every_verb(program: str, debs: Path, tmp_path: Path) -> None:
    output("dpkg-deb", "--extract", deb(debs, program), tmp_path)
    page = gzip.decompress((tmp_path / f"usr/share/man/man1/{program}.1.gz").read_bytes())
    words = ["groff", "-man", "-Tutf8", "-ww", "-z", "-k"]
    assert subprocess.run(words, input=page, capture_output=True).stderr == b""
    usage = output(sys.executable, "-m", program, "--help")
    verbs = re.findall(r"^    ([a-z-]+)(?: |$)", usage, re.M)
    text = page.decode().replace("\\-", "-")
    assert len(verbs) > 5 and all(f"\\,'{program} {verb}'\\/" in text for verb in verbs)
    assert f"\n.SH NAME\n{program} - " in text
    assert str(Path.home()) not in text and "/debian/tmp" not in text

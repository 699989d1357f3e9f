"""Effects of an upgrade on a running car; systemd, dpkg and the page are stand-ins."""

import json
import os
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

UPGRADE = Path(__file__).resolve().parent.parent / "systemd" / "upgrade"
BOTH = "fpvcar.service fpvcar-wheels.service"
SYSTEMCTL = """\
#!/bin/sh
# is-active, for each of the units by itself; show: a new process each time, except of the units
# that are kept
case $* in
"--quiet is-active fpvcar"*) grep -qw -- "$3" "$FAKES/active" ;;
"show --value --property=MainPID fpvcar"*) ! grep -qw -- "$4" "$FAKES/kept" && echo $$ || echo 7 ;;
*) exit 1 ;;
esac
"""
OLD, NEW = "0.1.0", "0.2.0"
DPKG = '#!/bin/sh\necho "$FPVCAR_GOING_BACK $*" >>"$FAKES/dpkg.log"\n'


class Car:
    """A root folder with a car's profile, its units and its page."""

    def __init__(self, root: Path, page: ThreadingHTTPServer) -> None:
        self.root = root
        self.status, self.version = 200, OLD
        self._page = page
        for name in ("etc/fpvcar", "var/cache/fpvcar", "fakes", "usr/bin"):
            (root / name).mkdir(parents=True)
        (root / "etc/fpvcar/car.toml").touch()
        for name, text in {
            "fakes/systemctl": SYSTEMCTL,
            "fakes/dpkg": DPKG,
            "fakes/sleep": "#!/bin/sh\n",
            "fakes/dpkg-query": "#!/bin/sh\n",
            "fakes/dpkg-deb": '#!/bin/sh\necho >"$5"\n',
            "usr/bin/fpvcar": f'#!/bin/sh\n[ "$1" = --version ] && echo "fpvcar {NEW}"\n',
        }.items():
            (root / name).write_text(text)
            (root / name).chmod(0o755)
        self.active(BOTH)
        self.keep("")

    def active(self, units: str) -> None:
        (self.root / "fakes/active").write_text(units)

    def keep(self, units: str) -> None:
        """Do not restart these units at the upgrade."""
        (self.root / "fakes/kept").write_text(units)

    def save(self, port: int = 0) -> None:
        """Upgrade the car: the page is of the new version afterwards."""
        self.upgrade("save", port=port)
        self.version = NEW

    def upgrade(self, verb: str, within_s: int = 60, port: int = 0) -> str:
        fakes = self.root / "fakes"
        return subprocess.run(
            [UPGRADE, verb],
            check=True,
            capture_output=True,
            text=True,
            timeout=60,
            env={
                **os.environ,
                "FAKES": str(fakes),
                "DPKG_ROOT": str(self.root),
                "PATH": f"{fakes}:/usr/bin:/bin",
                "FPVCAR_HEALTHY_S": str(within_s),
                "FPVCAR_PORT": str(port or self._page.server_port),
            },
        ).stdout

    def went_back(self) -> bool:
        log = self.root / "fakes/dpkg.log"
        cache = self.root / "var/cache/fpvcar"
        saved = f"{cache}/previous-fpvcar.deb {cache}/previous-python3-fpvcar.deb"
        if not log.exists():
            return False
        assert log.read_text() == f"1 --force-downgrade --auto-deconfigure --install {saved}\n"
        return True


@pytest.fixture
def car(tmp_path: Path) -> Iterator[Car]:
    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            pages = {
                "/healthz": (made.status, b"ok\n"),
                "/api/status": (200, json.dumps({"car": "Toad", "version": made.version}).encode()),
            }
            status, body = pages.get(self.path, (404, b""))
            self.send_response(status)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Page) as page:
        threading.Thread(target=page.serve_forever, args=(0.01,)).start()
        made = Car(tmp_path, page)
        yield made
        page.shutdown()


def test_healthy_upgrade_stays(car: Car) -> None:
    car.save()
    assert car.upgrade("watch") == "" and not car.went_back()


@pytest.mark.parametrize("left", ["", *BOTH.split()])
def test_upgrade_with_stopped_unit_reverts(car: Car, left: str) -> None:
    car.save()
    car.active(left)
    said = car.upgrade("watch", within_s=2)
    assert car.went_back()
    for unit in BOTH.split():
        assert (f" {unit}" in said) == (unit != left)


@pytest.mark.parametrize(("status", "lacks"), [(500, "page faultless"), (503, "faultless")])
def test_upgrade_with_worse_page_reverts(car: Car, status: int, lacks: str) -> None:
    car.save()
    car.status = status
    assert f"well before, not after 2 s: {lacks}\n" in car.upgrade("watch", within_s=2)
    assert car.went_back()


@pytest.mark.parametrize("unit", BOTH.split())
def test_upgrade_with_service_not_restarted_reverts(car: Car, unit: str) -> None:
    car.keep(unit)
    car.save()
    assert f"well before, not after 2 s: {unit}\n" in car.upgrade("watch", within_s=2)
    assert car.went_back()


def test_upgrade_with_page_of_old_version_reverts(car: Car) -> None:
    """For example a unit of `tools/install.sh` hides the package's."""
    car.save()
    car.version = OLD
    said = car.upgrade("watch", within_s=2)
    assert "well before, not after 2 s: version\n" in said
    assert f"the page is of version {OLD}, not {NEW}\n" in said
    assert car.went_back()


def test_upgrade_of_unknown_version_reverts(car: Car) -> None:
    car.save()
    (car.root / "usr/bin/fpvcar").unlink()
    car.upgrade("watch", within_s=2)
    assert car.went_back()


def test_older_fault_does_not_revert_upgrade(car: Car) -> None:
    """A full card is an old fault: /healthz says 503 before and after the upgrade. So is an
    unplugged camera.
    """
    car.status = 503
    car.save()
    car.upgrade("watch")
    assert not car.went_back()
    car.status = 500
    car.upgrade("watch", within_s=2)
    assert car.went_back()


@pytest.mark.parametrize("on", ["", *BOTH.split()])
def test_service_stopped_before_does_not_revert_upgrade(car: Car, on: str) -> None:
    car.active(on)
    car.save()
    car.upgrade("watch")
    assert not car.went_back()


def test_page_at_other_port_does_not_revert_upgrade(car: Car) -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as other:
        free = other.server_port
    car.save(port=free)
    car.upgrade("watch", port=free)
    assert not car.went_back()
    car.active("")
    car.upgrade("watch", within_s=2, port=free)
    assert car.went_back()


@pytest.mark.parametrize("lacks", ["etc/fpvcar/car.toml", "var/cache/fpvcar/was-well"])
def test_upgrade_without_profile_or_saved_state_is_not_judged(car: Car, lacks: str) -> None:
    car.save()
    (car.root / lacks).unlink()
    car.active("")
    car.upgrade("watch")
    assert not car.went_back()

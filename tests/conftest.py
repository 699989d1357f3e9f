"""Fixtures and settings of all tests: their length (`make soak` gives --soak), and a VM."""

import gc
import os
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from testkit.command import Command
from testkit.network.sshd import Sshd
from testkit.network.versitygw import VERSITYGW
from testkit.vm.machine import Vm

RDMA = Path(__file__).parents[1] / "base-station" / "rdma"
# No example has a time limit: the machine is shared. `make test` tries the same examples each time,
# so that a failure has its reason in the change. `make soak` looks for new ones.
untimed = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("steady", untimed, derandomize=True)
settings.register_profile("soak", untimed)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--soak", action="store_true", help="the long form of the tests marked soak")


def pytest_configure(config: pytest.Config) -> None:
    # nohup and a shell's "&" ignore these signals, and a child would inherit that. These tests
    # check the effect of Ctrl-C on a child. A handler is not inherited.
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, lambda *_: None)
    # A killed child leaves its temporary files; they are removed with these tests.
    tempfile.gettempdir()  # pytest's own folders stay where they are
    scratch = tempfile.TemporaryDirectory(prefix="tests-", ignore_cleanup_errors=True)
    os.chmod(scratch.name, 0o711)  # programs of other users get files in it
    os.environ["TMPDIR"] = scratch.name
    config.add_cleanup(scratch.cleanup)
    settings.load_profile("soak" if config.getoption("--soak") else "steady")


def pytest_itemcollected(item: pytest.Item) -> None:
    fixtures = getattr(item, "fixturenames", ())
    if "gateway" in fixtures:
        item.add_marker(pytest.mark.needs(VERSITYGW))
        item.add_marker(pytest.mark.slow)
    if not {"browser", "playwright"}.isdisjoint(fixtures):
        item.add_marker(pytest.mark.browser)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Name a failed test at once: its traceback comes at the end, which may be in half an hour."""
    if report.failed and "PYTEST_XDIST_WORKER" not in os.environ:
        print(f"\nfailed at {report.when}: {report.nodeid}", flush=True)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not config.getoption("--soak"):
        long = [item for item in items if item.get_closest_marker("long")]
        config.hook.pytest_deselected(items=long)
        items[:] = [item for item in items if item not in long]


@pytest.fixture(autouse=True)
def leaks_are_its_own() -> Iterator[None]:
    """Reset the umask, and let a test fail that leaves a socket or transport open in a cycle.

    Otherwise the warning would be an error of the later test during which the garbage is collected.
    Only objects of this test are visited, which takes 0.1 ms.
    """
    os.umask(0o022)  # a verb of a program, called by another fixture or test, sets it
    yield
    gc.collect()
    gc.freeze()


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> Command:
    """Function that runs a verb of `fpvcar`, checks its exit status and returns its output."""
    return Command(capsys)


@pytest.fixture(scope="session")
def share(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder that VMs see as /share; each test may add to it."""
    return tmp_path_factory.mktemp("share")


@pytest.fixture(scope="session")
def vm(share: Path) -> Iterator[Vm]:
    """A virtual machine for all tests that need no second one beside it."""
    with Vm(share) as machine:
        yield machine


@pytest.fixture(scope="session")
def rdma_tools() -> Path:
    """Folder of rdsend, rdrecv, rdpipe and rdcp; RDMA_TOOLS names another build."""
    if given := os.environ.get("RDMA_TOOLS"):
        return Path(given)
    subprocess.run(["make", "-s", "-C", str(RDMA)], check=True, timeout=240)
    return RDMA


@pytest.fixture(scope="session")
def sshd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sshd]:
    server = Sshd(tmp_path_factory.mktemp("sshd"))
    yield server
    server.close()


@pytest.fixture(scope="session")
def soaking(request: pytest.FixtureRequest) -> bool:
    """Return whether this is `make soak`, where a test marked soak takes its long form."""
    return bool(request.config.getoption("--soak"))

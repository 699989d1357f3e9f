"""What all tests share: how long they run (`make soak` gives --soak), and a guest."""

import os
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.guest.machine import Guest

# No example is timed: the machine is shared. `make test` tries the same ones each time,
# so that it is red for a reason in the change; `make soak` looks for new ones.
untimed = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("steady", untimed, derandomize=True)
settings.register_profile("soak", untimed)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--soak", action="store_true", help="the long form of the tests marked soak")


def pytest_configure(config: pytest.Config) -> None:
    # nohup and a shell's "&" ignore these, and a child would keep that: what is tested
    # here is what Ctrl-C does to it. A handler is not inherited.
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, lambda *_: None)
    # A child that is killed leaves its temporary files: they go with these tests.
    tempfile.gettempdir()  # pytest's own folders stay where they are
    scratch = tempfile.TemporaryDirectory(prefix="tests-", ignore_cleanup_errors=True)
    os.environ["TMPDIR"] = scratch.name
    config.add_cleanup(scratch.cleanup)
    settings.load_profile("soak" if config.getoption("--soak") else "steady")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not config.getoption("--soak"):
        long = [item for item in items if item.get_closest_marker("long")]
        config.hook.pytest_deselected(items=long)
        items[:] = [item for item in items if item not in long]


@pytest.fixture(scope="session")
def share(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What guests see as /share, for each test to add to."""
    return tmp_path_factory.mktemp("share")


@pytest.fixture(scope="session")
def guest(share: Path) -> Iterator[Guest]:
    """One virtual machine for all that need no other one beside it."""
    with Guest(share) as machine:
        yield machine


@pytest.fixture(scope="session")
def soaking(request: pytest.FixtureRequest) -> bool:
    """Is this `make soak`? Then a test marked soak takes its long form."""
    return bool(request.config.getoption("--soak"))

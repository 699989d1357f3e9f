"""The table of what was measured, at the end of the run."""

import pytest

from tests.guest_units.car import Stop

STOPS = pytest.StashKey[list[Stop]]()


def pytest_configure(config: pytest.Config) -> None:
    config.stash[STOPS] = []


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    stops = config.stash[STOPS]
    if not stops:
        return
    terminalreporter.section("stops through the units, in the guest's time")
    for stop in stops:
        words = f"{stop.cause:20} off after {stop.off_s:.3f} s, at most {stop.limit_s}"
        terminalreporter.write_line(f"{words}; drives again after {stop.whole_s:.1f} s")

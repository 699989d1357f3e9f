"""Print the table of measured stop times at the end of the run."""

import pytest

from tests.vm_units.car import STOPS


def pytest_configure(config: pytest.Config) -> None:
    config.stash[STOPS] = []


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    stops = config.stash[STOPS]
    if not stops:
        return
    terminalreporter.section("stops through the units, in the VM's time")
    for stop in stops:
        whole = f"; drives again after {stop.whole_s:.1f} s" if stop.whole_s else ""
        terminalreporter.write_line(
            f"{stop.pins:8} {stop.cause:18} off after {stop.off_s:.3f} s, at most "
            f"{stop.limit_s}{whole}"
        )

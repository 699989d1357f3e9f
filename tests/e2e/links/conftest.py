"""Two hosts with a cable, and a bench that is open to it; shared by the tests of a module."""

from collections.abc import Iterator

import pytest
from testkit.harness import SMALL, RunningBench, started
from testkit.network.lan import Lan


@pytest.fixture(scope="module")
def lan() -> Iterator[Lan]:
    """Two hosts and a cable. The near one is this host."""
    with Lan() as made:
        yield made


@pytest.fixture(scope="module")
def lan_bench(tmp_path_factory: pytest.TempPathFactory, lan: Lan) -> Iterator[RunningBench]:
    """A bench that is open to the LAN."""
    with started(tmp_path_factory.mktemp("lan"), "--host=0.0.0.0", *SMALL) as running:
        yield running

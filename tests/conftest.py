"""How long the tests that have a long form run: `--soak` is what `make soak` gives."""

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--soak", action="store_true", help="the long form of the tests marked soak"
    )


@pytest.fixture(scope="session")
def soaking(request: pytest.FixtureRequest) -> bool:
    """Is this `make soak`? Then a test marked soak takes its long form."""
    return bool(request.config.getoption("--soak"))

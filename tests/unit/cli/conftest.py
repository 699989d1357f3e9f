"""Programs that setup would have run on a car."""

import pytest

from fpvcar.cli import setup


class Ran:
    """Record of the programs; those with an argument in `refused` fail, or all without `works`."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, ...]] = []
        self.works, self.refused = True, set[str]()

    def __call__(self, *argv: str) -> bool:
        self.calls.append(argv)
        return self.works and self.refused.isdisjoint(argv)


@pytest.fixture(autouse=True)
def ran(monkeypatch: pytest.MonkeyPatch) -> Ran:
    """Record programs instead of running them."""
    ran = Ran()
    monkeypatch.setattr(setup, "run", ran)
    return ran

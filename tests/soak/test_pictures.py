"""`make pictures` still finds its way through every page."""

from pathlib import Path

import pytest
from PIL import Image
from tools import pictures

pytestmark = [pytest.mark.e2e, pytest.mark.soak, pytest.mark.long]


@pytest.mark.parametrize("names", pictures.ALBUM, ids=" ".join)
def test_they_are_taken(
    names: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = pictures.TARGET
    monkeypatch.setattr(pictures, "TARGET", tmp_path)
    assert pictures.main(names) == 0
    for name in names:
        taken, shown = (Image.open(one / f"{name}.png") for one in (tmp_path, kept))
        assert taken.width == shown.width

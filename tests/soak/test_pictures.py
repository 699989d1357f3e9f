"""`make pictures` still finds its way through every page."""

from pathlib import Path

import pytest
from PIL import Image
from tools import pictures

pytestmark = [pytest.mark.e2e, pytest.mark.alone, pytest.mark.soak, pytest.mark.long]


WIDTHS = {390, 844, 1280}


def width(path: Path) -> float:
    with Image.open(path) as picture:
        return picture.width / pictures.SCALE


@pytest.mark.parametrize("names", pictures.ALBUM, ids=" ".join)
def test_pictures_are_taken(
    names: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pictures, "TARGET", tmp_path)
    assert pictures.main(names) == 0
    for name in names:
        assert width(tmp_path / f"{name}.png") in WIDTHS

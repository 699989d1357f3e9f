"""What is left out of the roots' run is still there to be left out."""

import pytest

from tests.roots.left_out import ELSEWHERE, EMULATED
from tests.roots.root import TREE

UNIT = TREE / "tests" / "unit"


@pytest.mark.parametrize("name", ELSEWHERE | EMULATED)
def test_what_is_left_out_exists(name: str) -> None:
    path, _, test = name.partition("::")
    assert (UNIT / path).exists()
    function = test.partition("[")[0]
    assert not test or f"def {function}(" in (UNIT / path).read_text()

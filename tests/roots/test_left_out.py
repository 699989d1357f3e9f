"""Every left-out test still exists."""

import pytest

from tests.roots import left_out
from tests.roots.left_out import ELSEWHERE, EMULATED
from tests.roots.root import TREE
from tests.roots.test_arm64 import PARTS, TRIPLETS

UNIT = TREE / "tests" / "unit"


@pytest.mark.parametrize("name", ELSEWHERE | EMULATED)
def test_left_out_tests_exist(name: str) -> None:
    path, _, test = name.partition("::")
    assert (UNIT / path).exists()
    function = test.partition("[")[0]
    assert not test or f"def {function}(" in (UNIT / path).read_text()


@pytest.mark.parametrize("architecture", TRIPLETS)
def test_unit_files_are_in_one_run_or_left_out(architecture: str) -> None:
    ran = [one for which, _, files in PARTS if which == architecture for one in files]
    every = {str(one.relative_to(TREE)) for one in UNIT.rglob("test_*.py")}
    left = every - set(ran)
    assert len(ran) == len(set(ran)) and set(ran) <= every
    names = left_out.names(architecture == "arm64")
    for one in left:
        file = one.removeprefix("tests/unit/")
        assert any(file == name or file.startswith(f"{name}/") for name in names)

"""What `apt install ./fpvcar.deb` brings along on arm64 is enough to start: in QEMU."""

import pytest

from tests.roots.root import TREE, depends, root

pytestmark = [pytest.mark.e2e, pytest.mark.soak, pytest.mark.long]
START_S = 600.0


def test_the_car_starts_up_to_its_profile() -> None:
    """Each import of run and wheels is there."""
    pi = root("arm64", depends("fpvcar"))
    code = "import platform, fpvcar.app, fpvcar.wheels.__main__, fpvcar.__main__ as m\n"
    code += "print(platform.machine(), m.main(['profile', 'check', 'l298n']))"
    words = ("env", "PYTHONPATH=/mnt/pi", "python3", "-c", code)
    said = pi.run(TREE, *words, timeout_s=START_S).stdout
    assert said.splitlines()[-1] == "aarch64 0", said

"""A child that cannot outlive its parent, whatever becomes of that."""

import shutil
from collections.abc import Sequence


def leashed(argv: Sequence[str]) -> list[str]:
    """A command line whose process the kernel kills when its parent dies."""
    setpriv = shutil.which("setpriv")
    return [setpriv, "--pdeathsig", "KILL", *argv] if setpriv else list(argv)

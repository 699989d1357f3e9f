"""Child processes that the kernel ends with their parent."""

import shutil
from collections.abc import Sequence


def with_pdeathsig(argv: Sequence[str]) -> list[str]:
    """Return a command line whose process is killed by the kernel when its parent dies."""
    setpriv = shutil.which("setpriv")
    return [setpriv, "--pdeathsig", "KILL", *argv] if setpriv else list(argv)

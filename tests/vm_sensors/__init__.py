"""Sensor drivers over the kernel's own devices, in a QEMU VM."""

import json
import traceback
from collections.abc import Callable, Mapping


def tell(checks: Mapping[str, Callable[[], object]]) -> None:
    """Run each check, in the VM; print "ok" or the trace by the name of each."""
    said = {}
    for name, check in checks.items():
        try:
            check()
            said[name] = "ok"
        except Exception:
            said[name] = traceback.format_exc()
    print(json.dumps(said))

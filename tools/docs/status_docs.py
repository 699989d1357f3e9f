"""Generator of docs/reference/status.md from status.json, the last stored report, and the tested
environments: `make docs`.

To store a newer report: fpvcar hil --report DIR, then copy DIR/report.json to status.json there.
"""

import sys
from pathlib import Path

from fpvcar.hil import results, status

DOCS = Path(__file__).resolve().parents[2] / "docs" / "reference"
PAGE, REPORT = DOCS / "status.md", DOCS / "status.json"
ENVIRONMENTS = {
    "driving, video, guard, buttons, recording": "the bench, in Chromium and Firefox on x86-64",
    "drivers of sensors": "models of the chips with a fault at every transfer; the Linux kernel's "
    "own `i2c-stub` and `vivid` in a QEMU VM",
    "pipes between machines": "TCP; RDMA verbs over Soft-RoCE in QEMU VMs; ARM builds under QEMU",
    "motors, buttons, echoes without a pin daemon": "the Linux kernel's own `gpio-sim` in a QEMU "
    "VM",
    "packages and systemd units": "a QEMU VM with Debian Trixie: installed, driven, made to "
    "fail, with an emulated pin daemon, with `gpio-sim` and with a kernel's PWM",
    "base station": "the bench; seeded schedules of failures; its replicas in a second store over "
    "SSH, and by Soft-RoCE between QEMU VMs",
}
HEAD = """
## Tested environments

Never run on a real Pi, nor with a real motor, sensor, camera or RDMA card.

| part | tested on |
|---|---|
"""


def page() -> str:
    """Return the full text of docs/reference/status.md."""
    rows = "".join(f"| {part} | {tested_on} |\n" for part, tested_on in ENVIRONMENTS.items())
    return status.page(results.from_json(REPORT.read_bytes())) + HEAD + rows


def main() -> int:
    """Write docs/reference/status.md, up to date."""
    PAGE.write_text(page(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

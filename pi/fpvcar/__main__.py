"""The command `fpvcar`: one verb per process."""

import errno
import logging
import os
import sys
from collections.abc import Sequence

ROOM = (
    "make room (sudo journalctl --vacuum-size=50M; sudo apt clean; delete recordings), "
    "then retry; sudo fpvcar doctor shows which disk is full"
)
NEXT_STEP = {
    errno.ENOSPC: ROOM,
    errno.EDQUOT: ROOM,
    errno.EROFS: "no data can be saved: see dmesg, then sudo fpvcar doctor",
}
"""Next step after a fault of the card that ended a verb."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one verb and return the exit status of the process."""
    os.umask(0o077)  # sockets, codes and keys are private to their owner
    try:
        return _run(sys.argv[1:] if argv is None else argv)
    except KeyboardInterrupt:
        return 130


def _run(options: Sequence[str]) -> int:
    # not above: Ctrl-C may come during these imports, too
    from fpvcar import config
    from fpvcar.cli.command_line import parser
    from fpvcar.runtime.arguments import log_level

    arguments = parser().parse_args(options or ["--help"])
    level = logging.DEBUG if arguments.verbose else log_level()
    logging.basicConfig(level=level, format="%(name)s: %(message)s", stream=sys.stderr)
    try:
        status: int = arguments.act(arguments)
    except config.ConfigError as fault:
        print(f"fpvcar: {fault}", file=sys.stderr)
        return 2
    except OSError as fault:
        path = f"{fault.filename}: " if fault.filename else ""
        next_step = f"; {NEXT_STEP[fault.errno]}" if fault.errno in NEXT_STEP else ""
        print(f"fpvcar: {path}{fault.strerror or fault}{next_step}", file=sys.stderr)
        return 1
    return status


if __name__ == "__main__":
    sys.exit(main())

"""Command line of `fpvsites`: one verb per process."""

import argparse
import os
import sys
import time
from collections.abc import Sequence
from getpass import getpass
from pathlib import Path
from typing import get_args

from fpvcar import __version__
from fpvcar.config import ConfigError
from fpvcar.runtime.arguments import within
from fpvsites import config, gate, state
from fpvsites.rules import Mode, Switch, rules, switch_until
from fpvsites.state import Change, State, local_now
from fpvstation.errors import StationError, run_verb

ABOUT = """\
Allows the clients of a Wi-Fi a list of sites, by group and timetable.

  fpvsites apply --dry-run                      check /etc/fpvsites, show the rules
  fpvsites apply                                put the files of /etc/fpvsites in force
  fpvsites status                               show the mode of each group, and its next change
  fpvsites allow kids everything --until 18:00  every site until 18:00, then the timetable
  fpvsites allow kids nothing --until 20:00     no site until 20:00
  fpvsites undo                                 take the last change back
  fpvsites off                                  remove the rules: all clients reach all sites
  fpvsites passwd                               set the password of the page

On a Pi between the router and the Wi-Fi; `fpvsites run` enforces, `fpvsites page` serves the
switches. No visit is logged.
"""
CONFIRM_S = 15.0
STATE = Path("/var/lib/fpvsites")


def _change(arguments: argparse.Namespace, change: Change) -> int:
    """Save a change, or show it for --dry-run; wait until it is in force."""
    gate.check_programs()
    if arguments.dry_run:
        states = state.load(arguments.state)
        now = local_now()
        print(state.preview(change(states, now), now) + "# --dry-run: nothing changed")
        return 0
    with state.changing(arguments.state) as states:
        new = change(states, local_now())
    deadline = time.monotonic() + CONFIRM_S
    # Another change at the same time takes the place of this one, which is in force with it.
    while (report := state.in_force(arguments.state)).at_s != new.at_s:
        new = state.newest(state.load(arguments.state))
        if time.monotonic() > deadline:
            print(
                f"fpvsites: saved, not in force after {CONFIRM_S:g} s: does `fpvsites run` run? "
                "sudo systemctl restart fpvsites",
                file=sys.stderr,
            )
            return 1
        time.sleep(0.1)
    if report.fault:
        raise StationError(report.fault)
    _show(new)
    return 0


def _show(newest: State) -> None:
    if newest.config is None:
        print("off: all clients reach all sites")
        return
    for group in rules(newest.config, newest.switches, local_now()).groups:
        print(
            f"{group.name}: {group.mode}"
            + (f" until {group.until:%a %H:%M}" if group.until else "")
        )


def _apply(arguments: argparse.Namespace) -> int:
    return _change(arguments, state.applied(config.load(arguments.config)))


def _allow(arguments: argparse.Namespace) -> int:
    until_s = switch_until(arguments.until, local_now())
    text = f"{arguments.group}: {arguments.mode} until {arguments.until}"
    return _change(
        arguments, state.switched(arguments.group, Switch(arguments.mode, until_s), text)
    )


def _status(arguments: argparse.Namespace) -> int:
    states = state.load(arguments.state)
    newest, report = state.newest(states), state.in_force(arguments.state)
    _show(newest)
    print(f"last change: {newest.change}, {time.strftime('%a %H:%M', time.localtime(newest.at_s))}")
    fault = report.fault or ("" if report.at_s == newest.at_s else "not in force")
    if fault:
        raise StationError(f"{fault}: systemctl status fpvsites")
    return 0


def _run(arguments: argparse.Namespace) -> int:
    gate.run(arguments.state)
    return 0


def _page(arguments: argparse.Namespace) -> int:
    from fpvsites import page  # not above: `run` needs no HTTP

    page.serve(arguments.state, arguments.host, arguments.port)
    return 0


def _passwd(arguments: argparse.Namespace) -> int:
    from fpvstation.web import password

    password.save(arguments.state, os.environ.get("FPVSITES_PASSWORD") or getpass())
    print("Password set. Restart the page to use it: sudo systemctl restart fpvsites-page")
    return 0


def command_line() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "fpvsites", description=ABOUT, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--version", action="version", version=__version__)
    verbs = parser.add_subparsers(metavar="VERB", required=True)
    made = {}
    for name, act, text in (
        ("apply", _apply, "put the files of a folder in force"),
        ("status", _status, "show the mode of each group; exit with 1 if it is not in force"),
        ("allow", _allow, "override the timetable of a group until a time today"),
        ("undo", lambda words: _change(words, state.undone), "take the last change back"),
        ("off", lambda words: _change(words, state.removed), "remove the rules"),
        ("run", _run, "enforce the rules until Ctrl-C; the firewall stays after it"),
        ("page", _page, "serve the page with the switches until Ctrl-C"),
        ("passwd", _passwd, "set the password of the page"),
    ):
        verb = made[name] = verbs.add_parser(name, help=text, description=text)
        verb.set_defaults(act=act)
        verb.add_argument(
            "--state", type=Path, default=STATE, metavar="DIR", help="default: %(default)s"
        )
    for name in ("apply", "allow", "undo", "off"):
        made[name].add_argument(
            "--dry-run", action="store_true", help="show the rules, change nothing"
        )
    made["apply"].add_argument(
        "--config",
        type=Path,
        default=Path("/etc/fpvsites"),
        metavar="DIR",
        help="folder of fpvsites.toml and groups/ (default: %(default)s)",
    )
    made["allow"].add_argument("group", help="name of a group, as kids for groups/kids.toml")
    made["allow"].add_argument("mode", choices=get_args(Mode))
    made["allow"].add_argument("--until", required=True, metavar="HH:MM", help="time today")
    made["page"].add_argument("--host", default="127.0.0.1", help="default: %(default)s")
    made["page"].add_argument(
        "--port",
        type=within(int, 1, 65534),
        default=8200,
        help="http port; https uses PORT+1 (default: %(default)s)",
    )
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run one verb; return the exit status."""
    return run_verb(command_line(), argv, (ConfigError, StationError))


if __name__ == "__main__":
    sys.exit(main())

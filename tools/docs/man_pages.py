"""Generator of the manual pages docs/man/*.1 from the parsers of the programs: `make docs`."""

import argparse
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import fpvsites.__main__ as sites
import fpvstation.__main__ as station
from fpvcar import __version__
from fpvcar.cli import command_line as car
from fpvcar.runtime import paths

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "man"
PARSERS = {"fpvcar": car.parser, "fpvsites": sites.command_line, "fpvstation": station.command_line}
INSTALLED = "/usr/lib/python3/dist-packages/fpvcar/hardware"
"""Folder of the profiles in the package."""


def escaped(text: str) -> str:
    """Return plain text for roff, with the paths of an installed program."""
    for here, there in ((str(paths.HARDWARE), INSTALLED), (str(Path.home()), "~")):
        text = text.replace(here, there)
    text = text.replace("\\", r"\e").replace("-", r"\-")
    return re.sub(r"(?m)^([.'])", r"\\&\1", text)


def value(action: argparse.Action) -> str:
    """Return the placeholder of an argument, or of an option's value; "" for a flag."""
    if action.nargs == 0:
        return ""
    choices = "|".join(map(str, action.choices)) if action.choices else ""
    name = str(action.metavar or choices or action.dest)
    return name if action.metavar or choices or not action.option_strings else name.upper()


def entries(parser: argparse.ArgumentParser) -> Iterator[str]:
    """Yield the arguments and options of a parser, each with its help."""
    formatter = argparse.HelpFormatter(parser.prog)
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction) or action.help == argparse.SUPPRESS:
            continue
        names = ", ".join(f"\\fB{escaped(name)}\\fR" for name in action.option_strings)
        operand = f"\\fI{escaped(value(action))}\\fR" if value(action) else ""
        text = formatter._expand_help(action) if action.help else ""
        yield f".TP\n{f'{names} {operand}'.strip()}\n{escaped(text)}"


def verbs(parser: argparse.ArgumentParser) -> Iterator[str]:
    """Yield the verbs of a parser, and theirs: synopsis, description, arguments."""
    for action in parser._actions:
        if not isinstance(action, argparse._SubParsersAction):
            continue
        for verb in action.choices.values():
            operands = [
                value(operand)
                for operand in verb._actions
                if not operand.option_strings
                and not isinstance(operand, argparse._SubParsersAction)
            ]
            yield f".SS {escaped(' '.join([verb.prog, '[OPTION]...', *operands]))}"
            yield escaped(verb.description or "")
            if verb.epilog:
                yield f".PP\n{escaped(verb.epilog)}"
            yield from entries(verb)
            yield from verbs(verb)


def page(program: str) -> str:
    """Return the manual page of a program."""
    parser = PARSERS[program]()
    summary, _, examples = (parser.description or "").partition("\n\n")
    name = summary.replace("\n", " ").rstrip(".")
    return "\n".join(
        [
            f'.TH {program.upper()} 1 "" "fpvcar {__version__}" "User Commands"',
            ".SH NAME",
            f"{program} \\- {escaped(name)}",
            ".SH SYNOPSIS",
            f".B {program}\n[\\fIOPTION\\fR]... \\fIVERB\\fR ...",
            ".SH DESCRIPTION",
            f".EX\n{escaped(examples.rstrip())}\n.EE",
            ".SH OPTIONS",
            *entries(parser),
            ".SH VERBS",
            *verbs(parser),
            "",
        ]
    )


def main() -> int:
    """Write the manual pages, up to date."""
    for program in PARSERS:
        (FOLDER / f"{program}.1").write_text(page(program), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

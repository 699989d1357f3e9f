"""`fpvcar` on a command line, in the process of a test."""

from pathlib import Path
from typing import NamedTuple

import pytest

from fpvcar.__main__ import main


class Output(NamedTuple):
    """Output of a command."""

    out: str
    err: str


class Command:
    """Run a verb of `fpvcar` like a shell."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *words: str | Path, status: int = 0) -> Output:
        """Check the exit status of a command; return its output."""
        self._capsys.readouterr()
        try:
            ended: object = main([str(word) for word in words])
        except SystemExit as refused:
            ended = refused.code
        said = Output(*self._capsys.readouterr())
        assert ended == status, said
        return said

"""`fpvcar` on a command line, in the process of a test."""

from pathlib import Path

import pytest

from fpvcar.__main__ import main


class Command:
    """Run a verb of `fpvcar` like a shell."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *words: str | Path, status: int = 0) -> "pytest.CaptureResult[str]":
        """Check the exit status of a command; return its output as `out` and `err`."""
        self._capsys.readouterr()
        try:
            ended: object = main([str(word) for word in words])
        except SystemExit as refused:
            ended = refused.code
        said = self._capsys.readouterr()
        assert ended == status, said
        return said

"""What a child's last words are, however they come."""

import asyncio

import pytest

from fpvcar import child

PIECE_BYTES = 64


@pytest.mark.parametrize("end", ["\n", ""])
def test_a_long_line_in_pieces_keeps_its_beginning(
    end: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is wrong stands first, and the next step."""
    monkeypatch.setattr(child, "READ_BYTES", PIECE_BYTES)
    line = "no EGL; apt install libegl1 " + "why " * 100

    async def said() -> str:
        argv = ["sh", "-c", 'printf "%s" "$1" >&2; read end', "sh", line + end]
        process = child.ChildProcess(argv, True, lambda data: None)
        try:
            process.write_line("end")
            await process.exited
            return process.last_line
        finally:
            await process.end()

    assert asyncio.run(said()) == line[: child.LINE_MAX]

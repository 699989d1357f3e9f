"""MCP3008: eight analogue inputs of ten bits on SPI (Microchip DS21295, section 5)."""

from collections.abc import Callable, Sequence

CHANNELS, BITS = 8, 10
TOP = (1 << BITS) - 1
SILENT = 6
"""Clocks from the start bit to the null bit."""
Input = Callable[[], float]
"""Voltage of an input as a share of the reference, 0 to 1."""


class Mcp3008:
    """Model that makes one conversion each time it is selected."""

    def __init__(self, inputs: Sequence[Input]) -> None:
        self._inputs = inputs

    def convert(self, code: int, differential: bool) -> int:
        """Convert an input or a pair of inputs; `code` is D2 D1 D0."""
        if not differential:
            return self._of(self._share(code))
        return self._of(self._share(code) - self._share(code ^ 1))

    def transfer(self, sent: bytes, idle: int) -> bytes:
        """Process bits. The output is driven from the null bit on; the start bit is
        followed by SGL/DIFF, D2, D1, D0 and one clock for sampling."""
        request = [byte >> shift & 1 for byte in sent for shift in range(7, -1, -1)]
        start = request.index(1) if 1 in request else len(request)
        single, d2, d1, d0 = (*request[start + 1 : start + 5], 0, 0, 0, 0)[:4]
        value = self.convert(d2 << 2 | d1 << 1 | d0, differential=not single)
        bits = [value >> shift & 1 for shift in range(BITS - 1, -1, -1)]
        # Further clocks repeat the bits from the second lowest up, then send 0.
        driven = [0, *bits, *bits[-2::-1]] + [0] * len(request)
        answered = ([idle] * (start + SILENT) + driven)[: len(request)]
        return int("".join(map(str, answered)) or "0", 2).to_bytes(len(sent), "big")

    def _share(self, code: int) -> float:
        return self._inputs[code]() if code < len(self._inputs) else 0.0

    @staticmethod
    def _of(share: float) -> int:
        return max(0, min(TOP, int(share * (TOP + 1))))


def fixed_inputs(shares: Sequence[float]) -> list[Input]:
    """Return inputs with constant values."""
    return [lambda share=share: share for share in shares]  # type: ignore[misc]

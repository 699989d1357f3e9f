"""Pulses without a daemon: added to each other, and made of serial data."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fpvbench.pigpiod.waves.pulses import Pulses, generic, serial

LISTS = st.lists(st.tuples(st.integers(0, 15), st.integers(0, 15), st.integers(0, 3)), max_size=12)


def timeline(pulses: list[tuple[int, int, int]]) -> dict[int, tuple[int, int]]:
    """Return the bits switched on and off at each time."""
    at_us, out = 0, dict[int, tuple[int, int]]()
    for on, off, wait_us in pulses:
        old = out.get(at_us, (0, 0))
        out[at_us] = (old[0] | on, old[1] | off)
        at_us += wait_us
    return out


@given(LISTS, LISTS)
def test_merging_pulses_keeps_all_times(
    one: list[tuple[int, int, int]], other: list[tuple[int, int, int]]
) -> None:
    total = generic(one).merged(generic(other))
    assert total.length_us == max(sum(entry[2] for entry in part) for part in (one, other))
    first, second = timeline(one), timeline(other)
    got = dict[int, tuple[int, int]]()
    for at_us, on, off in total.pulses:
        old = got.get(at_us, (0, 0))
        got[at_us] = (old[0] | on, old[1] | off)
    wanted = {
        at_us: (
            first.get(at_us, (0, 0))[0] | second.get(at_us, (0, 0))[0],
            first.get(at_us, (0, 0))[1] | second.get(at_us, (0, 0))[1],
        )
        for at_us in first.keys() | second.keys()
    }
    assert got == wanted
    assert sum(total.waits()) == (total.length_us if total.pulses else 0)


def decoded(pulses: Pulses, baud: int, data_bits: int, count: int) -> list[int]:
    """Decode like a receiver that samples the middle of each bit."""
    bit_us, out = 1e6 / baud, list[int]()
    edges = [(pulse.at_us, int(bool(pulse.on))) for pulse in pulses.pulses]

    def level(at_us: float) -> int:
        return next(level for time_us, level in reversed(edges) if time_us <= at_us)

    at_us = 0.0
    for _ in range(count):
        start = next(t for t, level in edges if t >= at_us and not level)
        bits = [level(start + bit_us * (1.5 + n)) for n in range(data_bits)]
        assert not level(start + bit_us / 2) and level(start + bit_us * (1.5 + data_bits))
        out.append(sum(bit << n for n, bit in enumerate(bits)))
        at_us = start + bit_us * (1.4 + data_bits)
    return out


@settings(max_examples=100, deadline=None)
@given(
    st.integers(50, 100_000),
    st.integers(1, 30),
    st.integers(2, 8),
    st.integers(0, 100_000),
    st.data(),
)
def test_serial_pulses_decode_to_the_sent_bytes(
    baud: int, data_bits: int, half_stops: int, offset_us: int, data: st.DataObject
) -> None:
    size = 1 if data_bits <= 8 else 2 if data_bits <= 16 else 4
    sent = data.draw(st.lists(st.integers(0, 2**data_bits - 1), min_size=1, max_size=8))
    raw = b"".join(value.to_bytes(size, "little") for value in sent)
    pulses = serial(4, baud, data_bits, half_stops, offset_us, raw)
    assert decoded(pulses, baud, data_bits, len(sent)) == sent
    bit_us = 1e6 / baud
    idle_us = max(offset_us, bit_us)
    length_us = idle_us + len(sent) * bit_us * (1 + data_bits + half_stops / 2)
    assert pulses.length_us == pytest.approx(length_us, abs=1 + len(sent))
    assert pulses.pulses[0] == (0, 1 << 4, 0)

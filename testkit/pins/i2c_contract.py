"""Contract of every I2C back end, on any driver of the bus. Without pytest: a VM runs it as
well. There must be registers at MEMORY on bus 1, and no device at NOBODY."""

from collections.abc import Callable

from fpvcar.devices.i2c import I2cError, Open, Read, Receive, Write

BUS, MEMORY, NOBODY = 1, 0x50, 0x33
LENGTHS = (
    (0x10, b"\x9c"),
    (0x20, b"\x12\x34"),
    (0x30, b"\xff\x00\x81"),
    (0x40, bytes(range(12))),
    (0x60, bytes(range(0x80, 0xA0))),
)


def error_of(act: Callable[[], object]) -> str:
    """Return the text of the I2cError that it must raise."""
    try:
        act()
    except I2cError as fault:
        return str(fault)
    raise AssertionError("no I2cError")


def check_bytes_come_back_in_their_order(opens: Open) -> None:
    """Check lengths of 1, 2, 3, 12 and 32 bytes."""
    device = opens(BUS, MEMORY)
    for register, data in LENGTHS:
        device.write(register, data)
    for register, data in LENGTHS:
        assert device.read(register, len(data)) == data, (register, data)
    device.close()


def check_steps_are_done_in_their_order(opens: Open) -> None:
    """Check prepared steps twice; only the last read may be long."""
    device = opens(BUS, MEMORY)
    byte, word, block = LENGTHS[0], LENGTHS[1], LENGTHS[3]
    device.write(word[0], word[1])
    prepared = device.prepared(
        Write(*byte),
        Read(byte[0], 1),
        Read(word[0], 2),
        Write(*block),
        Read(block[0], len(block[1])),
    )
    for _ in range(2):
        device.write(byte[0], b"\x01")
        device.write(block[0], bytes(12))
        assert list(prepared(0.0)) == [byte[1], word[1], block[1]]
    only_words = device.transfer(Read(byte[0], 1), Write(*byte), Read(word[0], 2))
    assert list(only_words) == [byte[1], word[1]]
    device.close()


def check_a_step_that_fails_is_said(opens: Open) -> None:
    """Check that the failed transfer leaves no remains."""
    device, memory = opens(BUS, NOBODY), opens(BUS, MEMORY)
    memory.write(0x10, b"\x77")
    for steps in ((Read(0, 1), Read(1, 1)), (Write(0, b"\1"), Read(0, 12)), (Write(0, b"\1"),)):
        said = error_of(lambda steps=steps: device.transfer(*steps))  # type: ignore[misc]
        assert "0x33" in said
        assert memory.read(0x10, 1) == b"\x77"

    def posted() -> None:
        device.post(0, b"\1")
        device.read(0, 1)

    assert "0x33" in error_of(posted)
    memory.post(0x10, b"\x78")
    assert memory.read(0x10, 1) == b"\x78"
    device.close()
    memory.close()


def check_two_who_hold_the_same_device(opens: Open) -> None:
    """Check that both access the same registers, and that closing one keeps the other open."""
    one, other = opens(BUS, MEMORY), opens(BUS, MEMORY)
    one.write(0x10, b"\x55")
    assert other.read(0x10, 1) == b"\x55"
    one.close()
    other.write(0x10, b"\xaa")
    assert other.read(0x10, 1) == b"\xaa"
    other.close()


def check_nobody_at_an_address_is_said(opens: Open) -> None:
    """Check each kind of transfer; the error has the address, and the next transfer works."""
    device, memory = opens(BUS, NOBODY), opens(BUS, MEMORY)
    for size in (1, 2, 12):
        assert "0x33" in error_of(lambda size=size: device.read(0, size))  # type: ignore[misc]
        assert "0x33" in error_of(lambda size=size: device.write(0, bytes(size)))  # type: ignore[misc]
        memory.write(0x10, b"\x77")
        assert memory.read(0x10, 1) == b"\x77"
    device.close()
    memory.close()


def check_a_bus_that_is_not_there_is_said(opens: Open) -> None:
    """Check that opening a missing bus fails."""
    assert "99" in error_of(lambda: opens(99, MEMORY))


def check_receive_goes_on_where_a_write_ended(opens: Open) -> None:
    """Check reads without a register, alone and as the last step."""
    device = opens(BUS, MEMORY)
    device.write(0x40, b"\x11\x22\x33\x44")
    device.write(0x40, b"\x11")
    assert device.receive(3) == b"\x22\x33\x44"
    for _ in range(2):
        assert list(device.transfer(Read(0x42, 1), Write(0x40, b"\x11"), Receive(1))) == [
            b"\x33",
            b"\x22",
        ]
    assert "0x33" in error_of(lambda: opens(BUS, NOBODY).receive(2))
    device.close()


CHECKS = (
    check_bytes_come_back_in_their_order,
    check_steps_are_done_in_their_order,
    check_a_step_that_fails_is_said,
    check_two_who_hold_the_same_device,
    check_nobody_at_an_address_is_said,
    check_a_bus_that_is_not_there_is_said,
)
PLAIN_CHECKS = (check_receive_goes_on_where_a_write_ended,)
"""Checks of transfers that adapters for SMBus alone, and i2c-stub, lack."""

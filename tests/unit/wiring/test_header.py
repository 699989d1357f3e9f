"""Pin header, compared with gpiozero's data."""

from gpiozero.pins import data

from fpvcar.wiring.header import PIN_OF, PINS


def names_by_gpiozero() -> list[str]:
    """Return the names of pins 1 to 40: "GPIO17", or "GND", "5V", "3V3"."""
    rows, columns, pins = data.PLUS_J8
    assert rows * columns == 40
    return [pins[number].get("gpio") or pins[number][""] for number in range(1, 41)]


def test_forty_pins_match_gpiozero() -> None:
    ours = [pin.name.replace(" ", "") for pin in PINS]
    assert ours == names_by_gpiozero()


def test_gpios_have_one_pin_each() -> None:
    assert sorted(PIN_OF) == list(range(28)) and len(set(PIN_OF.values())) == 28

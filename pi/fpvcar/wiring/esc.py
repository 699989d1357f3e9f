"""Parts of an RC car: its ESC, which takes the place of a driver board, and the BEC in it."""

from fpvcar.config import Esc, EscMotor, Motors
from fpvcar.wiring import plan
from fpvcar.wiring.plan import PI_GND, End, Part, Terminal

ESC = "ESC"
RED, BLACK = "red (BEC)", "black"
PULL_DOWN = (
    "Pull-down: 10 kΩ from this terminal to ground, near the ESC. A wire that comes off, or a Pi "
    "that starts, then gives no pulses: an open input may read as any throttle."
)
BEC = (
    "The red wire of the ESC's plug is its own regulator (BEC), 5 to 6 V. It feeds the servo only. "
    "Never join it to the Pi's 5 V: pull the red pin out of the plug at the Pi's end."
)
OWN_5V = "A servo needs its own 5 V regulator, never the 5 V of the Pi."
COMMON = "The ground of Pi, ESC and servo must be common, or the signal floats."
LEADS = (
    "If the wheels turn the wrong way, swap two of the motor's leads. With invert = true an ESC "
    "that brakes first would brake before each drive forward."
)
SWITCHED_LAST = (
    "Switch the ESC on after the Pi, and off before it: it may take the first pulse for neutral."
)


def esc_part(esc: EscMotor, channel: End, power: tuple[Terminal, Terminal]) -> Part:
    """Return the ESC with its plug. `channel`: output of the PCA9685, for an ESC on one."""
    if isinstance(esc, Esc):
        signal = Terminal("signal", plan.gpio(esc.signal), plan.MOTOR, "pull-down", (PULL_DOWN,))
    else:
        signal = Terminal("signal", channel, plan.MOTOR)
    plus, minus = power
    return Part(
        ESC,
        (
            plus._replace(notes=(SWITCHED_LAST,)),
            minus,
            signal,
            Terminal(RED),
            Terminal(BLACK, PI_GND, plan.GROUND, "", (COMMON,)),
            Terminal("motor 1"),
            Terminal("motor 2"),
        ),
    )


def motor_part(name: str) -> Part:
    """Return the motor behind the ESC."""
    leads = (
        Terminal(str(lead), End(ESC, f"motor {lead}"), plan.BATTERY, "", (LEADS,))
        for lead in (1, 2)
    )
    return Part(name, tuple(leads), "of the chassis")


def servo_feed(motors: Motors, regulator: str) -> tuple[End, End, str]:
    """Return + and - of a servo, its regulator's or those of an ESC's BEC, and a note on them."""
    if motors.esc is not None:
        return End(ESC, RED), End(ESC, BLACK), BEC
    return End(regulator, "OUT +"), End(regulator, "OUT -"), OWN_5V

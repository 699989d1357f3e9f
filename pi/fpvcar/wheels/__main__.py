"""python -m fpvcar.wheels: the process that owns the motor pins, by itself."""

import sys

from fpvcar.wheels.core import _command_line

sys.exit(_command_line())

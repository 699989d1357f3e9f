"""What a car's profile may say, and how one is read."""

from fpvcar.config.schema import (
    BUTTONS as BUTTONS,
)
from fpvcar.config.schema import (
    CHOICES as CHOICES,
)
from fpvcar.config.schema import (
    COLOURS as COLOURS,
)
from fpvcar.config.schema import (
    SHAPES as SHAPES,
)
from fpvcar.config.schema import (
    Battery as Battery,
)
from fpvcar.config.schema import (
    Button as Button,
)
from fpvcar.config.schema import (
    Camera as Camera,
)
from fpvcar.config.schema import (
    Car as Car,
)
from fpvcar.config.schema import (
    ConfigError as ConfigError,
)
from fpvcar.config.schema import (
    Depth as Depth,
)
from fpvcar.config.schema import (
    Gate as Gate,
)
from fpvcar.config.schema import (
    Gpio as Gpio,
)
from fpvcar.config.schema import (
    Guard as Guard,
)
from fpvcar.config.schema import (
    I2c as I2c,
)
from fpvcar.config.schema import (
    Lights as Lights,
)
from fpvcar.config.schema import (
    Motor as Motor,
)
from fpvcar.config.schema import (
    Motors as Motors,
)
from fpvcar.config.schema import (
    Pins as Pins,
)
from fpvcar.config.schema import (
    Port as Port,
)
from fpvcar.config.schema import (
    Positive as Positive,
)
from fpvcar.config.schema import (
    Profile as Profile,
)
from fpvcar.config.schema import (
    Recording as Recording,
)
from fpvcar.config.schema import (
    Section as Section,
)
from fpvcar.config.schema import (
    Sensors as Sensors,
)
from fpvcar.config.schema import (
    Server as Server,
)
from fpvcar.config.schema import (
    Share as Share,
)
from fpvcar.config.schema import (
    Tof as Tof,
)
from fpvcar.config.schema import (
    Ultrasound as Ultrasound,
)

"""Checks beyond the bounds of one key: pins, addresses and names that clash."""

from typing import Any

import msgspec
import pytest
from testkit.profiles import minimal

from fpvcar.config import ConfigError, profiles
from fpvcar.config.checks import warnings
from fpvcar.runtime.paths import HARDWARE


def four(**red: Any) -> dict[str, dict[str, Any]]:
    """Return four buttons; `red` changes the first."""
    colours = ("red", "yellow", "green", "blue")
    shapes = ("circle", "star", "heart", "square")
    made: dict[str, dict[str, Any]] = {
        colour: {"colour": colour, "shape": shape, "button": 4 + at, "led": 18 + at}
        for at, (colour, shape) in enumerate(zip(colours, shapes, strict=True))
    }
    made["red"] |= red
    return made


@pytest.mark.parametrize(
    ("red", "words"),
    [
        (
            {"button": 17},
            "buttons.red.button = 17: GPIO 17 is already used by motors.drive.forward",
        ),
        ({"led": 19}, "buttons.yellow.led = 19: GPIO 19 is already used by buttons.re"),
        ({"led": 4}, "red.led = 4: GPIO 4 is already used by buttons.red.button"),
        ({"button": 2}, "GPIO 2 is already used by battery (SDA of I2C bus 1)"),
        ({"led": 3}, "GPIO 3 is already used by battery (SCL of I2C bus 1)"),
        ({"led": 1}, "GPIO 1 is already used by the EEPROM of a HAT (ID_SC)"),
        ({"led": 28}, "<= 27"),
        ({"colour": "pink"}, 'buttons.red.colour = "pink": expected one of red, y'),
        ({"shape": "cube"}, 'buttons.red.shape = "cube": expected one of circle'),
        ({"colour": "blue"}, 'blue.colour = "blue": already used by buttons.red'),
        ({"shape": "star"}, 'yellow.shape = "star": already used by buttons.red'),
        ({"brightness": 1.5}, "<= 1.0"),
        ({"color": "red"}, "buttons.red.color; did you mean buttons.red.colour?"),
    ],
)
def test_impossible_buttons_are_refused(red: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError) as fault:
        profiles.parse(minimal(battery={"address": 0x40}, buttons=four(**red)))
    assert words in str(fault.value)


def test_three_to_six_buttons_or_none() -> None:
    assert len(profiles.parse(minimal(buttons=four())).buttons) == 4
    assert profiles.parse(minimal()).buttons == {}
    few = four()
    del few["red"]
    assert len(profiles.parse(minimal(buttons=few)).buttons) == 3
    del few["blue"]
    with pytest.raises(ConfigError, match="buttons: 2 defined; expected 3 to 6"):
        profiles.parse(minimal(buttons=few))
    more = {
        "purple": {"colour": "purple", "shape": "diamond"},
        "white": {"colour": "white", "shape": "triangle"},
    }
    six = profiles.parse(minimal(buttons=four() | more)).buttons
    assert len(six) == 6 and six["white"].led is None


def test_bus_pins_are_free_without_bus_devices() -> None:
    assert profiles.parse(minimal(lights={"head": [2, 3]})).lights.head == (2, 3)
    with pytest.raises(ConfigError, match=r"used by sensors\.tof\.front \(SDA"):
        profiles.parse(minimal(lights={"head": [2]}, sensors={"tof": {"front": {}}}))


def test_indicators_share_no_pin() -> None:
    with pytest.raises(ConfigError, match="already used by lights.indicator_left"):
        profiles.parse(minimal(lights={"indicator_left": [5], "indicator_right": [5]}))


@pytest.mark.parametrize(
    ("tofs", "words"),
    [
        ({"a": {"power": 4}, "b": {"power": 12}}, "a.address = 0x29: with 2 VL53L0X"),
        (
            {"front": {"power": 4}, "back": {"power": 12, "address": 0x30}},
            "front.address = 0x29: with 2 VL53L0X on bus 1 expected another one",
        ),
        (
            {"a": {"power": 4, "address": 48}, "b": {"power": 12, "address": 48}},
            "b.address = 0x30: already used by sensors.tof.a",
        ),
        (
            {"a": {"power": 4, "address": 0x31}, "b": {"address": 0x30}},
            "b.power is missing: with 2",
        ),
        ({"a": {"address": 0x30}}, "a.address = 0x30: without power .* expected 0x29"),
        ({"a": {}, "b": {"bus": 0, "address": 0x30}}, "b.address = 0x30: without"),
        ({"a": {"address": 0x78}}, "address"),
        ({"a": {"power": 17}}, "GPIO 17 is already used by"),
    ],
)
def test_indistinguishable_range_sensors_are_refused(tofs: dict[str, object], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        profiles.parse(minimal(sensors={"tof": tofs}))


def test_two_buses_allow_one_default_address_each() -> None:
    tofs = {"front": {}, "back": {"bus": 0}}
    assert len(profiles.parse(minimal(sensors={"tof": tofs})).sensors.tof) == 2
    moved = {"front": {"power": 4, "address": 0x30}}
    assert profiles.parse(minimal(sensors={"tof": moved})).sensors.tof


ULTRASOUND = {"trigger": 5, "echo": 6}


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (
            {"sensors": {"tof": {"front": {}}, "ultrasound": {"front": ULTRASOUND}}},
            "sensors.ultrasound.front: name already used by sensors.tof.front",
        ),
        (
            {"depth": {"source": "v4l2"}, "sensors": {"tof": {"depth": {}}}},
            "sensors.tof.depth: name already used by the depth camera",
        ),
        ({"sensors": {"tof": {"a b": {}}}}, "sensors.tof.a b: expected a name of"),
        ({"sensors": {"ultrasound": {"a/b": ULTRASOUND}}}, "letters, digits and -"),
        ({"sensors": {"ultrasound": {"a\n": ULTRASOUND}}}, "letters, digits and -"),
        ({"sensors": {"tof": {"": {}}}}, "letters, digits and -"),
        ({"sensors": {"tof": {"a" * 25: {}}}}, "at most 24"),
        ({"battery": {"nominal_v": 3.0}}, "battery.nominal_v = 3.0: expected 6.2 to"),
        ({"battery": {"nominal_v": 8.5}}, "expected 6.2 to 8.4, empty_v to full_v"),
    ],
)
def test_bad_sensor_names_and_nominal_volts_are_refused(more: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError) as fault:
        profiles.parse(minimal(**more))
    assert words in str(fault.value)


def ultrasounds(count: int) -> dict[str, Any]:
    free = [4, *range(5, 17), 18, 19]
    pins = zip(free[::2], free[1::2], strict=False)
    places = [{"trigger": trigger, "echo": echo} for trigger, echo in pins]
    return {"ultrasound": {f"s{at}": one for at, one in enumerate(places[:count])}}


@pytest.mark.parametrize("mode", ["warn", "limit"])
def test_ultrasound_round_must_fit_guard_stale_s(mode: str) -> None:
    on = {"mode": mode}
    assert profiles.parse(minimal(sensors=ultrasounds(5), guard=on))
    with pytest.raises(ConfigError) as fault:
        profiles.parse(minimal(sensors=ultrasounds(6), guard=on))
    assert str(fault.value) == (
        "guard.stale_s = 0.2: a round of 6 sensors.ultrasound takes 0.217 s; "
        "expected at least that, or fewer sensors"
    )
    assert profiles.parse(minimal(sensors=ultrasounds(6), guard={**on, "stale_s": 0.22}))
    assert profiles.parse(minimal(sensors=ultrasounds(6)))
    with pytest.raises(ConfigError, match="1 sensors.ultrasound takes 0.085 s"):
        profiles.parse(minimal(sensors=ultrasounds(1), guard={**on, "stale_s": 0.08}))
    assert profiles.parse(minimal(guard={**on, "stale_s": 0.08})), "none"


def test_sensor_may_be_named_depth_without_depth_camera() -> None:
    assert "depth" in profiles.parse(minimal(sensors={"tof": {"depth": {}}})).sensors.tof


def test_car_without_camera_must_not_wait_for_pictures() -> None:
    bare = minimal(camera={"source": "none"})
    with pytest.raises(ConfigError, match="would never drive; expected gate.blind ="):
        profiles.parse(bare)
    for word in ("limit", "ignore"):
        profiles.parse(bare | {"gate": {"blind": word}})
    profiles.parse(minimal(camera={"source": "none", "command": ["rpicam-vid"]}))


REAR = {"source": "v4l2", "device": "/dev/video2"}


@pytest.mark.parametrize(
    ("camera", "cameras", "words"),
    [
        ({}, {"rear": REAR, "side": REAR}, "cameras: rear, side defined; expected one beside"),
        ({}, {"rear view": REAR}, "cameras.rear view: expected a name of letters, digits and -"),
        ({}, {"rear": {"source": "none"}}, 'cameras.rear.source = "none": expected a camera'),
        ({}, {"rear": REAR | {"exposure": "sport"}}, 'cameras.rear.exposure = "sport": a v4l2'),
        ({}, {"rear": REAR | {"size": 1}}, "unknown key cameras.rear.size"),
        (REAR, {"rear": REAR}, 'cameras.rear.device = "/dev/video2": already used by camera'),
        (
            {"source": "picamera2"},
            {"rear": {"source": "picamera2"}},
            'cameras.rear.device = "": already used by camera; expected another device',
        ),
    ],
)
def test_impossible_second_camera_is_refused(
    camera: dict[str, Any], cameras: dict[str, Any], words: str
) -> None:
    with pytest.raises(ConfigError) as fault:
        profiles.parse(minimal(camera=camera, cameras=cameras))
    assert words in str(fault.value)


def test_second_camera_leaves_the_first_unchanged() -> None:
    camera = {"source": "picamera2", "width": 320}
    one = profiles.parse(minimal(camera=camera))
    two = profiles.parse(
        minimal(camera=camera, cameras={"rear": {"source": "picamera2", "device": "1"}})
    )
    assert one.cameras == {} and list(two.cameras) == ["rear"]
    assert msgspec.structs.replace(two, cameras={}) == one
    shipped = [profiles.load(path) for path in HARDWARE.glob("*.toml")]
    assert shipped and all(profile.cameras == {} for profile in shipped)


SONARS = {
    f"s{number}": {"trigger": number, "echo": echo}
    for number, echo in zip(range(4, 12), (12, 13, 14, 15, 16, 18, 19, 20), strict=True)
}
"""Eight HC-SR04, which take 0.281 s for a round."""
DEPTH = {"source": "v4l2", "fps": 10}


@pytest.mark.parametrize(
    ("more", "stale_s"),
    [
        ({}, 0.2),
        ({"guard": {"stale_s": 0.7}}, 0.7),
        ({"depth": DEPTH, "guard": {"stale_s": 0.1}}, 0.2),
        ({"guard": {"stale_s": 0.1}}, 0.1),
        ({"sensors": {"ultrasound": SONARS}}, 8 * 0.032 + 0.025),
        ({"sensors": {"ultrasound": SONARS}, "guard": {"stale_s": 0.5}}, 0.5),
    ],
)
def test_range_stale_s_follows_the_guard_and_the_slowest_sensors(
    more: dict[str, Any], stale_s: float
) -> None:
    profile = profiles.parse(minimal(**more))
    assert profile.range_stale_s() == pytest.approx(stale_s)


@pytest.mark.parametrize(
    ("server", "words"),
    [
        ({"base_path": "car/"}, 'server.base_path = "car/": expected a path that begins and ends'),
        ({"base_path": "/car"}, 'such as "/car/"'),
        ({"base_path": ""}, "begins and ends"),
        ({"base_path": "//"}, "begins and ends"),
        ({"base_path": "/../"}, "begins and ends"),
        ({"base_path": "/a/./b/"}, "begins and ends"),
        ({"base_path": "/a;b/"}, "begins and ends"),
        ({"base_path": "/c%61r/"}, "begins and ends"),
        ({"base_path": "/a" * 9 + "/"}, "at most 8 parts"),
        ({"base_path": "/api/"}, 'the car itself has "/api"; expected another path'),
        ({"base_path": "/seat/car/"}, 'the car itself has "/seat"'),
        ({"frame_ancestors": ["*"]}, 'server.frame_ancestors: "*" refused: expected the origin'),
        ({"frame_ancestors": ["https://*.example.org"]}, 'without "*"'),
        ({"frame_ancestors": ["https://home.example.org/"]}, '"/" at the end'),
        ({"frame_ancestors": ["https://home.example.org/lovelace"]}, "refused"),
        ({"frame_ancestors": ["home.example.org"]}, "http:// or https://"),
        ({"frame_ancestors": ["https://home.example.org:0"]}, "refused"),
        ({"frame_ancestors": ["https://home.example.org:65536"]}, "refused"),
        ({"frame_ancestors": ["https://[fd00::1]"]}, "IPv4"),
        ({"frame_ancestors": ["https://a.org; script-src *"]}, "refused"),
        ({"frame_ancestors": ["https://a.org\n"]}, "refused"),
        ({"frame_ancestors": ["null"]}, "refused"),
        ({"frame_ancestors": [f"https://a{i}.org" for i in range(17)]}, "expected 16 at most"),
    ],
)
def test_path_and_frames_of_no_page_are_refused(server: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError) as fault:
        profiles.parse(minimal(server=server))
    assert words in str(fault.value)


@pytest.mark.parametrize("path", ["/", "/car/", "/cars/My-Car_2.0~/", "/..a/"])
def test_path_below_a_proxy_is_accepted(path: str) -> None:
    assert profiles.parse(minimal(server={"base_path": path})).server.base_path == path


def test_frames_without_https_are_warned_of() -> None:
    origins = ["https://home.example.org:8123", "HTTP://ha.local:8123", "https://10.0.0.2"]
    profile = profiles.parse(minimal(server={"frame_ancestors": origins}))
    assert profile.server.frame_ancestors == tuple(origins)
    (warning,) = warnings(profile)
    assert '"HTTP://ha.local:8123" is without https' in warning and "needs the code" in warning

"""Lists of the sensors' modes in the form of `rpicam-hello --list-cameras`: name, size and depth,
then by raw format each size, most frames per second and crop.

Written for the tests, then compared with lists in public reports of 2022 to 2026. Other kernels
print other rates: 58.92 fps for the OV5647's 640x480, and 45.19 fps for the IMX477's 2028x1520.
"""

import re

OV5647 = """ov5647 [2592x1944 10-bit GBRG]
'SGBRG10_CSI2P' : 640x480 [62.50 fps - (16, 0)/2560x1920 crop]
                  1296x972 [46.34 fps - (0, 0)/2592x1944 crop]
                  1920x1080 [32.81 fps - (348, 434)/1928x1080 crop]
                  2592x1944 [15.63 fps - (0, 0)/2592x1944 crop]"""
IMX219 = """imx219 [3280x2464 10-bit RGGB]
'SRGGB10_CSI2P' : 640x480 [206.65 fps - (1000, 752)/1280x960 crop]
                  1640x1232 [41.85 fps - (0, 0)/3280x2464 crop]
                  1920x1080 [47.57 fps - (680, 692)/1920x1080 crop]
                  3280x2464 [21.19 fps - (0, 0)/3280x2464 crop]
      'SRGGB8'  : 640x480 [206.65 fps - (1000, 752)/1280x960 crop]
                  1640x1232 [83.70 fps - (0, 0)/3280x2464 crop]
                  1920x1080 [47.57 fps - (680, 692)/1920x1080 crop]
                  3280x2464 [21.19 fps - (0, 0)/3280x2464 crop]"""
IMX708 = """imx708 [4608x2592 10-bit RGGB]
'SRGGB10_CSI2P' : 1536x864 [120.13 fps - (768, 432)/3072x1728 crop]
                  2304x1296 [56.03 fps - (0, 0)/4608x2592 crop]
                  4608x2592 [14.35 fps - (0, 0)/4608x2592 crop]"""
IMX477 = """imx477 [4056x3040 12-bit RGGB]
'SRGGB10_CSI2P' : 1332x990 [120.05 fps - (696, 528)/2664x1980 crop]
'SRGGB12_CSI2P' : 2028x1080 [50.03 fps - (0, 440)/4056x2160 crop]
                  2028x1520 [40.01 fps - (0, 0)/4056x3040 crop]
                  4056x3040 [10.00 fps - (0, 0)/4056x3040 crop]"""
IMX296 = """imx296 [1456x1088 10-bit RGGB]
'SRGGB10_CSI2P' : 1456x1088 [60.38 fps - (0, 0)/1456x1088 crop]"""
IMX500 = """imx500 [4056x3040 10-bit RGGB]
'SRGGB10_CSI2P' : 2028x1520 [30.02 fps - (0, 0)/4056x3040 crop]
                  4056x3040 [10.00 fps - (0, 0)/4056x3040 crop]"""
LISTS = {
    "ov5647": OV5647,
    "imx219": IMX219,
    "imx708": IMX708,
    "imx708_wide": IMX708.replace("imx708", "imx708_wide"),
    "imx477": IMX477,
    "imx296": IMX296,
    "imx500": IMX500,
}
LINE = re.compile(
    r"(?:'(\w+)'\s+:)?\s+(\d+)x(\d+) \[([\d.]+) fps - \(\d+, \d+\)/(\d+)x(\d+) crop\]"
)
UNKNOWN = "imx219"
"""Sensor whose modes a sensor without a list has here."""
Listed = tuple[str, tuple[int, int], float, tuple[int, int]]


def listing(sensor: str) -> str:
    """Return the output of --list-cameras with this sensor."""
    text = LISTS.get(sensor, LISTS[UNKNOWN].replace(UNKNOWN, sensor))
    head, _, modes = text.partition("\n")
    path = f"(/base/soc/i2c0mux/i2c@1/{sensor}@10)"
    return f"Available cameras\n-----------------\n0 : {head} {path}\n    Modes: {modes}\n"


def modes(sensor: str) -> list[Listed]:
    """Return format, size, most frames per second and crop of each mode."""
    found: list[Listed] = []
    for match in LINE.finditer(LISTS.get(sensor, LISTS[UNKNOWN])):
        name = match[1] or found[-1][0]
        size, crop = (int(match[2]), int(match[3])), (int(match[5]), int(match[6]))
        found.append((name, size, float(match[4]), crop))
    return found

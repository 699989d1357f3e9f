"""Controls of a V4L2 device (Linux uAPI, v4l2-controls.h), such as a webcam's brightness."""

import fcntl

from fpvcar.devices.linux.v4l2_uapi import QUERYCTRL, S_CTRL, Control, Query

USER, CAMERA, CODEC = 0x00980900, 0x009A0900, 0x00990900
"""Bases of control ids: V4L2_CID_BASE, V4L2_CID_CAMERA_CLASS_BASE, V4L2_CID_CODEC_BASE."""
BRIGHTNESS, HFLIP, VFLIP = USER, USER + 20, USER + 21
SLOWER_IN_THE_DARK = CAMERA + 3
"""V4L2_CID_EXPOSURE_AUTO_PRIORITY: 1 lets the rate fall."""
BITRATE, KEY_FRAME = CODEC + 207, CODEC + 229
"""Control ids V4L2_CID_MPEG_VIDEO_BITRATE and V4L2_CID_MPEG_VIDEO_FORCE_KEY_FRAME."""
GOP_FRAMES, REPEAT_SETS = CODEC + 203, CODEC + 226
"""Control ids V4L2_CID_MPEG_VIDEO_GOP_SIZE and V4L2_CID_MPEG_VIDEO_REPEAT_SEQ_HEADER."""
UNUSABLE = 0x0001 | 0x0004  # V4L2_CTRL_FLAG_DISABLED, V4L2_CTRL_FLAG_READ_ONLY


def query(fd: int, control: int) -> Query | None:
    """Return the range of a control; None if the device lacks it."""
    request = Query(id=control)
    try:
        fcntl.ioctl(fd, QUERYCTRL, request)
    except OSError:
        return None
    return None if request.flags & UNUSABLE else request


def put(fd: int, control: int, value: int) -> bool:
    """Set a control, clamped to its range; False if the device lacks it."""
    limits = query(fd, control)
    if limits is None:
        return False
    try:
        fcntl.ioctl(fd, S_CTRL, Control(control, min(max(value, limits.least), limits.most)))
    except OSError:
        return False
    return True


def put_share(fd: int, control: int, share: float) -> bool:
    """Set a control from -1 (minimum) through 0 (default) to 1 (maximum)."""
    limits = query(fd, control)
    if limits is None:
        return False
    way = limits.most - limits.usual if share > 0.0 else limits.usual - limits.least
    return put(fd, control, limits.usual + round(share * way))

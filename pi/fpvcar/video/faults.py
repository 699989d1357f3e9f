"""Reasons for a missing picture, and the remedy: `cause; next step`. Pure.

The camera's program is restarted after each fault; the next step tells whether that helps.
"""

import errno
import os
import shutil
import signal

from fpvcar.runtime.child_process import signal_name
from fpvcar.runtime.sentences import os_reason, sentence
from fpvcar.video import h264, syntax
from fpvcar.video.h264 import AccessUnit
from fpvcar.video.syntax import Shape, shape_of

LEASH = "setpriv: failed to execute "
SOFTWARE = (
    "the board's H.264 encoder hangs, so the pictures are smaller; switch the car off and on again"
)
"""Fault of a car whose camera uses libx264 instead."""
CHROMA = ("4:0:0", "4:2:0", "4:2:2", "4:4:4")
"""Names of the values of chroma_format_idc."""
SIGNS = (
    ("MP4", 4, b"ftyp"),
    ("MP4", 4, b"moof"),
    ("Matroska", 0, b"\x1a\x45\xdf\xa3"),
    ("FLV", 0, b"FLV"),
    ("AVI", 0, b"RIFF"),
    ("Ogg", 0, b"OggS"),
    ("MJPEG", 0, b"\xff\xd8\xff"),
    ("IVF", 0, b"DKIF"),
    ("YUV4MPEG", 0, b"YUV4MPEG2"),
)
"""Formats by the bytes at an offset, as in file(1)."""
TS_BYTES = 188
"""Bytes of a packet of MPEG-TS; each begins with "G" (ISO/IEC 13818-1, 2.4.3.2)."""
HEVC = (b"\x40\x01", b"\x42\x01", b"\x46\x01")
"""Heads of the VPS, SPS and AUD of H.265; no NAL unit of H.264 begins so."""
KEYS_MOST_S = 4.0
"""Time without a key frame that is reported: a new viewer would wait so long for a picture."""
LINE_S = 2.0
"""Time before an exit within which a line on stderr counts as its reason."""
BEFORE_S = 0.5
"""Time before the last picture within which a line counts as the reason for its end."""
REMEDIES: tuple[tuple[str, str], ...] = (
    ("resource busy", "camera_busy"),
    ("unplugged", "camera_plug"),
    ("No such device", "camera_plug"),
    ("No such file", "camera_path"),
    ("Permission denied", "camera_group"),
    ("not offer", "camera_size"),
    ("expected", "camera_profile"),
)
"""Last words of a program, their meaning, and the key of the next step."""


def not_started(program: str) -> str | None:
    """Return the reason why this program cannot be started; None if it can be tried."""
    if shutil.which(program) is not None:
        return None
    if (path := shutil.which(program, os.F_OK)) is not None:
        return sentence("camera_not_executable", path=path)
    return sentence("camera_no_program", program=program)


def refused(program: str, fault: OSError) -> str:
    """Describe a start refused by the kernel."""
    cause = sentence("camera_refused", program=program, reason=os_reason(fault))
    return _fault(cause, "camera_processor" if fault.errno == errno.ENOEXEC else "camera_whole")


def exited(status: int, line: str) -> str:
    """Describe an exit. `line`: the last recent line on stderr, or empty."""
    if status < 0:
        return _killed(-status)
    if status == 0:
        return _fault(sentence("camera_ended"), "camera_again")
    if line.startswith(LEASH):
        step = sentence("camera_whole")
        return sentence("both", first=line.removeprefix(LEASH), second=step)
    if not line:
        return _fault(sentence("camera_exited_mute", status=status), "camera_by_hand")
    return _with_remedy(sentence("camera_exited", status=status), line, "camera_by_hand")


def _killed(number: int) -> str:
    step = "camera_memory" if number == signal.SIGKILL else "camera_again"
    return _fault(sentence("camera_killed", signal=signal_name(number)), step)


def silent(seconds: float, line: str, ever: bool, encoder: bool = False) -> str:
    """Describe a silence of bytes or pictures; `ever`: there were some before; `encoder`: earlier
    starts were silent with the board's encoder."""
    cause = sentence("camera_silent" if ever else "camera_never", seconds=f"{seconds:g}")
    return _with_remedy(cause, line, "camera_off_on" if encoder else "camera_cable")


def no_key_frame() -> str:
    """Describe a stream without an initial key frame."""
    return sentence("camera_no_key")


def rare_keys(seconds: float) -> str:
    """Describe a stream without a key frame for so long."""
    return sentence("camera_rare_keys", seconds=f"{seconds:g}")


def foreign_format(head: bytes) -> str:
    """Return the fault of a plain program whose output begins like another format than Annex B;
    empty if it does not."""
    names = (name for name, at, sign in SIGNS if head[at : at + len(sign)] == sign)
    name = next(names, "")
    if head[:1] == b"G" and head[TS_BYTES : TS_BYTES + 1] == b"G":
        name = "MPEG-TS"
    start = head.find(h264.START_CODE, 0, 4) + len(h264.START_CODE)
    if head[start : start + 2] in HEVC and head.startswith(b"\0\0"):
        name = "H.265"
    return sentence("camera_format", format=name) if name else ""


class CodingCheck:
    """Check of the properties of the H.264 of one life of a camera program.

    `refusal`: the pictures are not usable. `warning`: some viewers cannot show them.
    """

    def __init__(self) -> None:
        self.refusal = ""
        self.warning = ""
        self.keyless_s = 0.0
        """Time since the last key frame."""
        self._format, self._sps, self._shape = "", b"", Shape(0, 0)
        self._key_s: float | None = None

    def note(self, unit: AccessUnit, now_s: float) -> None:
        """Process the next unit, received at `now_s`."""
        lead = h264.lead_of(unit.data)
        if unit.key or self._key_s is None:
            self._key_s = now_s
            self._check_format(lead)
        if lead and lead[-1][0] & 31 in h264.SLICES:
            if syntax.is_b_slice(lead[-1]):
                self.refusal = sentence("camera_b_frames")
            elif syntax.is_field(lead[-1], self._shape):
                self.refusal = sentence("camera_fields")
        self.keyless_s = now_s - self._key_s
        keys = rare_keys(KEYS_MOST_S) if self.keyless_s > KEYS_MOST_S else ""
        self.warning = self._format or keys

    def _check_format(self, lead: list[bytes]) -> None:
        sps = next((nal for nal in lead if nal[0] & 31 == h264.SPS), self._sps)
        if sps == self._sps:
            return
        self._sps, self._format = sps, ""
        try:
            self._shape = shape = shape_of(sps)
        except ValueError:
            return
        bits = 8 + max(shape.luma_more, shape.chroma_more)
        if shape.chroma > 1 or bits > 8:
            chroma = CHROMA[min(shape.chroma, 3)]
            self._format = sentence("camera_samples", chroma=chroma, bits=bits)
        elif shape.number_bits:
            self._format = sentence("camera_fields")


def garbage(cause: str) -> str:
    """Describe bytes that are not records."""
    return _fault(sentence("camera_garbage", reason=cause), "camera_again")


def closed() -> str:
    """Describe a program that runs on after closing its stdout."""
    return _fault(sentence("camera_closed"), "camera_again")


def _fault(cause: str, step: str) -> str:
    return sentence("both", first=cause, second=sentence(step))


def _with_remedy(cause: str, line: str, usual: str) -> str:
    """Return a cause and a program's words with the next step, unless they contain one."""
    line = line.removeprefix("camera: ")
    if line:
        cause = sentence("says", place=cause, reason=line)
    if ";" in line:
        return cause
    steps = (step for sign, step in REMEDIES if sign.lower() in cause.lower())
    return _fault(cause, next(steps, usual))

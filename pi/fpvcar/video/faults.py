"""Reasons for a missing picture, and the remedy: `cause; next step`. Pure.

The camera's program is restarted after each fault; the next step tells whether that helps.
"""

import errno
import os
import shutil
import signal

from fpvcar.runtime.child_process import EXITED, KILLED, SILENT, signal_name
from fpvcar.runtime.texts import BOTH, SAYS, VERBATIM, Phrase, Text, os_reason
from fpvcar.video import h264, syntax
from fpvcar.video.h264 import AccessUnit
from fpvcar.video.syntax import Shape, shape_of

CAMERA_NO_PROGRAM = Phrase(
    "camera_no_program", "no program {program}; install it, or correct camera.command"
)
CAMERA_REFUSED = Phrase("camera_refused", "{program} cannot be started: {reason}")
CAMERA_NO_KEY = Text(
    "camera_no_key",
    "its program sends no H.264 key frame; it needs plain H.264 (Annex B) on stdout, with a "
    "key frame each second (ffmpeg: -c:v libx264 -g 30 -f h264)",
)
CAMERA_RARE_KEYS = Phrase(
    "camera_rare_keys",
    "no H.264 key frame for {seconds} s, so a new page waits for its picture; make its "
    "encoder send one each second (ffmpeg: -g 30)",
)
CAMERA_FORMAT = Phrase(
    "camera_format",
    "its program sends {format}; it needs plain H.264 (Annex B) on stdout (ffmpeg: -c:v "
    "libx264 -f h264)",
)
CAMERA_EXITED_MUTE = Phrase(
    "camera_exited_mute", "its program ended with status {status} and printed nothing"
)
CAMERA_SAMPLES = Phrase(
    "camera_samples",
    "its H.264 has {chroma} samples of {bits} bits, which few browsers show; make its "
    "encoder use 4:2:0 and 8 bits (ffmpeg: -pix_fmt yuv420p)",
)
CAMERA_B_FRAMES = Text(
    "camera_b_frames",
    "its H.264 has B-frames, which are late and out of order; switch them off (ffmpeg: -bf 0)",
)

FIELDS = Text(
    "camera_fields",
    "its H.264 is interlaced, which browsers show in stripes; make it "
    "progressive (ffmpeg: -vf yadif)",
)

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
AGAIN = Text("camera_again", "it is started again")
MEMORY = Text("camera_memory", "it is started again; if that was not on purpose, memory is short")
BY_HAND = Text("camera_by_hand", "start it by hand to see why")
WHOLE = Text("camera_whole", "check that it is complete and its interpreter installed")
PROCESSOR = Text("camera_processor", "it is for another processor, or lacks its #! line")
CABLE = Text("camera_cable", "it is started again; if that repeats, check its cable")
OFF_ON = Text("camera_off_on", "switch the car off and on again; if that repeats, check its cable")
PLUG = Text("camera_plug", "plug the camera in")
REMEDIES = (
    ("resource busy", Text("camera_busy", "end the other program that has the camera")),
    ("unplugged", PLUG),
    ("No such device", PLUG),
    ("No such file", Text("camera_path", "correct the path, or plug the camera in")),
    ("Permission denied", Text("camera_group", "sudo usermod -aG video USER, then log in again")),
    ("not offer", Text("camera_size", "choose a size and rate that the camera supports")),
    ("expected", Text("camera_profile", "correct [camera] of the profile")),
)
"""Last words of a program, and the next step."""
NEVER = Phrase("camera_never", "it has sent nothing since its start, {seconds} s ago")


def not_started(program: str) -> Text | None:
    """Return the reason why this program cannot be started; None if it can be tried."""
    if shutil.which(program) is not None:
        return None
    if (path := shutil.which(program, os.F_OK)) is not None:
        return Text("camera_not_executable", "{path} is not executable; chmod +x {path}", path=path)
    return CAMERA_NO_PROGRAM(program=program)


def refused(program: str, fault: OSError) -> Text:
    """Describe a start refused by the kernel."""
    cause = CAMERA_REFUSED(program=program, reason=os_reason(fault))
    return _fault(cause, PROCESSOR if fault.errno == errno.ENOEXEC else WHOLE)


def exited(status: int, line: Text | None) -> Text:
    """Describe an exit. `line`: the last recent line on stderr."""
    if status < 0:
        return _killed(-status)
    if status == 0:
        return _fault(Text("camera_ended", "its program ended by itself"), AGAIN)
    if line is None:
        return _fault(CAMERA_EXITED_MUTE(status=status), BY_HAND)
    if str(line).startswith(LEASH):
        return _fault(VERBATIM(text=str(line).removeprefix(LEASH)), WHOLE)
    return _with_remedy(EXITED(status=status), line, BY_HAND)


def _killed(number: int) -> Text:
    step = MEMORY if number == signal.SIGKILL else AGAIN
    return _fault(KILLED(signal=signal_name(number)), step)


def silent(seconds: float, line: Text | None, ever: bool, encoder: bool = False) -> Text:
    """Describe a silence of bytes or pictures; `ever`: there were some before; `encoder`: earlier
    starts were silent with the board's encoder."""
    cause = (SILENT if ever else NEVER)(seconds=f"{seconds:g}")
    return _with_remedy(cause, line, OFF_ON if encoder else CABLE)


def no_key_frame() -> Text:
    """Describe a stream without an initial key frame."""
    return CAMERA_NO_KEY


def rare_keys(seconds: float) -> Text:
    """Describe a stream without a key frame for so long."""
    return CAMERA_RARE_KEYS(seconds=f"{seconds:g}")


def foreign_format(head: bytes) -> Text | None:
    """Return the fault of a plain program whose output begins like another format than Annex B."""
    names = (name for name, at, sign in SIGNS if head[at : at + len(sign)] == sign)
    name = next(names, "")
    if head[:1] == b"G" and head[TS_BYTES : TS_BYTES + 1] == b"G":
        name = "MPEG-TS"
    start = head.find(h264.START_CODE, 0, 4) + len(h264.START_CODE)
    if head[start : start + 2] in HEVC and head.startswith(b"\0\0"):
        name = "H.265"
    if not name:
        return None
    return CAMERA_FORMAT(format=name)


class CodingCheck:
    """Check of the properties of the H.264 of one life of a camera program.

    `refusal`: the pictures are not usable. `warning`: some viewers cannot show them.
    """

    def __init__(self) -> None:
        self.refusal: Text | None = None
        self.warning: Text | None = None
        self.keyless_s = 0.0
        """Time since the last key frame."""
        self._format: Text | None = None
        self._sps, self._shape = b"", Shape(0, 0)
        self._key_s: float | None = None

    def note(self, unit: AccessUnit, now_s: float) -> None:
        """Process the next unit, received at `now_s`."""
        lead = h264.lead_of(unit.data)
        if unit.key or self._key_s is None:
            self._key_s = now_s
            self._check_format(lead)
        if lead and lead[-1][0] & 31 in h264.SLICES:
            if syntax.is_b_slice(lead[-1]):
                self.refusal = CAMERA_B_FRAMES
            elif syntax.is_field(lead[-1], self._shape):
                self.refusal = FIELDS
        self.keyless_s = now_s - self._key_s
        keys = rare_keys(KEYS_MOST_S) if self.keyless_s > KEYS_MOST_S else None
        self.warning = self._format or keys

    def _check_format(self, lead: list[bytes]) -> None:
        sps = next((nal for nal in lead if nal[0] & 31 == h264.SPS), self._sps)
        if sps == self._sps:
            return
        self._sps, self._format = sps, None
        try:
            self._shape = shape = shape_of(sps)
        except ValueError:
            return
        bits = 8 + max(shape.luma_more, shape.chroma_more)
        if shape.chroma > 1 or bits > 8:
            chroma = CHROMA[min(shape.chroma, 3)]
            self._format = CAMERA_SAMPLES(chroma=chroma, bits=bits)
        elif shape.number_bits:
            self._format = FIELDS


def garbage(cause: Exception) -> Text:
    """Describe bytes that are not records."""
    return _fault(
        Text("camera_garbage", "its program does not send valid H.264 ({reason})", reason=cause),
        AGAIN,
    )


def closed() -> Text:
    """Describe a program that runs on after closing its stdout."""
    return _fault(Text("camera_closed", "its program closed its output"), AGAIN)


def _fault(cause: Text, step: Text) -> Text:
    return BOTH(first=cause, second=step)


def _with_remedy(cause: Text, line: Text | None, usual: Text) -> Text:
    """Return a cause and a program's words with the next step, unless they contain one."""
    if line is not None:
        if line.key == VERBATIM.key:
            line = VERBATIM(text=str(line).removeprefix("camera: "))
        cause = SAYS(place=cause, reason=line)
        if ";" in str(line):
            return cause
    words = str(cause).lower()
    steps = (step for sign, step in REMEDIES if sign.lower() in words)
    return _fault(cause, next(steps, usual))

"""A simulated kernel that lacks a call, or grants less, for a process and its children."""

import ctypes
import errno
import os
import platform
import struct
from collections.abc import Callable

OPENAT = {"x86_64": 257, "aarch64": 56}.get(platform.machine(), 322)  # the default is 32-bit ARM
TMPFILE = os.O_TMPFILE & ~os.O_DIRECTORY
PR_SET_SECCOMP, PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS = 22, 24, 38
CAP_CHOWN, CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH = range(3)
SECCOMP_MODE_FILTER = 2
LOAD, EQUAL, ANY_BIT, RETURN = 0x20, 0x15, 0x45, 0x06  # <linux/bpf_common.h>
ALLOW, ERRNO = 0x7FFF0000, 0x00050000
_libc = ctypes.CDLL(None, use_errno=True)


def without(call: int, why: int = errno.ENOSYS, flags: int = 0) -> Callable[[], None]:
    """Return a function for `preexec_fn` that makes a call fail, with `flags` only if its third
    argument has them."""
    rows = [
        (LOAD, 0, 0, 0),  # the call's number
        (EQUAL, 0, 3 if flags else 1, call),
        *([(LOAD, 0, 0, 32), (ANY_BIT, 0, 1, flags)] if flags else []),  # argument 2
        (RETURN, 0, 0, ERRNO | why),
        (RETURN, 0, 0, ALLOW),
    ]
    program = b"".join(struct.pack("=HBBI", *row) for row in rows)

    def apply() -> None:
        code = ctypes.create_string_buffer(program)
        head = struct.pack("@HP", len(rows), ctypes.addressof(code))
        _libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        if _libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, head):
            raise OSError(ctypes.get_errno(), "seccomp")

    return apply


def without_capability(number: int) -> Callable[[], None]:
    """Return a function for `preexec_fn` that takes one capability from root."""

    def apply() -> None:
        if _libc.prctl(PR_CAPBSET_DROP, number, 0, 0, 0):
            raise OSError(ctypes.get_errno(), "prctl")

    return apply

"""Memory locking: keeps a process with real-time duties out of swap."""

import ctypes
import os

MCL_CURRENT, MCL_FUTURE, MCL_ONFAULT = 1, 2, 4  # <sys/mman.h>


def lock() -> str | None:
    """Lock the memory of this process, and each page that it touches later.

    A page is locked when it is used (MCL_ONFAULT): locking all mapped pages would double the memory
    of an interpreter. Returns None, or the reason of a failure: a process that lacks CAP_IPC_LOCK
    may lock RLIMIT_MEMLOCK only.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mlockall(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT) == 0:
        return None
    return os.strerror(ctypes.get_errno())

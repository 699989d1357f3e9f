"""Keeps a process that must react in time out of swap."""

import ctypes
import os

MCL_CURRENT, MCL_FUTURE, MCL_ONFAULT = 1, 2, 4  # <sys/mman.h>


def lock() -> str | None:
    """Locks what this process has in memory, and each page that it touches later.

    A page is locked when it is used (MCL_ONFAULT): locking all that is mapped would
    double the memory of an interpreter. None, or why it could not: without
    CAP_IPC_LOCK a user may lock RLIMIT_MEMLOCK only.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mlockall(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT) == 0:
        return None
    return os.strerror(ctypes.get_errno())

"""Copies onto file systems that keep coarse times and no modes, as vfat, exfat and an old ext3 do:
a library changes the calls of the far rdcp, because few kernels of build machines have all of them.
"""

import os
import subprocess
from pathlib import Path

import pytest
from testkit.network.pipes import SLOWNESS

from tests.rdma.near import Near

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(SLOWNESS > 1, reason="a sanitizer has to be the first library"),
]
LIBRARY = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/stat.h>

int futimens(int fd, const struct timespec given[2])
{
    struct timespec kept[2] = {given[0], given[1]};
    long step = atol(getenv("STEP_MS")), least_ms = 315532800000; /* 1980 */
    for (int i = 0; given && i < 2; i++) {
        long ms = kept[i].tv_sec * 1000 + kept[i].tv_nsec / 1000000;
        ms = ms < least_ms ? least_ms : ms - ms % step;
        kept[i] = (struct timespec){ms / 1000, ms % 1000 * 1000000};
    }
    int (*next)(int, const struct timespec *) = dlsym(RTLD_NEXT, "futimens");
    return next(fd, given ? kept : NULL);
}

int fchmod(int fd, mode_t mode)
{
    (void)fd, (void)mode;
    errno = EPERM;
    return -1;
}

int openat64(int folder, const char *path, int flags, ...)
{
    va_list more;
    va_start(more, flags);
    mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(more, mode_t) : 0;
    va_end(more);
    int (*next)(int, const char *, int, mode_t) = dlsym(RTLD_NEXT, "openat64");
    errno = EOPNOTSUPP;
    return (flags & O_TMPFILE) == O_TMPFILE ? -1 : next(folder, path, flags, mode);
}
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    source = tmp_path_factory.mktemp("library") / "coarse.c"
    source.write_text(LIBRARY)
    built = source.with_suffix(".so")
    words = ["cc", "-shared", "-fPIC", "-D_FILE_OFFSET_BITS=64", "-o"]
    subprocess.run([*words, str(built), str(source), "-ldl"], check=True)
    return built


def make_tree(folder: Path) -> None:
    (folder / "deep").mkdir(parents=True)
    for number in range(6):
        path = folder / "deep" / f"f{number}"
        path.write_bytes(os.urandom(1000))
        path.chmod(0o640 if number % 2 else 0o755)
        ns = (1_795_000_000 + number) * 10**9 + number * 111_111_111
        os.utime(path, ns=(ns, ns))
    (folder / "old").write_bytes(b"old")
    os.utime(folder / "old", (1, 1))  # vfat begins in 1980
    (folder / "big").write_bytes(os.urandom(2_000_000))


@pytest.mark.parametrize("step_ms", [2000, 1000, 10])
def test_copy_is_not_repeated(near: Near, library: Path, step_ms: int) -> None:
    tools = near(f"export LD_PRELOAD='{library}' STEP_MS={step_ms}\n")
    source, target = tools.place / "from", tools.place / "to"
    make_tree(source)
    target.mkdir()

    def copied() -> bytes:
        ended = tools.run("rdcp", "-v", "-r", f"{source}/.", f"host1:{target}")
        assert ended.returncode == 0, ended.stderr
        lines = ended.stderr.splitlines()
        return next(line for line in lines if line.startswith(b"rdcp: ") and b"already" in line)

    assert copied() == b"rdcp: 8 files, 2006003 bytes, 0 there already"
    assert copied() == b"rdcp: 0 files, 0 bytes, 8 there already"
    changed = source / "deep" / "f3"
    changed.write_bytes(os.urandom(1000))  # the same size
    assert copied() == b"rdcp: 1 files, 1000 bytes, 7 there already"
    assert (target / "deep" / "f3").read_bytes() == changed.read_bytes()
    assert {path.name for path in target.rglob("*")} == {path.name for path in source.rglob("*")}


def test_change_within_a_second_is_copied_to_a_fine_system(near: Near) -> None:
    tools = near()
    for name, ns in (("from", 10**18 + 500_000_000), ("to", 10**18)):
        (tools.place / name).write_bytes(name[:2].encode())
        os.utime(tools.place / name, ns=(ns, ns))
    ended = tools.run("rdcp", "from", "host1:to")
    assert (ended.returncode, ended.stderr) == (0, b"")
    assert (tools.place / "to").read_bytes() == b"fr"

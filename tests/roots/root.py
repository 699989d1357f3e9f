"""A Debian in a folder, made once, and programs run in it.

The folder lies in the user's cache folder; its name follows from its contents. The packages are
unpacked. They are configured only if the processor is this computer's and `variant` is "apt": no
program of another processor can run for that.
"""

import fcntl
import hashlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.guest.image import cache

TREE = Path(__file__).resolve().parents[2]
ENTER, DISCARD = (Path(__file__).with_name(f"{n}.sh") for n in ("enter", "discard"))
BASE = ("base-files", "base-passwd", "coreutils", "dash", "procps")
BUILD_S = 900.0
KEEP = 12
"""Number of roots of older recipes that stay, because other branches use theirs."""


@dataclass(frozen=True)
class Root:
    """A folder to change into."""

    folder: Path

    def run(
        self, share: Path, *words: str, timeout_s: float, check: bool = True
    ) -> subprocess.CompletedProcess[str]:
        """Run a program in /mnt, where `share` is mounted, without a network except loopback."""
        words = (
            "unshare",
            "--user",
            "--map-root-user",
            "--mount",
            "--pid",
            "--net",
            "--fork",
            "--kill-child",
            "--mount-proc",
            str(ENTER),
            str(self.folder),
            str(share),
            *words,
        )
        try:
            done = subprocess.run(
                words,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                timeout=timeout_s,
            )
        except subprocess.TimeoutExpired as late:
            said = (late.output or b"").decode(errors="replace")
            raise AssertionError(f"{late}, and said\n{said[-8000:]}") from None
        assert not check or done.returncode == 0, done.stdout[-8000:]
        return done

    def discard(self, share: Path, *words: str, timeout_s: float) -> str:
        """Run a program as this computer's root, with its network; return its output.

        Its writes are discarded afterwards. `share`, at /mnt, is read only.
        """
        done = subprocess.run(
            [
                "unshare",
                "--mount",
                "--pid",
                "--fork",
                "--kill-child",
                "--mount-proc",
                DISCARD,
                self.folder,
                share,
                *words,
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=timeout_s,
        )
        assert done.returncode == 0, done.stdout[-8000:]
        return done.stdout


def mirror() -> str:
    """Return the address from which this computer's apt gets Debian's packages."""
    said = subprocess.run(
        ["apt-get", "indextargets", "--format", "$(ORIGIN) $(REPO_URI)"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    debian = [line for line in said.splitlines() if line.startswith("Debian ")]
    return next(line.split()[1] for line in debian if "-security" not in line)


def depends(*packages: str) -> str:
    """Return the dependencies on Debian's packages of some of ours, from debian/control."""
    control = (TREE / "debian" / "control").read_text()
    every: dict[str, None] = {}
    for package in packages:
        (stanza,) = (part for part in control.split("\n\n") if f"Package: {package}\n" in part)
        found = re.search(r"^Depends:((?:.*\n)(?: .*\n)*)", stanza + "\n", re.M)
        assert found is not None, f"{package} depends on nothing"
        every |= dict.fromkeys(" ".join(one.split()) for one in found[1].split(","))
    return ", ".join(one for one in every if "${" not in one)


def place(
    architecture: str,
    depends: str,
    beside: Sequence[str] = (),
    release: str = "trixie",
    variant: str = "extract",
) -> Path:
    """Return the folder in which root() places this root, whether it exists or not."""
    recipe = "\n".join([architecture, depends, *BASE, *beside, release, variant])
    name = hashlib.sha256(recipe.encode()).hexdigest()[:16]
    return cache().parent / "roots" / name


def root(
    architecture: str,
    depends: str,
    beside: Sequence[str] = (),
    release: str = "trixie",
    variant: str = "extract",
) -> Root:
    """Return the root with exactly these dependencies, and `beside`; make it if missing."""
    folder = place(architecture, depends, beside, release, variant)
    roots = folder.parent
    roots.mkdir(parents=True, exist_ok=True)
    with (roots / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.is_dir():
            made = sorted(
                (one for one in roots.iterdir() if one.is_dir()),
                key=lambda one: one.stat().st_mtime,
            )
            for old in made[:-KEEP]:
                shutil.rmtree(old)
            _build(folder, architecture, depends, beside, release, variant)
        return Root(folder)


def _build(
    folder: Path, architecture: str, depends: str, beside: Sequence[str], release: str, variant: str
) -> None:
    begin_s = time.monotonic()
    print(f"  root: {release} for {architecture}, into {folder}", file=sys.stderr)
    with tempfile.TemporaryDirectory(dir=folder.parent) as temporary:
        made, repository = Path(temporary) / "root", Path(temporary) / "repository"
        _package(repository, depends)
        names = ",".join(["wanted", *BASE, *beside])
        done = subprocess.run(
            [
                "mmdebstrap",
                "--quiet",
                f"--variant={variant}",
                f"--architectures={architecture}",
                f"--include={names}",
                '--aptopt=APT::Install-Recommends "false"',
                release,
                made,
                f"deb {mirror()} {release} main",
                f"deb [trusted=yes] copy:{repository} ./",
            ],
            capture_output=True,
            text=True,
            timeout=BUILD_S,
        )
        if done.returncode:
            raise RuntimeError(f"mmdebstrap: {done.stderr.strip()[-2000:]}")
        if variant == "extract":
            for name in ("passwd", "group"):
                master = made / "usr/share/base-passwd" / f"{name}.master"
                shutil.copy(master, made / "etc" / name)
            (made / "etc/hosts").write_text("127.0.0.1 localhost\n")
            (made / "etc/nsswitch.conf").write_text("hosts: files\n")
        (made / "mnt").mkdir(exist_ok=True)
        made.rename(folder)
    print(f"  root: made in {time.monotonic() - begin_s:.0f} s", file=sys.stderr)


def _package(repository: Path, depends: str) -> None:
    """Build a package that has only dependencies, so that apt chooses for it as for ours."""
    control = repository / "wanted" / "DEBIAN" / "control"
    control.parent.mkdir(parents=True)
    control.write_text(
        "Package: wanted\nVersion: 0\nArchitecture: all\nMaintainer: us <us@here>\n"
        f"Depends: {depends}\nDescription: what a package of ours depends on\n"
    )
    subprocess.run(
        ["dpkg-deb", "--build", "wanted", "wanted.deb"],
        cwd=repository,
        check=True,
        capture_output=True,
    )
    shutil.rmtree(repository / "wanted")
    listed = subprocess.run(
        ["dpkg-scanpackages", "."], cwd=repository, check=True, capture_output=True
    )
    (repository / "Packages").write_bytes(listed.stdout)

"""A Debian in a folder, made once, and programs run in it.

The packages are unpacked. They are configured only if the processor is this computer's and
`variant` is "apt": no program of another processor can run for that.
"""

import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from testkit.prepared import Prepared, build

TREE = Path(__file__).resolve().parents[2]
ENTER, DISCARD = (Path(__file__).with_name(f"{n}.sh") for n in ("enter", "discard"))
BASE = ("base-files", "base-passwd", "coreutils", "dash", "procps")
BUILD_S = 900.0


@dataclass(frozen=True)
class Root(Prepared):
    """A Debian with exactly these dependencies, and `beside`: a folder to change into."""

    architecture: str
    depends: str
    beside: tuple[str, ...] = ()
    release: str = "trixie"
    variant: str = "extract"
    kind = "roots"
    sealed = "usr"
    takes_s = 30.0

    @property
    def title(self) -> str:
        """The words of a progress line."""
        return f"Debian {self.release} for {self.architecture}"

    def recipe(self) -> str:
        """Return all parameters."""
        words = [self.architecture, self.depends, *BASE, *self.beside, self.release, self.variant]
        return "\n".join(words)

    def fill(self, folder: Path) -> None:
        """Unpack the packages, and configure them for the variant "apt"."""
        repository = folder.parent / "repository"
        _package(repository, self.depends)
        build(
            [
                "mmdebstrap",
                "--quiet",
                f"--variant={self.variant}",
                f"--architectures={self.architecture}",
                f"--include={','.join(['wanted', *BASE, *self.beside])}",
                '--aptopt=APT::Install-Recommends "false"',
                self.release,
                folder,
                f"deb {mirror()} {self.release} main",
                f"deb [trusted=yes] copy:{repository} ./",
            ],
            BUILD_S,
        )
        if self.variant == "extract":
            for name in ("passwd", "group"):
                master = folder / "usr/share/base-passwd" / f"{name}.master"
                shutil.copy(master, folder / "etc" / name)
            (folder / "etc/hosts").write_text("127.0.0.1 localhost\n")
            (folder / "etc/nsswitch.conf").write_text("hosts: files\n")
        (folder / "mnt").mkdir(exist_ok=True)

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

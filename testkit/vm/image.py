"""The images of the VMs: a kernel, an initrd and a root file system, made by mmdebstrap."""

import hashlib
from dataclasses import dataclass
from pathlib import Path

import pytest

from testkit.prepared import Prepared, build

HERE = Path(__file__).parent
BUILD_S = 900.0


def host_release() -> str:
    """Return the code name of the host's Debian release."""
    words = dict(
        line.split("=", 1)
        for line in Path("/etc/os-release").read_text().splitlines()
        if "=" in line
    )
    return words["VERSION_CODENAME"].strip('"')


@dataclass(frozen=True)
class Recipe(Prepared):
    """An image of a folder's packages.txt, system.sh and the files that it needs, and a release.

    With a `base`, both continue after those of the base: its system.sh runs first.
    """

    source: Path
    release: str
    base: "Recipe | None" = None
    kind = "vm"
    takes_s = 60.0

    @property
    def title(self) -> str:
        """The words of a progress line."""
        return f"QEMU image of tests/{self.source.name}"

    def packages(self) -> list[str]:
        lines = (self.source / "packages.txt").read_text().splitlines()
        names = [line for line in lines if line and line[0] != "#"]
        return (self.base.packages() if self.base else []) + names

    def sources(self) -> list[Path]:
        """Return the folders of the base, then its own."""
        return [*(self.base.sources() if self.base else ()), self.source]

    def recipe(self) -> str:
        """Return the release and a digest of each file."""
        files = [HERE / "customize.sh"]
        for source in self.sources():
            files += [source / name for name in ("packages.txt", "system.sh", "init.sh")]
        parts = [hashlib.sha256(file.read_bytes()).hexdigest() for file in files if file.exists()]
        return " ".join([self.release, *parts])

    def fill(self, folder: Path) -> None:
        """Make keys, kernel, initrd and root."""
        folder.mkdir()
        for key in ("user_key", "host_key"):
            build(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / key], 60.0)
        hook = f'sh "{HERE}/customize.sh" "$1" "{folder}"'
        for part in self.sources():
            hook += f' "{part}"'
        build(
            [
                "mmdebstrap",
                "--quiet",
                "--variant=essential",
                "--format=null",
                f"--include={','.join(self.packages())}",
                f"--customize-hook={hook}",
                self.release,
                "/dev/null",
            ],
            BUILD_S,
            {"INITRD": "No"},
        )
        host_key = (folder / "host_key.pub").read_text()
        (folder / "known_hosts").write_text(f"vm {host_key}")


PIPES = Recipe(HERE, host_release())
"""VMs of the pipe tools run programs of the host, so they have the host's release."""


@dataclass(frozen=True)
class Image:
    folder: Path

    @property
    def kernel(self) -> Path:
        """Debian's kernel, compressed as packaged."""
        return self.folder / "vmlinuz"

    @property
    def version(self) -> str:
        """Release of the kernel, as of `uname -r`."""
        return (self.folder / "version").read_text().strip()

    @property
    def initrd(self) -> Path:
        """Image that loads the modules for the root file system, and mounts it."""
        return self.folder / "initrd"

    @property
    def root(self) -> Path:
        """Root file system, ext4, never written to: a VM's writes end with the VM."""
        return self.folder / "root.ext4"

    @property
    def key(self) -> Path:
        """Private key that the VM's sshd accepts."""
        return self.folder / "user_key"

    @property
    def known_hosts(self) -> Path:
        """File with the VM's own host key."""
        return self.folder / "known_hosts"


def image(recipe: Recipe = PIPES) -> Image:
    """Return the image of a recipe. Raises FileNotFoundError if it was not made."""
    return Image(recipe.folder)


def long_marks(*prepared: Prepared) -> list[pytest.MarkDecorator]:
    """Return the marks of tests in VMs that only `make soak` runs."""
    mark = pytest.mark
    return [mark.e2e, mark.vm, mark.needs(*prepared), mark.soak, mark.long]

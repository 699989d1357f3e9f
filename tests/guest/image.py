"""Build the guest's image, once; `python -m tests.guest.image` does it by hand.

The image lies in the user's cache folder. Its name follows from the recipe: a changed recipe makes
a new image, and the old one is deleted once it is unused.
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
BUILD_S = 900.0
KEPT_S = 7 * 24 * 3600.0
"""Images unused for so long are deleted: their recipe has changed."""


def host_release() -> str:
    """Return the code name of the host's Debian release."""
    words = dict(
        line.split("=", 1)
        for line in Path("/etc/os-release").read_text().splitlines()
        if "=" in line
    )
    return words["VERSION_CODENAME"].strip('"')


@dataclass(frozen=True)
class Recipe:
    """A folder's packages.txt, system.sh and the files that it needs, and a release.

    With a `base`, both continue after those of the base: its system.sh runs first.
    """

    folder: Path
    release: str
    base: "Recipe | None" = None

    def packages(self) -> list[str]:
        lines = (self.folder / "packages.txt").read_text().splitlines()
        names = [line for line in lines if line and line[0] != "#"]
        return (self.base.packages() if self.base else []) + names

    def folders(self) -> list[Path]:
        """Return the folders of the base, then its own."""
        return [*(self.base.folders() if self.base else ()), self.folder]

    def name(self) -> str:
        """Return a name that changes with every ingredient of an image."""
        digest = hashlib.sha256(self.release.encode())
        if self.base:
            digest.update(self.base.name().encode())
        for name in ("packages.txt", "system.sh", "init.sh"):
            if (part := self.folder / name).exists():
                digest.update(part.read_bytes())
        digest.update((HERE / "customize.sh").read_bytes())
        return digest.hexdigest()[:16]


PIPES = Recipe(HERE, host_release())
"""Guests of the pipe tools run programs of the host, so they have the host's release."""


@dataclass(frozen=True)
class Image:
    folder: Path

    @property
    def kernel(self) -> Path:
        """Debian's kernel, compressed as packaged."""
        return self.folder / "vmlinuz"

    @property
    def initrd(self) -> Path:
        """Image that loads the modules for the root file system, and mounts it."""
        return self.folder / "initrd"

    @property
    def root(self) -> Path:
        """Root file system, ext4, never written to: a guest's writes end with the guest."""
        return self.folder / "root.ext4"

    @property
    def key(self) -> Path:
        """Private key that the guest's sshd accepts."""
        return self.folder / "user_key"

    @property
    def known_hosts(self) -> Path:
        """File with the guest's own host key."""
        return self.folder / "known_hosts"


def cache() -> Path:
    """Return the folder of the images."""
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "fpvcar" / "guest"


def image(recipe: Recipe = PIPES) -> Image:
    """Return the image of a recipe; build it if missing, and print a line about that."""
    folder = cache() / recipe.name()
    folder.parent.mkdir(parents=True, exist_ok=True)
    with (folder.parent / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.is_dir():
            _build(recipe, folder)
        os.utime(folder)
        for old in folder.parent.iterdir():
            if old.is_dir() and time.time() - old.stat().st_mtime > KEPT_S:
                shutil.rmtree(old)
    return Image(folder)


def _build(recipe: Recipe, folder: Path) -> None:
    begin_s = time.monotonic()
    print(f"  guest: building the image, 1 to 3 minutes, into {folder}", file=sys.stderr)
    with tempfile.TemporaryDirectory(dir=folder.parent) as temporary:
        made = Path(temporary) / "image"
        made.mkdir()
        for key in ("user_key", "host_key"):
            subprocess.run(
                ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", made / key], check=True
            )
        hook = f'sh "{HERE}/customize.sh" "$1" "{made}"'
        for part in recipe.folders():
            hook += f' "{part}"'
        done = subprocess.run(
            [
                "mmdebstrap",
                "--quiet",
                "--variant=essential",
                "--format=null",
                f"--include={','.join(recipe.packages())}",
                f"--customize-hook={hook}",
                recipe.release,
                "/dev/null",
            ],
            env={**os.environ, "INITRD": "No"},
            capture_output=True,
            text=True,
            timeout=BUILD_S,
        )
        if done.returncode:
            raise RuntimeError(f"mmdebstrap: {done.stderr.strip()[-2000:]}")
        host_key = (made / "host_key.pub").read_text()
        (made / "known_hosts").write_text(f"guest {host_key}")
        made.rename(folder)
    print(f"  guest: built in {time.monotonic() - begin_s:.0f} s", file=sys.stderr)


if __name__ == "__main__":
    print(image().folder)

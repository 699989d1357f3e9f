"""Depth camera of the bench: rays into the world as Z16, processed like a real camera's.

Its stdout has the format of depth/process.py. It sees solids (walls, boxes,
ramp, floor) like the world's range sensors, and needs no EGL.
"""

import argparse
import select
import signal
import sys
import time
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray

from fpvbench.soc import Soc, World, attach, peek_world
from fpvbench.world import scene
from fpvcar.depth import image as depth_image
from fpvcar.depth.process import PREVIEW_EVERY_S, stdin_ended, to_stdout
from fpvcar.wire.camera import pack_depth

WIDTH, HEIGHT = 80, 45
FPS = 10.0
FAR_M, NEAR_M = 10.0, 0.2
NOISE = 0.01


class DepthRenderer:
    """Copy of the world without physics: positions only."""

    def __init__(self, seed: int = 1) -> None:
        self._random = np.random.default_rng(seed)
        across = depth_image.D435
        u = np.linspace(across, -across, WIDTH)
        v = np.linspace(across * HEIGHT / WIDTH, -across * HEIGHT / WIDTH, HEIGHT)
        rays = np.stack([np.ones((HEIGHT, WIDTH)), *np.meshgrid(u, v)], axis=-1).reshape(-1, 3)
        self._slant = np.linalg.norm(rays, axis=1)
        self._rays = rays / self._slant[:, None]
        self._geom = np.zeros(len(rays), dtype=np.int32)
        self._far = np.zeros(len(rays))
        self.seed: int | None = None

    def place(self, world: World) -> None:
        """Move everything to its place at the time of the copy."""
        if world.seed != self.seed:
            self.seed = world.seed
            self._model: Any = scene.build(scene.layout(world.seed))
            self._data: Any = mujoco.MjData(self._model)
        if world.nq == self._model.nq:
            self._data.qpos[:] = world.qpos[: world.nq]
        mujoco.mj_kinematics(self._model, self._data)

    def z16(self) -> NDArray[np.uint16]:
        """Return a frame in mm along the axis; 0 for too near, too far, and the sky."""
        body = int(self._model.body("car").id)
        turn = self._data.xmat[body].reshape(3, 3)
        start = self._data.xpos[body] + turn @ np.array((0.12, 0.0, 0.05))
        rays = np.ascontiguousarray(self._rays @ turn.T)
        mujoco.mj_multiRay(
            self._model,
            self._data,
            start,
            rays.reshape(-1),
            None,
            1,
            body,
            self._geom,
            self._far,
            None,
            len(rays),
            FAR_M,
        )
        metres = self._far / self._slant
        metres *= self._random.normal(1.0, NOISE, len(metres))
        in_range = (self._far >= NEAR_M) & (self._far < FAR_M)
        return np.where(in_range, metres * 1000.0, 0.0).astype("<u2").reshape(HEIGHT, WIDTH)


def run(soc: Soc, ended: list[int]) -> None:
    """Render FPS frames per second until stdin ends, stdout closes, or a signal arrives."""
    renderer, due_s, shown_s = DepthRenderer(), time.monotonic(), -1.0
    while not ended and not stdin_ended():
        world = peek_world(soc)
        now_s = time.monotonic()
        if world is not None and world.nq:
            renderer.place(world)
            frame = memoryview(renderer.z16().tobytes())
            small = depth_image.decimated(frame, WIDTH, HEIGHT, 2 * WIDTH)
            picture = b""
            if now_s - shown_s >= PREVIEW_EVERY_S:
                shown_s, picture = now_s, depth_image.png(small)
            nearest_m = depth_image.nearest_m(small)
            to_stdout(pack_depth(nearest_m, round(now_s * 1e6), picture))
        due_s = max(due_s + 1.0 / FPS, time.monotonic())
        select.select([], [], [], max(0.0, due_s - time.monotonic()))


def main(argv: list[str] | None = None) -> int:
    """Run the process until a signal, or until its stdin ends."""
    parser = argparse.ArgumentParser(prog="python -m fpvbench.depth")
    parser.add_argument("--soc", type=Path, required=True)
    options = parser.parse_args(argv)
    ended: list[int] = []
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda received, _: ended.append(received))
    try:
        run(attach(options.soc), ended)
    except BrokenPipeError:
        sys.stderr.close()
    except (OSError, ValueError) as fault:
        print(f"depth: {fault}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())

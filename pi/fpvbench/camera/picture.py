"""Picture sources of the bench camera: the room by MuJoCo, or a test strip.

`take` returns the capture time (CLOCK_MONOTONIC, us) and the picture as yuv420p.
"""

import os
import time
from typing import Any, Protocol

import numpy as np
from av.video.frame import VideoFrame
from numpy.typing import NDArray

from fpvbench.camera import strip
from fpvbench.camera.smooth import Smoother
from fpvbench.soc import Soc, World, peek_world

BLACK_Y, WHITE_Y, NEUTRAL = 16, 235, 128
SEED_UNTIL_KNOWN = 1
LED_SHARE = 0.25
"""Share of the picture's height, as for an LED 10 cm in front of the lens."""


class NoPicture(RuntimeError):
    """Raised when the source cannot work here; the text says how to install it."""


def _no_egl(fault: Exception) -> str:
    reason = " ".join(str(fault).split()) or type(fault).__name__
    return f"no EGL; apt install libegl1 libgl1-mesa-dri libgles2 ({reason})"


class Source(Protocol):
    """Source of pictures with their capture times."""

    def take(self) -> tuple[int, VideoFrame]:
        """Return the capture time in us, and the picture as yuv420p."""
        ...


def now_us() -> int:
    return time.monotonic_ns() // 1000


class Strip:
    """Synthetic picture: a texture that drifts under grain, with the clock above it.

    The grain changes, so that frames are about as large as a real camera's.
    """

    def __init__(self, width: int, height: int) -> None:
        random = np.random.default_rng(1)
        rough = random.integers(50, 190, (height // 16 + 1, 2 * width // 16 + 2))
        wide = rough.repeat(16, 0).repeat(16, 1)[:height, : 2 * width]
        grain = [random.normal(0, 5, wide.shape) for _ in range(4)]
        self._wide = [(wide + noise).astype(np.uint8) for noise in grain]
        self._picture = np.full((height * 3 // 2, width), NEUTRAL, dtype=np.uint8)
        self._size, self._count = (width, height), 0

    def take(self) -> tuple[int, VideoFrame]:
        """Return the next picture; its capture time is the painting of its clock."""
        width, height = self._size
        shift = self._count * 2 % width
        wide = self._wide[self._count % len(self._wide)]
        self._picture[:height] = wide[:, shift : shift + width]
        self._count += 1
        captured = now_us()
        strip.paint(self._picture, captured // 1000, BLACK_Y, WHITE_Y)
        return captured, VideoFrame.from_ndarray(self._picture, format="yuv420p")


class WithLed:
    """Source with an LED of the emulated chip in front of its lens: a bright disc."""

    def __init__(self, source: Source, soc: Soc, gpio: int, size: tuple[int, int]) -> None:
        self._source, self._pin = source, soc.pin[gpio]
        width, height = size
        across, down = np.ogrid[:height, :width][::-1]
        reach = height * LED_SHARE / 2.0
        away = (across - width / 2.0) ** 2 + (down - height / 2.0) ** 2
        self._disc = away < reach**2

    def take(self) -> tuple[int, VideoFrame]:
        """Return a picture with the LED's state at the start of the capture."""
        lit = self._pin.duty() > 0.0
        captured, picture = self._source.take()
        plane = picture.planes[0]
        luma = np.frombuffer(memoryview(plane), dtype=np.uint8)
        rows = luma.reshape(plane.height, plane.line_size)[:, : plane.width]
        rows[self._disc] = WHITE_Y if lit else BLACK_Y
        return captured, picture


class Room:
    """View from the car, rendered by EGL. Raises NoPicture without EGL.

    The world may be late, stopped or restarted: the last known state is shown. `stamp`
    paints the capture time, before rendering, over the upper edge. `view` is the car's camera:
    "driver" or "rear".
    """

    def __init__(
        self, soc: Soc, width: int, height: int, stamp: bool = False, view: str = "driver"
    ) -> None:
        os.environ["MUJOCO_GL"] = "egl"  # read by mujoco at import
        # halves the latency, not the CPU time
        os.environ.setdefault("LP_NUM_THREADS", "2")
        self._soc, self._size, self._stamp, self._view = soc, (width, height), stamp, view
        self._pixels = np.empty((height, width, 3), dtype=np.uint8)
        self._seed: int | None = None
        self._renderer: Any = None
        self._smoother: Smoother | None = None
        state = peek_world(soc)
        self._build(state.seed if state and state.nq else SEED_UNTIL_KNOWN)

    def _build(self, seed: int) -> None:
        try:
            import mujoco
        except (ImportError, AttributeError, RuntimeError) as fault:
            raise NoPicture(_no_egl(fault)) from None
        from fpvbench.world import looks

        width, height = self._size
        model = looks.build(seed, width, height)
        if self._renderer is not None:
            self._renderer.close()
        try:
            self._renderer = mujoco.Renderer(model, height, width)
        except (ImportError, AttributeError, RuntimeError, mujoco.FatalError) as fault:
            raise NoPicture(_no_egl(fault)) from None
        self._mujoco, self._seed = mujoco, seed
        self._model, self._data = model, mujoco.MjData(model)
        self._camera = int(model.camera(self._view).id)
        self._ahead = model.cam_quat[self._camera].copy()

    def take(self) -> tuple[int, VideoFrame]:
        """Copy the world's state (the capture) and render it."""
        state = peek_world(self._soc)
        captured = now_us()
        if state is not None and state.nq:
            self._place(state)
        mujoco, data = self._mujoco, self._data
        mujoco.mj_kinematics(self._model, data)
        mujoco.mj_comPos(self._model, data)
        mujoco.mj_camlight(self._model, data)
        self._renderer.update_scene(data, self._view)
        pixels: NDArray[np.uint8] = self._renderer.render(out=self._pixels)
        if self._stamp:
            strip.paint(pixels, captured // 1000, 0, 255)
        drawn = VideoFrame.from_numpy_buffer(pixels, format="rgb24")
        picture = drawn.reformat(format="yuv420p", interpolation="POINT")
        self._smooth(picture)
        return captured, picture

    def _smooth(self, picture: VideoFrame) -> None:
        plane = picture.planes[0]
        if self._smoother is None:
            self._smoother = Smoother(plane.height, plane.line_size, plane.width)
        luma = np.frombuffer(memoryview(plane), dtype=np.uint8)
        self._smoother.smooth(luma[: plane.height * plane.line_size])

    def _place(self, state: World) -> None:
        if state.seed != self._seed:
            self._build(state.seed)
        if self._view == "driver":
            self._turn(state.pan_rad, state.tilt_rad)
        if state.nq == self._model.nq:
            self._data.qpos[:] = state.qpos[: state.nq]

    def _turn(self, pan_rad: float, tilt_rad: float) -> None:
        """Turn the camera about the car's vertical axis, then about its own horizontal one."""
        mujoco, pan, tilt = self._mujoco, np.zeros(4), np.zeros(4)
        mujoco.mju_axisAngle2Quat(pan, np.array([0.0, 0.0, 1.0]), pan_rad)
        mujoco.mju_axisAngle2Quat(tilt, np.array([1.0, 0.0, 0.0]), tilt_rad)
        mujoco.mju_mulQuat(pan, pan.copy(), self._ahead)
        mujoco.mju_mulQuat(self._model.cam_quat[self._camera], pan, tilt)

"""Second camera: its program runs only while a page watches it.

/ws/video?camera=NAME -> SecondCamera.wanted -> program -> Stream -> viewers
                         no viewer for LINGER_S -> the program ends

Its faults affect neither the first camera nor the service.
"""

import asyncio
import logging
import time

from fpvcar.runtime.service import Part
from fpvcar.seat.feature import Core, Feature
from fpvcar.seat.vehicle import Channel
from fpvcar.video.camera import Camera, argv_of, firmware_encoder
from fpvcar.video.stream import Stream

LINGER_S = 5.0
"""Time without a viewer after which the program ends. A page that reconnects finds it running."""
CHECK_S = 1.0
SMALL_DIVISOR = 4
"""Part of its highest bitrate while it is the driver's small picture."""
log = logging.getLogger("fpvcar.camera")


class SecondCamera:
    """Camera besides the profile's first one, with its own stream."""

    def __init__(self, name: str, camera: Camera, most_bitrate: int) -> None:
        self.name, self._camera = name, camera
        self.stream = Stream(self, most_bitrate, small_divisor=SMALL_DIVISOR)
        camera.units.subscribe(self.stream.publish)
        self.wanted = asyncio.Event()
        """Set for each new viewer."""

    def request_key(self) -> bool:
        """Request a key frame; a program that is about to start begins with one."""
        return self._camera.process is None or self._camera.request_key()

    def set_bitrate(self, bitrate: int) -> bool:
        """Set the bitrate, also of later lives of the program."""
        return self._camera.set_bitrate(bitrate)

    def set_fps(self, most: int) -> bool:
        """Set the most pictures per second, also of later lives of the program."""
        return self._camera.set_fps(most)

    async def run(self) -> None:
        """Run the program while it is watched, for ever."""
        while True:
            await self.wanted.wait()
            self.wanted.clear()
            film = self._camera.film(lambda: bool(self.stream.viewers))
            filming = asyncio.create_task(film)
            try:
                await self._until_unwatched(filming)
            finally:
                filming.cancel()
                (end,) = await asyncio.gather(filming, return_exceptions=True)
                self._camera.rest()
            if isinstance(end, Exception):
                log.error("camera %s failed", self.name, exc_info=end)
                self.wanted.set()
                await asyncio.sleep(LINGER_S)

    async def _until_unwatched(self, filming: "asyncio.Task[None]") -> None:
        """Return when no page has watched for LINGER_S, or when `filming` has failed."""
        watched_s = time.monotonic()
        while time.monotonic() - watched_s < LINGER_S and not filming.done():
            await asyncio.wait([filming], timeout=CHECK_S)
            if self.stream.viewers:
                watched_s = time.monotonic()


def feature(core: Core) -> Feature:
    """Return the second camera of a profile."""
    ((name, camera),) = core.profile.cameras.items()
    argv, framed = argv_of(core.profile, core.soc, camera)
    made = Camera(argv, framed, encoder=firmware_encoder(camera), name=f"camera {name}")
    second = SecondCamera(name, made, camera.bitrate)
    core.cameras.add(name, Channel(made, second.stream, second.wanted))
    return Feature(name="second_camera", parts=(Part("second camera", (second.run,)),))

"""Still of a car's camera: one key frame of /ws/video as a JPEG. It needs the library av."""

import asyncio
import secrets
from fractions import Fraction

import aiohttp

from fpvcar.wire.video import FLAG_KEY, UNIT_MAX_BYTES, VIDEO_HEADER

WITHIN_S = 8.0


async def take_still(client: aiohttp.ClientSession) -> bytes:
    """Return the present picture as a JPEG, seen as a viewer without a code sees it. Raises
    ClientError, TimeoutError, OSError, ValueError."""
    async with asyncio.timeout(WITHIN_S):
        unit = await _key_frame(client)
    return await asyncio.to_thread(jpeg_of, unit)


async def _key_frame(client: aiohttp.ClientSession) -> bytes:
    path = f"/ws/video?id={secrets.token_hex(16)}"
    async with client.ws_connect(path, max_msg_size=UNIT_MAX_BYTES + VIDEO_HEADER.size) as ws:
        async for message in ws:
            data = message.data
            if isinstance(data, bytes) and len(data) > VIDEO_HEADER.size and data[2] & FLAG_KEY:
                return data[VIDEO_HEADER.size :]
    raise ValueError("the car closed its video")


def jpeg_of(unit: bytes) -> bytes:
    """Decode an access unit with a key frame, and encode it as a JPEG. Raises ValueError."""
    import av

    decoder = av.CodecContext.create("h264", "r")
    frames = [*decoder.decode(av.Packet(unit)), *decoder.decode(None)]
    if not frames:
        raise ValueError("the key frame has no picture")
    picture = frames[0].reformat(format="yuvj420p")
    encoder = av.CodecContext.create("mjpeg", "w")
    encoder.width, encoder.height = picture.width, picture.height
    encoder.pix_fmt, encoder.time_base = "yuvj420p", Fraction(1, 25)
    packets = [*encoder.encode(picture), *encoder.encode(None)]
    return b"".join(map(bytes, packets))

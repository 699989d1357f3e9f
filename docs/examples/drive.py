"""Drive a car for a second, count its pictures, and let it stand.

    python3 drive.py http://localhost:8080 DRIVE-CODE

Needs Python 3.11 and aiohttp. docs/reference/wire.md describes each message.
"""

import asyncio
import struct
import sys
import time
import uuid

import aiohttp

HEADER = struct.Struct("<BBBxIQI")  # version, kind, flags, sequence, capture us, length
EVERY_S = 0.04


async def listen(socket, car):
    """Keep the newest message of each kind, and the nonce that wishes return."""
    async for frame in socket:
        message = frame.json()
        car[message["kind"]] = message
        car["seen"] = message.get("nonce", car["seen"])
        if message["kind"] == "error":
            print(message["code"], message["what"], file=sys.stderr)


async def watch(session, url, car, hello):
    """Count pictures; each frame is a header and one H.264 access unit."""
    async with session.ws_connect(url, max_msg_size=0) as socket:
        await socket.send_json(hello)  # the bitrate follows this socket from here on
        async for frame in socket:
            length = HEADER.unpack_from(frame.data)[-1]
            car["pictures"] += len(frame.data) == HEADER.size + length


async def drive(socket, car, throttle, until):
    """Send a wish every 40 ms until `until()`."""
    while not until():
        car["seq"] += 1
        wish = {"kind": "drive", "seq": car["seq"], "t": time.monotonic() * 1000}
        wish |= {"throttle": throttle, "steer": 0.0, "seen": car["seen"]}
        await socket.send_json(wish)
        await asyncio.sleep(EVERY_S)


async def main(url, code):
    car = {"seen": 0, "seq": 0, "pictures": 0, "state": {"role": "", "stop": None}}
    async with aiohttp.ClientSession() as session:
        socket = await session.ws_connect(f"{url}/ws/drive")
        hello = {"kind": "hello", "v": 1, "client": uuid.uuid4().hex, "code": code}
        await socket.send_json(hello)
        tasks = [asyncio.create_task(listen(socket, car))]
        await socket.send_json({"kind": "take"})
        # Neutral wishes arm the car; a STOP waits for `resume` as well.
        await drive(socket, car, 0.0, lambda: car["state"]["role"] == "driver")
        video = f"{url}/ws/video?id={car['welcome']['video']}"
        tasks.append(asyncio.create_task(watch(session, video, car, hello)))
        await socket.send_json({"kind": "resume"})
        await drive(socket, car, 0.0, lambda: car["pictures"])
        await drive(socket, car, 0.0, lambda: car["state"]["stop"] is None)
        end_s = time.monotonic() + 1.0
        await drive(socket, car, 0.3, lambda: time.monotonic() > end_s)
        await drive(socket, car, 0.0, lambda: car["state"]["throttle"] == 0.0)
        await socket.send_json({"kind": "release"})
        for task in tasks:
            task.cancel()
        await socket.close()
    print(f"{car['welcome']['car']}: {car['pictures']} pictures")


if __name__ == "__main__":
    asyncio.run(asyncio.wait_for(main(sys.argv[1].rstrip("/"), sys.argv[2]), 60))

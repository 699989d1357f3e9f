"""Rival as shipped: WebRTC by aiortc, as in its examples. Runs in its own process.

The page offers to receive, the server answers with a track of the bench's strip, in the codec of
fpvcar.
"""

import argparse
import asyncio
import time
from fractions import Fraction

from aiohttp import web
from aiortc import (
    RTCConfiguration,
    RTCPeerConnection,
    RTCRtpSender,
    RTCSessionDescription,
    VideoStreamTrack,
)
from av import VideoFrame

from fpvbench.camera.picture import Strip

CLOCK_HZ = 90_000
PAGE = """<!doctype html><title>WebRTC</title>
<video id="picture" autoplay muted playsinline></video>
<script type="module">
const peer = new RTCPeerConnection();
peer.addTransceiver('video', {direction: 'recvonly'});
peer.ontrack = ({track}) => {
  document.querySelector('#picture').srcObject = new MediaStream([track]);
};
await peer.setLocalDescription();
while (peer.iceGatheringState !== 'complete') {
  await new Promise((done) => peer.addEventListener('icegatheringstatechange', done));
}
const {sdp, type} = peer.localDescription;
const answer = await fetch(location.href, {
  method: 'POST', body: JSON.stringify({sdp, type}),
  headers: {'content-type': 'application/json'},
});
await peer.setRemoteDescription(await answer.json());
window.peer = peer;
</script>
"""


class StripTrack(VideoStreamTrack):
    """Track of the strip at a configurable rate; aiortc's own clock has 30 frames a second."""

    def __init__(self, fps: float) -> None:
        super().__init__()
        self._source, self._period_s = Strip(640, 480), 1.0 / fps
        self._start_s = self._due_s = time.monotonic()

    async def recv(self) -> VideoFrame:
        """Return the next picture, painted at its due time."""
        now_s = time.monotonic()
        await asyncio.sleep(max(0.0, self._due_s - now_s))
        self._due_s = max(self._due_s + self._period_s, now_s)
        _, picture = self._source.take()
        picture.pts = round((time.monotonic() - self._start_s) * CLOCK_HZ)
        picture.time_base = Fraction(1, CLOCK_HZ)
        return picture


class Server:
    """Web server with the page, and a connection for each offer."""

    def __init__(self, fps: float) -> None:
        self._fps = fps
        self._peers: set[RTCPeerConnection] = set()

    async def page(self, request: web.Request) -> web.Response:
        """Serve the page of the receiver."""
        return web.Response(text=PAGE, content_type="text/html")

    async def offer(self, request: web.Request) -> web.Response:
        """Answer an offer with the track."""
        peer = RTCPeerConnection(RTCConfiguration(iceServers=[]))
        self._peers.add(peer)
        offer = await request.json()
        sender = peer.addTrack(StripTrack(self._fps))
        codecs = RTCRtpSender.getCapabilities("video").codecs
        (way,) = (way for way in peer.getTransceivers() if way.sender is sender)
        way.setCodecPreferences([c for c in codecs if c.mimeType == "video/H264"])
        await peer.setRemoteDescription(RTCSessionDescription(**offer))
        await peer.setLocalDescription(await peer.createAnswer())
        local = peer.localDescription
        return web.json_response({"sdp": local.sdp, "type": local.type})

    async def close(self, app: web.Application) -> None:
        """End all connections of the server."""
        await asyncio.gather(*(peer.close() for peer in self._peers))


def main() -> None:
    """Serve until the process is killed."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--fps", type=float, required=True)
    parser.add_argument("--host", required=True)
    options = parser.parse_args()
    server, app = Server(options.fps), web.Application()
    app.router.add_get("/", server.page)
    app.router.add_post("/", server.offer)
    app.on_shutdown.append(server.close)
    web.run_app(app, host=options.host, port=options.port, print=None)


if __name__ == "__main__":
    main()

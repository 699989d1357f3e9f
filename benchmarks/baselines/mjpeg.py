"""First baseline: multipart MJPEG, the common method of Pi cars. Runs in its own process.

    /recipe   "Web streaming" of picamera's documentation (advanced recipes), the source of
              most Pi cars: a picture is sent when the next one begins
    /example  picamera2's examples/mjpeg_server.py: sent when it is complete

Both write each part as boundary, headers, picture; browsers show a part when the headers of the
next one arrive. The camera is the bench's strip; its JPEG encoder adds no delay.
"""

import argparse
import threading
import time
from collections.abc import Callable
from fractions import Fraction
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import av
from av.video.codeccontext import VideoCodecContext

from fpvbench.camera.picture import Strip

QUALITY = 2
"""Quantiser of ffmpeg: 60 to 75 kB a picture, picamera's 17 Mbit/s."""
PAGE = b'<!doctype html><title>MJPEG</title><img id="picture" src="%s">'
SOI = b"\xff\xd8"


class Recipe:
    """Output of a camera. A start-of-image marker sends the previous picture."""

    def __init__(self) -> None:
        self.condition = threading.Condition()
        self.frame = b""
        self._open = b""

    def write(self, data: bytes) -> None:
        """Take one write of the camera."""
        if data.startswith(SOI):
            self._hand_on(self._open)
            self._open = b""
        self._open += data

    def _hand_on(self, frame: bytes) -> None:
        with self.condition:
            self.frame = frame
            self.condition.notify_all()


class Example(Recipe):
    """Output of picamera2's example, for a camera that writes whole pictures."""

    def write(self, data: bytes) -> None:
        """Take one whole picture of the camera."""
        self._hand_on(data)


def encoder(width: int, height: int) -> Callable[[av.VideoFrame], bytes]:
    """Return a JPEG encoder with one thread."""
    codec = VideoCodecContext.create("mjpeg", "w")
    assert isinstance(codec, VideoCodecContext)
    codec.width, codec.height, codec.pix_fmt = width, height, "yuv420p"
    codec.time_base, codec.thread_count = Fraction(1, 30), 1
    codec.qmin = codec.qmax = QUALITY
    codec.options = {"strict": "unofficial"}  # luma from 16 to 235, as in the strip

    def encode(picture: av.VideoFrame) -> bytes:
        picture.pts = None
        return b"".join(bytes(packet) for packet in codec.encode(picture))

    return encode


def film(outputs: list[Recipe], fps: float) -> None:
    """Write pictures to all outputs by the clock, for ever."""
    source, encode, due_s = Strip(640, 480), encoder(640, 480), time.monotonic()
    while True:
        time.sleep(max(0.0, due_s - time.monotonic()))
        due_s = max(due_s + 1.0 / fps, time.monotonic())
        picture = encode(source.take()[1])
        for output in outputs:
            output.write(picture)


class Handler(BaseHTTPRequestHandler):
    """Request handler with a page and a stream for each method."""

    outputs = {"recipe": Recipe(), "example": Example()}

    def do_GET(self) -> None:
        """Serve a page at /NAME, and its picture at /NAME.mjpg."""
        name, _, kind = self.path[1:].partition(".")
        if name not in self.outputs:
            self.send_error(404)
        elif kind == "mjpg":
            self._stream(self.outputs[name])
        else:
            self._head("text/html")
            self.wfile.write(PAGE % f"/{name}.mjpg".encode())

    def _head(self, kind: str) -> None:
        self.send_response(200)
        self.send_header("Age", "0")
        self.send_header("Cache-Control", "no-cache, private")
        self.send_header("Pragma", "no-cache")
        self.send_header("Content-Type", kind)
        self.end_headers()

    def _stream(self, output: Recipe) -> None:
        self._head("multipart/x-mixed-replace; boundary=FRAME")
        try:
            while True:
                with output.condition:
                    output.condition.wait()
                    frame = output.frame
                self.wfile.write(b"--FRAME\r\n")
                self.send_header("Content-Type", "image/jpeg")
                self.send_header("Content-Length", str(len(frame)))
                self.end_headers()
                self.wfile.write(frame)
                self.wfile.write(b"\r\n")
        except ConnectionError:
            return  # the viewer has gone

    def log_message(self, format: str, *args: object) -> None:
        pass


def main() -> None:
    """Serve until the process is killed."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--fps", type=float, required=True)
    options = parser.parse_args()
    server = ThreadingHTTPServer(("127.0.0.1", options.port), Handler)
    outputs = list(Handler.outputs.values())
    threading.Thread(target=film, args=(outputs, options.fps), daemon=True).start()
    server.serve_forever()


if __name__ == "__main__":
    main()

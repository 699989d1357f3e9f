"""Flip, brightness and night in software, by libavfilter, for cameras without them."""

from fractions import Fraction

from av.filter import Graph
from av.video.format import VideoFormat
from av.video.frame import VideoFrame

from fpvcar.config import Flip
from fpvcar.video.image_settings import ImageSettings

FLIPS: dict[Flip, tuple[str, ...]] = {
    "none": (),
    "horizontal": ("hflip",),
    "vertical": ("vflip",),
    "both": ("hflip", "vflip"),
}
BRIGHTEST = 96
"""Amount that brightness 1 adds to luma (16 to 235)."""
NIGHT_GAMMA = 0.6


class SoftwareFilter:
    """Filter for yuv420p pictures."""

    def __init__(self, flip: Flip = "none", settings: ImageSettings | None = None) -> None:
        self._flip: Flip = flip
        self._graph: Graph | None = None
        self._shape = (0, 0)
        self.set_image(settings or ImageSettings())

    def set_image(self, settings: ImageSettings) -> None:
        """Set brightness and night from the next picture on."""
        luma = []
        if settings.night:
            luma.append(("lutyuv", f"y=gammaval({NIGHT_GAMMA})"))
        if settings.brightness:
            add = round(settings.brightness * BRIGHTEST)
            luma.append(("lutyuv", f"y=clip(val+({add})\\,16\\,235)"))
        self._filters = [*((name, None) for name in FLIPS[self._flip]), *luma]
        self._graph = None

    def apply(self, picture: VideoFrame) -> VideoFrame:
        """Return the filtered picture for the encoder."""
        if not self._filters:
            return picture
        shape = (picture.width, picture.height)
        if self._graph is None or shape != self._shape:
            self._graph, self._shape = self._build(*shape), shape
        picture.pts = None
        self._graph.vpush(picture)
        return self._graph.vpull()

    def _build(self, width: int, height: int) -> Graph:
        graph = Graph()
        planar = VideoFormat("yuv420p", width, height)
        base = Fraction(1, 1_000_000)
        nodes = [graph.add_buffer(width=width, height=height, format=planar, time_base=base)]
        nodes += [graph.add(name, arguments) for name, arguments in self._filters]
        nodes.append(graph.add("buffersink"))
        graph.link_nodes(*nodes).configure()
        return graph

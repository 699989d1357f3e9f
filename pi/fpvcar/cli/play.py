"""Verb `fpvcar replay --page`: the recordings page for some files, for this machine only."""

import asyncio
import sys
import urllib.parse
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from aiohttp import web

from fpvcar.access.banner import open_page
from fpvcar.access.rights import RecordingRights
from fpvcar.http.pages import Handler, page_response, refuse_foreign
from fpvcar.library.api.recordings_api import ListContext, RecordingsApi
from fpvcar.recordings.export import export
from fpvcar.recordings.mcap.parsing import RecordingError
from fpvcar.recordings.overview import overview_of
from fpvcar.runtime import paths

HOST = "127.0.0.1"


def application(files: Sequence[Path], car: str) -> web.Application:
    """Return the application of the page. Only this machine has access."""
    shown = ListContext(car, seat=False)
    recordings = RecordingsApi(lambda: list(files), shown, RecordingRights())
    root = paths.WEB.resolve()

    async def page(request: web.Request) -> web.StreamResponse:
        name = request.match_info["path"] or "recordings.html"
        return page_response(root, name)

    app = web.Application(middlewares=[_only_here], client_max_size=1024)
    recordings.add_to(app)
    app.router.add_get("/{path:.*}", page)
    return app


@web.middleware
async def _only_here(request: web.Request, handler: Handler) -> web.StreamResponse:
    refuse_foreign(request, "localhost")
    return await handler(request)


async def _serve(files: Sequence[Path], car: str, port: int, browser: bool) -> None:
    runner = web.AppRunner(application(files, car), access_log=None, shutdown_timeout=0.5)
    await runner.setup()
    try:
        await web.TCPSite(runner, HOST, port).start()
        taken = runner.addresses[0][1]
        name = urllib.parse.quote(files[0].name)
        url = f"http://localhost:{taken}/recordings.html#{name}"
        print(f"fpvcar replay: {url}   (Ctrl-C ends it)", flush=True)
        if browser and (hint := await open_page(url)):
            print(f"fpvcar replay: {hint}", flush=True)
        await asyncio.Event().wait()
    finally:
        await runner.cleanup()


def run(files: Sequence[Path], port: int, browser: bool) -> int:
    """Serve until Ctrl-C; return the exit status. Raises OSError for a busy port."""

    def warn(message: str) -> None:
        print(f"fpvcar replay: {message}", file=sys.stderr)

    try:
        paths = [file.path for file in export.in_order(files, warn)]
    except RecordingError as fault:
        warn(str(fault))
        return 1
    names = Counter(path.name for path in paths)
    for name, count in names.items():
        if count > 1:
            warn(f"two files are named {name}")
            return 1
    if not paths:
        return 1
    about = next(filter(None, (overview_of(path).about for path in paths)), None)
    car = about.car if about else "fpvcar"
    asyncio.run(_serve(paths, car, port, browser))
    return 0

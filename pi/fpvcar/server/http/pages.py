"""Page files, headers of every answer, and the rules for refusing requests.

Shared by the car's own server and `fpvcar replay --page`.
"""

import html
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path

from aiohttp import web

from fpvcar.server.auth import access

PAGE_TYPES = {
    ".html": "text/html",
    ".js": "text/javascript",
    ".css": "text/css",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".json": "application/json",
    ".webmanifest": "application/manifest+json",
}
HEADERS = {
    "Cache-Control": "no-cache",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Content-Security-Policy": (
        "default-src 'self'; img-src 'self' data: blob:; media-src 'self' blob:; "
        "style-src 'self' 'unsafe-inline'; connect-src 'self' ws: wss:; "
        "frame-ancestors 'none'"
    ),
}
ERROR_PAGE = """\
<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="dark light">
<title>That did not work</title>
<style>body {{ background: Canvas; color: CanvasText }}
main {{ font: 18px/1.5 system-ui, sans-serif; max-width: 36em; margin: 3em auto;
padding: 0 1em }} a {{ color: inherit; display: inline-block; padding: 12px 0 }}</style>
<main><h1>That did not work</h1><p>{}</p><a href="/">To the first page</a></main>
</html>
"""
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def refuse_foreign(
    request: web.Request, own_name: str, foreign: str, extra: Iterable[str] = ()
) -> None:
    """Refuse a foreign Host (DNS rebinding) or Origin. Raises HTTPForbidden.

    `foreign` is the answer to a foreign Host; {} stands for the received value.
    """
    host, origin = request.headers.get("Host"), request.headers.get("Origin")
    if not access.host_allowed(host, own_name, extra):
        raise web.HTTPForbidden(text=foreign.replace("{}", _shown(host)) + "\n")
    if not access.origin_allowed(origin, host):
        raise web.HTTPForbidden(
            text=f'Origin "{_shown(origin)}" refused: expected '
            f"{request.scheme}://{host}; open its own page.\n"
        )


def refuse_other_sites(request: web.Request) -> None:
    """Refuse requests from pages of other sites. Raises HTTPForbidden.

    Another site's page could not read the answers, but it could make the car work.
    """
    site = request.headers.get("Sec-Fetch-Site", "none")
    if site not in ("same-origin", "none"):
        raise web.HTTPForbidden(text="Open the car's own page.\n")


@web.middleware
async def errors_as_pages(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Render an error as a page if the browser accepts HTML, in light or dark colours."""
    try:
        return await handler(request)
    except web.HTTPError as fault:
        if "text/html" not in request.headers.get("Accept", ""):
            raise
        fault.text = ERROR_PAGE.format(html.escape(fault.text or fault.reason))
        fault.content_type = "text/html"
        fault.headers.update(HEADERS)
        raise


def page_response(root: Path, name: str) -> web.FileResponse:
    """Return a file of the page; `root` is resolved. Raises HTTPNotFound."""
    path = root / name.replace("\0", "?")
    kind = PAGE_TYPES.get(path.suffix)
    try:
        path = path.resolve()
        exists = path.is_relative_to(root) and path.is_file()
    except OSError:  # for example, a name that is too long
        exists = False
    if kind is None or not exists:
        raise web.HTTPNotFound(text=f"There is no /{_shown(name)} here.\n")
    return web.FileResponse(path, headers={**HEADERS, "Content-Type": kind})


def _shown(value: str | None) -> str:
    """Quote a received value: short, and in characters that can be sent."""
    return (value or "")[:80].encode("utf-8", "backslashreplace").decode()

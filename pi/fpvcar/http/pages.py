"""Page files, headers of every answer, and the rules for refusing requests.

Shared by the car's own server and `fpvcar replay --page`.
"""

import base64
import functools
import hashlib
import html
import json
import re
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path

from aiohttp import web

from fpvcar.http import addresses
from fpvcar.http.languages import language_of, translated
from fpvcar.http.responses import as_problem, refused, text_of
from fpvcar.runtime.texts import Phrase, Text

FOREIGN_HOST = Phrase(
    "foreign_host", 'Host "{host}" refused: open this page by its address, or as {name}.'
)

PAGE_TYPES = {
    ".html": "text/html",
    ".js": "text/javascript",
    ".css": "text/css",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".json": "application/json",
    ".webmanifest": "application/manifest+json",
}
PACKED = ("text/html", "text/javascript", "text/css", "application/json")
POLICY = "Content-Security-Policy"
NO_FRAMES = "frame-ancestors 'none'"
HEADERS = {
    "Cache-Control": "no-cache",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    POLICY: (
        "default-src 'self'; img-src 'self' data: blob:; media-src 'self' blob:; "
        f"style-src 'self' 'unsafe-inline'; connect-src 'self' ws: wss:; {NO_FRAMES}"
    ),
}
ERROR_PAGE = """\
<!doctype html>
<html lang="{language}">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="dark light">
<title>{title}</title>
<style>body {{ background: #0b0f14; color: #f4f6f8; --line: #55616e; --plate: #222b35 }}
@media (prefers-color-scheme: light) {{ body {{ background: #f6f8fa; color: #12181f;
--line: #98a4b1; --plate: #e8edf2 }} }}
main {{ font: 18px/1.5 system-ui, sans-serif; max-width: 36em; margin: 3em auto;
padding: 0 1em }} a {{ color: inherit; display: inline-block; padding: 12px 16px; font-weight: 600;
text-decoration: none; border: 1px solid var(--line); border-radius: 12px;
background: var(--plate) }}</style>
<main><h1>{title}</h1><p>{text}</p><a href="{start}">{first}</a></main>
</html>
"""
PLACE = re.compile(r'data-t="(\w+)">(?=<)')
BOOT = ' src="boot.js"'
PROBLEM = "application/problem+json"
TITLE = Text("page_title", "That did not work")
FIRST = Text("page_first", "To the start page")
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def refuse_foreign(request: web.Request, own_name: str, extra: Iterable[str] = ()) -> None:
    """Refuse a foreign Host (DNS rebinding) or Origin. Raises HTTPForbidden."""
    host, origin, known = request.headers.get("Host"), request.headers.get("Origin"), tuple(extra)
    if not addresses.host_allowed(host, own_name, known):
        raise refused(web.HTTPForbidden, FOREIGN_HOST(host=_shown(host), name=own_name))
    outer = addresses.outer_host(request.remote, request.headers, own_name, known)
    if not addresses.origin_allowed(origin, host, outer):
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
        raise refused(web.HTTPForbidden, Text("own_page", "Open the car's own page."))


@web.middleware
async def errors_as_pages(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Render an error as the request accepts it: see responses.py."""
    try:
        return await handler(request)
    except web.HTTPError as fault:
        accepted = request.headers.get("Accept", "")
        if PROBLEM in accepted:
            fault.body, fault.content_type = as_problem(fault), PROBLEM
            raise
        if "text/html" not in accepted:
            raise
        language = language_of(request.headers.get("Accept-Language", ""))
        text = translated(language, text_of(fault))
        fault.text = ERROR_PAGE.format(
            language=language,
            title=translated(language, TITLE),
            text=html.escape(text),
            first=translated(language, FIRST),
            start="../" * (request.rel_url.raw_path.count("/") - 1) or "./",
        )
        fault.content_type = "text/html"
        fault.headers.update(HEADERS)
        raise


def packed(request: web.Request, answer: web.Response | web.FileResponse) -> web.StreamResponse:
    """Compress a page's text for a browser that accepts that.

    Not where the answer may have no body or a part of it: the end of the compressed stream behind
    a 304 would be read as the beginning of the next answer.
    """
    names = map(str.lower, request.headers)
    partial = any(name == "range" or name.startswith("if-") for name in names)
    if request.method == "GET" and not partial and answer.content_type in PACKED:
        answer.enable_compression()
    return answer


def page_response(root: Path, name: str) -> web.Response | web.FileResponse:
    """Return a file of the page; `root` is resolved. Raises HTTPNotFound."""
    path = root / name.replace("\0", "?")
    kind = PAGE_TYPES.get(path.suffix)
    try:
        path = path.resolve()
        exists = path.is_relative_to(root) and path.is_file()
    except OSError:  # for example, a name that is too long
        exists = False
    if kind is None or not exists:
        raise refused(
            web.HTTPNotFound,
            Text("page_missing", "There is no {path} here.", path=f"/{_shown(name)}"),
        )
    if path.suffix == ".html":
        return _page(root, path.read_text("utf-8"))
    headers = {**HEADERS, "Content-Type": kind, "Vary": "Accept-Encoding"}
    return web.FileResponse(path, headers=headers)


def seat_response(root: Path, accepted: str) -> web.Response:
    """Return the driver's page with its first words in the browser's language.

    Scripts bring them again, and all other words, over a slow link seconds later. `accepted` is
    the value of Accept-Language.
    """
    language = language_of(accepted, root)
    files = [root / "lang" / tag / "seat.json" for tag in ("en", language)]
    times = tuple(path.stat().st_mtime_ns for path in (root / "index.html", *files))
    page = _page(root, _worded(root / "index.html", language, *files, times))
    page.headers["Vary"] += ", Accept-Language"
    return page


def _page(root: Path, text: str) -> web.Response:
    """Put boot.js into the text of a page.

    It loads the page again after a lost request, so it must not be a request itself.
    """
    headers = {**HEADERS, "Vary": "Accept-Encoding"}
    if BOOT in text:
        script = (root / "boot.js").read_text("utf-8")
        digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        text = re.sub(rf"<script{BOOT}(.*?)>", lambda tag: f"<script{tag[1]}>{script}", text)
        headers[POLICY] += f"; script-src 'self' 'sha256-{digest}'"
    return web.Response(text=text, content_type="text/html", headers=headers)


@functools.lru_cache(maxsize=8)
def _worded(page: Path, language: str, english: Path, words: Path, times: tuple[int, ...]) -> str:
    """Fill the words of a page in; `times` are those of the files' last changes."""
    texts = json.loads(english.read_bytes()) | json.loads(words.read_bytes())
    text = page.read_text("utf-8").replace('<html lang="en">', f'<html lang="{language}">')
    return PLACE.sub(lambda place: place[0] + html.escape(texts.get(place[1], "")), text)


def _shown(value: str | None) -> str:
    """Quote a received value: short, and in characters that can be sent."""
    return (value or "")[:80].encode("utf-8", "backslashreplace").decode()

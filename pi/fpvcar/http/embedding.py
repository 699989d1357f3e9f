"""Site around the page: a path of a reverse proxy, and frames in pages of other origins.

    request -> below the path, if the proxy passes it on: the path is stripped here
            -> on loopback beside the path: marked as a proxy's, which may have stripped the path
    answer  -> Content-Security-Policy with the origins that may frame it

URLs in the pages are relative, so that they need no path.
"""

from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import NamedTuple

from aiohttp import web
from multidict import CIMultiDict
from yarl import URL

from fpvcar.http.addresses import PREFIX, is_loopback
from fpvcar.http.pages import NO_FRAMES, POLICY

Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


class Embedding(NamedTuple):
    """Path of the page below its origin, with "/" at both ends, and origins that may frame it."""

    base_path: str = "/"
    ancestors: tuple[str, ...] = ()

    def path_of(self, headers: Mapping[str, str]) -> str:
        """Return the path of the page in the client's browser."""
        named = f"{headers.get(PREFIX, '').rstrip('/')}/"
        return self.base_path if named == self.base_path else "/"

    def around(self, handler: Handler) -> Handler:
        """Return a handler for requests as they come, around one for requests of the page."""
        if self == ALONE:
            return handler

        async def handle(request: web.BaseRequest) -> web.StreamResponse:
            try:
                answer = await handler(self._inner(request))
            except web.HTTPException as refusal:
                self._allow_frames(refusal)
                raise
            self._allow_frames(answer)
            return answer

        return handle

    def _inner(self, request: web.BaseRequest) -> web.BaseRequest:
        """Return the request as the page's routes see it. Raises HTTPFound."""
        path, query = request.rel_url.raw_path, request.rel_url.raw_query_string
        if f"{path}/" == self.base_path:
            raise web.HTTPFound(
                str(URL.build(path=self.base_path, query_string=query, encoded=True))
            )
        below = self.base_path != "/" and path.startswith(self.base_path)
        if below:
            path = path[len(self.base_path) - 1 :]
        elif self.base_path == "/" or not is_loopback(request.remote or ""):
            return request
        headers = CIMultiDict(request.headers)
        if below or PREFIX not in headers:
            headers[PREFIX] = self.base_path if below else "/"
        url = URL.build(path=path, query_string=query, encoded=True)
        return request.clone(rel_url=url, headers=headers)

    def cookie(self, request: web.BaseRequest, name: str, value: str, age_s: int) -> str:
        """Return the line Set-Cookie of a secret that scripts cannot read.

        Over https its name is one that plain-http pages cannot set (RFC 6265bis, 4.1.3). Only there
        browsers keep it in a frame of another site, apart for each site around it: `Partitioned`
        (CHIPS), which the cookies of Python before 3.14 do not know.
        """
        path = self.path_of(request.headers)
        cookie = f"{name}={value}; Max-Age={age_s}; Path={path}; HttpOnly; "
        if not over_https(request):
            return f"{cookie}SameSite=Strict"
        prefix = "__Host-" if path == "/" else "__Secure-"
        site = "None; Partitioned" if self.ancestors else "Strict"
        return f"{prefix}{cookie}Secure; SameSite={site}"

    def _allow_frames(self, answer: web.StreamResponse) -> None:
        policy = answer.headers.get(POLICY)
        if policy and self.ancestors and not answer.prepared:
            allowed = f"frame-ancestors {' '.join(self.ancestors)}"
            answer.headers[POLICY] = policy.replace(NO_FRAMES, allowed)


ALONE = Embedding()
"""Page at the root of its origin, in no frame."""


def over_https(request: web.BaseRequest) -> bool:
    """Return whether the page came by https, also if a proxy in front of this server ends TLS.

    The header Origin has been checked; see pages.refuse_foreign.
    """
    return request.secure or request.headers.get("Origin", "").lower().startswith("https:")


def cookies_of(request: web.BaseRequest, name: str) -> Iterator[str]:
    """Yield the values of a cookie, those with the secure names first."""
    for prefix in ("__Host-", "__Secure-", ""):
        yield request.cookies.get(f"{prefix}{name}", "")

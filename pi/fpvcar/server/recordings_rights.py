"""Who may see recordings, and who may change what is there.

    POST /api/recordings/unlock      X-Drive-Code: 123456 -> a cookie

Who may drive may see: whoever sits at this machine, and who said the drive code - it is
kept as a cookie of a random token, HttpOnly and SameSite=Strict. Who said the
grown-ups' code may delete, too, for half an hour.
"""

import secrets
from collections import OrderedDict
from collections.abc import Callable
from typing import NamedTuple

from aiohttp import web

from fpvcar.server.access import CodeCheck, is_loopback
from fpvcar.server.answers import PRIVATE
from fpvcar.server.pages import refuse_other_sites

COOKIE, CODE = "fpvcar-drive", "X-Drive-Code"
TOKEN_S = 12 * 3600
GROWN_UP_S = 30 * 60
TOKENS_MAX = 256


class Token(NamedTuple):
    """Until when somebody may see, and be a grown-up."""

    until_s: float
    grown_up_until_s: float


class Tokens:
    """Random tokens of those who said the code, each for half a day. Time is passed
    in."""

    def __init__(self) -> None:
        self._tokens: OrderedDict[str, Token] = OrderedDict()

    def new(self, now_s: float, grown_up: bool = False) -> str:
        """Makes one; the oldest of too many counts no longer."""
        token = secrets.token_urlsafe(32)
        grown_up_until_s = now_s + GROWN_UP_S if grown_up else -1.0
        self._tokens[token] = Token(now_s + TOKEN_S, grown_up_until_s)
        while len(self._tokens) > TOKENS_MAX:
            self._tokens.popitem(last=False)
        return token

    def good(self, token: str, now_s: float) -> bool:
        """Does this token count?"""
        found = self._tokens.get(token)
        return found is not None and found.until_s > now_s

    def grown_up(self, token: str, now_s: float) -> bool:
        """Is it a grown-up's?"""
        found = self._tokens.get(token)
        return found is not None and found.grown_up_until_s > now_s


class RecordingRights:
    """Looks who asks. Without codes only this machine may, and nothing is changed."""

    def __init__(self, codes: CodeCheck | None, clock_s: Callable[[], float]) -> None:
        self._codes, self._clock_s, self._tokens = codes, clock_s, Tokens()

    def add_to(self, app: web.Application) -> None:
        """Adds the route."""
        app.router.add_post("/api/recordings/unlock", self._unlock)

    def let_in(self, request: web.Request) -> None:
        """Raises HTTPForbidden, HTTPUnauthorized for who may not see."""
        refuse_other_sites(request)
        if not is_loopback(request.remote or "") and not self._known(request):
            raise web.HTTPUnauthorized(
                text="Recordings are for those who may drive: enter the drive code.\n",
                headers=PRIVATE,
            )

    def let_change(self, request: web.Request) -> None:
        """Raises as let_in, also for who is no page of ours and said no code."""
        self.let_in(request)
        if "Origin" not in request.headers and not self._known(request):
            raise web.HTTPUnauthorized(
                text="This is for those who may drive: enter the drive code.\n",
                headers=PRIVATE,
            )

    def let_delete(self, request: web.Request) -> None:
        """Raises as let_change, and for who is no grown-up."""
        self.let_change(request)
        if not self.grown_up(request):
            raise web.HTTPUnauthorized(
                text="Only a grown-up deletes: enter the grown-ups' code.\n",
                headers=PRIVATE,
            )

    def grown_up(self, request: web.Request) -> bool:
        """Did who asks say the grown-ups' code within half an hour?"""
        token = request.cookies.get(COOKIE, "")
        return self._codes is not None and self._tokens.grown_up(token, self._clock_s())

    def _known(self, request: web.Request) -> bool:
        token = request.cookies.get(COOKIE, "")
        return self._codes is not None and self._tokens.good(token, self._clock_s())

    async def _unlock(self, request: web.Request) -> web.Response:
        refuse_other_sites(request)
        codes, address = self._codes, request.remote or ""
        now_s = self._clock_s()
        if codes is None:
            raise web.HTTPNotFound(text="There is no code here.\n")
        wait_s = codes.wait_s(address, now_s)
        if wait_s > 0.0:
            raise web.HTTPTooManyRequests(
                text=f"Too many wrong codes: try again in {wait_s:.0f} s.\n"
            )
        rights = codes.unlock(request.headers.get(CODE, ""), address, now_s)
        if rights is None:
            raise web.HTTPUnauthorized(text="That is not the code.\n")
        answer = web.Response(status=204, headers=PRIVATE)
        answer.set_cookie(
            COOKIE, self._tokens.new(now_s, rights.grown_up), max_age=TOKEN_S,
            path="/api/recordings", httponly=True, samesite="Strict",
            secure=request.secure,
        )  # fmt: skip
        return answer

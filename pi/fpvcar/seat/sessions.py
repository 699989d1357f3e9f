"""Sessions of the connected pages, and the seat of the one that drives."""

import functools
import secrets
from collections.abc import Iterator

from fpvcar.access.codes import KEY_BYTES, video_id
from fpvcar.drive.seat import Seat
from fpvcar.seat.drive_socket import Session
from fpvcar.wire.json_text import Down

VIDEO_IDS_MAX = 128


class Sessions:
    """Connected pages of a car, one session a client; `key` is the car's secret."""

    def __init__(self, key: bytes = b"") -> None:
        self.seat = Seat()
        self.viewers_look = False
        """Whether a grown-up lets viewers turn the servos that do not steer."""
        self._sessions: list[Session] = []
        name = functools.partial(video_id, key or secrets.token_bytes(KEY_BYTES))
        self.video_of = functools.lru_cache(VIDEO_IDS_MAX)(name)

    def __iter__(self) -> Iterator[Session]:
        return iter(self._sessions)

    def __len__(self) -> int:
        return len(self._sessions)

    def add(self, session: Session) -> Session | None:
        """Add a session that has sent its hello; return the one that it replaces."""
        replaced = self.of(session.client)
        if replaced is not None:
            self._sessions.remove(replaced)
        self._sessions.append(session)
        return replaced

    def remove(self, session: Session) -> None:
        """Remove the session of a socket that has ended."""
        self._sessions.remove(session)

    def send(self, message: Down) -> None:
        """Send a message to all pages."""
        for session in self._sessions:
            session.send(message)

    def of(self, client: str) -> Session | None:
        """Return the connected page of this client."""
        return next((session for session in self if session.client == client), None)

    def of_video(self, video: str) -> Session | None:
        """Return the connected page with this video id."""
        return next((session for session in self if session.video == video), None)

    def drives(self, video: str) -> bool:
        """Return whether the page of this video id has the wheel."""
        holder = self.seat.holder  # read for each picture of each viewer
        return holder is not None and self.video_of(holder.client) == video

    def at_the_wheel(self, client: str) -> Session | None:
        """Return the page of this client, if it is connected and has the wheel."""
        return self.of(client) if self.seat.holds(client) else None

    def may_drive(self, session: Session) -> bool:
        """Return whether this page has the wheel or may take it."""
        return session.rights.drive or self.seat.holds(session.client)

    def driver(self) -> Session | None:
        """Return the driver's page, while it is connected."""
        holder = self.seat.holder
        return self.of(holder.client) if holder else None

    def large(self) -> str:
        """Return the further camera that the driver's page shows large, else ""."""
        driver = self.driver()
        return driver.large if driver else ""

    def lost(self, video: str, share: float | None) -> None:
        """Store the share of a page's picture packets that was lost."""
        page = self.of_video(video)
        if page is not None:
            page.lost = share

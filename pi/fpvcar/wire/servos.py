"""Servos that do not steer on /ws/drive: messages of pages."""

from typing import Annotated

from msgspec import Meta

from fpvcar.wire.json_text import Up

ServoName = Annotated[str, Meta(min_length=1, max_length=24)]
Share = Annotated[float, Meta(ge=-1.0, le=1.0)]
Angle = Annotated[float, Meta(ge=-180.0, le=180.0)]
Nonce = Annotated[int, Meta(ge=0, le=2**53 - 1)]


class Look(Up, tag="look", frozen=True):
    """Wish to turn servos by name: `turn` at a share of their speed (+ is left or up), until the
    wish is older than `silence_ms`; `to` an angle in degrees; `rest` sends all to their rest.

    `seen` as in Drive. The servos keep their limits and speeds. While an e-stop or a fault holds
    the car they turn for no page.
    """

    seen: Nonce = 0
    turn: dict[ServoName, Share] = {}
    to: dict[ServoName, Angle] = {}
    rest: bool = False


class LetLook(Up, tag="let_look", frozen=True):
    """Lets viewers turn the servos while the driver does not, set by a grown-up."""

    on: bool


ServoMessage = Look | LetLook

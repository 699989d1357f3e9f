"""Contract of every radio: the fake and NetworkManager's over simulated radios.

The neighbourhood: "Home" with the key HOME_KEY in range, no known network.
"""

import asyncio
from collections.abc import Awaitable, Callable

from fpvcar.wifi.core import Link
from fpvcar.wifi.radio import Radio, RadioFault
from fpvcar.wire.network import Network

HOME, HOME_KEY = "Home", "home sweet home"
OWN, OWN_KEY = "Rusty", "twelve chars"
NETWORK = Network(HOME, 0, "key")


async def until(radio: Radio, wanted: Link, within_s: float = 60.0) -> None:
    """Wait until the radio has this link."""
    for _ in range(round(within_s / 0.2)):
        link = await radio.link()
        if link == wanted:
            return
        await asyncio.sleep(0.2)
    raise AssertionError(f"{link}, not {wanted}")


async def refusal(joining: Awaitable[None]) -> str:
    try:
        await joining
    except RadioFault as fault:
        return str(fault)
    raise AssertionError("it was joined")


async def it_hears_networks(radio: Radio) -> None:
    found = {one.ssid: one for one in await radio.networks()}
    assert found[HOME].security == "key" and 0 < found[HOME].strength <= 100


async def it_opens_and_closes_its_own(radio: Radio) -> None:
    await radio.open(OWN, OWN_KEY)
    assert await radio.link() == Link("own")
    await radio.open(OWN, OWN_KEY)  # a second call is no fault
    await radio.close()
    await until(radio, Link("idle"))
    await radio.close()


async def a_wrong_key_is_said(radio: Radio) -> None:
    said = await refusal(radio.join(NETWORK, "not the right key"))
    assert said.startswith("wrong key"), said
    await until(radio, Link("idle"))


async def one_that_is_not_there_is_said(radio: Radio) -> None:
    said = await refusal(radio.join(Network("Nowhere", 0, "key"), HOME_KEY))
    assert said == "the network is out of range", said
    await until(radio, Link("idle"))


async def from_its_own_it_joins_another(radio: Radio) -> None:
    await radio.networks()
    await radio.open(OWN, OWN_KEY)
    await radio.join(NETWORK, HOME_KEY)
    assert await radio.link() == Link("network", HOME)


async def from_now_on_it_is_known(radio: Radio) -> None:
    """Check that a joined network stays known; runs after the previous check."""
    await radio.open(OWN, OWN_KEY)
    await radio.close()
    await until(radio, Link("network", HOME))


async def changes_are_told(radio: Radio) -> None:
    async with asyncio.timeout(30.0):
        changing = asyncio.create_task(radio.changed())
        await asyncio.sleep(1.0)
        await radio.open(OWN, OWN_KEY)
        await changing


Check = Callable[[Radio], Awaitable[None]]
IN_ORDER: tuple[Check, ...] = (
    it_hears_networks,
    it_opens_and_closes_its_own,
    a_wrong_key_is_said,
    one_that_is_not_there_is_said,
    from_its_own_it_joins_another,
    from_now_on_it_is_known,
    changes_are_told,
)

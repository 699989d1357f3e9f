"""`fpvcar first-boot` below a folder of the test's own, and its page over HTTP."""

import argparse
import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiohttp.test_utils import TestClient, TestServer
from testkit.grown_up import Client

from fpvcar.access.codes import load_codes
from fpvcar.cli import first_boot, setup
from fpvcar.cli.command_line import parser
from fpvcar.config import ConfigError, profiles
from fpvcar.config.raspberry_pi_os import PROFILE, STATE
from tests.unit.cli.conftest import Ran

GOOD = {"board": "l298n", "name": "Rusty", "country": "FI"}


@pytest.fixture
def image(tmp_path: Path) -> Path:
    """Make the root of an image, with the files of Debian's raspi-firmware."""
    for name in ("boot/firmware/config.txt", setup.FIRMWARE):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text("arm_64bit=1\n")
    return tmp_path


def arguments(action: str, root: Path) -> argparse.Namespace:
    return parser().parse_args(["first-boot", action, "--root", str(root)])


def answered(root: Path, answers: object) -> Path:
    path = root / STATE / first_boot.ANSWERS
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(answers))
    return path


def test_prepared_image_asks_and_has_no_profile(image: Path, ran: Ran) -> None:
    assert first_boot.main(arguments("prepare", image)) == 0
    assert ran.calls == [("systemctl", f"--root={image}", "enable", "--quiet", first_boot.UNIT)]
    assert not (image / PROFILE).exists() and not (image / setup.AVAHI).exists()
    for name in (*first_boot.OWN_FILES, setup.MODULES, setup.WIFI, setup.NAMES):
        assert (image / name).exists()
    for name in ("boot/firmware/config.txt", f"{setup.FIRMWARE}-custom"):
        assert "\ndtparam=strict_gpiod\n" in (image / name).read_text()


def test_each_image_has_a_wifi_key_of_its_own(image: Path) -> None:
    keys = set()
    for _ in range(2):
        first_boot.main(arguments("prepare", image))
        keys.add((image / first_boot.KEY_FILE).read_text().strip())
    assert len(keys) == 2 and all(len(key) >= 8 for key in keys)


def test_prepare_refuses_a_car_and_a_missing_unit(image: Path, ran: Ran) -> None:
    ran.works = False
    with pytest.raises(ConfigError, match="is the package fpvcar installed"):
        first_boot.main(arguments("prepare", image))
    ran.works = True
    setup.main(parser().parse_args(["setup", "--root", str(image), "--board=l298n", "--name=x"]))
    with pytest.raises(ConfigError, match=r"car.toml is there"):
        first_boot.main(arguments("prepare", image))


def test_apply_does_nothing_without_answers(image: Path, ran: Ran) -> None:
    assert first_boot.main(arguments("apply", image)) == 0
    assert ran.calls == [] and not (image / PROFILE).exists()


def test_apply_sets_the_car_up_and_ends_the_questions(image: Path, ran: Ran) -> None:
    path = answered(image, GOOD)
    assert first_boot.main(arguments("apply", image)) == 0
    assert profiles.load(image / PROFILE).car.name == "Rusty"
    assert "ieee80211_regdom=FI\n" in (image / setup.COUNTRY).read_text()
    assert ran.calls[-1] == ("systemctl", "disable", "--quiet", first_boot.UNIT)
    assert not path.exists()


def test_apply_again_after_a_power_cut_completes_the_setup(
    image: Path, ran: Ran, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The profile is written first; the answers are deleted last."""
    answered(image, GOOD)

    def cut(*argv: str) -> bool:
        raise KeyboardInterrupt

    with monkeypatch.context() as power:
        power.setattr(setup, "run", cut)
        with pytest.raises(KeyboardInterrupt):
            first_boot.main(arguments("apply", image))
    assert (image / PROFILE).exists()
    assert first_boot.main(arguments("apply", image)) == 0
    assert ran.calls and not (image / STATE / first_boot.ANSWERS).exists()


@pytest.mark.parametrize("soldered", [True, False])
def test_resistors_of_the_page_are_in_the_profile(image: Path, soldered: bool) -> None:
    answered(image, GOOD | {"board": "mx1508", "resistors": soldered})
    assert first_boot.main(arguments("apply", image)) == 0
    assert (image / PROFILE).read_text().count("resistor_ohm = 2.2") == 2 * soldered


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"board": "l29"}, 'board "l29": expected one of'),
        ({"board": ""}, "an answer is missing"),
        ({"board": "../../etc/passwd"}, "expected one of"),
        ({"name": "my car"}, 'name "my car": expected 1 to 24'),
        ({"name": ""}, "an answer is missing"),
        ({"country": "xx"}, 'country "xx": expected its two capital letters'),
        ({"country": ""}, "an answer is missing"),
        ({"board": 7}, r"Expected `str`, got `int`"),
        ({"more": "x"}, "unknown field"),
    ],
)
def test_bad_answers_are_refused_and_forgotten(
    image: Path, ran: Ran, change: dict[str, object], says: str
) -> None:
    path = answered(image, GOOD | change)
    with pytest.raises(ConfigError, match=says):
        first_boot.main(arguments("apply", image))
    assert ran.calls == [] and not path.exists() and not (image / PROFILE).exists()


@pytest.mark.parametrize(
    ("address", "is_near"),
    [
        ("10.42.0.17", True),
        ("192.168.1.2", True),
        ("127.0.0.1", True),
        ("fe80::1%eth0", True),
        ("fd00::7", True),
        ("8.8.8.8", False),
        ("2a00:1450::5", False),
        ("", False),
        (None, False),
    ],
)
def test_only_private_addresses_may_answer(address: str | None, is_near: bool) -> None:
    assert first_boot.near(address) is is_near


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[Client]:
    async with TestClient(TestServer(first_boot.Page(tmp_path).application())) as made:
        yield made


async def test_page_offers_boards_and_countries(client: Client) -> None:
    html = await client.get("/")
    assert "first start" in await html.text()
    questions = await (await client.get("/api/first-boot")).json()
    assert {one["name"] for one in questions["boards"]} == set(setup.boards())
    assert "FI" in questions["countries"] and not questions["answered"]


async def test_answer_brings_the_codes_once(client: Client, tmp_path: Path) -> None:
    answer = await client.post("/api/first-boot", json=GOOD)
    told, codes = await answer.json(), load_codes(tmp_path)
    assert (told["drive"], told["grown_up"]) == (codes.drive, codes.grown_up)
    assert told["addresses"][0] == "http://rusty.local:8080/"
    assert json.loads((tmp_path / first_boot.ANSWERS).read_bytes()) == GOOD
    again = await client.post("/api/first-boot", json=GOOD | {"name": "Other"})
    assert again.status == 409
    assert json.loads((tmp_path / first_boot.ANSWERS).read_bytes()) == GOOD


async def test_slow_phone_does_not_replace_another_phones_answers(
    client: Client, tmp_path: Path
) -> None:
    quick_has_answered = asyncio.Event()

    async def slow_body() -> AsyncIterator[bytes]:
        body = json.dumps(GOOD | {"name": "Slow"}).encode()
        yield body[:5]
        await quick_has_answered.wait()
        yield body[5:]

    slow = asyncio.create_task(client.post("/api/first-boot", data=slow_body()))
    await asyncio.sleep(0.01)
    assert (await client.post("/api/first-boot", json=GOOD)).status == 200
    quick_has_answered.set()
    answer = await slow
    assert answer.status == 409 and answer.headers["X-Refusal"] == "key=setup_answered"
    assert json.loads((tmp_path / first_boot.ANSWERS).read_bytes()) == GOOD


async def test_bad_answer_is_refused_with_its_reason(client: Client, tmp_path: Path) -> None:
    answer = await client.post("/api/first-boot", json=GOOD | {"name": "-"})
    assert answer.status == 400 and 'name "-": expected' in await answer.text()
    assert answer.headers["X-Refusal"] == "key=setup_name&name=-"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "headers",
    [{"Host": "evil.example"}, {"Origin": "http://evil.example"}, {"Sec-Fetch-Site": "cross-site"}],
)
async def test_other_sites_cannot_answer(
    headers: dict[str, str], client: Client, tmp_path: Path
) -> None:
    answer = await client.post("/api/first-boot", json=GOOD, headers=headers)
    assert answer.status == 403 and list(tmp_path.iterdir()) == []

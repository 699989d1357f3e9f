"""Configuration of fpvsites: each bad value is refused with the limit and the next step."""

from pathlib import Path

import pytest

from fpvcar.config import ConfigError
from fpvsites import config
from fpvsites.config import Span, span_of

NETWORK = 'lan = "wlan0"\nupstream = ["9.9.9.9"]\n'
MAC = "02:00:5e:10:00:01"


def load(folder: Path, network: str = NETWORK, **groups: str) -> config.Config:
    (folder / "groups").mkdir(exist_ok=True)
    (folder / "fpvsites.toml").write_text(network)
    for name, text in groups.items():
        (folder / "groups" / f"{name}.toml").write_text(text)
    return config.load(folder)


def test_files_are_read_and_normalized(tmp_path: Path) -> None:
    text = 'clients = ["02-00-5E-10-00-01"]\nsites = ["Example.ORG.", "example.org"]\n'
    made = load(
        tmp_path, kids=text + 'hours = ["Mon-Fri 08:00-12:30"]\n', office="everything = true"
    )
    assert list(made.groups) == ["kids", "office"] and made.keep_s == 600
    kids = made.group("kids")
    assert kids.clients == (MAC,) and kids.sites == ("example.org",)
    assert kids.spans == (Span((0, 1, 2, 3, 4), 480, 750),)


def test_span_over_the_weekend_goes_round() -> None:
    assert span_of("Sat-Mon 00:00-24:00") == Span((5, 6, 0), 0, 1440)
    assert span_of("Sun 07:05-07:06") == Span((6,), 425, 426)


@pytest.mark.parametrize(
    ("text", "refusal"),
    [
        ('sites = ["*.example.org"]', 'site "*.example.org" refused: a wildcard.*"example.org"'),
        ('sites = ["*"]', "a wildcard is not allowed.*everything = true"),
        ('sites = ["org"]', 'site "org" refused: expected a name of at least two parts'),
        ('sites = ["8.8.8.8"]', "no address"),
        ('sites = ["https://example.org/x"]', "no https://, no path"),
        ('sites = ["example.org#9.9.9.9"]', "refused"),
        ('sites = ["a.org/\\nserver=1.1.1.1"]', "refused"),
        ('clients = ["02:00:5e:10:00"]', 'client "02:00:5e:10:00" refused.*ip neigh'),
        ('clients = ["01:00:5e:10:00:01"]', "the MAC of one device"),
        ('hours = ["Mon-Fri 8:00-12:00"]', 'hours "Mon-Fri 8:00-12:00" refused'),
        ('hours = ["Mon 22:00-02:00"]', "divide a span over midnight"),
        ('hours = ["Mon 08:00-24:01"]', "refused"),
        ('hours = ["Mon 08:60-24:00"]', "refused"),
        ('hours = ["Moo 08:00-12:00"]', "refused"),
        ('everything = true\nsites = ["a.org"]', "exclude each other"),
        ('site = ["a.org"]', "unknown key site; did you mean sites?"),
        ("sites = [", "not TOML"),
    ],
)
def test_bad_group_file_is_refused_by_name(tmp_path: Path, text: str, refusal: str) -> None:
    with pytest.raises(ConfigError, match=f"(?s)groups/kids.toml: .*{_escaped(refusal)}"):
        load(tmp_path, kids=text)


def _escaped(text: str) -> str:
    return text.replace("*.ex", r"\*\.ex").replace("?", r"\?")


@pytest.mark.parametrize(
    ("network", "refusal"),
    [
        ('lan = "wlan0; x"\nupstream = ["9.9.9.9"]', "ip link"),
        ('lan = "wlan0"\nupstream = []', "upstream is empty"),
        ('lan = "wlan0"\nupstream = ["dns.example"]', 'upstream "dns.example" refused'),
        (f'{NETWORK}others = "kid"', 'group "kid" is unknown; groups: kids'),
        (f"{NETWORK}keep_s = 1", "keep_s = 1: expected `int` >= 5"),
        (f"{NETWORK}[groups.a]", "a group is a file groups/NAME.toml"),
    ],
)
def test_bad_network_file_is_refused(tmp_path: Path, network: str, refusal: str) -> None:
    with pytest.raises(ConfigError) as raised:
        load(tmp_path, network, kids="")
    assert f"{tmp_path}/fpvsites.toml: " in str(raised.value) and refusal in str(raised.value)


def test_missing_folder_names_the_example(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="is missing: copy the example of docs/sites.md"):
        config.load(tmp_path)


def test_client_in_two_groups_and_bad_group_name_are_refused(tmp_path: Path) -> None:
    text = f'clients = ["{MAC}"]'
    with pytest.raises(ConfigError, match=f"client {MAC} is in group a already"):
        load(tmp_path, a=text, b=text)
    with pytest.raises(ConfigError, match='group "My-kids" refused'):
        load(tmp_path, a="", b="", **{"My-kids": ""})


def test_too_many_groups_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="33 groups; at most 32"):
        load(tmp_path, **{f"g{number}": "" for number in range(33)})

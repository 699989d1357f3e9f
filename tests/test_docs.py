"""README and docs/, checked by a program: links, words, keys, generated parts."""

import ast
import re
from collections.abc import Callable
from pathlib import Path
from typing import cast, get_args

import pytest
from msgspec import Struct
from PIL import Image, PngImagePlugin
from playwright.sync_api import Browser
from tools import picture_file, pictures
from tools.docs import (
    build_docs,
    doctor_docs,
    http_api,
    page_messages,
    page_texts,
    profile_docs,
    rights_docs,
    status_docs,
    wire_docs,
)
from tools.docs.written import filled

from fpvcar.config import profiles
from fpvcar.runtime import paths
from fpvcar.wire import buttons, down, up
from fpvcar.wire.json_text import Down
from tests.test_layers import FLOORS
from tests.vectors import text

ROOT = Path(__file__).resolve().parent.parent
PAGES = (
    ROOT / "README.md",
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "hardware").rglob("*.md")),
    ROOT / "tests" / "README.md",
)
README_LINES = 150
PLOTS = "bench-*.png"
"""Figures that `make benchmark` draws; the other pictures are of pages."""
PICTURES_BYTES = 2_500_000
"""Limit for all pictures of `make pictures` together: each clone of the tree fetches each
version."""
NEVER_RUN = "Never run on a real Pi"
OTHER_WORDS = re.compile(
    r"\b(?:not|never|nothing|no)\b[^.:|]{0,40}\b(?:on metal|real hardware|real (?:Raspberry )?Pi)\b"
    r"|\bmetal has\b|\bno real car has\b|\bno (?:one|figure)? ?of them is of a Pi\b"
    r"|\b(?:none|no car) has been built\b",
    re.I,
)
LINK = re.compile(r"\]\(([^)\s]+)\)|<img src=\"([^\"]+)\"")


def anchors(page: Path) -> set[str]:
    """Return the headings of a page, in the form of link anchors."""
    heads = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.M)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_to_existing_targets(page: Path) -> None:
    for found in LINK.findall(page.read_text(encoding="utf-8")):
        target = found[0] or found[1]
        if target.startswith("https://"):
            continue
        file, _, anchor = target.partition("#")
        path = (page.parent / file) if file else page
        assert path.exists(), target
        assert not anchor or anchor in anchors(path), target


def test_readme_links_pages_and_stays_short() -> None:
    text = PAGES[0].read_text(encoding="utf-8")
    assert len(text.splitlines()) <= README_LINES
    for page in (ROOT / "docs").rglob("*.md"):
        assert f"({page.relative_to(ROOT)})" in text, page.name
    building = ROOT / "hardware/README.md"
    assert "(hardware/README.md)" in text
    for page in (ROOT / "hardware").iterdir():
        assert page == building or f"({page.name}" in building.read_text(), page.name


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_cited_sources_match_footnotes(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    named = re.findall(r"^\[\^(\w+)\]: ", text, re.M)
    cited = set(re.findall(r"\[\^(\w+)\](?!: )", text))
    assert sorted(cited) == sorted(named)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_missing_real_pi_is_said_once_and_in_the_same_words(page: Path) -> None:
    text = " ".join(page.read_text(encoding="utf-8").split())
    assert text.count(NEVER_RUN) <= 1
    assert OTHER_WORDS.findall(text.replace(NEVER_RUN, "")) == []


def test_benchmarks_begin_with_plain_lines_have_a_value_per_cell_and_mark_misses() -> None:
    text = (ROOT / "docs/benchmarks.md").read_text(encoding="utf-8")
    firsts = re.findall(r"^- \*\*(\w[\w ]*)", text, re.M)
    assert firsts == ["On a Pi", "On a PC", "Beside WebRTC", "Worst", "Missed"]
    rows = re.findall(r"^\| .*(?= \|$)", text, re.M)
    assert len(rows) > 50
    for row in rows:
        for cell in row.split(" | ")[1:]:
            values = re.findall(
                r"(?<![\w.,])\d[\d.,]*(?: to \d[\d.,]*)?", re.sub("`.*?`", "", cell)
            )
            assert len(values) <= 1, row
        assert row.count("**") == 2 * row.count(": missed"), row


def test_pictures_are_shown_by_pages_and_small() -> None:
    shown = set()
    for page in PAGES:
        for found in LINK.findall(page.read_text(encoding="utf-8")):
            shown.add((page.parent / "".join(found)).resolve())
    there = set(pictures.TARGET.iterdir())
    assert there <= shown
    taken = {pictures.TARGET / f"{name}.png" for names in pictures.ALBUM for name in names}
    assert {one for one in there if not one.match(PLOTS)} == taken, "make pictures"
    assert sum(one.stat().st_size for one in taken) <= PICTURES_BYTES


def test_pictures_are_taken_again_after_a_stopped_drive(tmp_path: Path) -> None:
    folders: list[Path] = []

    def take(browser: object, folder: Path) -> None:
        folders.append(folder)
        if len(folders) < 3:
            raise pictures.StoppedDrive

    pictures.taken(take, cast("Browser", None), tmp_path / "one")
    assert [folder.name for folder in folders] == ["0", "1", "2"]
    with pytest.raises(OSError, match="two: this machine is too busy"):
        pictures.taken(never, cast("Browser", None), tmp_path / "two")


def never(browser: object, folder: Path) -> None:
    raise pictures.StoppedDrive


def test_picture_is_stale_when_page_has_other_words(tmp_path: Path) -> None:
    taken = [path for path in pictures.TARGET.glob("*.png") if not path.match(PLOTS)]
    for path in taken:
        assert picture_file.stale(path) == [], f"make pictures ONLY={path.stem}"
    assert "Invite a driver" in picture_file.says(pictures.TARGET / "who-phone.png")
    other = tmp_path / "other.png"
    notes = PngImagePlugin.PngInfo()
    notes.add_itxt(picture_file.KEY, "Menu\nSearch for mistakes")
    Image.new("1", (1, 1)).save(other, pnginfo=notes)
    assert picture_file.stale(other) == ["Search for mistakes"]


def test_documented_layers_match_the_layer_test() -> None:
    text = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    floors = "\n".join(", ".join(rooms) for rooms in FLOORS)
    assert f"```text\n{floors}\n```" in text


def literals() -> str:
    """Return all texts that the programs can print."""
    said = []
    places = (ROOT / "pi", ROOT / "base-station" / "fpvstation")
    for path in (one for place in places for one in place.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                said.append(node.value)
    for folder, kind in (("web", "*.js*"), ("tools", "*.sh")):
        said += [path.read_text(encoding="utf-8") for path in (ROOT / folder).rglob(kind)]
    return "\n".join(said)


def test_troubleshooting_quotes_exist_in_the_program() -> None:
    text = (ROOT / "docs/troubleshooting.md").read_text(encoding="utf-8")
    cells = re.findall(r"^\| (.*?) \| ", text, re.M)
    quoted = [one.strip() for cell in cells for _, one in re.findall(r"(`+)(.+?)\1", cell)]
    assert len(quoted) > 40
    said = literals()
    unsaid = [
        sentence
        for sentence in quoted
        if any(part.strip() not in said for part in sentence.split("..."))
    ]
    assert unsaid == []


TOML = re.compile(r"^```toml\n(.*?)^```", re.M | re.S)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_documented_profile_parts_load(page: Path) -> None:
    for block in TOML.findall(page.read_text(encoding="utf-8")):
        profiles.load(paths.HARDWARE / "bench.toml", [block])


GENERATED: dict[Path, Callable[[], str]] = {
    build_docs.PAGE: build_docs.page,
    doctor_docs.PAGE: doctor_docs.page,
    http_api.FILE: http_api.text,
    page_texts.FINDINGS: page_texts.findings,
    page_texts.SENT: page_texts.sent_texts,
    profile_docs.PAGE: profile_docs.page,
    rights_docs.PAGE: rights_docs.page,
    status_docs.PAGE: status_docs.page,
    wire_docs.PAGE: wire_docs.page,
    **page_messages.FILES,
}


@pytest.mark.parametrize("file", GENERATED, ids=lambda file: file.name)
def test_generated_file_is_up_to_date(file: Path) -> None:
    assert file.read_text(encoding="utf-8") == GENERATED[file](), "stale: make docs"


class Nested(Struct):
    key: str
    values: "dict[str, str | Nested]" = {}


class Said(Down, tag="said", frozen=True):
    text: Nested


def test_value_that_nests_in_itself_has_a_shape_and_a_type() -> None:
    shape = "key: anyText, values: maybe(record(either(anyText, object(() => NESTED)))),"
    typed = "/** @type {import('../lib/wire.js').Shape} */\n"
    assert page_messages.value(Nested) == f"{typed}const NESTED = {{\n  {shape}\n}};\n"
    fields = "key: string; values: Record<string, string | Nested>;"
    assert page_messages.interface(Nested) == f"export interface Nested {{\n  {fields}\n}}\n"
    assert wire_docs.values_in(Said) == [Nested]
    good, refused = (str(vectors) for vectors in text.messages(Said | down.Pong))
    deep = '{"kind":"said","text":{"key":"a","values":{"name":%s}}}'
    assert deep % '{"key":"a","values":{}}' in good and deep % 1 in refused


def test_each_call_of_the_car_is_declared_once_with_a_summary() -> None:
    calls = http_api.calls()
    assert len(calls) > 40
    assert len({(call.method, call.path) for call in calls}) == len(calls)
    assert [call.path for call in calls if not call.summary.endswith(".")] == []


def test_wire_numbers_have_a_unit_or_are_listed_without() -> None:
    sockets = (up.Upward, down.Downward, buttons.ButtonsUpward)
    kinds = [buttons.Glow, *(one for socket in sockets for one in get_args(socket))]
    kinds += wire_docs.values_in(*kinds)
    names = {name for kind in kinds for name in wire_docs.numbers(kind)}
    assert {one for one in names if not wire_docs.unit_of(one)} == wire_docs.NO_UNIT


def test_generated_part_is_written_once_and_rest_stays() -> None:
    page = "by hand\n<!-- make docs: one -->\nold\n<!-- end -->\nby hand\n"
    new = filled(page, {"one": "new\n"})
    assert new == page.replace("old", "\nnew\n") == filled(new, {"one": "new"})
    for parts in ({}, {"one": "", "two": ""}, {"two": ""}):
        with pytest.raises(ValueError, match="the page has the parts"):
            filled(page, parts)
    with pytest.raises(ValueError, match="'one', 'one'"):
        filled(page + page, {"one": ""})


def test_text_has_one_english_and_all_its_values() -> None:
    texts = page_texts.texts()
    assert len(texts) > 250
    assert {key: english for key, english in texts.items() if len(english) > 1} == {}


def test_no_english_is_passed_as_words_of_another_program() -> None:
    """A text without a key has no translation."""
    found = []
    for path in [*(ROOT / "pi").rglob("*.py"), *(ROOT / "base-station").rglob("*.py")]:
        for call in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(call, ast.Call) and ast.unparse(call.func) == "VERBATIM":
                text = call.keywords[0].value
                if isinstance(text, ast.Constant):
                    found.append(f"{path.relative_to(ROOT)}:{call.lineno}")
    assert found == []


RAISED = re.compile(r"(Fault|Error|Gone|Busy|Changed)$|HTTP")
NOT_ON_A_PAGE = {
    "base-station/fpvsites/config.py": "_check_network _named _normalized load mac_of site_of "
    "span_of",
    "base-station/fpvsites/gate.py": "check_programs",
    "base-station/fpvsites/page.py": "serve",
    "base-station/fpvstation/catalogue/catalogue_schema.py": "open_database",
    "base-station/fpvstation/fetch/cars.py": "find url_of",
    "base-station/fpvstation/fetch/client.py": "_faults pair",
    "base-station/fpvstation/replicas/folder_archive.py": "__init__",
    "base-station/fpvstation/replicas/restore.py": "session_of",
    "base-station/fpvstation/replicas/tiers.py": "alone",
    "base-station/fpvstation/query/grep.py": "grep",
    "base-station/fpvstation/store/identity.py": "_create _do open",
    "base-station/fpvstation/store/manifest.py": "folders_of",
    "base-station/fpvstation/web/moments_api.py": "_conditions_of",
    "base-station/fpvstation/web/password.py": "save",
    "base-station/fpvstation/web/query_api.py": "_run answer",
}
"""Functions whose faults a terminal or a program gets: at the start, by a verb, by a query."""


def english_faults(module: Path) -> str:
    """Return the functions that raise a sentence without a key."""
    functions = set()
    for function in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            calls = [node for node in ast.walk(function) if isinstance(node, ast.Call)]
            for call in calls:
                texts = [*call.args, *(word.value for word in call.keywords if word.arg == "text")]
                literal = (text for text in texts if isinstance(text, ast.JoinedStr | ast.Constant))
                worded = any(" " in ast.unparse(text) for text in literal)
                if worded and RAISED.search(ast.unparse(call.func)):
                    functions.add(function.name)
    return " ".join(sorted(functions))


def test_faults_on_a_page_of_a_station_have_a_key() -> None:
    station = ROOT / "base-station" / "fpvstation"
    folders = [
        station / name for name in ("catalogue", "fetch", "query", "replicas", "store", "web")
    ]
    modules = [
        file
        for folder in (station.parent / "fpvsites", *folders)
        for file in folder.glob("[!_]*.py")
    ]
    modules += [station / "errors.py", station / "housekeeping.py"]
    found = {str(file.relative_to(ROOT)): english_faults(file) for file in modules}
    assert {name: functions for name, functions in found.items() if functions} == NOT_ON_A_PAGE


def test_guide_shows_the_car_it_builds() -> None:
    """Wires, sessions and findings are of one profile, except those of the second path."""
    text, _, second = build_docs.PAGE.read_text("utf-8").partition("\n## An RC car with an ESC\n")
    car = build_docs.BOARD
    assert set(re.findall(r"pictures/([\w-]+)/", second)) == {"rc-esc", "rc-esc-hat"}
    profile = profiles.load(paths.HARDWARE / f"{car}.toml")
    assert set(re.findall(r"pictures/([\w-]+)/", text)) == {car}
    assert set(re.findall(r"fpvcar wiring ([\w-]+)", text)) == {car}
    ranges = {f"sensors.{kind}.{name}" for kind, name, _ in profile.sensors.every()}
    assert ranges >= set(re.findall(r"sensors\.\w+\.\w+", text)) != set()

"""Plain English in docstrings, comments and docs, counted per package.

Indefinite and relative pronouns used as nouns ("what waits", "who drives", "nobody") make a
sentence a riddle. The counter finds places to look at; it cannot tell good prose from bad.
"""

import ast
import io
import re
import subprocess
import tokenize
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parent.parent
PRONOUNS = frozenset(
    "what who whom whose which nobody somebody anybody whatever whoever else such none anew"
    " meanwhile".split()
)
OPENERS = frozenset(
    "it its of as by from to that those these this what who whom whose where when which somebody"
    " nobody none one not here there such with without because like".split()
)
WHAT_MOST, PRONOUNS_MOST = 2.0, 14.0
"""Occurrences per 1,000 words of a package."""
SHORT_WORDS, SHORT_SHARE = 4, 0.01
"""At most this share of a package's docstrings may have so few words."""
WORDS_LEAST = 200
"""Packages with fewer words are judged together with their parent."""
DEPTH = {"pi": 2, "base-station": 2, "testkit": 2, "tests": 2, "web": 2}

NAME_OPENERS = frozenset(
    "a an the it its they what who whom whose which that those these this there here nobody"
    " somebody anybody whoever whatever none nothing where as of by from to with without".split()
)
"""First words that a test's name must not have."""

COMMITS_SINCE = "f4764b739cbe6a372a0061c5a9cfcda821da3b91"
"""Subjects of later commits are checked."""
SUBJECT = re.compile(r"[\w/.+,{}*-]+(?:, [\w/.+,{}*-]+)*: ([a-z]+)\b.+")
SUBJECT_MOST = 60
NOT_VERBS = OPENERS | PRONOUNS | {"a", "an", "the", "each", "every", "no", "now", "is", "are", "so"}
ENDINGS = re.compile(r"(?:[^s]s|ed|ing)$")
ENDING_VERBS = frozenset("bring embed feed focus need seed speed bias bus".split())


class Prose(NamedTuple):
    """Text of a docstring, a comment or a line of a document."""

    place: str
    text: str
    docstring: bool


def python_prose(path: str, text: str) -> Iterator[Prose]:
    """Yield docstrings, attribute docstrings and comments of a Python file."""
    for node in ast.walk(ast.parse(text)):
        body = getattr(node, "body", None)
        for child in body if isinstance(body, list) else ():
            if (
                isinstance(child, ast.Expr)
                and isinstance(child.value, ast.Constant)
                and isinstance(child.value.value, str)
            ):
                yield Prose(f"{path}:{child.lineno}", child.value.value, True)
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT and not re.match(r"#\s*(type|noqa|ruff|!)", token.string):
            yield Prose(f"{path}:{token.start[0]}", token.string.lstrip("# "), False)


def script_prose(path: str, text: str) -> Iterator[Prose]:
    """Yield the comments of a JavaScript or C file."""
    for match in re.finditer(r"/\*.*?\*/|(?<![:\"'])//[^\n]*", text, re.S):
        comment = re.sub(r"^\s*\*+/?|@\w+( \{[^}]*\})?", " ", match.group(), flags=re.M)
        line = text[: match.start()].count("\n") + 1
        yield Prose(f"{path}:{line}", comment.strip("/* \n"), False)


def document_prose(path: str, text: str) -> Iterator[Prose]:
    """Yield the lines of a Markdown document outside code."""
    blank = re.sub(
        r"```.*?```|`[^`]*`|^    .*$",
        lambda match: "\n" * match.group().count("\n"),
        text,
        flags=re.S | re.M,
    )
    for number, line in enumerate(blank.splitlines(), 1):
        if line.strip():
            yield Prose(f"{path}:{number}", line, False)


READERS = {
    ".py": python_prose,
    ".js": script_prose,
    ".mjs": script_prose,
    ".c": script_prose,
    ".h": script_prose,
    ".md": document_prose,
}


def names_of_tests(path: str, text: str) -> Iterator[tuple[str, str]]:
    """Yield the place and the name of each test of a Python or JavaScript file."""
    shape = (
        r"^\s*(?:async )?def test_(\w+)" if path.endswith(".py") else r"^test\(['\"`](.+?)['\"`],"
    )
    for match in re.finditer(shape, text, re.M):
        yield f"{path}:{text[: match.start()].count(chr(10)) + 1}", match[1]


def package_of(path: str) -> str:
    """Return the package that a file is counted with: `pi/fpvcar/drive`, `web/seat`, `docs`."""
    folders = path.split("/")[:-1]
    depth = 3 if folders[:2] == ["pi", "fpvcar"] else DEPTH.get(folders[0] if folders else "", 1)
    return "/".join(folders[:depth]) or path


def packages() -> dict[str, list[Prose]]:
    """Return the prose of every tracked file, by package."""
    listed = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, check=True, capture_output=True, text=True
    )
    found: dict[str, list[Prose]] = defaultdict(list)
    for path in listed.stdout.splitlines():
        reader = READERS.get(Path(path).suffix)
        if reader is not None and (ROOT / path).is_file():
            text = (ROOT / path).read_text(encoding="utf-8")
            found[package_of(path)] += reader(path, text)
    return found


def faults(package: str, prose: list[Prose]) -> list[str]:
    """Return one sentence per rule that a package breaks."""
    words = re.findall(r"[a-z']+", " ".join(one.text for one in prose).lower())
    counts, total = Counter(words), max(len(words), WORDS_LEAST)
    what = 1000 * counts["what"] / total
    pronouns = 1000 * sum(counts[word] for word in PRONOUNS) / total
    found = []
    if what > WHAT_MOST:
        found.append(f'{package}: "what" {what:.1f} per 1,000 words (at most {WHAT_MOST})')
    if pronouns > PRONOUNS_MOST:
        found.append(
            f"{package}: pronouns {pronouns:.1f} per 1,000 words (at most {PRONOUNS_MOST})"
        )
    docstrings = [one for one in prose if one.docstring]
    for one in docstrings:
        opener = re.match(r"\s*([A-Za-z]+)\b", one.text)
        if opener is not None and opener[1].lower() in OPENERS and opener[1][0].isupper():
            found.append(f"{one.place}: a docstring begins with {opener[1]!r}")
    short = [one for one in docstrings if len(one.text.split()) <= SHORT_WORDS]
    if len(short) > max(1.0, SHORT_SHARE * len(docstrings)):
        places = ", ".join(one.place for one in short[:5])
        found.append(f"{package}: {len(short)} docstrings of {SHORT_WORDS} words: {places}")
    return found


def subject_fault(subject: str) -> str:
    """Return the rule that a commit's subject breaks, or ""."""
    match = SUBJECT.fullmatch(subject)
    if match is None:
        return f"{subject!r}: expected `area: imperative verb ...`"
    verb = match[1]
    if verb in NOT_VERBS or (ENDINGS.search(verb) and verb not in ENDING_VERBS):
        return f"{subject!r}: {verb!r} is no imperative verb"
    if len(subject) > SUBJECT_MOST:
        return f"{subject!r}: {len(subject)} characters (at most {SUBJECT_MOST})"
    return ""


def test_commit_subjects_are_imperative() -> None:
    log = subprocess.run(
        ["git", "log", "--no-merges", "--format=%s", f"{COMMITS_SINCE}..HEAD"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    if log.returncode:
        pytest.skip("a shallow clone or an archive: no history to check")
    found = [fault for line in log.stdout.splitlines() if (fault := subject_fault(line))]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("subject", "fault"),
    [
        ("gate: reject wishes older than 0.4 s", ""),
        ("drive, server: pass time as an argument", ""),
        ("tests/e2e: who stands up says so", "no imperative verb"),
        ("gate: rejects old wishes", "no imperative verb"),
        ("reject old wishes", "expected `area:"),
        (f"gate: reject {'very ' * 12}old wishes", "characters (at most 60)"),
    ],
)
def test_subject_fault(subject: str, fault: str) -> None:
    found = subject_fault(subject)
    assert fault in found and bool(found) == bool(fault)


def test_packages_are_written_in_plain_english() -> None:
    found = [fault for name, prose in packages().items() for fault in faults(name, prose)]
    assert not found, "\n".join(found)


def test_tests_have_plain_names() -> None:
    found = []
    for path in sorted((ROOT / "tests").rglob("*test*")):
        if path.suffix in (".py", ".js") and path.name != Path(__file__).name:
            file = str(path.relative_to(ROOT))
            for place, name in names_of_tests(file, path.read_text(encoding="utf-8")):
                opener = re.match(r"[A-Za-z]+", name.replace("_", " "))
                if opener is not None and opener[0].lower() in NAME_OPENERS:
                    found.append(f"{place}: {name}")
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("path", "text", "name"),
    [
        ("test_a.py", "def test_the_car_stops() -> None:\n", "the_car_stops"),
        ("test_a.py", "    async def test_it() -> None:\n", "it"),
        ("a.test.js", "test('what stops', () => {\n", "what stops"),
    ],
)
def test_riddling_name_is_read(path: str, text: str, name: str) -> None:
    assert list(names_of_tests(path, text)) == [(f"{path}:1", name)]
    assert re.split("[_ ]", name)[0] in NAME_OPENERS


@pytest.mark.parametrize(
    ("source", "fault"),
    [
        (
            'def stop():\n    """It stands, whatever runs and whoever asks for it."""\n',
            "begins with 'It'",
        ),
        ("# what waits, and what nobody wants\n" * 40, '"what"'),
        ('a = 1\n"""Not here."""\nb = 2\n"""Once more."""\n', "docstrings of 4 words"),
    ],
)
def test_riddle_is_reported(source: str, fault: str) -> None:
    prose = list(python_prose("drive/gate.py", source))
    assert any(fault in one for one in faults("pi/fpvcar/none", prose))


def test_plain_docstring_is_accepted() -> None:
    source = 'def age_s():\n    """Return the age of the newest frame in seconds."""\n'
    assert faults("pi/fpvcar/none", list(python_prose("video/stream.py", source))) == []

"""Generator of the golden vectors from fpvcar.wire: .venv/bin/python -m tests.vectors.make

Python and JavaScript tests read the same files. Run it only when a message changes on purpose, and
review the difference: each changed line breaks older pages.
"""

import json
from pathlib import Path

from tests.vectors import binary, text

HERE = Path(__file__).parent
FILES = {
    "drive_up": text.drive_up,
    "drive_down": text.drive_down,
    "buttons_up": text.buttons_up,
    "buttons_down": text.buttons_down,
    "video": binary.video,
    "camera_record": binary.camera_record,
    "depth_record": binary.depth_record,
    "wheels": binary.wheels,
}
"""Each file and its generator; the Python test compares, and never writes."""


def rendered(name: str) -> str:
    """Return the text of one file: a line per vector."""
    return _lines(FILES[name]()) + "\n"


def _lines(value: object) -> str:
    if isinstance(value, dict):
        parts = (f"{json.dumps(key)}: {_lines(inner)}" for key, inner in value.items())
        return "{" + ",\n".join(parts) + "}"
    if isinstance(value, list):
        vectors = (json.dumps(vector, ensure_ascii=False) for vector in value)
        return "[\n" + ",\n".join(vectors) + "\n]"
    return json.dumps(value, ensure_ascii=False)


if __name__ == "__main__":
    for name in FILES:
        (HERE / f"{name}.json").write_text(rendered(name), encoding="utf-8")

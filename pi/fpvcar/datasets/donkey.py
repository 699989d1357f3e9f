"""Writer of a Donkeycar tub, version 2.

    images/{index}_cam_image_array_.jpg
    catalog_N.catalog, catalog_N.catalog_manifest    CATALOG records each
    manifest.json                                    written last

Format: donkeycar 5, parts/tub_v2.py and datastore_v2.py. A tub has no episodes: each has a session
of its own, by which Donkeycar splits sequences. JSON is ASCII: Donkeycar counts its characters as
bytes.
"""

import json
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from fpvcar.datasets import video
from fpvcar.datasets.grid import Size, Ticks
from fpvcar.datasets.part import Episode, Shape
from fpvcar.datasets.session import Row
from fpvcar.datasets.video import NumberedFrames
from fpvcar.runtime.units import SECOND_NS

IMAGE = "cam/image_array"
SIZE = Size(160, 120)
"""Donkeycar's usual pictures."""
CATALOG = 1000
RECORDS = "records"


def write_episode(
    folder: Path,
    episode: Episode,
    rows: Sequence[Row],
    ticks: Ticks,
    frames: Callable[[], NumberedFrames],
    shape: Shape,
    _copy: bool,
) -> Episode:
    """Write the pictures of an episode, and its records for `finish`; return the episode. Raises
    RecordingError, OSError."""
    pictures = video.on_ticks(video.decoded(frames()), ticks)
    lines = list[bytes]()
    for path in (folder / "images", folder.with_name(RECORDS)):
        path.mkdir(exist_ok=True)
    jpegs = video.jpegs(pictures, shape.size)
    for number, (row, time_ns, jpeg) in enumerate(zip(rows, ticks.times_ns, jpegs, strict=True)):
        index = episode.index + number
        name = f"{index}_cam_image_array_.jpg"
        (folder / "images" / name).write_bytes(jpeg)
        record = {
            "_index": index,
            "_session_id": _session(episode),
            "_timestamp_ms": time_ns // 1_000_000,
            IMAGE: name,
            "user/angle": row.action[1],
            "user/throttle": row.action[0],
            "user/mode": "user",
            **dict(zip(shape.columns, row.state, strict=True)),
            **{"driver": episode.driver, "stop": row.stop, "unknown": " ".join(row.unknown)},
        }
        lines.append(json.dumps(record).encode() + b"\n")
    records = folder.with_name(RECORDS) / f"{episode.number}.jsonl"
    records.write_bytes(b"".join(lines))
    return episode


def _session(episode: Episode) -> str:
    date = time.strftime("%y-%m-%d", time.gmtime(episode.start_ns // SECOND_NS))
    return f"{date}_{episode.number}"


def finish(folder: Path, episodes: Sequence[Episode], shape: Shape) -> None:
    """Write catalogs and manifest; remove pictures of an episode that failed. Raises OSError."""
    lines, paths, count = _lines(folder, episodes), list[str](), 0
    created_s = episodes[0].start_ns / SECOND_NS
    while catalog := list(islice(lines, CATALOG)):
        name = f"catalog_{len(paths)}"
        (folder / f"{name}.catalog").write_bytes(b"".join(catalog))
        about = {
            "created_at": created_s,
            "line_lengths": [len(line) for line in catalog],
            "path": f"{name}.catalog_manifest",
            "start_index": count,
        }
        _write_json(folder / f"{name}.catalog_manifest", about)
        paths.append(f"{name}.catalog")
        count += len(catalog)
    for picture in (folder / "images").iterdir():
        if int(picture.name.partition("_")[0]) >= count:
            picture.unlink()
    inputs = {
        **{IMAGE: "image_array", "user/angle": "float", "user/throttle": "float"},
        "user/mode": "str",
        **dict.fromkeys(shape.columns, "float"),
        **dict.fromkeys(("driver", "stop", "unknown"), "str"),
    }
    names = [_session(episode) for episode in episodes]
    sessions = {"last_id": episodes[-1].number, "last_full_id": names[-1], "all_full_ids": names}
    catalogs = {
        **{"paths": paths, "current_index": count, "max_len": CATALOG, "deleted_indexes": []}
    }
    _write_json(
        folder / "manifest.json",
        list(inputs),
        list(inputs.values()),
        {"fps": f"{shape.fps}"},
        {"created_at": created_s, "sessions": sessions},
        catalogs,
    )


def _lines(folder: Path, episodes: Sequence[Episode]) -> Iterator[bytes]:
    for episode in episodes:
        with (folder.with_name(RECORDS) / f"{episode.number}.jsonl").open("rb") as file:
            yield from file


def _write_json(path: Path, *lines: Any) -> None:
    path.write_bytes(b"".join(json.dumps(line).encode() + b"\n" for line in lines))

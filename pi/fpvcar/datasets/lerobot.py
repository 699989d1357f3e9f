"""Writer of a LeRobot dataset v3.0.

    data/chunk-000/file-000.parquet                     rows of an episode
    videos/observation.images.front/chunk-000/...mp4    its pictures
    meta/                                               written last, from all episodes

Each episode has files of its own, so that a finished one is never touched again.
Format: lerobot 0.6, src/lerobot/datasets/dataset_metadata.py and feature_utils.py.
"""

import importlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from fpvcar.datasets import video
from fpvcar.datasets.grid import Ticks
from fpvcar.datasets.part import Episode, Shape
from fpvcar.datasets.session import WISH, Row
from fpvcar.datasets.video import NumberedFrames
from fpvcar.recordings.export.tables import utc_text

VIDEO = "observation.images.front"
PLACE = "chunk-{:03d}/file-{:03d}"
INDEXED = "chunk-{chunk_index:03d}/file-{file_index:03d}"
CHUNK = 1000
DATA_MB, VIDEO_MB = 100, 200
"""Sizes that LeRobot's own tools keep when they add to a dataset."""


def place_of(number: int) -> str:
    """Return the path of an episode's files below their folder, without a suffix."""
    return PLACE.format(*divmod(number, CHUNK))


def write_episode(
    folder: Path,
    episode: Episode,
    rows: Sequence[Row],
    ticks: Ticks,
    frames: Callable[[], NumberedFrames],
    shape: Shape,
    copy: bool,
) -> Episode:
    """Write an episode; return it with its statistics. Raises RecordingError, OSError.

    `copy` the video if each tick has the frame after that of the tick before.
    """
    place, size = place_of(episode.number), shape.size
    film = folder / "videos" / VIDEO / f"{place}.mp4"
    data = folder / "data" / f"{place}.parquet"
    for path in (film, data):
        path.parent.mkdir(parents=True, exist_ok=True)
    copied = (
        copy
        and not (episode.doubled or episode.dropped)
        and video.copy(frames(), film, size, shape.fps, episode.start_ns)
    )
    if not copied:
        pictures = video.on_ticks(video.decoded(frames()), ticks)
        video.encode(pictures, film, size, shape.fps)
    count = len(rows)
    numbers: dict[str, Sequence[Any]] = {
        "action": [row.action for row in rows],
        "observation.state": [row.state for row in rows],
        "timestamp": [number / shape.fps for number in range(count)],
        "frame_index": list(range(count)),
        "episode_index": [episode.number] * count,
        "index": list(range(episode.index, episode.index + count)),
        "task_index": [episode.task_index] * count,
    }
    _write_table(data, _schema(shape), numbers)
    figures = {
        name: video.statistics([value if isinstance(value, list) else [value] for value in values])
        for name, values in numbers.items()
    }
    figures[VIDEO] = video.picture_statistics(video.sampled(film, copied))
    return msgspec.structs.replace(episode, copied=copied, statistics=figures)


def _schema(shape: Shape) -> Any:
    arrow: Any = importlib.import_module("pyarrow")
    return arrow.schema(
        {
            "action": arrow.list_(arrow.float32(), len(WISH)),
            "observation.state": arrow.list_(arrow.float32(), len(shape.columns)),
            "timestamp": arrow.float32(),
            "frame_index": arrow.int64(),
            "episode_index": arrow.int64(),
            "index": arrow.int64(),
            "task_index": arrow.int64(),
        }
    )


def _write_table(path: Path, schema: Any, columns: dict[str, Any]) -> None:
    arrow: Any = importlib.import_module("pyarrow")
    parquet: Any = importlib.import_module("pyarrow.parquet")
    parquet.write_table(arrow.table(columns, schema), path, compression="zstd")


def finish(folder: Path, episodes: Sequence[Episode], shape: Shape) -> None:
    """Write the metadata of all episodes; remove the video of one that failed. Raises OSError."""
    arrow: Any = importlib.import_module("pyarrow")
    parquet: Any = importlib.import_module("pyarrow.parquet")
    meta, failed = folder / "meta", f"{place_of(len(episodes))}.mp4"
    (folder / "videos" / VIDEO / failed).unlink(missing_ok=True)
    for number in range(0, len(episodes), CHUNK):
        rows = [_episode_row(episode, shape) for episode in episodes[number : number + CHUNK]]
        path = meta / "episodes" / f"{place_of(number // CHUNK)}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        parquet.write_table(arrow.Table.from_pylist(rows), path)
    tasks = list(dict.fromkeys(episode.task for episode in episodes))
    table = arrow.table({"task_index": range(len(tasks)), "task": tasks})
    # LeRobot reads this table by pandas, and looks tasks up in its index.
    kinds = {"task_index": ("int64", "int64"), "task": ("unicode", "object")}
    columns = [
        {"name": name, "field_name": name, "pandas_type": kind, "numpy_type": own, "metadata": None}
        for name, (kind, own) in kinds.items()
    ]
    index = {"index_columns": ["task"], "columns": columns, "column_indexes": []}
    table = table.replace_schema_metadata({"pandas": msgspec.json.encode(index)})
    parquet.write_table(table, meta / "tasks.parquet")
    features = episodes[0].statistics
    merged = {
        name: video.merged([episode.statistics[name] for episode in episodes]) for name in features
    }
    (meta / "stats.json").write_bytes(msgspec.json.format(msgspec.json.encode(merged)))
    info = _info(len(episodes), sum(episode.length for episode in episodes), len(tasks), shape)
    (meta / "info.json").write_bytes(msgspec.json.format(msgspec.json.encode(info)))


def _episode_row(episode: Episode, shape: Shape) -> dict[str, Any]:
    chunk, file = divmod(episode.number, CHUNK)
    video_at = f"videos/{VIDEO}"
    chunk_of_row, file_of_row = divmod(episode.number // CHUNK, CHUNK)
    row = {
        "episode_index": episode.number,
        "tasks": [episode.task],
        "length": episode.length,
        "data/chunk_index": chunk,
        "data/file_index": file,
        "dataset_from_index": episode.index,
        "dataset_to_index": episode.index + episode.length,
        f"{video_at}/chunk_index": chunk,
        f"{video_at}/file_index": file,
        f"{video_at}/from_timestamp": 0.0,
        f"{video_at}/to_timestamp": episode.length / shape.fps,
        "meta/episodes/chunk_index": chunk_of_row,
        "meta/episodes/file_index": file_of_row,
        "car": episode.car,
        "recording": episode.recording,
        "start": utc_text(episode.start_ns),
        "driver": episode.driver,
        "stops": episode.stops,
        "unknown": episode.unknown,
        "doubled": episode.doubled,
        "dropped": episode.dropped,
        "copied": episode.copied,
    }
    for name, figures in episode.statistics.items():
        row |= {f"stats/{name}/{figure}": value for figure, value in figures.items()}
    return row


def _info(episodes: int, frames: int, tasks: int, shape: Shape) -> dict[str, Any]:
    def feature(dtype: str, size: int = 1, names: Sequence[str] | None = None) -> dict[str, Any]:
        return {"dtype": dtype, "shape": [size], "names": names, "fps": shape.fps}

    film = {
        "dtype": "video",
        "shape": [shape.height, shape.width, 3],
        "names": ["height", "width", "channels"],
        "info": {
            "video.height": shape.height,
            "video.width": shape.width,
            "video.codec": "h264",
            "video.pix_fmt": "yuv420p",
            "video.is_depth_map": False,
            "video.fps": shape.fps,
            "video.channels": 3,
            "has_audio": False,
        },
    }
    integers = ("frame_index", "episode_index", "index", "task_index")
    return {
        "codebase_version": "v3.0",
        "robot_type": "fpvcar",
        "total_episodes": episodes,
        "total_frames": frames,
        "total_tasks": tasks,
        "chunks_size": CHUNK,
        "data_files_size_in_mb": DATA_MB,
        "video_files_size_in_mb": VIDEO_MB,
        "fps": shape.fps,
        "splits": {"train": f"0:{episodes}"},
        "data_path": f"data/{INDEXED}.parquet",
        "video_path": f"videos/{{video_key}}/{INDEXED}.mp4",
        "features": {
            "action": feature("float32", len(WISH), WISH),
            "observation.state": feature("float32", len(shape.columns), shape.columns),
            VIDEO: film,
            "timestamp": feature("float32"),
            **{name: feature("int64") for name in integers},
        },
    }

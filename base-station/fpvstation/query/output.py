"""Forms of a query's result: table, CSV, JSON, Parquet. Times are UTC."""

import csv
import datetime
import itertools
from pathlib import Path
from typing import Any, TextIO

import msgspec

from fpvcar.recordings.export.export import published
from fpvcar.recordings.export.tables import cell_text
from fpvstation.query.engine import Result
from fpvstation.query.sidecar import library

CELL_MOST = 60
"""Characters of a cell in a table; CSV and JSON have all."""
INTEGER_MOST = 2**63


def write_table(out: TextIO, result: Result, most: int | None) -> bool:
    """Write aligned columns; return whether rows were left out, as all these functions do."""
    limited = itertools.islice(result.rows, most)
    rows = [[_table_text(cell) for cell in row] for row in limited]
    widths = [max(map(len, column)) for column in zip(result.columns, *rows, strict=True)]
    for row in (result.columns, *rows):
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        print("  ".join(cells).rstrip(), file=out)
    return _more(result)


def _table_text(cell: Any) -> str:
    text = f"{cell:.6g}" if isinstance(cell, float) else plain(cell)
    text = "".join(letter if letter.isprintable() else "?" for letter in text)
    return text if len(text) <= CELL_MOST else f"{text[: CELL_MOST - 1]}…"


def write_csv(out: TextIO, result: Result, most: int | None) -> bool:
    """Write CSV, RFC 4180."""
    writer = csv.writer(out)
    writer.writerow(result.columns)
    for row in itertools.islice(result.rows, most):
        writer.writerow(map(plain, row))
    return _more(result)


def _more(result: Result) -> bool:
    return next(result.rows, None) is not None


def plain(cell: Any) -> str:
    """Return a cell as text, as `fpvcar export --csv` does; lists as JSON."""
    if cell is None or isinstance(cell, bool | int | float | str):
        return cell_text(cell)
    value = json_value(cell)
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def write_json(out: TextIO, result: Result, most: int | None) -> bool:
    """Write one object, row by row: {"columns": [...], "rows": [[...], ...], "more": false}."""
    before = "\n"
    out.write(f'{{"columns":{msgspec.json.encode(result.columns).decode()},"rows":[')
    for row in itertools.islice(result.rows, most):
        out.write(before + msgspec.json.encode(list(map(json_value, row))).decode())
        before = ",\n"
    more = _more(result)
    out.write(f'\n],"more":{"true" if more else "false"}}}\n')
    return more


def json_value(cell: Any) -> Any:
    """Return a value that JSON has: times as ISO 8601, other types as text."""
    if isinstance(cell, datetime.datetime):
        return cell.isoformat() + ("" if cell.tzinfo else "Z")
    if isinstance(cell, dict):
        return {str(key): json_value(value) for key, value in cell.items()}
    if isinstance(cell, list | tuple):
        return [json_value(value) for value in cell]
    large = isinstance(cell, int) and abs(cell) >= INTEGER_MOST
    return cell if isinstance(cell, int | float | str | None) and not large else str(cell)


def write_parquet(path: Path, result: Result, most: int | None, litter: list[Path]) -> bool:
    """Write a new Parquet file; `litter` gets its temporary folder. Raises RecordingError if it
    exists."""
    arrow, parquet, left = library("pyarrow"), library("pyarrow.parquet"), most
    with published(path, force=False, folder=False) as new:
        litter.append(new.parent)
        batches = result.batches()
        schema = arrow.schema([_utc(arrow, field) for field in batches.schema])
        with parquet.ParquetWriter(new, schema, compression="zstd") as writer:
            for batch in batches:
                table = arrow.Table.from_batches([batch]).cast(schema)
                if left is not None and table.num_rows > left:
                    writer.write_table(table.slice(0, left))
                    return True
                writer.write_table(table)
                left = None if left is None else left - table.num_rows
    return False


def _utc(arrow: Any, field: Any) -> Any:
    """Return the field of a schema; a time gets the zone UTC."""
    kind = field.type
    is_time = arrow.types.is_timestamp(kind)
    return field.with_type(arrow.timestamp(kind.unit, tz="UTC")) if is_time else field

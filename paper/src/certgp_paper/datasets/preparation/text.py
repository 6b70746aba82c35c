"""Columns of text files: fast where the file is sound, and exact about file, line and cause where it is not."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import IO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
from numpy.typing import NDArray

from certgp.errors import DataFileError
from certgp_paper.datasets.preparation.archives import TextFile

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Layout:
    """What a line of a text file looks like."""

    width: int  # fields per line
    delimiter: str | None = ","  # None: any white space
    header: Mapping[int, str] | None = None  # names that the first line must have at some positions; None: no header
    texts: Sequence[int] = ()  # positions of fields that are not numbers
    missing: Sequence[str] = field(default=())  # what stands for no value; such lines are left out


def read_numbers(file: TextFile, layout: Layout) -> Array:
    """The numeric fields of all lines, (lines, width - texts), float64."""
    table = read_columns(file, layout)
    numeric = [j for j in range(layout.width) if j not in layout.texts]
    values = np.empty((table.num_rows, len(numeric)))
    for k, j in enumerate(numeric):
        values[:, k] = table.column(str(j)).to_numpy()
    return values


def read_columns(file: TextFile, layout: Layout) -> pa.Table:
    """All fields of complete lines: columns "0", "1", ... of float64, or of text where the layout says so."""
    if layout.header is not None:
        _check_header(file, layout)
    if layout.delimiter is None:
        table = _line_by_line(file, layout)
    else:
        try:
            table = _fast(file, layout)
        except pa.ArrowInvalid:
            table = _line_by_line(file, layout)  # which names the first line that is wrong, or reads what arrow cannot
    if layout.missing:
        table = table.drop_null()
    if not table.num_rows:
        raise DataFileError(f"{file.name} has no complete line; download it again")
    if not all(_finite(table.column(str(j))) for j in range(layout.width) if j not in layout.texts):
        _line_by_line(file, layout)
    return table


def _fast(file: TextFile, layout: Layout) -> pa.Table:
    names = [str(j) for j in range(layout.width)]
    kinds = {name: pa.string() if int(name) in layout.texts else pa.float64() for name in names}
    with file.open() as stream:
        return pa_csv.read_csv(
            stream,
            read_options=pa_csv.ReadOptions(column_names=names, skip_rows=0 if layout.header is None else 1),
            parse_options=pa_csv.ParseOptions(delimiter=layout.delimiter),
            convert_options=pa_csv.ConvertOptions(
                column_types=kinds, null_values=list(layout.missing), strings_can_be_null=True
            ),
        )


def _finite(column: pa.ChunkedArray) -> bool:
    return bool(pc.all(pc.is_finite(column), skip_nulls=False).as_py())


def _check_header(file: TextFile, layout: Layout) -> None:
    assert layout.header is not None
    with file.open() as stream:
        _, found = next(_lines(stream, layout.delimiter), (1, []))
    for position, name in layout.header.items():
        have = found[position] if position < len(found) else "nothing"
        if have.strip() != name:
            raise DataFileError(
                f"{file.name}, line 1, field {position + 1}: expected the column {name!r}, found {have[:40]!r}; "
                "is this the right file?"
            )


def _line_by_line(file: TextFile, layout: Layout) -> pa.Table:
    """The same table, in plain Python: slow, and stops at the first line that is wrong with an exact message."""
    columns: list[list[float | str | None]] = [[] for _ in range(layout.width)]
    with file.open() as stream:
        for number, fields in _lines(stream, layout.delimiter):
            if number == 1 and layout.header is not None:
                continue
            if len(fields) != layout.width:
                raise DataFileError(
                    f"{file.name}, line {number}: expected {layout.width} fields, found {len(fields)}; "
                    "is the file whole?"
                )
            for j, text in enumerate(fields):
                columns[j].append(text if j in layout.texts else _number(text, file.name, number, j, layout.missing))
    return pa.table({str(j): column for j, column in enumerate(columns)})


def _number(text: str, name: str, line: int, position: int, missing: Sequence[str]) -> float | None:
    if text.strip() in missing:
        return None
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise DataFileError(f"{name}, line {line}, field {position + 1}: {text[:40]!r} is not a finite number")
    return value


def _lines(stream: IO[bytes], delimiter: str | None) -> Iterator[tuple[int, list[str]]]:
    """Number, from 1, and fields of every line that is not blank."""
    text = io.TextIOWrapper(stream, encoding="utf-8", errors="replace", newline="")
    try:
        if delimiter is None:
            for number, line in enumerate(text, 1):
                if line.strip():
                    yield number, line.split()
        else:
            reader = csv.reader(text, delimiter=delimiter)
            for fields in reader:
                if any(fields):
                    yield reader.line_num, [entry.strip() for entry in fields]
    finally:
        text.detach()  # the stream is its opener's to close

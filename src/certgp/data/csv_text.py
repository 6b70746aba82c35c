"""Tables as text: how they are parsed, and what is wrong with a file that was written for another parser."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pa_csv

from certgp.errors import DataFileError

_COMPRESSIONS = ("", ".gz", ".bz2", ".zst", ".lz4")  # unpacked on the way
DELIMITERS = {f".csv{packed}": "," for packed in _COMPRESSIONS} | {f".tsv{packed}": "\t" for packed in _COMPRESSIONS}
_WORDS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
_READ_BYTES = 65_536
_BLOCK_BYTES = 1 << 20
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")


def text_header(path: Path, delimiter: str) -> tuple[str, ...]:
    """Names of the columns; a file that would be misread is refused with the reason."""
    _check_text(path, delimiter)
    parsing = _parsing(delimiter)
    parsing.invalid_row_handler = lambda _: "skip"  # whoever reads the rows will meet them
    with pa_csv.open_csv(path, parse_options=parsing) as reader:
        return tuple(str(name) for name in reader.schema.names)


def text_batches(path: Path, delimiter: str, names: Sequence[str], begin: int = 0) -> Iterator[pa.RecordBatch]:
    """The named columns of all rows from row ``begin`` on, some rows at a time; numbers are float64.

    The parser chooses types by the first block alone, and stumbles over a word further down without saying where.
    """
    types: dict[str, pa.DataType] = {}
    try:
        with _open(path, delimiter, names, {}) as reader:
            types |= {field.name: pa.float64() for field in reader.schema if _is_number_type(field.type)}
        with _open(path, delimiter, names, types, begin=begin) as reader:
            yield from reader
    except pa.ArrowInvalid as error:
        if "conversion error" in str(error):
            _refuse_words(path, delimiter, list(types))
        if "columns, got" in str(error):
            _refuse_line(path, delimiter, names)
        raise


def string_batches(path: Path, delimiter: str, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """The named columns of all rows as texts; a line with too few or too many fields is refused by its number."""
    try:
        with _open(path, delimiter, names, dict.fromkeys(names, pa.string())) as reader:
            yield from reader
    except pa.ArrowInvalid as error:
        if "columns, got" in str(error):
            _refuse_line(path, delimiter, names)
        raise


def lenient_batches(path: Path, delimiter: str, names: Sequence[str], lines: list[int]) -> Iterator[pa.RecordBatch]:
    """The named columns of all rows as texts; lines with too few or too many fields are left out and their numbers
    (from 1, the header's) added to ``lines``.
    """

    def leave_out(row: pa_csv.InvalidRow) -> str:
        lines.append(int(row.number))
        return "skip"

    with _open(path, delimiter, names, dict.fromkeys(names, pa.string()), leave_out) as reader:
        yield from reader


def not_numeric(path: Path, name: str, place: str, text: str) -> DataFileError:
    """What to say of a column that holds something else than numbers in some place."""
    return DataFileError(
        f"column {name!r} of {path} is not numeric: {place} holds {text[:40]!r}; encode it as numbers, or leave it out "
        f"of the fit (--drop {shlex.quote(name)})"
    )


def is_number(text: str) -> bool:
    """Can this text be read as a number?"""
    try:
        float(text)
    except ValueError:
        return False
    return True


def _refuse_words(path: Path, delimiter: str, names: Sequence[str]) -> None:
    """Look for the first word among the numbers of these columns, and name it."""
    start = 1
    with _open(path, delimiter, names, dict.fromkeys(names, pa.string())) as reader:
        for batch in reader:
            for name, column in zip(names, batch.columns, strict=True):
                for i, text in enumerate(column.to_pylist()):
                    if text is not None and not is_number(text):
                        raise not_numeric(path, name, f"row {start + i} (line {start + i + 1})", text)
            start += batch.num_rows


def _refuse_line(path: Path, delimiter: str, names: Sequence[str]) -> None:
    """Look for the first line with too few or too many fields, and name it. Only a single thread counts lines."""
    try:
        with _open(path, delimiter, names, dict.fromkeys(names, pa.string()), lambda _: "error") as reader:
            for _ in reader:
                pass
    except pa.ArrowInvalid as error:
        found = re.search(r"Row #(\d+): Expected (\d+) columns, got (\d+)", str(error))
        if found is None:
            raise
        line, expected, got = found.groups()
        raise DataFileError(
            f"line {line} of {path} has {got} field(s) where the header has {expected}; give every row as many values "
            "as the header and put quotes around text with commas, or leave such rows out (on_bad_rows='skip', "
            "--on-bad-rows skip)"
        ) from error


def _open(
    path: Path,
    delimiter: str,
    names: Sequence[str],
    types: Mapping[str, pa.DataType],
    judge: Callable[[pa_csv.InvalidRow], str] | None = None,
    begin: int = 0,
) -> pa_csv.CSVStreamingReader:
    """A reader of the named columns from row ``begin`` on; on one thread with ``judge``, which is asked about lines of
    other lengths.
    """
    only = pa_csv.ConvertOptions(include_columns=list(names), column_types=types, strings_can_be_null=True)
    blocks = pa_csv.ReadOptions(block_size=_BLOCK_BYTES, use_threads=judge is None, skip_rows_after_names=begin)
    parsing = _parsing(delimiter)
    if judge is not None:
        parsing.invalid_row_handler = judge
    return pa_csv.open_csv(path, read_options=blocks, parse_options=parsing, convert_options=only)


def _is_number_type(kind: pa.DataType) -> bool:
    return any(holds(kind) for holds in (pa.types.is_integer, pa.types.is_floating, pa.types.is_null))


def _parsing(delimiter: str) -> pa_csv.ParseOptions:
    return pa_csv.ParseOptions(delimiter=delimiter)


def _check_text(path: Path, delimiter: str) -> None:
    """Name an encoding or a delimiter that the parser would stumble over, or worse would not."""
    with pa.input_stream(str(path), compression="detect") as stream:
        start = stream.read(_READ_BYTES)
    whole_lines = start[: start.rfind(b"\n") + 1] or start  # a character may be cut at the end
    if start.startswith(_UTF16_MARKS) or 2 * start.count(b"\0") >= len(start) > 0:
        raise DataFileError(f"{path} seems to be UTF-16 text; save it again as UTF-8")
    try:
        header = whole_lines.decode("utf-8").partition("\n")[0]
    except UnicodeDecodeError as error:
        line = whole_lines.count(b"\n", 0, error.start) + 1
        raise DataFileError(
            f"{path} is not UTF-8 text (line {line} holds the byte 0x{whole_lines[error.start]:02x}), perhaps Latin-1 "
            "or Windows-1252; save it again as UTF-8"
        ) from error
    others = [other for other in _WORDS if other != delimiter and other in header]
    if delimiter not in header and others:
        found = max(others, key=header.count)
        raise DataFileError(
            f"the columns of {path} seem to be separated by {_WORDS[found]}, not {_WORDS.get(delimiter, delimiter)}; "
            f"on the command line say so with --sep {shlex.quote(found)} (and --decimal , where numbers have decimal "
            "commas), or save it with commas and decimal points (.csv has commas, .tsv tabs)"
        )

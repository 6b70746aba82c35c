"""Tables as text: how they are parsed, and what is wrong with a file that was written for another parser."""

from __future__ import annotations

import gzip
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pa_csv

from certgp.errors import DataFileError

DELIMITERS = {".csv": ",", ".csv.gz": ",", ".tsv": "\t"}
_WORDS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
_READ_BYTES = 65_536
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")


def text_header(path: Path, delimiter: str) -> tuple[str, ...]:
    """Names of the columns; a file that would be misread is refused with the reason."""
    _check_text(path, delimiter)
    with pa_csv.open_csv(path, parse_options=_parsing(delimiter)) as reader:  # .gz is unpacked on the way
        return tuple(str(name) for name in reader.schema.names)


def text_columns(path: Path, delimiter: str, names: tuple[str, ...]) -> pa.Table:
    """The named columns of all rows."""
    only = pa_csv.ConvertOptions(include_columns=list(names))
    return pa_csv.read_csv(path, parse_options=_parsing(delimiter), convert_options=only)


def _parsing(delimiter: str) -> pa_csv.ParseOptions:
    return pa_csv.ParseOptions(delimiter=delimiter)


def _check_text(path: Path, delimiter: str) -> None:
    """Name an encoding or a delimiter that the parser would stumble over, or worse would not."""
    with gzip.open(path) if path.suffix.lower() == ".gz" else path.open("rb") as stream:
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
            f"the columns of {path} seem to be separated by {_WORDS[found]}, not {_WORDS[delimiter]}; save it with "
            f"{_WORDS[delimiter]} and decimal points (.csv has commas, .tsv tabs)"
        )

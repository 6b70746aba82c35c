"""What a model file says of itself, read without torch, so that commands refuse wrong tables before importing it."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

from certgp.errors import ModelFileError

FORMAT = "certgp-model"
_MOST_BYTES = 2**30  # of a header; more is not one


def read_values(path: Path) -> dict[str, Any]:
    """The plain values of a model file; none of one that cannot be read, of which ``load`` says what is wrong."""
    if not path.is_file():
        raise ModelFileError(f"{path} does not exist or is not a file")
    header = _metadata(path)
    with suppress(ValueError, KeyError, TypeError):
        values: dict[str, Any] = json.loads(header["model"])
        return values
    return {}


def is_model_file(path: Path) -> bool:
    """Was this file written by ``save``, in any version? Only its header is looked at."""
    return _metadata(path).get("format") == FORMAT


def _metadata(path: Path) -> dict[str, Any]:
    """The texts in the header of a safetensors file: its length in 8 bytes, then JSON."""
    with suppress(OSError, ValueError), path.open("rb") as stream:
        size = int.from_bytes(stream.read(8), "little")
        if 0 < size <= min(_MOST_BYTES, path.stat().st_size):
            header = json.loads(stream.read(size))
            found = header.get("__metadata__") if isinstance(header, dict) else None
            return found if isinstance(found, dict) else {}
    return {}

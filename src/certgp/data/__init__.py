"""Where rows come from: arrays and files, standardised and handed out in chunks."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from certgp.data.sources import (
        ArraySource,
        Chunk,
        ChunkSource,
        RowSource,
        SubsetSource,
        TypedSource,
        count_distinct_rows,
        target_is_constant,
    )
    from certgp.data.standardise import Standardiser
    from certgp.data.tables import Table, read_table, write_table

# name -> module; imported at the first use, so that reading a table does not wait for torch
_MODULES = {
    "ArraySource": "sources",
    "Chunk": "sources",
    "ChunkSource": "sources",
    "RowSource": "sources",
    "Standardiser": "standardise",
    "SubsetSource": "sources",
    "Table": "tables",
    "TypedSource": "sources",
    "count_distinct_rows": "sources",
    "read_table": "tables",
    "target_is_constant": "sources",
    "write_table": "tables",
}

__all__ = [
    "ArraySource",
    "Chunk",
    "ChunkSource",
    "RowSource",
    "Standardiser",
    "SubsetSource",
    "Table",
    "TypedSource",
    "count_distinct_rows",
    "read_table",
    "target_is_constant",
    "write_table",
]


def __getattr__(name: str) -> object:
    if name in _MODULES:
        return getattr(import_module(f"certgp.data.{_MODULES[name]}"), name)
    raise AttributeError(f"module 'certgp.data' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)

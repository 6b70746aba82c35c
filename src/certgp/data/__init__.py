"""Where rows come from: arrays, frames and files, summarised in one pass, standardised and handed out in chunks."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from certgp.data.files import read
    from certgp.data.rows import ArrayRows, FrameRows, PickedRows, Rows, WeightedRows, as_rows
    from certgp.data.sources import (
        Chunk,
        ChunkSource,
        ReweightedSource,
        RowSource,
        StandardisedRows,
        SubsetSource,
        TypedSource,
        draw_positions,
        target_is_constant,
    )
    from certgp.data.standardise import Standardiser
    from certgp.data.store import StoredRows
    from certgp.data.summary import Summary, check_finite, summarise
    from certgp.data.tables import Table, read_table, write_table

# name -> module; imported at the first use, so that reading a table does not wait for torch
_MODULES = {
    "ArrayRows": "rows",
    "Chunk": "sources",
    "ChunkSource": "sources",
    "FrameRows": "rows",
    "PickedRows": "rows",
    "ReweightedSource": "sources",
    "RowSource": "sources",
    "Rows": "rows",
    "StandardisedRows": "sources",
    "StoredRows": "store",
    "Standardiser": "standardise",
    "SubsetSource": "sources",
    "Summary": "summary",
    "Table": "tables",
    "TypedSource": "sources",
    "WeightedRows": "rows",
    "as_rows": "rows",
    "check_finite": "summary",
    "draw_positions": "sources",
    "read": "files",
    "read_table": "tables",
    "summarise": "summary",
    "target_is_constant": "sources",
    "write_table": "tables",
}

__all__ = [
    "ArrayRows",
    "Chunk",
    "ChunkSource",
    "FrameRows",
    "PickedRows",
    "ReweightedSource",
    "RowSource",
    "Rows",
    "StandardisedRows",
    "Standardiser",
    "StoredRows",
    "SubsetSource",
    "Summary",
    "Table",
    "TypedSource",
    "WeightedRows",
    "as_rows",
    "check_finite",
    "draw_positions",
    "read",
    "read_table",
    "summarise",
    "target_is_constant",
    "write_table",
]


def __getattr__(name: str) -> object:
    if name in _MODULES:
        return getattr(import_module(f"certgp.data.{_MODULES[name]}"), name)
    raise AttributeError(f"module 'certgp.data' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)

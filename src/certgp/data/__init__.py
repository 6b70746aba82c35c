"""Where rows come from: arrays, frames and files, summarised in one pass, standardised and handed out in chunks; the
registry of data sets.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from certgp.data.catalogue import DatasetInfo
    from certgp.data.fetch import fetch_dataset
    from certgp.data.registry import (
        data_directory,
        dataset_info,
        dataset_names,
        dataset_path,
        load_dataset,
        load_paper_version,
        local_dataset,
        missing_dataset,
    )
    from certgp.data.rows import ArrayRows, FrameRows, PickedRows, Rows, as_rows
    from certgp.data.sources import Chunk, ChunkSource, RowSource, StandardisedRows, SubsetSource
    from certgp.data.standardise import Standardiser
    from certgp.data.summary import Summary, check_finite, summarise
    from certgp.data.tables import Table, read_table, write_table

# name -> module; imported at the first use, so that listing data sets does not wait for torch
_MODULES = {
    "ArrayRows": "rows",
    "Chunk": "sources",
    "ChunkSource": "sources",
    "DatasetInfo": "catalogue",
    "FrameRows": "rows",
    "PickedRows": "rows",
    "RowSource": "sources",
    "Rows": "rows",
    "StandardisedRows": "sources",
    "Standardiser": "standardise",
    "SubsetSource": "sources",
    "Summary": "summary",
    "Table": "tables",
    "as_rows": "rows",
    "check_finite": "summary",
    "data_directory": "registry",
    "dataset_info": "registry",
    "dataset_names": "registry",
    "dataset_path": "registry",
    "fetch_dataset": "fetch",
    "load_dataset": "registry",
    "load_paper_version": "registry",
    "local_dataset": "registry",
    "missing_dataset": "registry",
    "read_table": "tables",
    "summarise": "summary",
    "write_table": "tables",
}

__all__ = [
    "ArrayRows",
    "Chunk",
    "ChunkSource",
    "DatasetInfo",
    "FrameRows",
    "PickedRows",
    "RowSource",
    "Rows",
    "StandardisedRows",
    "Standardiser",
    "SubsetSource",
    "Summary",
    "Table",
    "as_rows",
    "check_finite",
    "data_directory",
    "dataset_info",
    "dataset_names",
    "dataset_path",
    "fetch_dataset",
    "load_dataset",
    "load_paper_version",
    "local_dataset",
    "missing_dataset",
    "read_table",
    "summarise",
    "write_table",
]


def __getattr__(name: str) -> object:
    if name in _MODULES:
        return getattr(import_module(f"certgp.data.{_MODULES[name]}"), name)
    raise AttributeError(f"module 'certgp.data' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)

"""Where rows come from: arrays and files, standardised and handed out in chunks; the registry of data sets."""

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

# name -> module; imported at the first use, so that listing data sets does not wait for torch
_MODULES = {
    "ArraySource": "sources",
    "Chunk": "sources",
    "ChunkSource": "sources",
    "DatasetInfo": "catalogue",
    "RowSource": "sources",
    "Standardiser": "standardise",
    "SubsetSource": "sources",
    "Table": "tables",
    "TypedSource": "sources",
    "count_distinct_rows": "sources",
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
    "target_is_constant": "sources",
    "write_table": "tables",
}

__all__ = [
    "ArraySource",
    "Chunk",
    "ChunkSource",
    "DatasetInfo",
    "RowSource",
    "Standardiser",
    "SubsetSource",
    "Table",
    "TypedSource",
    "count_distinct_rows",
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
    "target_is_constant",
    "write_table",
]


def __getattr__(name: str) -> object:
    if name in _MODULES:
        return getattr(import_module(f"certgp.data.{_MODULES[name]}"), name)
    raise AttributeError(f"module 'certgp.data' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)

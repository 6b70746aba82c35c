"""Where rows come from: arrays and files, standardised and handed out in chunks."""

from certgp.data.registry import DatasetInfo, data_directory, dataset_info, dataset_names, dataset_path, load_dataset
from certgp.data.sources import ArraySource, Chunk, ChunkSource, RowSource, SubsetSource
from certgp.data.standardise import Standardiser
from certgp.data.tables import Table, read_table, write_table

__all__ = [
    "ArraySource",
    "Chunk",
    "ChunkSource",
    "DatasetInfo",
    "RowSource",
    "Standardiser",
    "SubsetSource",
    "Table",
    "data_directory",
    "dataset_info",
    "dataset_names",
    "dataset_path",
    "load_dataset",
    "read_table",
    "write_table",
]

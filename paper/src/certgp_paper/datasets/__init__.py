"""The benchmark data sets: what they are, which of them are on this machine, and how to get the others."""

from certgp_paper.datasets.catalogue import DatasetInfo
from certgp_paper.datasets.fetch import Fetched, fetch_dataset
from certgp_paper.datasets.registry import (
    LocalDataset,
    data_directory,
    dataset_info,
    dataset_names,
    dataset_path,
    load_dataset,
    load_paper_version,
    local_dataset,
    missing_dataset,
)

__all__ = [
    "DatasetInfo",
    "Fetched",
    "LocalDataset",
    "data_directory",
    "dataset_info",
    "dataset_names",
    "dataset_path",
    "fetch_dataset",
    "load_dataset",
    "load_paper_version",
    "local_dataset",
    "missing_dataset",
]

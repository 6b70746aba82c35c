"""The numbers that the paper prints, for tables that set ours beside them.

``tables.csv`` holds its NLPD, RMSE and training-time tables: ``linear`` (SGPR, FGP and MGP at rank 6 to 300)
and ``deep`` (all others; no rank, a + is the larger variant). ``sensitivity.csv`` holds DMGP and DFGP over
the embedding dimension and the rank. Targets are standardised; mean and standard deviation are over five splits.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

# of our data sets, those that the paper calls otherwise
_PAPER_NAMES = {"superconduct": "super", "keggdirected": "keggdir"}
DEEP_DATA = ("elevators", "protein", "sarcos", "3droad", "song", "buzz", "electric")  # of the deep table, by size
# (table, metric, method, rank or None, data set)
Key = tuple[str, str, str, int | None, str]


@dataclass(frozen=True)
class Figure:
    """A printed number: mean and standard deviation over five splits."""

    mean: float
    sd: float


# the exact GP that the paper's text compares DMGP and DFGP with: NLPD and running time on elevators
EXACT_GP_ELEVATORS = Figure(0.377, 0.024)
EXACT_GP_SECONDS = Figure(53_550.0, 2_099.0)


def paper_name(data: str) -> str:
    """What the paper calls a data set of ours."""
    return _PAPER_NAMES.get(data, data)


def published(table: str, metric: str, method: str, rank: int | None, data: str) -> Figure | None:
    """The paper's figure for a data set by our name of it; None where it prints none."""
    return published_tables().get((table, metric, method, rank, paper_name(data)))


@cache
def published_tables() -> Mapping[Key, Figure]:
    """All figures of the linear and deep tables, under the paper's names."""
    return {
        (
            row["table"],
            row["metric"],
            row["method"],
            int(row["rank"]) if row["rank"] else None,
            row["dataset"],
        ): _figure(row)
        for row in _rows("tables.csv")
    }


@cache
def published_sensitivity() -> Mapping[tuple[str, str, str, int, int], Figure]:
    """(method, metric, data set, d, size) -> figure; ``rank_of_size`` says what the size is."""
    return {
        (row["method"], row["metric"], row["dataset"], int(row["d"]), int(row["m_per_dim_or_half_rank"])): _figure(row)
        for row in _rows("sensitivity.csv")
    }


def rank_of_size(method: str, d: int, size: int) -> int:
    """Number of features of DMGP or DFGP at a size of the sensitivity tables."""
    return size**d if method == "DMGP" else 2 * size


def _figure(row: Mapping[str, str]) -> Figure:
    return Figure(float(row["mean"]), float(row["sd"]))


def _rows(name: str) -> list[dict[str, str]]:
    with (files("certgp_paper.published") / name).open() as file:
        return list(csv.DictReader(file))

"""Rows of the linear tables: means over splits beside the paper's."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import mean, stdev
from typing import Any

from certgp.data import dataset_info
from certgp.experiments.cells import Finished
from certgp.experiments.published import Figure, published

# in the order of the table: the paper's own files first, then by size
DATA = ("elevators", "protein", "sarcos", "bike", "superconduct", "keggdirected", "3droad")
_VARIANTS = ("certgp", "paper", "released")
_METHODS = ("SGPR", "FGP", "MGP")
_DIGITS = 2  # that the paper prints
_ROUNDING = 10.0**-_DIGITS / math.sqrt(12.0)  # standard deviation of rounding to them


def linear_rows(metric: str, finished: Sequence[Finished]) -> list[dict[str, Any]]:
    """One row per data set, variant, method and rank, from the splits that are finished.

    ``difference`` is ours minus the paper's: negative is better. ``difference_in_sds`` divides it by
    sqrt(sd^2 + paper_sd^2 + rounding^2): the spread over splits of ours (n - 1 in the denominator) and of the paper's,
    and the standard deviation .01 / sqrt 12 of printing two digits. It is the scale on which two runs of the same
    method on other splits differ; it does not shrink with the number of splits, since five splits of one data set share
    most of their rows. With a single split our spread is unknown and taken to be the paper's.
    ``equal_or_better`` compares at the paper's two digits.
    """
    groups: dict[tuple[str, str, str, int], list[Finished]] = {}
    for each in finished:
        groups.setdefault((each["data"], each["variant"], each["method"], each["rank"]), []).append(each)
    return [_row(metric, *key, groups[key]) for key in sorted(groups, key=_order)]


def _order(key: tuple[str, str, str, int]) -> tuple[int, str, int, int, int]:
    data, variant, method, rank = key
    place = DATA.index(data) if data in DATA else len(DATA)
    return place, data, _VARIANTS.index(variant), _METHODS.index(method), rank


def _row(metric: str, data: str, variant: str, method: str, rank: int, splits: list[Finished]) -> dict[str, Any]:
    values = [float(each[metric]) for each in splits]
    ours, spread = mean(values), stdev(values) if len(values) > 1 else None
    dimensions = [each.result["projection"] for each in splits if "projection" in each.result]
    return {
        "metric": metric,
        "data": data,
        "variant": variant,
        "method": method,
        "rank": rank,
        "splits": len(values),
        "mean": ours,
        "sd": spread,
        **_beside_paper(ours, spread, published("linear", metric, method, rank, data)),
        "cpu_seconds": mean(float(each["cpu_seconds"]) for each in splits),
        "projection": " ".join(map(str, dimensions)) or None,
        "note": _note(data, splits),
    }


def _beside_paper(ours: float, spread: float | None, paper: Figure | None) -> dict[str, Any]:
    if paper is None:
        return dict.fromkeys(("paper", "paper_sd", "difference", "difference_in_sds", "equal_or_better"))
    scale = math.sqrt((paper.sd if spread is None else spread) ** 2 + paper.sd**2 + _ROUNDING**2)
    return {
        "paper": paper.mean,
        "paper_sd": paper.sd,
        "difference": ours - paper.mean,
        "difference_in_sds": (ours - paper.mean) / scale,
        "equal_or_better": round(ours, _DIGITS) <= paper.mean,
    }


def _note(data: str, splits: Sequence[Finished]) -> str:
    """How the local file differs from the paper's, and whether this is the small version."""
    notes = [dataset_info(data).label(splits[0]["n_rows"], splits[0]["n_columns"])]
    if any(each.cell.settings.get("budget") == "quick" for each in splits):
        notes.append("quick run: few iterations")
    return "; ".join(filter(None, notes))

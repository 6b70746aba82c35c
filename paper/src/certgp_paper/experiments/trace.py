"""Which code made finished cells, in words: for the page and for ``certgp reproduce --outdated``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from statistics import mean
from typing import Any

from certgp_paper.experiments.cells import Cell, Finished

# Cells from before versions were recorded hold a hash of the whole tree. These trees are commits of this repository.
EARLIER_COMMITS = {
    "b2dd4b584578": "5af04d5",
    "15fb3c9f31c7": "8ea829e",
    "4857f66ec3cb": "5537b3e",
    "b603ad2043f5": "7e0deae",
    "cd453d780d5b": "4645662",
    "320842f0c762": "b3c9548",
    "4c54a257b26e": "0c41456",
    "3601d2220fb3": "2ce59da",
    "7bef4f04b4ce": "94c8a7e",
    "0d71ce766f33": "24a4104",
    "d1caac891956": "109e67d",
    "17c4c7f5e0d5": "676890e",
}


def maker(finished: Finished) -> str:
    """The version of a cell's code, or the state of the whole tree where only that is known."""
    version, source = finished.made_by.get("version"), finished.made_by.get("source")
    if version is not None:
        return f"version {version}"
    if source in EARLIER_COMMITS:
        return f"commit {EARLIER_COMMITS[str(source)]}"
    return f"source {source}" if source is not None else "not recorded"


def count_makers(cells: Sequence[Finished]) -> dict[str, int]:
    """How many of the cells each version made, the largest count first."""
    return dict(Counter(map(maker, cells)).most_common())


def group_of(cell: Cell) -> str:
    """Variant and method of a cell in words: what the same code makes."""
    keys = [cell.settings.get(key) for key in ("variant", "kernel", "method", "features")]
    return " ".join(str(key) for key in keys if key is not None) or "all"


def describe_makers(cells: Sequence[Finished]) -> list[dict[str, Any]]:
    """For each variant and method: which version made how many cells, the largest count first."""
    groups: dict[str, list[Finished]] = {}
    for cell in cells:
        groups.setdefault(group_of(cell.cell), []).append(cell)
    return [
        {"what": what, "made_by": by, "cells": count}
        for what, some in sorted(groups.items())
        for by, count in count_makers(some).items()
    ]


def describe_confirmations(cells: Sequence[Finished]) -> list[dict[str, Any]]:
    """For each group and version that cells computed again have confirmed: how many carry that, and how far it moved.

    Later runs add cells to the sample of earlier ones, so the largest sample of a group counts.
    """
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for cell in cells:
        if "confirmed" in cell.made_by:
            mark = cell.made_by["confirmed"]
            groups.setdefault((group_of(cell.cell), str(mark["version"])), []).append(mark)
    return [
        {"what": what, "confirmed": len(marks), **max(marks, key=lambda mark: int(mark["cells"]))}
        for (what, _), marks in sorted(groups.items(), key=lambda item: item[0])
    ]


def describe_moves(cells: Sequence[Finished]) -> dict[str, Any] | None:
    """How far NLPD moved where cells were computed again; None where none were."""
    pairs = [
        (cell.made_by["before"].get("nlpd"), cell.result.get("nlpd")) for cell in cells if "before" in cell.made_by
    ]
    moves = [abs(after - before) for before, after in pairs if before is not None and after is not None]
    return {"cells": len(moves), "mean": mean(moves), "largest": max(moves)} if moves else None

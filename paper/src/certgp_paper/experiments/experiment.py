"""What every reproduction of a table or figure of the paper consists of."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from certgp_paper.experiments.cells import Cell, Finished, Settings, Values

Row = Mapping[str, Any]  # a line of a CSV file: numbers, texts, None where the paper or this run has no figure


@dataclass(frozen=True)
class Experiment:
    """A table or figure of the paper: what must be computed, how, and how it is shown beside the paper's figures."""

    name: str  # as on the command line
    title: str  # one line: what it is in the paper
    cells: Callable[[bool], Sequence[Cell]]  # of the full protocol, or of the quick one (True)
    compute: Callable[[Settings], Values]
    rows: Callable[[Sequence[Finished]], Sequence[Row]]  # paper, ours, difference; from the cells finished so far
    score: str = "nlpd"  # the figure of a cell by which code is compared; "" where a cell holds no single one
    left_out: str = ""  # what of the paper's protocol is left out on purpose, and why

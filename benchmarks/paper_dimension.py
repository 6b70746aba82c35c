"""MGP by the paper's protocol at every dimension d of its projection: which d explains the paper's figures?

The paper chooses d in 3..7 "by cross-validation on training data" and does not print it. Test scores for every d; none
of them is used to choose anything.
"""

from __future__ import annotations

import argparse
import json

import numpy as np

from certgp.estimators.scores import score_gaussian
from certgp_paper.datasets.splits import standardised_split
from certgp_paper.published import published
from certgp_paper.training.paper_protocol import DIMENSIONS, fit_as_in_paper


def main() -> None:
    """Print one line per data set, rank and d."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="+", default=["elevators", "protein"])
    parser.add_argument("--ranks", nargs="+", type=int, default=[6, 10])
    parser.add_argument("--splits", type=int, default=2)
    parser.add_argument("--json", action="store_true", help="one JSON object a line")
    arguments = parser.parse_args()
    for data in arguments.data:
        for rank in arguments.ranks:
            columns = standardised_split(data, 0, as_in_paper=True).X.shape[1]
            for d in range(DIMENSIONS[0], min(DIMENSIONS[1], columns) + 1):
                report(data, rank, d, [nlpd(data, rank, d, split) for split in range(arguments.splits)], arguments.json)


def nlpd(data: str, rank: int, d: int, split: int) -> float:
    """Test NLPD of one fit."""
    rows = standardised_split(data, split, as_in_paper=True)
    mean, variance = fit_as_in_paper("MGP", rank, rows.X, rows.y, split, dimension=d).moments(rows.X_test)
    return score_gaussian(mean, variance, rows.y_test).nlpd


def report(data: str, rank: int, d: int, found: list[float], as_json: bool) -> None:
    """One line."""
    paper = published("linear", "nlpd", "MGP", rank, data)
    fields = {"data": data, "rank": rank, "d": d, "nlpd": float(np.mean(found)), "splits": found}
    if paper is not None:
        fields["paper"] = paper.mean
    if as_json:
        print(json.dumps(fields), flush=True)
    else:
        beside = "" if paper is None else f" (paper {paper.mean:.2f})"
        print(f"{data} rank {rank} d = {d}: NLPD {np.mean(found):.4f}{beside}", flush=True)


if __name__ == "__main__":
    main()

"""DMGP and DFGP by the paper's recipe at several learning rates, scored on held-out training rows of split 0.

The paper does not print its rates. Test rows are not looked at: a tenth of the training rows is held out, and the score
of the epochs on the way shows when a rate begins to overfit.
"""

from __future__ import annotations

import argparse
import json
import warnings
from typing import Any

import numpy as np

from certgp.errors import CertgpWarning
from certgp.training import Iteration
from certgp_paper.datasets.splits import standardised_split
from certgp_paper.experiments.deep_methods import build_as_in_paper
from certgp_paper.experiments.deep_table import METHODS_BY_RECIPE

_SEED_OF_SPLIT = 100
_EVERY = 20  # epochs


def main() -> None:
    """Print one line per data set, method and rate."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="+", default=["elevators", "protein"])
    parser.add_argument("--methods", nargs="+", default=list(METHODS_BY_RECIPE))
    parser.add_argument("--rates", nargs="+", type=float, default=[3e-4, 5e-4, 1e-3])
    parser.add_argument("--json", action="store_true", help="one JSON object a line")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", CertgpWarning)
    for data in arguments.data:
        for method in arguments.methods:
            for rate in arguments.rates:
                scores = held_out_scores(data, method, rate)
                if arguments.json:
                    print(json.dumps({"data": data, "method": method, "rate": rate, "nlpd": scores}), flush=True)
                else:
                    text = ", ".join(f"{score:.3f} ({epoch})" for epoch, score in scores.items())
                    print(f"{data} {method} rate {rate:g}: held-out NLPD (epoch) {text}", flush=True)


def held_out_scores(data: str, method: str, rate: float) -> dict[int, float]:
    """NLPD of a tenth of the training rows after every 20th epoch on the others."""
    rows = standardised_split(data, 0, as_in_paper=True)
    order = np.random.default_rng(_SEED_OF_SPLIT).permutation(len(rows.y))
    held_out, rest = np.split(order, [len(order) // 10])
    scores: dict[int, float] = {}

    def score(record: Iteration) -> None:
        if record.iteration % _EVERY == 0:
            scores[record.iteration] = model.so_far().nlpd(rows.X[held_out], rows.y[held_out])

    model: Any = build_as_in_paper(method, data, 0)
    model.set_params(learning_rate=rate, callbacks=[score])
    model.fit(rows.X[rest], rows.y[rest])
    return scores


if __name__ == "__main__":
    main()

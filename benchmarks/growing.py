"""What learning from subsets that grow costs in accuracy: held-out NLPD of the default, of larger subsets, of all rows.

    OMP_NUM_THREADS=1 python benchmarks/growing.py --rows 1000000 --rank 20 --seeds 3
    OMP_NUM_THREADS=1 python benchmarks/growing.py --data $CERTGP_DATA --rank 20 --seeds 2

Rows are simulated as in ``scaling.py``, with 100,000 others for the test, or are those of ``flights.py``. Prints one
JSON object per fit: test NLPD, evidence per training row, processor seconds, and the rows, iterations and objective of
each stage.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

import flights
import scaling
from certgp import MercerGP
from certgp.data import PickedRows, Rows, as_rows
from certgp.training.full_batch import growth

TEST_ROWS = 100_000
WAYS = ("default", "larger", "all")  # subsets of at most a tenth of the rows, of half of them, and every row each time


def simulated(rows: int) -> tuple[Rows, Rows]:
    """Rows to learn from, and others."""
    counts = [*(scaling.PART_ROWS for _ in range(rows // scaling.PART_ROWS)), TEST_ROWS]
    parts = [scaling.simulate(count, 10, seed + 1).to_pandas().to_numpy() for seed, count in enumerate(counts)]
    learn, test = np.concatenate(parts[:-1]), parts[-1]
    return as_rows(learn[:, :-1], learn[:, -1]), as_rows(test[:, :-1], test[:, -1])


def of_flights(folder: Path) -> tuple[Rows, Rows]:
    """The same of flights, of which a tenth is for the test."""
    rows = flights.read_flights(folder, 2**30, None)
    learn, test = (PickedRows(rows, positions) for positions in flights.split(rows.n_rows))
    return learn, test


def measure(learn: Rows, test: Rows, way: str, rank: int, seed: int) -> dict[str, Any]:
    """One fit."""
    growth._LARGEST_SHARE, growth._SUBSET_BYTES = (2, 2**30) if way == "larger" else (10, 2**28)
    began = time.process_time()
    model = MercerGP(rank, random_state=seed, growing=way != "all").fit(learn)
    seconds = time.process_time() - began
    return {
        "way": way,
        "rows": learn.n_rows,
        "rank": rank,
        "seed": seed,
        "nlpd": model.nlpd(test),
        "evidence": model.log_marginal_likelihood_ / learn.n_rows,
        "seconds": seconds,
        "converged": model.converged_,
        "stages": [(stage.rows, stage.iterations, round(stage.value, 5)) for stage in model.history_.stages],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000, help="simulated ones")
    parser.add_argument("--data", type=Path, help="folder of flights.parquet and airports.csv, instead")
    parser.add_argument("--rank", type=int, default=20)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=WAYS)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    learn, test = simulated(options.rows) if options.data is None else of_flights(options.data)
    for seed in range(options.seeds):
        for way in options.ways:
            print(json.dumps(measure(learn, test, way, options.rank, seed)), flush=True)


if __name__ == "__main__":
    main()

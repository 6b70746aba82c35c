"""Accuracy on the benchmark data sets: NLPD, RMSE, coverage and seconds over splits, beside the paper's figures.

    python benchmarks/accuracy.py --data elevators protein --models mercer fourier sparse --ranks 100 --splits 5 --json
    python benchmarks/accuracy.py --models auto --append cells.jsonl      (keeps finished cells, goes on after a stop)

The splits are those of the paper's released code: ``train_test_split(X, y, test_size=0.1, random_state=s)``; X and y
are standardised with the training part, so NLPD and RMSE are in the units of the paper's tables. Nothing is chosen on
test rows.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from dataclasses import asdict
from itertools import product
from pathlib import Path

import torch

import certgp
from cells import Cells, scores, summary, time_fit
from certgp_paper.datasets.splits import standardised_split
from certgp_paper.published import published

KEYS = ("data", "model", "rank", "split", "seed")
MODELS = {
    "mercer": lambda rank, seed: certgp.MercerGP(rank, random_state=seed),
    "mercer-marginal": lambda rank, seed: certgp.MercerGP(
        rank, objective="marginal", variance="lowrank", random_state=seed
    ),
    "fourier": lambda rank, seed: certgp.FourierGP(rank, random_state=seed),
    "fourier-learned": lambda rank, seed: certgp.FourierGP(rank, learn_frequencies=True, random_state=seed),
    "sparse": lambda rank, seed: certgp.SparseGP(rank, random_state=seed),
    "auto": lambda rank, seed: certgp.AutoGP(rank, random_state=seed),
    "local": lambda rank, seed: certgp.LocalGP(rank, random_state=seed),  # the rank is its number of neighbours
}
PAPER_NAMES = {"mercer": "MGP", "mercer-marginal": "MGP", "fourier": "FGP", "fourier-learned": "FGP", "sparse": "SGPR"}


def run_cell(data: str, model: str, rank: int, split: int, seed: int) -> dict[str, object]:
    X, X_test, y, y_test = standardised_split(data, split)
    gp = MODELS[model](rank, seed).set_params(noise="constant")  # as in the paper; benchmarks/noise.py has the other
    times = time_fit(lambda: gp.fit(X, y))
    return {
        "data": data,
        "model": model,
        "rank": rank,
        "split": split,
        "seed": seed,
        "method": gp.method_ or model,
        **scores(gp, X_test, y_test),
        "objective_per_row": gp.history_.iterations[-1].value,
        "iterations": gp.n_iter_,
        "converged": gp.converged_,
        **times,
        "threads": torch.get_num_threads(),
        "trials": [asdict(trial) for trial in gp.trials_],
    }


def summaries(cells: list[dict[str, object]]) -> Iterator[dict[str, object]]:
    groups: dict[tuple[str, str, int], list[dict[str, object]]] = {}
    for cell in cells:
        groups.setdefault((str(cell["data"]), str(cell["model"]), int(str(cell["rank"]))), []).append(cell)
    for (data, model, rank), group in groups.items():
        row = {"data": data, "model": model, "rank": rank, "splits": len(group)} | summary(group)
        for metric in ("nlpd", "rmse"):
            figure = published("linear", metric, PAPER_NAMES.get(model, ""), rank, data)
            row[f"paper_{metric}"] = None if figure is None else figure.mean
        yield row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="+", default=["elevators", "protein"])
    parser.add_argument("--models", nargs="+", default=["mercer", "fourier", "sparse"], choices=list(MODELS))
    parser.add_argument("--ranks", nargs="+", type=int, default=[100])
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--only", type=int, nargs="+", help="these splits instead of the first ones")
    parser.add_argument(
        "--seeds", type=int, nargs="+", default=[None], help="random_state (default: the split's number)"
    )
    parser.add_argument("--append", type=Path, help="JSON lines of finished cells, which are not run again")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--json", action="store_true", help="print one JSON object at the end")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    cells = Cells(options.append, KEYS)
    wanted = product(options.data, options.models, options.ranks, options.only or range(options.splits), options.seeds)
    for data, model, rank, split, seed in wanted:
        chosen = split if seed is None else seed
        if (data, model, rank, split, chosen) in cells:
            continue
        cell = run_cell(data, model, rank, split, chosen)
        cells.add(cell)
        print(
            f"{data} {model} r={rank} split {split} seed {chosen}: NLPD {cell['nlpd']:.4f} RMSE {cell['rmse']:.4f} "
            f"max|e| {cell['max_error']:.2f} cover {cell['coverage95']:.3f} {cell['seconds']:.1f} s "
            f"({cell['iterations']} its, {cell['method']})",
            file=sys.stderr,
            flush=True,
        )
    if options.json:
        print(json.dumps({"cells": cells.all, "summary": list(summaries(cells.all))}, indent=1))


if __name__ == "__main__":
    main()

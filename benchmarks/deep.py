"""Deep models over splits: NLPD, RMSE and seconds beside the paper's figures.

    python benchmarks/deep.py --data elevators protein --methods deep-fourier deep-mercer --members 3 --splits 5 --json

The splits are those of the paper's released code (see ``accuracy.py``); everything runs at its defaults with
``random_state`` = split, and nothing is chosen on test rows. With ``--members m`` the first member is scored alone too:
it is the model that ``members=1`` gives, bit for bit. Two-step models are scored with the noise of the training rows
(the paper's) and with that of held-out training rows ("-calibrated"). ``--append FILE`` adds each result to a file as a
JSON line.
"""

from __future__ import annotations

import argparse
import copy
import csv
import json
import sys
import time
import warnings
from pathlib import Path
from statistics import mean, stdev

import numpy as np
import torch

import certgp
from certgp.errors import CertgpWarning
from certgp.experiments.splits import standardised_split
from certgp.experiments.two_step import NetworkRegressor, TwoStepGP

RANK = 100  # of the linear models
METHODS = {
    "deep-fourier": lambda seed, members: certgp.DeepFourierGP(members=members, random_state=seed),
    "deep-mercer": lambda seed, members: certgp.DeepMercerGP(members=members, random_state=seed),
    "dnn+s": lambda seed, _: NetworkRegressor(calibrate=True, random_state=seed),
    "dnn+m": lambda seed, _: TwoStepGP("mercer", calibrate=True, random_state=seed),
    "dnn+f": lambda seed, _: TwoStepGP("fourier", calibrate=True, random_state=seed),
    "mercer": lambda seed, _: certgp.MercerGP(RANK, random_state=seed),
    "fourier": lambda seed, _: certgp.FourierGP(RANK, random_state=seed),
    "sparse": lambda seed, _: certgp.SparseGP(RANK, random_state=seed),
}
PAPER_NAMES = {"deep-fourier": "DFGP", "deep-mercer": "DMGP", "dnn+s": "DNN+S", "dnn+m": "DNN+M", "dnn+f": "DNN+F"}


def scores(model, X, y) -> dict[str, float]:
    lower, upper = model.predict_interval(X, 0.95)
    error = model.predict(X) - y
    return {
        "nlpd": model.nlpd(X, y),
        "rmse": float(np.sqrt(np.mean(error**2))),
        "max_error": float(np.abs(error).max()),
        "coverage95": float(np.mean((y >= lower) & (y <= upper))),
    }


def first_member(model):
    """The mixture's first network alone."""
    alone = copy.copy(model)
    alone._process = model._process.members[0]
    return alone


def uncalibrated(model):
    """A two-step model with the noise of its training rows, as in the paper."""
    plain = copy.copy(model)
    if isinstance(model, NetworkRegressor):
        plain.noise_variance_ = model.training_noise_variance_
    else:
        plain._process = copy.copy(model._process)
        plain._process.noise_scale = 1.0
    return plain


def run_cell(data: str, method: str, members: int, split: int, options) -> list[dict[str, object]]:
    X, X_test, y, y_test = standardised_split(data, split)
    model = METHODS[method](split, members)
    if options.epochs and "max_iter" in model.get_params():
        model.set_params(max_iter=options.epochs)
    started, cpu = time.perf_counter(), time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CertgpWarning)
        model.fit(X, y)
    seconds, cpu = time.perf_counter() - started, time.process_time() - cpu
    cell = {"data": data, "method": method, "members": members, "split": split, "epochs": model.n_iter_}
    held_out = [record.validation for record in model.history_.iterations if record.validation is not None]
    cell["validation"] = min(held_out) if held_out else None  # of the held-out training rows, at the best epoch
    times = {"seconds": seconds, "cpu_seconds": cpu, "threads": torch.get_num_threads()}
    if method.startswith("dnn"):
        calibrated = cell | {"method": f"{method}-calibrated"} | scores(model, X_test, y_test) | times
        return [cell | scores(uncalibrated(model), X_test, y_test) | times, calibrated]
    cells = [cell | scores(model, X_test, y_test) | times]
    if members > 1:
        alone = cell | {"members": 1, "epochs": model.n_iter_ // members} | scores(first_member(model), X_test, y_test)
        cells.append(alone | {"threads": torch.get_num_threads()})
    return cells


def paper_figures() -> dict[tuple[str, str, str], float]:
    path = Path(__file__).resolve().parents[2] / "shared" / "paper" / "tables.csv"
    if not path.exists():
        return {}
    with path.open() as file:
        rows = [row for row in csv.DictReader(file) if row["table"] == "deep"]
    return {(row["dataset"], row["method"], row["metric"]): float(row["mean"]) for row in rows}


def summaries(cells: list[dict[str, object]]) -> list[dict[str, object]]:
    paper, groups = paper_figures(), {}
    for cell in cells:
        groups.setdefault((cell["data"], cell["method"], cell["members"]), []).append(cell)
    table = []
    for (data, method, members), group in groups.items():
        row = {"data": data, "method": method, "members": members, "splits": len(group)}
        for metric in ("nlpd", "rmse", "coverage95", "seconds", "cpu_seconds"):
            values = [cell[metric] for cell in group if metric in cell]
            row[metric] = mean(values) if values else None
            row[f"{metric}_sd"] = stdev(values) if len(values) > 1 else 0.0
        for metric in ("nlpd", "rmse"):
            row[f"paper_{metric}"] = paper.get((data, PAPER_NAMES.get(method, ""), metric))
        table.append(row)
    return table


def show(row: dict[str, object]) -> str:
    where = f"split {row['split']}" if "split" in row else f"mean of {row['splits']}"
    spent = f"{row['seconds']:.1f} s" if row.get("seconds") else "with the mixture"
    return (
        f"{row['data']} {row['method']} members {row['members']} {where}: NLPD {row['nlpd']:.4f} "
        f"RMSE {row['rmse']:.4f} cover {row['coverage95']:.3f} {spent}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="+", default=["elevators", "protein"])
    parser.add_argument("--methods", nargs="+", default=["deep-fourier", "deep-mercer"], choices=list(METHODS))
    parser.add_argument("--members", type=int, default=1, help="of the deep models")
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--first-split", type=int, default=0)
    parser.add_argument("--epochs", type=int, help="instead of each method's default")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--append", type=Path, help="file that gets each result as a JSON line")
    parser.add_argument("--json", action="store_true", help="print one JSON object at the end")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    cells: list[dict[str, object]] = []
    for data in options.data:
        for method in options.methods:
            members = options.members if method.startswith("deep-") else 1
            for split in range(options.first_split, options.first_split + options.splits):
                for cell in run_cell(data, method, members, split, options):
                    cells.append(cell)
                    print(show(cell), file=sys.stderr, flush=True)
                    if options.append:
                        with options.append.open("a") as file:
                            file.write(json.dumps(cell) + "\n")
    table = summaries(cells)
    print(json.dumps({"cells": cells, "summary": table}, indent=1) if options.json else "\n".join(map(show, table)))


if __name__ == "__main__":
    main()

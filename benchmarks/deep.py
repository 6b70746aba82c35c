"""Deep models over splits: NLPD, RMSE and seconds beside the paper's figures.

    python benchmarks/deep.py --data elevators protein --methods deep-fourier deep-mercer --members 3 --splits 5 --json

The splits are those of the paper's released code (see ``accuracy.py``); everything runs at its defaults with
``random_state`` = split, and nothing is chosen on test rows. With ``--members m`` the first member is scored alone too:
it is the model that ``members=1`` gives, bit for bit. Two-step models are scored with the noise of the training rows
(the paper's) and with that of held-out training rows ("-calibrated"). ``--append FILE`` adds each result to a file as a
JSON line, and results that the file holds are not run again: a run that was stopped goes on. Seconds are those of the
clock, CPU seconds those of all processes. Members are trained side by side where ``--threads`` allows.
"""

from __future__ import annotations

import argparse
import copy
import json
import sys
from dataclasses import replace
from itertools import product
from pathlib import Path

import torch

import certgp
from cells import Cell, Cells, scores, summary, time_fit
from certgp_paper.baselines.two_step import NetworkRegressor, TwoStepGP
from certgp_paper.datasets.splits import standardised_split
from certgp_paper.published import published
from fitted import model_of

KEYS = ("data", "method", "members", "split", "max_iter")
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


def first_member(model):
    """The mixture's first network alone."""
    alone, fitted = copy.copy(model), model_of(model)
    alone.hold(replace(fitted, process=fitted.process.members[0]))
    return alone


def uncalibrated(model):
    """A two-step model with the noise of its training rows, as in the paper."""
    plain = copy.copy(model)
    if isinstance(model, NetworkRegressor):
        plain.noise_variance_ = model.training_noise_variance_
    else:
        plain.noise_scale_ = 1.0
    return plain


def build_model(method: str, members: int, split: int, epochs: int | None):
    model = METHODS[method](split, members)
    if "noise" in model.get_params():
        model.set_params(noise="constant")  # as in the paper; benchmarks/noise.py has the other
    return model.set_params(max_iter=epochs) if epochs and "max_iter" in model.get_params() else model


def run_cell(data: str, method: str, members: int, split: int, model) -> list[Cell]:
    X, X_test, y, y_test = standardised_split(data, split)
    times = time_fit(lambda: model.fit(X, y)) | {"threads": torch.get_num_threads()}
    cell = {"data": data, "method": method, "members": members, "split": split}
    cell |= {"max_iter": model.get_params().get("max_iter"), "epochs": model.n_iter_}
    held_out = [record.validation for record in model.history_.iterations if record.validation is not None]
    cell["validation"] = min(held_out) if held_out else None  # of the held-out training rows, at the best epoch
    if method.startswith("dnn"):
        calibrated = cell | {"method": f"{method}-calibrated"} | scores(model, X_test, y_test) | times
        return [cell | scores(uncalibrated(model), X_test, y_test) | times, calibrated]
    cells = [cell | scores(model, X_test, y_test) | times]
    if members > 1:
        alone = cell | {"members": 1, "epochs": model.n_iter_ // members} | scores(first_member(model), X_test, y_test)
        cells.append(alone | {"threads": torch.get_num_threads()})
    return cells


def summaries(cells: list[Cell]) -> list[Cell]:
    groups = {}
    for cell in cells:
        groups.setdefault((cell["data"], cell["method"], cell["members"], cell.get("max_iter")), []).append(cell)
    table = []
    for (data, method, members, max_iter), group in groups.items():
        row = {"data": data, "method": method, "members": members, "max_iter": max_iter, "splits": len(group)}
        row |= summary(group)
        for metric in ("nlpd", "rmse"):
            figure = published("deep", metric, PAPER_NAMES.get(method, ""), None, data)
            row[f"paper_{metric}"] = None if figure is None else figure.mean
        table.append(row)
    return table


def show(row: Cell) -> str:
    where = f"split {row['split']}" if "split" in row else f"mean of {row['splits']}"
    spent = f"{row['seconds']:.1f} s ({row['cpu_seconds']:.1f} s CPU)" if row.get("seconds") else "with the mixture"
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
    cells = Cells(options.append, KEYS)
    splits = range(options.first_split, options.first_split + options.splits)
    for data, method, split in product(options.data, options.methods, splits):
        members = options.members if method.startswith("deep-") else 1
        model = build_model(method, members, split, options.epochs)
        if (data, method, members, split, model.get_params().get("max_iter")) in cells:
            continue
        found = run_cell(data, method, members, split, model)
        cells.add(*found)
        for cell in found:
            print(show(cell), file=sys.stderr, flush=True)
    table = summaries(cells.all)
    print(json.dumps({"cells": cells.all, "summary": table}, indent=1) if options.json else "\n".join(map(show, table)))


if __name__ == "__main__":
    main()

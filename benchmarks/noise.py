"""Noise that depends on the input against constant noise: one fit each, scored with both.

    python benchmarks/noise.py --append noise.jsonl                       (data sets; goes on after a stop)
    python benchmarks/noise.py --homoscedastic --append homoscedastic.jsonl

The splits are those of the paper's released code (see ``accuracy.py``), y in units of its standard deviation; no fit
chooses anything on test rows. The constant noise is that of the same fit without its noise model, which is what
``noise="constant"`` gives. CPU seconds of the noise step are part of those of the fit. CRPS is the mean pinball loss
of 99 quantiles, doubled. With ``--homoscedastic``: simulated rows of constant noise, where a noise model can only harm.
"""

from __future__ import annotations

import argparse
import copy
import time
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch

import certgp
from cells import Cell, Cells, scores, time_fit
from certgp.training.recipes import deep_member, trainer
from certgp_paper.datasets.splits import standardised_split
from fitted import model_of
from league.data import repeated_inputs

KEYS = ("data", "model", "split")
MODELS = {
    "sparse": lambda: certgp.SparseGP(100, max_iter=100, random_state=0),
    "local": lambda: certgp.LocalGP(random_state=0),
    "deep-fourier": lambda: certgp.DeepFourierGP(random_state=0),
    "exact": lambda: certgp.ExactGP(random_state=0),
}
SMALL = ("yacht", "energy", "concrete", "airfoil", "sarcos")
LARGE = ("elevators", "bike", "superconduct", "keggdirected", "protein")
ROWS, DRAWS, COLUMNS = (300, 1_000, 4_000), 20, 5
TEST_ROWS = 2_000
LEVELS = np.linspace(0.01, 0.99, 99)


class NoiseSeconds:
    """CPU seconds that fits spend on noise models."""

    def __init__(self) -> None:
        self.total = 0.0
        trainer.add_noise_model = self._timed(trainer.add_noise_model)
        deep_member.learn_noise = self._timed(deep_member.learn_noise)

    def _timed(self, function: Callable[..., None]) -> Callable[..., None]:
        def run(*arguments: Any, **options: Any) -> None:
            started = time.process_time()
            function(*arguments, **options)
            self.total += time.process_time() - started

        return run


def with_constant_noise(gp):
    """The same fit without its noise model."""
    plain = copy.deepcopy(gp)
    for member in model_of(plain).process.members:
        member.noise_model = None
    return plain


def crps(gp, X: np.ndarray, y: np.ndarray) -> float:
    error = y[:, None] - gp.predict_quantiles(X, LEVELS)
    return 2.0 * float(np.mean(np.where(error > 0, LEVELS * error, (LEVELS - 1.0) * error)))


def score_both(gp, X: np.ndarray, y: np.ndarray) -> Cell:
    found: Cell = {}
    for name, model in (("constant", with_constant_noise(gp)), ("auto", gp)):
        values = {**scores(model, X, y), "crps": crps(model, X, y)}
        found |= {f"{name}_{key}": value for key, value in values.items()}
    gain = gp.noise_gain_
    found |= {"gain": None, "error": None, "accepted": False}
    if gain is not None:
        found |= {"gain": gain.gain, "error": gain.standard_error, "accepted": gain.accepted}
    return found


def run_cell(data: str, model: str, split: int, seconds: NoiseSeconds) -> Cell:
    X, X_test, y, y_test = standardised_split(data, split)
    return fit_and_score(MODELS[model](), X, y, X_test, y_test, seconds) | {
        "data": data,
        "model": model,
        "split": split,
    }


def fit_and_score(gp, X, y, X_test, y_test, seconds: NoiseSeconds) -> Cell:
    before = seconds.total
    times = time_fit(lambda: gp.fit(X, y))
    spent = seconds.total - before
    new = ~repeated_inputs(X, X_test)
    found = score_both(gp, X_test, y_test) | {"new_inputs": int(new.sum())}
    if 0 < new.sum() < len(new):
        found |= {f"new_{key}": value for key, value in score_both(gp, X_test[new], y_test[new]).items() if "_" in key}
    return {**found, **times, "noise_cpu_seconds": spent}


def run_homoscedastic(kind: str, n: int, model: str, draw: int, seconds: NoiseSeconds) -> Cell:
    """A smooth function, or nothing, and Gaussian noise of one size."""
    rng = np.random.default_rng([n, draw])
    X = rng.standard_normal((n + TEST_ROWS, COLUMNS))
    f = np.sin(2.0 * X[:, 0]) + 0.5 * X[:, 1] if kind == "signal" else np.zeros(len(X))
    y = f + 0.5 * rng.standard_normal(len(X))
    found = fit_and_score(MODELS[model]().set_params(max_iter=30), X[:n], y[:n], X[n:], y[n:], seconds)
    return found | {"data": f"{kind}-{n}", "model": model, "split": draw}


def report(cells: list[Cell]) -> None:
    print(
        f"{'data':<14}{'model':<14}splits  constant: nlpd   crps  cover.  auto: nlpd   crps  cover.  acc.  "
        "cpu noise / fit"
    )
    for data, model in dict.fromkeys((cell["data"], cell["model"]) for cell in cells):
        own = [cell for cell in cells if (cell["data"], cell["model"]) == (data, model)]
        mean = {key: float(np.mean([cell[key] for cell in own])) for key in own[0] if "_" in key}
        shown = "".join(
            f"  {mean[f'{name}_nlpd']:14.3f} {mean[f'{name}_crps']:6.4f} {mean[f'{name}_coverage95']:7.3f}"
            for name in ("constant", "auto")
        )
        worst = max(cell["auto_nlpd"] - cell["constant_nlpd"] for cell in own)
        accepted = sum(cell["accepted"] for cell in own)
        cost = f"{mean['noise_cpu_seconds']:.2f} / {mean['cpu_seconds']:.1f}"
        print(f"{data:<14}{model:<14}{len(own):>3}{shown}  {accepted}/{len(own)}  {cost}  worst {worst:+.4f}")
        if "new_auto_nlpd" in mean:
            print(
                f"{'  inputs not in training':<31}  {mean['new_constant_nlpd']:14.3f} {mean['new_constant_crps']:6.4f} "
                f"{mean['new_constant_coverage95']:7.3f}  {mean['new_auto_nlpd']:14.3f} {mean['new_auto_crps']:6.4f} "
                f"{mean['new_auto_coverage95']:7.3f}"
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="+", default=[*SMALL, *LARGE])
    parser.add_argument("--models", nargs="+", choices=MODELS, default=["sparse", "local", "deep-fourier"])
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--homoscedastic", action="store_true")
    parser.add_argument("--rows", nargs="+", type=int, default=ROWS, help="simulated, with --homoscedastic")
    parser.add_argument("--append", type=Path)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    cells, seconds = Cells(arguments.append, KEYS), NoiseSeconds()
    if arguments.homoscedastic:
        for kind, n, model, draw in product(("signal", "noise"), arguments.rows, arguments.models, range(DRAWS)):
            if (f"{kind}-{n}", model, draw) not in cells:
                cells.add(run_homoscedastic(kind, n, model, draw, seconds))
    else:
        for split, model, data in product(range(arguments.splits), arguments.models, arguments.data):
            if (data, model, split) not in cells:
                cells.add(run_cell(data, model, split, seconds))
    report(cells.all)


if __name__ == "__main__":
    main()

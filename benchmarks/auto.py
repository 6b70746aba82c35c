"""AutoGP beside the fit of its winner alone: what it costs, how it keeps ``max_seconds``, how good it is on few rows.

    python benchmarks/auto.py cost --data yacht elevators --efforts low medium
    python benchmarks/auto.py limits --data concrete elevators simulated --seconds 10 30 60
    python benchmarks/auto.py rows --data concrete yacht sarcos --seeds 4 [--models local kernel=matern32]

All look at training rows of split 1 alone. ``cost`` and ``limits`` fit all of them; ``rows`` holds a fifth out (of
1,200 rows of sarcos, elevators and the other large sets) and scores AutoGP and other models, by their names in the
race, on it. One thread; CPU seconds of a warm process, seconds by the clock with the load of the machine around them.
"simulated" has 100,000 rows of 10 columns.
"""

from __future__ import annotations

import argparse
import os
import warnings
from collections.abc import Callable
from itertools import product
from pathlib import Path

import numpy as np
import torch

import certgp
from cells import Cell, Cells, scores, time_fit
from certgp.methods import CONTESTANTS, methods
from league.data import load_rows

SMALL = ("yacht", "energy", "concrete", "airfoil", "sarcos")
SPLIT, MOST_ROWS = 1, 1_200
KEYS = ("part", "data", "model", "option")


def simulated(n: int = 100_000, d: int = 10) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d))
    return X, np.sin(2.0 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.2 * rng.standard_normal(n)


def training_rows(data: str) -> tuple[np.ndarray, np.ndarray]:
    if data == "simulated":
        return simulated()
    rows = load_rows(data, SPLIT)
    return rows.X, rows.y


def alone(name: str, warp: bool) -> certgp.ExactGP | certgp.LocalGP:
    """The estimator behind a name of the race, or an exact GP with a kernel ("kernel=matern32"), with its defaults."""
    if name.startswith("kernel="):
        return certgp.ExactGP(kernel=name.removeprefix("kernel="), warp=warp, random_state=0)
    contestant = next(each for each in CONTESTANTS if each.name == name)
    return methods()[contestant.method].load()(**{"random_state": 0, "warp": warp} | dict(contestant.options))


def is_warped(gp: certgp.AutoGP) -> bool:
    return "Inputs are warped" in gp.choice_


def cost(data: str, effort: str) -> Cell:
    """CPU seconds of the race and of its winner alone."""
    X, y = training_rows(data)
    gp = certgp.AutoGP(effort=effort, random_state=0)
    whole = time_fit(lambda: gp.fit(X, y))
    own = time_fit(lambda: alone(gp.method_, is_warped(gp)).fit(X, y))
    ratio = whole["cpu_seconds"] / own["cpu_seconds"]
    trials = [(each.name, each.rows, round(each.seconds, 2)) for each in gp.trials_]
    return {**whole, "winner": gp.method_, "own": own["cpu_seconds"], "ratio": ratio, "rows": len(y), "trials": trials}


def limit(data: str, seconds: float) -> Cell:
    """Seconds by the clock under a limit."""
    X, y = training_rows(data)
    gp = certgp.AutoGP(max_seconds=seconds, random_state=0)
    before, times = os.getloadavg()[0], time_fit(lambda: gp.fit(X, y))
    return {**times, "winner": gp.method_, "over": times["seconds"] / seconds, "load": [before, os.getloadavg()[0]]}


def few_rows(data: str, seed: int, name: str, warp: bool) -> Cell:
    """Scores on a fifth of the training rows, of AutoGP or of a model with the warp that AutoGP chose."""
    X, y = training_rows(data)
    order = np.random.default_rng(100 + seed).permutation(len(y))[: MOST_ROWS if data not in SMALL[:-1] else None]
    held, learned = order[: len(order) // 5], order[len(order) // 5 :]
    gp = certgp.AutoGP(random_state=0) if name == "auto" else alone(name, warp)
    times = time_fit(lambda: gp.fit(X[learned], y[learned]))
    about = {"winner": gp.method_, "warped": is_warped(gp)} if name == "auto" else {}
    return {**times, **scores(gp, X[held], y[held]), **about}


def show(cell: Cell) -> None:
    shown = {key: round(value, 3) if isinstance(value, float) else value for key, value in cell.items()}
    print(" ".join(f"{key}={value}" for key, value in shown.items() if key != "part"), flush=True)


def run(cells: Cells, key: tuple[str, str, str, float | str], make: Callable[[], Cell]) -> None:
    if key not in cells:
        cells.add(dict(zip(KEYS, key, strict=True)) | make())
        show(cells.all[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=("cost", "limits", "rows"))
    parser.add_argument("--data", nargs="+", default=list(SMALL))
    parser.add_argument("--efforts", nargs="+", default=["medium"])
    parser.add_argument("--seconds", nargs="+", type=float, default=[10.0, 30.0, 60.0])
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--models", nargs="*", default=[])
    parser.add_argument("--append", type=Path)
    options = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    cells = Cells(options.append, KEYS)
    certgp.AutoGP(max_iter=2, random_state=0).fit(*(each[:100] for each in simulated(100, 3)))  # compiles
    if options.part == "cost":
        for data, effort in product(options.data, options.efforts):
            run(cells, ("cost", data, "auto", effort), lambda data=data, effort=effort: cost(data, effort))
    elif options.part == "limits":
        for data, seconds in product(options.data, options.seconds):
            run(cells, ("limits", data, "auto", seconds), lambda data=data, seconds=seconds: limit(data, seconds))
    else:
        for seed, data, name in product(range(options.seeds), options.data, ["auto", *options.models]):
            known = {tuple(cell[key] for key in KEYS): cell for cell in cells.all}
            warp = bool(known.get(("rows", data, "auto", seed), {}).get("warped"))
            run(cells, ("rows", data, name, seed), lambda key=(data, seed, name, warp): few_rows(*key))
        for data, name in dict.fromkeys((cell["data"], cell["model"]) for cell in cells.all):
            mine = [cell for cell in cells.all if (cell["part"], cell["data"], cell["model"]) == ("rows", data, name)]
            means = {key: float(np.mean([cell[key] for cell in mine])) for key in ("nlpd", "rmse", "cpu_seconds")}
            show({"data": data, "model": name, "seeds": len(mine), **means})


if __name__ == "__main__":
    main()

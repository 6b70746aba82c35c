"""What every runner shares: the rows, a clock that stops during evaluations, and a trace. NumPy and SciPy only."""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.cluster.vq import kmeans2

Array = NDArray[np.float64]
GROWTH = 1.05  # training time between two points of a trace grows by at least this factor
INDUCING_ROWS = 10_000  # k-means looks at so many rows at most


@dataclass(frozen=True)
class Point:
    """The model after some training, scored on the test rows."""

    seconds: float  # of training, evaluations excluded
    cpu_seconds: float  # the same on all threads: less disturbed by other processes
    nlpd: float
    rmse: float
    objective_per_row: float | None  # negative ELBO or log evidence; lower is better


@dataclass(frozen=True, eq=False)
class Job:
    """Standardised rows and how to fit them."""

    X: Array
    y: Array
    X_test: Array
    y_test: Array
    rank: int
    seed: int
    threads: int
    budget: int | None  # iterations or epochs; None: the library's own default
    time_limit: float
    variant: str

    def practice(self) -> Job:
        """A tiny fit that is not counted, so that lazy imports and the start of thread pools cost nobody."""
        few = slice(0, 200)
        rows = {"X": self.X[few], "y": self.y[few], "X_test": self.X_test[few], "y_test": self.y_test[few]}
        return replace(self, rank=min(self.rank, 10), budget=2, **rows)

    def inducing_points(self) -> Array:
        """k-means centres of the training inputs (rank, D), the same for every peer that starts from such points."""
        rng = np.random.default_rng(self.seed)
        rows = self.X[rng.permutation(len(self.X))[:INDUCING_ROWS]]
        centres, _ = kmeans2(rows, self.rank, minit="points", rng=rng)
        return np.ascontiguousarray(centres)

    def starting_scales(self) -> Array:
        """One length-scale per column, sqrt(D): two typical standardised rows are then at correlation 1/e."""
        return np.full(self.X.shape[1], math.sqrt(self.X.shape[1]))


STARTING_NOISE = 0.1  # variance, of standardised targets


class TimeIsUp(Exception):
    """Raised inside an optimiser that has no other way to stop."""


class Recorder:
    """A clock that counts training only, and the points recorded while it stands still.

    With ``end_only`` nothing is recorded before a fit has ended, and the limit is on CPU seconds. ``last`` are the
    predictive moments of the last point.
    """

    def __init__(self, job: Job, end_only: bool = False) -> None:
        self.job, self.end_only = job, end_only
        self.trace: list[Point] = []
        self.last: tuple[Array, Array] | None = None  # mean and variance
        self._counted = np.zeros(2)  # wall, cpu
        self._since: Array | None = None
        self._next = 0.0

    def start(self) -> None:
        self._since = _now()

    def stop(self) -> None:
        self._counted, self._since = self.elapsed(), None

    def elapsed(self) -> Array:
        """Wall and CPU seconds of training so far."""
        return self._counted if self._since is None else self._counted + (_now() - self._since)

    @property
    def due(self) -> bool:
        """Whether enough training has passed for another point."""
        return not self.end_only and bool(self.elapsed()[0] >= self._next)

    @property
    def time_is_up(self) -> bool:
        return bool(self.elapsed()[int(self.end_only)] >= self.job.time_limit)

    @contextmanager
    def paused(self) -> Iterator[None]:
        self.stop()
        try:
            yield
        finally:
            self.start()

    def add(self, mean: Array, variance: Array, objective: float | None, charge: Array | None = None) -> None:
        """Score predictions of new y; ``charge`` are seconds of the evaluation that count as training after all."""
        mean, variance = np.asarray(mean, dtype=np.float64), np.asarray(variance, dtype=np.float64)
        error, self.last = self.job.y_test - mean, (mean, variance)
        wall, cpu = self.elapsed() + (0.0 if charge is None else charge)
        if self.trace:  # a charge that was larger for the point before must not make this one earlier
            wall, cpu = max(wall, self.trace[-1].seconds), max(cpu, self.trace[-1].cpu_seconds)
        nlpd = float(np.mean(0.5 * (np.log(2.0 * np.pi * variance) + error**2 / variance)))
        point = Point(float(wall), float(cpu), nlpd, float(np.sqrt(np.mean(error**2))), objective)
        self.trace.append(point)
        self._next = GROWTH * float(self.elapsed()[0])


def _now() -> Array:
    return np.array([time.perf_counter(), time.process_time()])


def time_call(function: Callable[[], object]) -> Array:
    """Wall and CPU seconds of a call."""
    start = _now()
    function()
    return _now() - start


def serve(run: Callable[[Job, Recorder], Mapping[str, object]]) -> None:
    """Main function of a runner: fit, record, and write the trace with what ``run`` returns (versions, notes)."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--rank", type=int, required=True)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--budget", type=int)
    parser.add_argument("--time-limit", type=float, default=math.inf)
    parser.add_argument("--variant", default="")
    options = vars(parser.parse_args())
    out = options.pop("out")
    with np.load(options.pop("rows")) as rows:
        job = Job(**{name: rows[name] for name in ("X", "y", "X_test", "y_test")}, **options)
    practice = job.practice()
    run(practice, Recorder(practice))
    recorder = Recorder(job)
    about = dict(run(job, recorder))
    out.write_text(json.dumps({"trace": [asdict(point) for point in recorder.trace], "about": about}))

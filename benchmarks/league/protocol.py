"""What every runner of the league shares: rows in, a predictive distribution and its cost out. NumPy and SciPy only."""

from __future__ import annotations

import argparse
import json
import math
import os
import resource
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from league.distributions import MIDPOINTS, Distribution

Array = NDArray[np.float64]
Run = Callable[["Job"], tuple[Distribution, Mapping[str, object]]]


@dataclass(frozen=True, eq=False)
class Job:
    """Standardised rows and what may be spent on them. A runner has no test targets."""

    X: Array
    y: Array
    X_test: Array
    seed: int
    seconds: float  # of CPU time, for a search or for training
    variant: str
    is_practice: bool = False

    def practice(self) -> Job:
        """A tiny fit that is not counted, so that lazy imports cost nobody."""
        return replace(self, X=self.X[:200], y=self.y[:200], X_test=self.X_test[:20], seconds=0.2, is_practice=True)


def own_cpu_seconds() -> float:
    """Of this process and of children that have ended."""
    now = os.times()
    return now.user + now.system + now.children_user + now.children_system


def peak_megabytes() -> float:
    """Most resident memory of this process so far, libraries included."""
    status = Path("/proc/self/status")
    if status.exists():  # ru_maxrss would be at least that of the process that started this one
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM:"))
        return int(line.split()[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def limit_cpu(seconds: float) -> None:
    """The system ends this process when it has used so many CPU seconds more, rounded up."""
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    more = hard if math.isinf(seconds) else math.ceil(time.process_time() + seconds)
    resource.setrlimit(resource.RLIMIT_CPU, (more, hard))


def serve(run: Run, cpu_seconds: Callable[[], float] = own_cpu_seconds) -> None:
    """Main function of a runner. Clock and limit count fit and prediction: imports and practice come before them,
    densities and quantiles after.
    """
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--variant", default="")
    parser.add_argument("--cpu-limit", type=float, default=math.inf, help="seconds that fit and prediction may take")
    options = parser.parse_args()
    with np.load(options.rows) as rows:
        job = Job(rows["X"], rows["y"], rows["X_test"], options.seed, options.seconds, options.variant)
        y_test = rows["y_test"]
    run(job.practice())
    limit_cpu(options.cpu_limit)
    started, cpu = time.perf_counter(), cpu_seconds()
    found, about = run(job)
    cost = {"seconds": time.perf_counter() - started, "cpu_seconds": cpu_seconds() - cpu}
    cost["peak_megabytes"] = peak_megabytes()
    limit_cpu(math.inf)
    np.savez(options.out, mean=found.mean, log_density=found.log_density(y_test), quantiles=found.quantiles(MIDPOINTS))
    options.out.with_suffix(".json").write_text(json.dumps({"cost": cost, "about": dict(about)}))

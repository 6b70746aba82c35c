"""What the command line costs beside Python: CPU seconds of `certgp fit` and of the same fit in a script, and start-up.

    python benchmarks/cli_cost.py elevators --method sparse --rank 100

Prints JSON. Both are processes of their own on one thread. The script reads the file, makes the command's split, fits
the command's estimator and saves it; the command also proves, scores beside simple models and prints. ``ratio`` is
command / script. CPU seconds are taken because a busy machine doubles the others.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SCRIPT = """
import sys
import numpy as np
from certgp.cli.models import build_model
from certgp.cli.training_data import held_out_share, split_rows
file, method, rank, out, limit = sys.argv[1:]
with np.load(file) as arrays:
    X, y = arrays["X"], arrays["y"]
learned, _ = split_rows(len(y), held_out_share(None, len(y)), 0)
model = build_model(method, None, int(rank), 0, ())
if limit:
    model.set_params(max_seconds=float(limit))
model.fit(X[learned], y[learned])
model.save(out)
"""
STARTS = {
    "--help": ["--help"],
    "fit --help": ["fit", "--help"],
    "completion bash": ["completion", "bash"],
    "a missing file": ["fit", "missing.csv", "--target", "y", "--out", "m"],
}


def run(arguments: list[str]) -> tuple[float, float, str]:
    """CPU and wall-clock seconds of a process, and what it printed."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    before, started = _cpu_of_children(), time.perf_counter()
    done = subprocess.run([sys.executable, *arguments], env=environment, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 2):
        raise RuntimeError(done.stderr)
    return _cpu_of_children() - before, time.perf_counter() - started, done.stdout


def _cpu_of_children() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def measure_starts() -> dict[str, float]:
    """CPU seconds until a command that has nothing to do ends; the best of three."""
    return {name: min(run(["-m", "certgp", *given])[0] for _ in range(3)) for name, given in STARTS.items()}


def measure_fit(file: Path, method: str, rank: int, limit: str) -> dict[str, object]:
    """The same fit both ways."""
    with tempfile.TemporaryDirectory() as folder:
        script, wall, _ = run(["-c", SCRIPT, str(file), method, str(rank), f"{folder}/a", limit])
        options = ["--method", method, "--rank", str(rank), "--out", f"{folder}/b", "--json"]
        options += ["--time-limit", limit] if limit else []
        command, command_wall, printed = run(["-m", "certgp", "fit", str(file), *options])
    found = json.loads(printed)
    return {
        "method": method,
        "rank": rank,
        "rows": found["n_rows"],
        "script_cpu": round(script, 2),
        "command_cpu": round(command, 2),
        "ratio": round(command / script, 3),
        "script_wall": round(wall, 1),
        "command_wall": round(command_wall, 1),
        "fit_seconds": round(found["seconds"], 2),
        "stop_reason": found["stop_reason"],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", nargs="*", help="names of data sets in CERTGP_DATA; none measures the start only")
    parser.add_argument("--method", default="sparse")
    parser.add_argument("--rank", type=int, default=100)
    parser.add_argument("--time-limit", default="")
    given = parser.parse_args()
    folder = Path(os.environ.get("CERTGP_DATA", "."))
    if not given.data:
        print(json.dumps({"cpu_seconds": measure_starts()}, indent=1))
    for name in given.data:
        found = measure_fit(folder / f"{name}.npz", given.method, given.rank, given.time_limit)
        print(json.dumps({"data": name} | found), flush=True)


if __name__ == "__main__":
    main()

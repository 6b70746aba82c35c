"""Peak memory of `certgp fit` and `certgp predict` on a file, above that of the same commands on a hundred rows.

    python benchmarks/cli_memory.py --rows 1000000 --columns 10

Prints JSON. ``ratio`` is (peak - base) / size: ``size`` is that of all columns as float64, ``base`` the peak of the
same command on a hundred rows, which has imported and compiled the same code.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pa_parquet

MIB = 2**20
FEW_ROWS = 100
# VmHWM, not getrusage: the latter starts at what the parent had when it started this process
COMMAND = """
import sys
from certgp.cli.main import main
code = main(sys.argv[1:])
status = dict(line.split(":", 1) for line in open("/proc/self/status"))
print(status["VmHWM"].split()[0], file=sys.stderr)
sys.exit(code)
"""


def write_table(path: Path, rows: int, columns: int) -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((rows, columns - 1))
    y = np.sin(X[:, 0]) + 0.5 * np.cos(X[:, 1] + X[:, 2]) + 0.1 * rng.standard_normal(rows)
    table = pa.table({f"x{j}": X[:, j] for j in range(columns - 1)} | {"y": y})
    (pa_csv.write_csv if path.suffix == ".csv" else pa_parquet.write_table)(table, path)


def run(arguments: list[str], threads: int) -> tuple[float, float]:
    """Peak resident memory in MiB and seconds of one command in a process of its own."""
    environment = {**os.environ, "OMP_NUM_THREADS": str(threads)}
    started = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", COMMAND, *arguments], env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(done.stderr)
    return int(done.stderr.split()[-1]) / 1024, time.perf_counter() - started


def measure(
    rows: int, columns: int, method: str, ending: str, threads: int, commands: tuple[str, ...] = ("fit", "predict")
) -> list[dict[str, object]]:
    """Both commands, in turn, on a hundred rows and on many."""
    size, found = 8 * rows * columns / MIB, []
    with tempfile.TemporaryDirectory() as folder:
        model, few, many = (str(Path(folder) / name) for name in ("y.model", f"few{ending}", f"many{ending}"))
        write_table(Path(few), FEW_ROWS, columns)
        write_table(Path(many), rows, columns)
        fit = ["--target", "y", "--method", method, "--rank", "20", "--max-iter", "3", "--out", model]
        calls = {
            "fit": lambda data: ["fit", data, *fit],
            "predict": lambda data: ["predict", model, data, "--out", str(Path(folder) / "predictions.csv")],
        }
        for command in commands:
            base, _ = run(calls[command](few), threads)
            peak, seconds = run(calls[command](many), threads)
            ratio = (peak - base) / size
            found.append(
                {"command": command, "method": method, "file": ending, "size_mib": size, "base_mib": base}
                | {"peak_mib": peak, "ratio": ratio, "seconds": seconds}
            )
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--columns", type=int, default=10, help="with the target")
    parser.add_argument("--methods", nargs="+", default=["mercer", "fourier"])
    parser.add_argument("--endings", nargs="+", default=[".csv", ".parquet"])
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    pairs = [(method, ending) for ending in options.endings for method in options.methods]
    found = [run for pair in pairs for run in measure(options.rows, options.columns, *pair, options.threads)]
    print(json.dumps({"rows": options.rows, "columns": options.columns, "runs": found}, indent=1))


if __name__ == "__main__":
    main()

"""Requests made from the OpenAPI document of `certgp serve`, right ones and wrong ones: no answer may be a 5xx.

make fuzz, or: python benchmarks/fuzz.py .peers/fuzz/bin/schemathesis [--examples 500]
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd

from certgp import SparseGP
from certgp.tabular import TableGP
from serving import fit_model, start_server


def fit_table(path: Path) -> None:
    """Categories of few and many levels, a date, true and false; gaps are filled in."""
    rng, n = np.random.default_rng(0), 400
    frame = pd.DataFrame(
        {
            "day": pd.Timestamp("2023-01-01") + pd.to_timedelta(rng.integers(0, 700, n), unit="D"),
            "colour": rng.choice(["red", "green", "blue"], n),
            "shop": rng.choice([f"shop {k}" for k in range(30)], n),
            "size": rng.gamma(4.0, 10.0, n),
            "member": rng.random(n) < 0.5,
        }
    )
    frame["price"] = np.exp(3 + 0.02 * frame["size"] + 0.3 * (frame["colour"] == "red") + 0.1 * rng.standard_normal(n))
    frame.loc[::9, "size"] = np.nan
    TableGP(SparseGP(30, random_state=0), missing="impute", log_target=True).fit(frame, "price").save(path)


def fuzz(fit: Callable[[Path], None], arguments: argparse.Namespace) -> int:
    """0 where all checks passed and the server lived on."""
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder) / "fuzzed.model"
        fit(model)
        server, host, port = start_server(model)
        command = [str(arguments.schemathesis.absolute()), "run", f"http://{host}:{port}/openapi.json"]
        options = ["--checks", "all", "--max-examples", str(arguments.examples), "--seed", "1", "--no-color"]
        try:
            outcome = subprocess.run([*command, *options, "--continue-on-failure"], cwd=folder, check=False)
            alive = server.poll() is None
        finally:
            server.terminate()
            server.wait()
    print("the server lived on" if alive else "the server died")
    return outcome.returncode or int(not alive)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("schemathesis", type=Path, help="the program")
    parser.add_argument("--examples", type=int, default=500, help="requests per operation")
    parser.add_argument("--only", choices=["numbers", "table"], help="one of the two models")
    arguments = parser.parse_args()
    models = {"numbers": fit_model, "table": fit_table}
    chosen = models.values() if arguments.only is None else [models[arguments.only]]
    return max([fuzz(fit, arguments) for fit in chosen])


if __name__ == "__main__":
    sys.exit(main())

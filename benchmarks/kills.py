"""Workers that are killed in the middle of a fit and of a prediction, and a scheduler that is lost.

    OMP_NUM_THREADS=1 python benchmarks/kills.py --kills 10 --json

Runs ``certgp fit`` and ``certgp predict`` with ``--scheduler`` on a cluster of two worker processes: once undisturbed,
then ``--kills`` times each with a SIGKILL of a random worker at a random moment of the undisturbed run's time (the
cluster starts another in its place). Results must be the same, bit by bit. Then the scheduler itself is killed, as
often and at random moments too, in fits with a checkpoint: each must end with one clear error and no model, and be
carried on by another cluster.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pa_parquet
from distributed import Client

from scaling import write_parts
from scaling_cluster import cluster_of

CERTGP = [sys.executable, "-m", "certgp"]


class Killer(threading.Thread):
    """Kills a random worker after some seconds, unless the command ends before."""

    def __init__(self, client: Client, after: float, rng: random.Random) -> None:
        super().__init__()
        self._client, self._after, self._rng = client, after, rng
        self._over = threading.Event()
        self.killed = 0

    def run(self) -> None:
        if not self._over.wait(self._after):
            pids = list(self._client.run(os.getpid).values())
            if pids:
                os.kill(self._rng.choice(pids), signal.SIGKILL)
                self.killed += 1

    def stop(self) -> None:
        self._over.set()
        self.join()


def run(command: list[str]) -> tuple[int, str, float]:
    """Exit code of a command in this process, what was said on stderr, seconds."""
    from certgp.cli.main import main as certgp_main

    started, said = time.perf_counter(), io.StringIO()
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(said):
        code = certgp_main(command)
    return code, said.getvalue(), time.perf_counter() - started


def result_of(what: str, out: Path) -> list[object]:
    """What must be the same: the predictions, or those of the fitted model."""
    import certgp

    if what == "predict":
        return pa_parquet.read_table(out).to_pydict()["mean"]
    model = certgp.load(out)
    X = np.random.default_rng(0).standard_normal((1000, model.n_features_in_))
    mean, std = model.predict(certgp.data.ArrayRows(X, names=list(model.column_names)), return_std=True)
    return [float(model.log_marginal_likelihood_), *mean.tolist(), *std.tolist()]


def measure(what: str, command: list[str], out: Path, kills: int, seed: int) -> dict[str, object]:
    """One undisturbed run, then some with a kill each, all on clusters of their own."""
    rng, rounds, same, runs = random.Random(seed), 0, 0, 0
    command = [*command, "--out", str(out), "--scheduler"]
    with cluster_of(2) as client:
        run([*command, client.scheduler.address])  # workers import what they need
        code, said, seconds = run([*command, client.scheduler.address])
    if code:
        raise SystemExit(said)
    expected = result_of(what, out)
    while rounds < kills:
        runs += 1
        out.unlink()
        with cluster_of(2) as client:
            killer = Killer(client, rng.uniform(0.1, 0.9) * seconds, rng)
            killer.start()
            code, said, _ = run([*command, client.scheduler.address])
            killer.stop()
        if killer.killed:  # else the command was quicker than the killer
            rounds += 1
            same += code == 0 and result_of(what, out) == expected
            print(f"{what}: kill {rounds} of {kills}, {same} the same", file=sys.stderr, flush=True)
        if code:
            print(said, file=sys.stderr)
    return {"what": what, "seconds": seconds, "kills": rounds, "same": same, "runs": runs}


def measure_schedulers(folder: Path, command: list[str], kills: int, seed: int) -> dict[str, object]:
    """Fits that lost their scheduler, each at a random moment, and how they ended."""
    rng, found, runs = random.Random(seed), [], 0
    while len(found) < kills:
        runs += 1
        lost = lose_scheduler(folder, command, port=18786 + runs, after=rng.uniform(0.0, 2.0))
        if lost["exit_code"] != 0:  # else the fit was quicker
            found.append(lost)
            print(f"scheduler: kill {len(found)} of {kills}: {lost}", file=sys.stderr, flush=True)
    return {
        "what": "scheduler",
        "kills": kills,
        "runs": runs,
        "exit_codes": sorted({each["exit_code"] for each in found}),
        "errors": sorted({each["error"] for each in found}),
        "checkpoints_kept": sum(each["checkpoint_kept"] for each in found),
        "models_written": sum(each["model_written"] for each in found),
        "carried_on": sum(each["carried_on"] for each in found),
    }


def lose_scheduler(folder: Path, command: list[str], port: int, after: float) -> dict[str, Any]:
    """SIGKILL of the scheduler some seconds after a fit wrote its first checkpoint; then the same command on another
    cluster.
    """
    checkpoint, out = folder / "fit.checkpoint", folder / "lost.model"
    checkpoint.unlink(missing_ok=True)
    out.unlink(missing_ok=True)
    dask = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--port", str(port), "--no-dashboard"]
    worker = [sys.executable, "-m", "distributed.cli.dask_worker", f"tcp://127.0.0.1:{port}", "--nthreads", "1"]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    scheduler = subprocess.Popen([*dask, "--host", "127.0.0.1"], **quiet)
    workers = [subprocess.Popen([*worker, "--no-nanny", "--no-dashboard"], **quiet) for _ in range(2)]
    options = [*command, "--checkpoint", str(checkpoint), "--out", str(out)]
    fit = subprocess.Popen(
        [*CERTGP, *options, "--scheduler", f"tcp://127.0.0.1:{port}"], stderr=subprocess.PIPE, text=True
    )
    while not checkpoint.exists() and fit.poll() is None:
        time.sleep(0.1)
    time.sleep(after)
    scheduler.kill()
    said = fit.communicate()[1]
    for process in workers:
        process.kill()
    kept, written = checkpoint.exists(), out.exists()
    with cluster_of(2) as client:
        again, _, _ = run([*options, "--scheduler", client.scheduler.address])
    return {
        "exit_code": fit.returncode,
        "error": said.strip().splitlines()[-1] if said.strip() else "",
        "checkpoint_kept": kept,
        "model_written": written,
        "carried_on": again == 0 and out.exists(),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=150_000)
    parser.add_argument("--rank", type=int, default=10)
    parser.add_argument("--kills", type=int, default=10, help="of each")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--folder", type=Path, help="where to write the files (default: temporary)")
    parser.add_argument("--parts", nargs="+", choices=("fit", "predict", "scheduler"))
    parser.add_argument("--json", action="store_true", help="print one JSON object per line")
    options = parser.parse_args()
    parts = options.parts or ["fit", "predict", "scheduler"]
    folder = Path(tempfile.mkdtemp(prefix="kills-", dir=options.folder))
    try:
        files = [str(path) for path in write_parts(folder, options.rows, 5)]
        fit = ["fit", *files, "--target", "y", "--method", "mercer", "--rank", str(options.rank), "--max-iter", "6"]
        model = folder / "fit.model"
        if "fit" in parts:
            show(measure("fit", fit, model, options.kills, options.seed), options.json)
        if "predict" in parts:
            if not model.exists():
                run([*fit, "--out", str(model)])
            predict, out = ["predict", str(model), *files], folder / "out.parquet"
            show(measure("predict", predict, out, options.kills, options.seed + 1), options.json)
        if "scheduler" in parts:
            show(measure_schedulers(folder, fit, options.kills, options.seed + 2), options.json)
    finally:
        shutil.rmtree(folder)


def show(found: dict[str, object], as_json: bool) -> None:
    print(json.dumps(found) if as_json else "  ".join(f"{k} {v}" for k, v in found.items()), flush=True)


if __name__ == "__main__":
    main()

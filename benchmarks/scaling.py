"""Files larger than memory: peak memory, seconds per pass and per fit, and that every way of reading gives one result.

    OMP_NUM_THREADS=1 python benchmarks/scaling.py --rows 10000000 --rank 100 --folder /big/disk --json

Simulates rows x columns of Parquet (parts of 100,000 rows) in ``--folder``, measures each part in a process of its own
and removes the files. ``peak_mib`` is VmHWM. Seconds are processor seconds of one thread, so that other programs on the
machine disturb them less than those of the clock, which are there too.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from copy import deepcopy
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pa_parquet

import scaling_cluster

PART_ROWS = 100_000
SIZES = (100_000, 1_000_000, 10_000_000)
HELD = {"standardize": False, "noise": "constant", "optimize": False, "length_scale": 2.0, "noise_variance": 0.1}
MEMORY = {"memory": 2**40, "file": 0.0}


def simulate(rows: int, columns: int, seed: int) -> pa.Table:
    """Inputs x0, x1, ... and a smooth function of three directions of them with noise."""
    rng, directions = np.random.default_rng(seed), np.random.default_rng(0).standard_normal((columns, 3))
    X = rng.standard_normal((rows, columns))
    Z = X @ (directions / np.sqrt(columns))
    y = (
        np.sin(2.0 * Z[:, 0])
        + np.cos(1.5 * Z[:, 1]) * Z[:, 2]
        + 0.5 * np.sin(X[:, 0])
        + 0.3 * rng.standard_normal(rows)
    )
    return pa.table({f"x{j}": X[:, j] for j in range(columns)} | {"y": y})


def write_parts(folder: Path, rows: int, columns: int) -> list[Path]:
    """Files of Parquet."""
    files = []
    for number, start in enumerate(range(0, rows, PART_ROWS)):
        files.append(folder / f"part-{number:05d}.parquet")
        pa_parquet.write_table(simulate(min(PART_ROWS, rows - start), columns, number + 1), files[-1])
    return files


def peak_mib() -> float:
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(status["VmHWM"].split()[0]) / 1024


# -------------------- what is measured, each in a process of its own


def measure_fit(folder: Path, rows: int, method: str, rank: int) -> dict[str, object]:
    """Reading and fitting at all defaults but the rank, and the certificate where one is cheap."""
    import certgp

    started, clock = time.process_time(), time.perf_counter()
    kept = certgp.read(parts_of(folder, rows), target="y", scratch=folder)
    read = time.process_time()
    model = unfitted(method, rank, max_iter=300 if method == "mercer" else 200).fit(kept)
    fitted = time.process_time()
    proof = model.certify() if model.certifies_itself else None
    model.save(folder / f"{method}-{rows}.model")
    return {
        "read_seconds": read - started,
        "fit_seconds": fitted - read,
        "clock_seconds": time.perf_counter() - clock,
        "n_iter": model.n_iter_,
        "converged": model.converged_,
        "reason": model.stop_reason_,
        "stages": [(stage.rows, stage.iterations, round(stage.value, 5)) for stage in model.history_.stages],
        "certificate": None if proof is None else proof.sentence(),
    }


def measure_predict(folder: Path, rows: int, method: str, rank: int) -> dict[str, object]:
    """Predictions of all rows, to Parquet."""
    from certgp.cli.main import main

    out, model = folder / f"{method}.out.parquet", folder / f"{method}-{rows}.model"
    started = time.process_time()
    printed = captured(lambda: main(["predict", str(model), *parts_of(folder, rows), "--out", str(out), "--json"]))
    seconds = time.process_time() - started
    found = json.loads(printed)
    written = pa_parquet.read_metadata(out).num_rows
    out.unlink()
    return {"seconds": seconds, "rows_written": written, "scores": found["scores"]}


def measure_pass(folder: Path, rows: int, method: str, rank: int) -> dict[str, object]:
    """One fold of the statistics over rows in memory and over rows in a scratch file, in turn, and the decoding."""
    import certgp
    from certgp.data import StandardisedRows, Standardiser, summarise
    from certgp.engines import LocalEngine, fold_feature_statistics

    model = unfitted(method, rank).fit(certgp.read(parts_of(folder, PART_ROWS), target="y"))._model.process.model
    found: dict[str, object] = {}
    sources = {}
    for kind, memory in MEMORY.items():
        started = time.process_time()
        kept = certgp.read(parts_of(folder, rows), target="y", memory=memory, scratch=folder)
        found[f"decode_{kind}_seconds"] = time.process_time() - started
        sources[kind] = StandardisedRows(kept, Standardiser.of(summarise(kept)))
    times: dict[str, list[float]] = {kind: [] for kind in sources}
    for _ in range(3 if rows > 1_000_000 else 9):
        for kind, source in sources.items():
            started = time.process_time()
            fold_feature_statistics(model, source, LocalEngine())
            times[kind].append(time.process_time() - started)
    ratios = np.array(times["file"]) / np.array(times["memory"])
    return found | {
        "seconds": {kind: float(np.median(each)) for kind, each in times.items()},
        "seconds_per_row": float(np.median(times["file"])) / rows,
        "file_over_memory": float(np.median(ratios)),
    }


def measure_agreement(folder: Path, rows: int, method: str, rank: int) -> dict[str, object]:
    """Largest relative difference of evidence, gradient, predictions and certificate between ways to the same rows."""
    import certgp
    from certgp.data import as_rows
    from certgp.engines import LocalEngine
    from certgp.engines.dask import DaskEngine

    files = parts_of(folder, rows)
    X, y = certgp.read(files, target="y").take(slice(None))
    features = features_of(folder, method, rank, held=True)

    def facts(kept: object, engine: object) -> list[np.ndarray]:
        return facts_of(features, kept, engine, unfitted(method, rank, engine=engine, **HELD), X[:PART_ROWS])

    found = {
        "array": facts(as_rows(X, y), LocalEngine()),
        "chunked": facts(as_rows(X, y), LocalEngine(chunk_rows=997)),
        "file": facts(certgp.read(files, target="y", memory=0, scratch=folder), LocalEngine()),
    }
    for workers, partitions in ((1, None), (2, None), (3, None), (2, 7)):
        with scaling_cluster.cluster_of(workers) as client:
            engine = DaskEngine(client, partitions=partitions)
            name = f"dask_{workers}" + ("" if partitions is None else f"_of_{partitions}_partitions")
            found[name] = facts(engine.read(files, target="y"), engine)
    first = found.pop("array")
    words = ("evidence", "gradient", "predictions", "certificate")
    differences = {
        f"{way}_{word}": float(np.abs(a - b).max() / np.abs(b).max())
        for way, each in found.items()
        for word, a, b in zip(words, each, first, strict=True)
    }
    one, two, three = (found[f"dask_{workers}"] for workers in (1, 2, 3))
    same = all(np.array_equal(a, b) and np.array_equal(a, c) for a, b, c in zip(one, two, three, strict=True))
    return differences | {"bit_equal_on_1_2_3_workers": same}


def facts_of(features: object, kept: object, engine: object, model: object, new: np.ndarray) -> list[np.ndarray]:
    """Evidence, gradient, predictions and certificate of a model at held hyper-parameters; rows on a cluster are also
    predicted there.
    """
    from certgp.data import StandardisedRows, Standardiser, summarise
    from certgp.training.full_batch.objective import LowRankObjective

    model.fit(kept)
    source = StandardisedRows(kept, Standardiser.of(summarise(kept)))
    objective = LowRankObjective(features, source, engine, "marginal")
    value, gradient = objective.evaluate(objective.start())
    proof = model.certify(reference_rank=2 * model.rank_)
    return [
        np.array([model.log_marginal_likelihood_, value]),
        gradient,
        np.concatenate([*model.predict(new, return_std=True), *model.predict(kept, return_std=True)]),
        np.array([proof.kl.lower, proof.kl.upper]),
    ]


def measure_partial_fit(folder: Path, rows: int, method: str, rank: int) -> dict[str, object]:
    """A thousand calls of partial_fit against one fit with the same hyper-parameters, features and units, none of which
    may come from the first rows.
    """
    import certgp

    features = {"mercer": {"projection": None, "input_scale": 1.0}, "fourier": {"winsorize": False, "sampling": "iid"}}
    held = HELD | features[method]

    X, y = certgp.read(parts_of(folder, rows), target="y").take(slice(None))
    whole = unfitted(method, rank, **held).fit(X, y)
    grown, peaks = unfitted(method, rank, **held), []
    for part in np.array_split(np.arange(rows), 1000):
        grown.partial_fit(X[part], y[part])
        peaks.append(peak_mib())
    new, pairs = X[:1000], []
    for model in (whole, grown):
        mean, std = model.predict(new, return_std=True)
        pairs.append(np.concatenate([mean, std, [model.log_marginal_likelihood_ / rows]]))
    difference = np.abs(pairs[0] - pairs[1]).max() / np.abs(pairs[0]).max()
    return {"difference": float(difference), "growth_mib_after_the_first_ten": peaks[-1] - peaks[9]}


def measure_bytes(folder: Path, rows: int, method: str, rank: int) -> dict[str, object]:
    """What moves in an evaluation on a cluster, at two sizes with as many parts."""
    sizes = {size: parts_of(folder, size) for size in (rows // 4, rows)}
    return scaling_cluster.measure_bytes(features_of(folder, method, rank, held=True), sizes)


def measure_workers(folder: Path, rows: int, method: str, rank: int) -> dict[str, object]:
    """An evaluation on one worker and on two."""
    return scaling_cluster.measure_workers(features_of(folder, method, rank, held=True), parts_of(folder, rows))


def measure_cost(folder: Path, rows: int, method: str, rank: int) -> dict[str, object]:
    """Seconds by rank, and a model of them."""
    return scaling_cluster.measure_cost(parts_of(folder, rows), lambda r: features_of(folder, method, r))


def measure_cluster_fit(folder: Path, rows: int, method: str, rank: int) -> dict[str, object]:
    """A default fit on two workers that read the files, and what the client itself needs for it."""
    from certgp.engines.dask import DaskEngine

    started, clock = time.process_time(), time.perf_counter()
    with scaling_cluster.cluster_of(2) as client:
        engine = DaskEngine(client)
        kept = engine.read(parts_of(folder, rows), target="y")
        read = time.perf_counter() - clock
        model = unfitted(method, rank, max_iter=300 if method == "mercer" else 200, engine=engine).fit(kept)
        seconds = time.perf_counter() - clock - read
        workers = client.run(scaling_cluster.cpu_seconds)
    return {
        "read_clock_seconds": read,
        "fit_clock_seconds": seconds,
        "client_seconds": time.process_time() - started,
        "worker_seconds": list(workers.values()),
        "stages": [(stage.rows, stage.iterations, round(stage.value, 5)) for stage in model.history_.stages],
    }


def features_of(folder: Path, method: str, rank: int, held: bool = False):
    """The features of a model fitted to the first file, or at held hyper-parameters, with parameters to be learned."""
    import certgp

    fitted = unfitted(method, rank, **(HELD if held else {"max_iter": 3})).fit(
        certgp.read(parts_of(folder, PART_ROWS), target="y")
    )
    return deepcopy(fitted._model.process.model).requires_grad_(True)


MEASURES: dict[str, Callable[[Path, int, str, int], dict[str, object]]] = {
    "fit": measure_fit,
    "predict": measure_predict,
    "pass": measure_pass,
    "agreement": measure_agreement,
    "partial_fit": measure_partial_fit,
    "bytes": measure_bytes,
    "workers": measure_workers,
    "cost": measure_cost,
    "cluster_fit": measure_cluster_fit,
}


def unfitted(method: str, rank: int, **options: object):
    import certgp

    cls = {"mercer": certgp.MercerGP, "fourier": certgp.FourierGP}[method]
    return cls(rank, **({"max_iter": 10, "random_state": 0} | options))


def parts_of(folder: Path, rows: int) -> list[str]:
    return [str(path) for path in sorted(folder.glob("part-*.parquet"))[: -(-rows // PART_ROWS)]]


def captured(run: Callable[[], int]) -> str:
    """What a command prints."""
    import contextlib
    import io

    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        code = run()
    if code:
        raise SystemExit(code)
    return text.getvalue()


# -------------------- running them


def run_alone(what: str, folder: Path, rows: int, method: str, rank: int) -> dict[str, object]:
    """One measurement in a process of its own."""
    command = [sys.executable, __file__, "--only", what, "--folder", str(folder), "--rows", str(rows)]
    command += ["--methods", method, "--rank", str(rank)]
    done = subprocess.run(
        command, env=os.environ | {"OMP_NUM_THREADS": "1"}, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(done.stderr)
    found: dict[str, object] = json.loads(done.stdout.splitlines()[-1])
    return {"what": what, "method": method, "rank": rank, "rows": rows} | found


def run_all(folder: Path, rows: int, methods: list[str], rank: int, parts: list[str]) -> Iterator[dict[str, object]]:
    sizes = [size for size in SIZES if size <= rows]
    for method in methods:
        if "pass" in parts:
            yield from (run_alone("pass", folder, size, method, rank) for size in sizes)
        if "fit" in parts:
            yield from (run_alone("fit", folder, size, method, rank) for size in sorted({sizes[0], rows}))
        if "predict" in parts:
            yield run_alone("predict", folder, rows, method, rank)
        if "agreement" in parts:  # more than what is kept standardised in memory
            yield run_alone("agreement", folder, min(rows, 1_000_000), method, rank)
        if "partial_fit" in parts:
            yield run_alone("partial_fit", folder, min(rows, PART_ROWS), method, rank)
        if "bytes" in parts:
            yield run_alone("bytes", folder, min(rows, 1_600_000), method, rank)
        if "workers" in parts:
            yield run_alone("workers", folder, min(rows, 2_000_000), method, 2 * rank)
        if "cost" in parts:
            yield run_alone("cost", folder, min(rows, PART_ROWS), method, rank)
        if "cluster_fit" in parts:
            yield run_alone("cluster_fit", folder, rows, method, rank)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--columns", type=int, default=10, help="inputs")
    parser.add_argument("--rank", type=int, default=100)
    parser.add_argument("--methods", nargs="+", default=["mercer", "fourier"])
    parser.add_argument("--parts", nargs="+", choices=MEASURES, default=list(MEASURES))
    parser.add_argument(
        "--folder", type=Path, help="where to write the files and the scratch file (default: temporary)"
    )
    parser.add_argument("--only", choices=MEASURES, help=argparse.SUPPRESS)
    parser.add_argument("--json", action="store_true", help="print one JSON object per line as measurements end")
    options = parser.parse_args()
    if options.only:
        warnings.simplefilter("ignore")
        found = MEASURES[options.only](options.folder, options.rows, options.methods[0], options.rank)
        print(json.dumps(found | {"peak_mib": peak_mib()}))
        return
    folder = Path(tempfile.mkdtemp(prefix="scaling-", dir=options.folder))
    try:
        files = write_parts(folder, options.rows, options.columns)
        size = sum(file.stat().st_size for file in files) / 2**20
        print(json.dumps({"rows": options.rows, "inputs": options.columns, "parquet_mib": round(size)}), flush=True)
        for found in run_all(folder, options.rows, options.methods, options.rank, options.parts):
            print(json.dumps(found) if options.json else "  ".join(f"{k} {v}" for k, v in found.items()), flush=True)
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()

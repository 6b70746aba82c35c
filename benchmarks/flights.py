"""Three million flights end to end: from the raw file through a scikit-learn column transformer to a certified model.

    OMP_NUM_THREADS=1 python benchmarks/flights.py --data $CERTGP_DATA --scratch /big/disk --lightgbm OTHER/bin/python

Rows are transformed batch by batch and decoded once (``certgp.read``), so memory holds one batch and what ``--memory``
allows. A tenth of the rows, drawn at random, is for the test. LightGBM runs on the same rows in an environment of its
own, where one is given. Prints one JSON object per model.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

TARGET = "delay"  # minutes
COLUMNS = ("minute", "day", "from_lat", "from_lon", "to_lat", "to_lon", "distance")
BATCH_ROWS = 65_536


def peak_mib() -> float:
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(status["VmHWM"].split()[0]) / 1024


def transformer(folder: Path):
    """Raw columns of flights to numbers: minute of the day and day of the year, places of both airports, distance.

    Nothing is learned from the rows, so it can be applied to one batch after the other.
    """
    import pandas as pd
    from sklearn.compose import ColumnTransformer
    from sklearn.preprocessing import FunctionTransformer

    places = pd.read_csv(folder / "airports.csv").set_index("iata")[["latitude", "longitude"]]

    def clock_and_calendar(frame: pd.DataFrame) -> np.ndarray:
        date = frame["date"].dt
        return np.column_stack([60 * date.hour + date.minute, date.day_of_year])

    def place(frame: pd.DataFrame) -> np.ndarray:
        return places.reindex(frame.iloc[:, 0]).to_numpy()  # NaN where an airport is not known

    return ColumnTransformer(
        [
            ("when", FunctionTransformer(clock_and_calendar), ["date"]),
            ("from", FunctionTransformer(place), ["origin"]),
            ("to", FunctionTransformer(place), ["destination"]),
            ("far", "passthrough", ["distance"]),
        ]
    )


def read_flights(folder: Path, memory: float, scratch: Path | None):
    """All flights as rows; those from or to an airport that is not in the list are left out and counted."""
    import pyarrow as pa
    import pyarrow.parquet as pa_parquet

    import certgp

    columns = transformer(folder)
    schema = pa.schema([(name, pa.float32()) for name in (*COLUMNS, TARGET)])

    def batches() -> Iterator[pa.RecordBatch]:
        with pa_parquet.ParquetFile(folder / "flights.parquet") as file:
            for batch in file.iter_batches(BATCH_ROWS, use_threads=False):
                frame = batch.to_pandas()
                numbers = np.column_stack([columns.fit_transform(frame), frame[TARGET]]).astype(np.float32)
                yield pa.record_batch([pa.array(column) for column in numbers.T.copy()], schema=schema)

    reader = pa.RecordBatchReader.from_batches(schema, batches())
    return certgp.read(
        reader, target=TARGET, on_bad_rows="skip", memory=memory, scratch=scratch, dtype="float32"
    )  # whole numbers, and places to 1 m


def split(n: int) -> tuple[np.ndarray, np.ndarray]:
    order = np.random.default_rng(0).permutation(n)
    return np.sort(order[n // 10 :]), np.sort(order[: n // 10])


def fit_gp(rows, method: str, rank: int) -> dict[str, object]:
    import certgp
    from certgp.data import PickedRows
    from certgp.estimators.scores import score

    train, test = (PickedRows(rows, positions) for positions in split(rows.n_rows))
    cls = {"mercer": certgp.MercerGP, "fourier": certgp.FourierGP, "sparse": certgp.SparseGP}[method]
    started, clock = time.process_time(), time.perf_counter()
    model = cls(rank, random_state=0).fit(train)
    seconds, clock = time.process_time() - started, time.perf_counter() - clock
    found = score(model, test)
    proof = model.certify() if model.certifies_itself else None
    return {
        "model": f"{cls.__name__} rank {rank}",
        "rmse": found.rmse,
        "nlpd": found.nlpd,
        "coverage_95": found.coverage,
        "seconds": seconds,
        "clock_seconds": clock,
        "stages": [(stage.rows, stage.iterations) for stage in model.history_.stages],
        "peak_mib": peak_mib(),
        "certificate": None if proof is None else proof.sentence(),
    }


def fit_lightgbm(path: Path) -> dict[str, object]:
    """LightGBM on the same rows; its noise is Gaussian with the variance of a tenth of the training rows it did not
    learn from, on which it also stops.
    """
    import lightgbm

    numbers = np.load(path, mmap_mode="r")
    train, test = split(len(numbers))
    mixed = np.random.default_rng(1).permutation(train)
    learn, aside = mixed[len(mixed) // 10 :], mixed[: len(mixed) // 10]
    X, y = numbers[:, :-1], numbers[:, -1]
    started, clock = time.process_time(), time.perf_counter()
    model = lightgbm.LGBMRegressor(n_estimators=1000, num_leaves=63, n_jobs=1, verbose=-1)
    stop = [lightgbm.early_stopping(20, verbose=False)]
    model.fit(X[learn], y[learn], eval_set=[(X[aside], y[aside])], callbacks=stop)
    seconds, clock = time.process_time() - started, time.perf_counter() - clock
    variance = float(np.mean((y[aside] - model.predict(X[aside])) ** 2))
    error = (y[test] - model.predict(X[test])) ** 2
    return {
        "model": f"LightGBM, {model.best_iteration_} trees of 63 leaves",
        "rmse": float(np.sqrt(error.mean())),
        "nlpd": float(0.5 * np.log(2 * np.pi * variance) + 0.5 * error.mean() / variance),
        "seconds": seconds,
        "clock_seconds": clock,
        "peak_mib": peak_mib(),
    }


def run_lightgbm(rows, python: str, scratch: Path | None) -> dict[str, object]:
    """In the environment that has it, on rows in a file."""
    with tempfile.NamedTemporaryFile(suffix=".npy", dir=scratch) as file:
        X, y = rows.take(slice(None))
        np.save(file, np.column_stack([X, y]))
        file.flush()
        command = [python, __file__, "--baseline", file.name]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr)
    found: dict[str, object] = json.loads(done.stdout)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder of flights.parquet and airports.csv")
    parser.add_argument("--methods", nargs="+", default=["mercer"])
    parser.add_argument("--rank", type=int, default=100)
    parser.add_argument("--memory", type=float, default=0.0, help="bytes of decoded rows in memory; 0: all in a file")
    parser.add_argument("--scratch", type=Path)
    parser.add_argument("--lightgbm", metavar="PYTHON", help="interpreter of an environment with LightGBM")
    parser.add_argument("--baseline", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.baseline:
        print(json.dumps(fit_lightgbm(options.baseline)))
        return
    started = time.perf_counter()
    rows = read_flights(options.data, options.memory, options.scratch)
    facts = {"rows": rows.n_rows, "left_out": rows.skipped.n_rows, "read_seconds": time.perf_counter() - started}
    print(json.dumps(facts | {"columns": rows.names, "peak_mib": peak_mib()}), flush=True)
    for method in options.methods:
        print(json.dumps(fit_gp(rows, method, options.rank)), flush=True)
    if options.lightgbm:
        print(json.dumps(run_lightgbm(rows, options.lightgbm, options.scratch)), flush=True)


if __name__ == "__main__":
    sys.exit(main())

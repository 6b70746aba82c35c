"""Load on `certgp serve`: requests over several connections of this machine, and how long each took.

python benchmarks/serving.py [--json]

Client and server share the machine's cores, so times include the client's own work.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from pathlib import Path

import numpy as np

ROWS, COLUMNS, RANK = 5_000, 8, 200
REQUESTS, CONNECTIONS = 1_000, 20
BATCHES = (1, 100)


def fit_model(path: Path) -> None:
    from certgp import SparseGP

    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, size=(ROWS, COLUMNS))
    y = np.sin(2 * X[:, 0]) * X[:, 1] + 0.3 * rng.standard_normal(ROWS)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a short fit serves as well as a long one
        SparseGP(RANK, max_iter=10, random_state=0).fit(X, y).save(path)


def start_server(model: Path) -> tuple[subprocess.Popen[str], str, int]:
    command = [sys.executable, "-m", "certgp", "serve", str(model), "--port", "0", "--json"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    address = json.loads(server.stdout.readline())["address"].removeprefix("http://")
    host, _, port = address.rpartition(":")
    return server, host, int(port)


def load(host: str, port: int, batch: int, requests: int, connections: int) -> dict[str, float]:
    """Every connection sends its share, one request after the other; times in milliseconds."""
    times: list[float] = []
    errors: list[str] = []

    def work(seed: int, count: int) -> None:
        rng = np.random.default_rng(seed)
        connection = http.client.HTTPConnection(host, port, timeout=60)
        for _ in range(count):
            body = json.dumps({"rows": rng.uniform(-2, 2, size=(batch, COLUMNS)).tolist()})
            started = time.perf_counter()
            try:
                connection.request("POST", "/predict", body, {"content-type": "application/json"})
                answer = connection.getresponse()
                found = json.loads(answer.read())
                if answer.status != 200 or len(found["mean"]) != batch:
                    errors.append(str(found))
            except (OSError, http.client.HTTPException) as error:
                errors.append(repr(error))
                connection.close()  # the next request opens it anew
            times.append(1e3 * (time.perf_counter() - started))
        connection.close()

    shares = [requests // connections] * connections
    threads = [threading.Thread(target=work, args=(i, share)) for i, share in enumerate(shares)]
    started = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    seconds = time.perf_counter() - started
    return {
        "rows_per_request": batch,
        "requests": len(times),
        "connections": connections,
        "errors": len(errors),
        "p50_ms": float(np.percentile(times, 50)),
        "p99_ms": float(np.percentile(times, 99)),
        "requests_per_second": len(times) / seconds,
        "rows_per_second": batch * len(times) / seconds,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=REQUESTS)
    parser.add_argument("--connections", type=int, default=CONNECTIONS)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder) / "load.model"
        fit_model(model)
        server, host, port = start_server(model)
        try:
            found = [load(host, port, batch, arguments.requests, arguments.connections) for batch in BATCHES]
        finally:
            server.terminate()
            server.wait()
    result = {"model": f"SparseGP, rank {RANK}, {COLUMNS} inputs", "cores": os.cpu_count(), "runs": found}
    if arguments.json:
        print(json.dumps(result))
    else:
        print(result["model"])
        for run in found:
            print(", ".join(f"{key} {value:.4g}" for key, value in run.items()))
    return int(any(run["errors"] for run in found))


if __name__ == "__main__":
    sys.exit(main())

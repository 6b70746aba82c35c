"""Deep models train and predict in bounded memory: the activations of one chunk, never those of all rows."""

from __future__ import annotations

import json
import subprocess
import sys

ROWS, WIDTH = 60_000, 2048
LIMIT_MB = 300.0  # the activations of all rows in one layer have 490 MB in float32; allocators keep some reserves
PROGRAM = f"""
import json
import numpy as np, psutil, torch
from certgp import DeepFourierGP
torch.set_num_threads(1)

rng = np.random.default_rng(0)
X = rng.standard_normal(({ROWS}, 4))
y = np.sin(X[:, 0]) + 0.1 * rng.standard_normal({ROWS})
model = DeepFourierGP(10, embedding=1, hidden=({WIDTH},), max_iter=1, batch_size=1000, random_state=0)
model.fit(X[:2000], y[:2000]).predict(X[:2000], return_std=True)  # imports and thread pools
before = psutil.Process().memory_info().rss / 2**20
# VmHWM, not getrusage: the latter starts at what the parent had when it started this process
status = lambda: dict(line.split(":", 1) for line in open("/proc/self/status"))
peak = lambda: int(status()["VmHWM"].split()[0]) / 2**10 - before
model.fit(X, y)
used = {{"fit": peak()}}
mean, std = model.predict(X, return_std=True)
used["predict"] = peak()
assert np.isfinite(mean).all() and (std > 0).all()
print(json.dumps(used))
"""


def test_memory_does_not_grow_with_rows_times_activations():
    run = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stderr
    used = json.loads(run.stdout)
    assert max(used.values()) < LIMIT_MB, used

"""Many rows are fitted and predicted in bounded memory: chunks, never N x rank arrays."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

ROWS, COLUMNS, RANK = 300_000, 4, 50
LIMIT_MB = 400.0  # one float64 array of ROWS x RANK has 120 MB, and a pass makes several
PROGRAM = """
import json, resource, sys, warnings
import numpy as np, psutil
from certgp import {cls}

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10

def step(action):
    before = psutil.Process().memory_info().rss / 2**20
    result = action()
    return result, peak() - before

rng = np.random.default_rng(0)
X = rng.standard_normal(({rows}, {columns}))
y = np.sin(X[:, 0]) + 0.1 * rng.standard_normal({rows})
model = {cls}({options}).fit(X[:500], y[:500])
model.predict(X[:500], return_std=True)
used = {{}}
(mean, std), used["predict"] = step(lambda: model.predict(X, return_std=True))
assert mean.shape == std.shape == ({rows},) and np.isfinite(mean).all() and (std > 0).all()
_, used["interval"] = step(lambda: model.predict_interval(X))
_, used["nlpd"] = step(lambda: model.nlpd(X, y))
if "{cls}" != "ExactGP":
    _, used["partial_fit"] = step(lambda: model.partial_fit(X, y))
    _, used["fit"] = step(lambda: model.fit(X, y))
print(json.dumps(used))
"""


@pytest.mark.parametrize("cls", ["MercerGP", "FourierGP", "SparseGP", "ExactGP"])
def test_memory_does_not_grow_with_rows_times_rank(cls):
    options = "optimize=False, random_state=0" + ("" if cls == "ExactGP" else f", rank={RANK}")
    program = PROGRAM.format(cls=cls, rows=ROWS if cls != "ExactGP" else 30_000, columns=COLUMNS, options=options)
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=100)
    assert run.returncode == 0, run.stderr
    used = json.loads(run.stdout)
    assert {"predict", "interval", "nlpd"} <= set(used)
    assert max(used.values()) < LIMIT_MB, used

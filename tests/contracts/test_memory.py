"""Many rows are fitted and predicted in bounded memory: chunks, never N x rank arrays."""

from __future__ import annotations

import json
import subprocess
import sys

ROWS, COLUMNS, RANK = 300_000, 4, 50
LIMIT_MB = 400.0  # one float64 array of ROWS x RANK has 120 MB, and a pass would make several
PROGRAM = f"""
import json
import numpy as np, psutil
from certgp import ExactGP, FourierGP, MercerGP, SparseGP

def extra(action):
    before = psutil.Process().memory_info().rss / 2**20
    result = action()
    # VmHWM, not getrusage: the latter starts at what the parent had when it started this process
    status = dict(line.split(":", 1) for line in open("/proc/self/status"))
    return result, int(status["VmHWM"].split()[0]) / 2**10 - before

rng = np.random.default_rng(0)
X = rng.standard_normal(({ROWS}, {COLUMNS}))
y = np.sin(X[:, 0]) + 0.1 * rng.standard_normal({ROWS})
used = {{}}
for cls in (MercerGP, FourierGP, SparseGP, ExactGP):
    rows, targets = (X, y) if cls is not ExactGP else (X[:40_000], y[:40_000])
    model = cls(optimize=False, random_state=0, **({{}} if cls is ExactGP else {{"rank": {RANK}}}))
    model.fit(X[:500], y[:500]).predict(X[:500], return_std=True)
    (mean, std), used[cls.__name__, "predict"] = extra(lambda: model.predict(rows, return_std=True))
    assert mean.shape == std.shape == targets.shape and np.isfinite(mean).all() and (std > 0).all()
    _, used[cls.__name__, "nlpd"] = extra(lambda: model.nlpd(rows, targets))
    if cls is not ExactGP:
        _, used[cls.__name__, "partial_fit"] = extra(lambda: model.partial_fit(rows, targets))
        _, used[cls.__name__, "fit"] = extra(lambda: model.fit(rows, targets))
print(json.dumps({{" ".join(name): megabytes for name, megabytes in used.items()}}))
"""


def test_memory_does_not_grow_with_rows_times_rank():
    run = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=100)
    assert run.returncode == 0, run.stderr
    used = json.loads(run.stdout)
    assert len(used) == 14
    assert max(used.values()) < LIMIT_MB, used

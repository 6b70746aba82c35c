"""One cell of the league: a contestant on a split of a data set, in a process of its own."""

from __future__ import annotations

import ast
import json
import platform
import signal
import subprocess
from functools import cache
from hashlib import sha256
from pathlib import Path

import numpy as np

import certgp
from certgp_paper.experiments.cells import Cell
from certgp_paper.experiments.store import source_hash
from certgp_paper.experiments.versions import code_version
from league.contestants import allowed_seconds
from league.data import CLEANED, Rows
from league.scores import are_numbers, part_sums, score_all_and_new
from peers.contestants import BENCHMARKS, Contestant

FAMILY = "league"
CPU_LIMIT = 900  # seconds of fit, search and prediction
PATIENCE = 8  # by the clock a process may take so many times its limit, on a machine with others
FINISHED, NOT_FINISHED, FAILED = "finished", "not finished", "failed"
_KERNELS = ("certgp.kernels.gaussian", "certgp.kernels.matern")  # found by their names at run time


def cell_of(data: str, contestant: str, split: int) -> Cell:
    return Cell(FAMILY, {"data": data, "contestant": contestant, "split": split})


def play(contestant: Contestant, rows: Rows, split: int, folder: Path, environments: Path) -> dict[str, object]:
    """Scores and cost; or that it did not finish, or why it failed."""
    given, out = folder / "rows.npz", folder / "found.npz"
    rows.save(given)
    seconds = allowed_seconds(contestant, len(rows.y))
    words = [f"--rows={given}", f"--out={out}", f"--seed={split}", f"--seconds={seconds}"]
    words += [f"--variant={contestant.variant}", f"--cpu-limit={CPU_LIMIT}"]
    described = rows.describe()
    try:
        done = subprocess.run(
            [contestant.python(environments), "-m", contestant.module, *words],
            env=contestant.variables(threads=1),
            capture_output=True,
            text=True,
            timeout=PATIENCE * CPU_LIMIT,
        )
    except subprocess.TimeoutExpired:
        return described | {"status": NOT_FINISHED, "limit": CPU_LIMIT}
    if done.returncode == -signal.SIGXCPU:
        return described | {"status": NOT_FINISHED, "limit": CPU_LIMIT}
    if done.returncode != 0:
        return described | {"status": FAILED, "reason": _reason(done)}
    return described | _scored(rows, out) | {"allowed_seconds": seconds}


def _scored(rows: Rows, out: Path) -> dict[str, object]:
    with np.load(out) as found:
        arrays = rows.y_test, found["mean"], found["log_density"], found["quantiles"]
        scores, sums = score_all_and_new(*arrays, rows.repeated), part_sums(*arrays)
    if not are_numbers(scores):
        return {"status": FAILED, "reason": "its scores are not numbers"}
    said = json.loads(out.with_suffix(".json").read_text())
    return {"status": FINISHED, **scores, **said["cost"], "parts": sums, "about": said["about"]}


def _reason(done: subprocess.CompletedProcess[str]) -> str:
    lines = [line for line in done.stderr.splitlines() if line.strip()]
    return lines[-1][:300] if lines else f"ended with code {done.returncode}"


def made_by(contestant: Contestant, data: str, split: int) -> dict[str, object]:
    """Which code makes a cell, on which rows."""
    return {
        "version": cell_version(contestant, data, split),
        "certgp": certgp.__version__,
        "source": source_hash(),
        "python": platform.python_version(),
    }


def cell_version(contestant: Contestant, data: str, split: int) -> str:
    """The hash of the contestant's settings, of its runner and of the scoring with all that they import from here, and
    for certgp of the definitions behind the estimator; marked where the rows are not those of the first cells.
    """
    return _version(contestant) + ("-cleaned" if (data, split) in CLEANED else "")


@cache
def _version(contestant: Contestant) -> str:
    digest = sha256(f"{contestant.variant} {_seconds_or_definitions(contestant)}".encode())
    for name in sorted(_imported({contestant.module, *_named_module(contestant), "league.scores"})):
        digest.update(ast.dump(_tree(name)).encode())
    return digest.hexdigest()[:12]


def _seconds_or_definitions(contestant: Contestant) -> object:
    """What else makes its cells: the seconds of a peer, the code of an estimator of ours."""
    if contestant.is_peer:
        return [allowed_seconds(contestant, n) for n in _SIZES]
    return code_version((f"certgp.estimators:{contestant.variant.split()[0]}", *_KERNELS))


_SIZES = (100, 1_000, 10_000, 30_000, 100_000)  # at which the seconds that are allowed must stay the same


def _imported(names: set[str]) -> set[str]:
    """These modules of ``benchmarks`` and all that they import from its packages."""
    found, new = set[str](), set(names)
    while new:
        found |= new
        imports = (node for name in new for node in ast.walk(_tree(name)) if isinstance(node, ast.ImportFrom))
        new = {str(node.module) for node in imports if str(node.module).startswith(("league.", "peers."))} - found
    return found


def _tree(name: str) -> ast.Module:
    return essential(ast.parse((BENCHMARKS / f"{name.replace('.', '/')}.py").read_bytes()))


def essential(tree: ast.Module) -> ast.Module:
    """Without docstrings; comments and layout are not in it either."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and ast.get_docstring(node) is not None:
            del node.body[0]
    return tree


def _named_module(contestant: Contestant) -> list[str]:
    word = contestant.variant.split()[0] if contestant.variant else ""
    return [word] if word.startswith("peers.") else []

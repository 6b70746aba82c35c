"""A version changes with the code that a result depends on, and with nothing else."""

from __future__ import annotations

import importlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import certgp
import certgp_paper
from certgp_paper.experiments import deep_cells, linear_table
from certgp_paper.experiments.catalogue import experiment, experiment_names
from certgp_paper.experiments.cells import Cell, Finished
from certgp_paper.experiments.code import cell_version, is_outdated
from certgp_paper.experiments.store import CellStore, compute_cells
from certgp_paper.experiments.trace import count_makers
from certgp_paper.experiments.versions import NOT_ASKED_FOR, code_version, definitions_behind

ROOTS = {
    "SGPR": "certgp.estimators:SparseGP",
    "MGP": "certgp.estimators:MercerGP",
    "paper": "certgp_paper.training.paper_protocol:fit_as_in_paper",
    "figure1": "certgp_paper.experiments.figure1:_compute",
}


def versions_of(folder: Path) -> dict[str, str]:
    """The versions that a copy of both packages has."""
    code = (
        "import json, sys; from certgp_paper.experiments.versions import code_version; "
        "print(json.dumps({name: code_version((root,)) for name, root in json.loads(sys.argv[1]).items()}))"
    )
    environment = os.environ | {"PYTHONPATH": str(folder)}
    run = subprocess.run(
        [sys.executable, "-c", code, json.dumps(ROOTS)], env=environment, check=True, capture_output=True, text=True
    )
    return json.loads(run.stdout)


@pytest.fixture
def copy(tmp_path):
    for package in (certgp, certgp_paper):
        source = Path(str(package.__file__)).parent
        shutil.copytree(source, tmp_path / source.name, ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


def test_versions_follow_the_code_of_a_method(copy):
    before = versions_of(copy)
    assert before == {name: code_version((root,)) for name, root in ROOTS.items()}
    # comments, docstrings and words of errors
    mercer, kernels = copy / "certgp" / "training" / "recipes" / "mercer.py", copy / "certgp" / "kernels" / "base.py"
    mercer.write_text('"""Another docstring."""\n# a comment\n' + mercer.read_text())
    edit(copy / "certgp" / "linalg.py", "is not positive definite", "has an eigenvalue that is not positive")
    # what looks at results afterwards, and a member of a class that only looks at it
    for path in ("cli/output.py", "plots/style.py", "guarantees/certify.py", "models/file.py", "report/page.py"):
        (copy / "certgp" / path).write_text("CHANGED = 1\n")
    # what these cells never ask for: here a race of warped inputs, and all it uses
    edit(copy / "certgp" / "estimators" / "warping.py", "if gain is None:", "if gain is None or not found:")
    (copy / "certgp" / "training" / "recipes" / "warping.py").write_text("CHANGED = 1\n")
    edit(kernels, "def __repr__(self) -> str:", "def __repr__(self) -> str:\n        1 + 1")
    # a definition that nobody uses
    edit(kernels, "class Kernel(", "_UNUSED = 1\n\n\nclass Kernel(")
    assert versions_of(copy) == before
    # one method's own code
    mercer.write_text(mercer.read_text() + "\n\nclass MercerRecipe:\n    other = True\n")
    assert changed(copy, before) == {"MGP"}
    # what all of them use, and what runs when its module is imported
    kernels.write_text(kernels.read_text() + "\nprint\n")
    assert changed(copy, before) == set(ROOTS)


def changed(copy: Path, before: dict[str, str]) -> set[str]:
    return {name for name, version in versions_of(copy).items() if version != before[name]}


def test_bounds_count_where_an_experiment_measures_them():
    assert ("certgp.guarantees.mercer_rank", "mercer_rank") in definitions_behind((ROOTS["figure1"],))
    assert not any(module.startswith("certgp.guarantees") for module, _ in definitions_behind((ROOTS["MGP"],)))


@pytest.mark.parametrize("method", ["SGPR", "FGP", "MGP", "DMGP", "DFGP"])
def test_no_cell_asks_for_what_versions_leave_out(method, tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 4)) ** 3  # skewed: a warp would be looked at, were it asked for
    np.savez(tmp_path / "sarcos.npz", X=X, y=np.sin(X[:, 0]) + 0.1 * rng.standard_t(2.0, 300))
    monkeypatch.setenv("CERTGP_DATA", str(tmp_path))
    for place in NOT_ASKED_FOR:
        module, name = place.split(":")
        left_out = getattr(importlib.import_module(module), name)
        for user in [each for each in sys.modules.values() if vars(each).get(name) is left_out]:
            monkeypatch.setattr(user, name, None)  # calling it is an error
    by_method = {"data": "sarcos", "method": method, "split": 0}
    if method.startswith("D"):
        assert deep_cells.compute({**by_method, "protocol": "quick"})["nlpd"]
        assert deep_cells.compute({**by_method, "protocol": "quick", "variant": "paper"})["nlpd"]
    else:
        assert linear_table.compute_cell({**by_method, "variant": "certgp", "rank": 6})["nlpd"]


def test_what_is_no_definition_is_refused():
    for root in ("certgp.estimators:Nothing", "certgp.nothing", "json:loads"):
        with pytest.raises(ValueError, match="is no "):
            code_version((root,))


def test_every_cell_of_every_experiment_has_a_version():
    for name in experiment_names():
        found = experiment(name)
        assert all(cell_version(cell, found.compute) for quick in (True, False) for cell in found.cells(quick))


def test_methods_of_a_table_have_versions_of_their_own():
    table = experiment("table-nlpd")
    cells = {(cell.settings["variant"], cell.settings["method"]): cell for cell in table.cells(False)}
    versions = {key: cell_version(cell, table.compute) for key, cell in cells.items()}
    assert len({versions["certgp", method] for method in ("SGPR", "FGP", "MGP")} | {versions["paper", "MGP"]}) == 4


def test_outdated_cells_are_computed_again_and_say_what_they_were(tmp_path, monkeypatch):
    cells = [Cell("family", {"rank": rank}) for rank in (1, 2, 3)]
    store = CellStore(tmp_path)
    store.save(Finished(cells[0], {"nlpd": 0.5, "reason": "converged"}, 1.0, {"source": "d1caac891956"}))
    store.save(Finished(cells[1], {"nlpd": 0.5}, 1.0, {"version": "now", "source": "other"}))
    monkeypatch.setattr("certgp_paper.experiments.code.code_version", lambda roots: "now")

    def compute(settings):
        return {"nlpd": float(settings["rank"])}

    compute.__module__ = "certgp_paper.made_up"
    assert [is_outdated(kept, compute) for kept in store.finished(cells)] == [True, False]
    assert count_makers(store.finished(cells)) == {"commit 109e67d": 1, "version now": 1}
    assert [f["nlpd"] for f in compute_cells(cells, compute, store)] == [0.5, 0.5, 3.0]
    again = list(compute_cells(cells, compute, store, renew=True))
    assert [f["nlpd"] for f in again] == [1.0, 0.5, 3.0]
    assert again[0].made_by["before"] == {"version": None, "nlpd": 0.5}
    assert {f.made_by["version"] for f in store.finished(cells)} == {"now"}


def test_code_of_others_is_never_out_of_date():
    cell = Cell("family", {"rank": 1})
    assert not is_outdated(Finished(cell, {"x": 1}, 0.1), lambda settings: {})

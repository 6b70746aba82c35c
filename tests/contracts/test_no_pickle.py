"""Model files bring data, never code: nothing in the library can unpickle or evaluate."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import certgp

SOURCES = sorted(Path(certgp.__file__).parent.rglob("*.py"))
FORBIDDEN_MODULES = {"pickle", "_pickle", "cPickle", "cloudpickle", "dill", "joblib", "marshal", "shelve"}
FORBIDDEN_CALLS = {"eval", "exec", "torch.load", "torch.save", "__import__"}
# tasks travel between processes that this one has started; files stay out of it: the calls below are not for them
BETWEEN_PROCESSES = {"engines/side_by_side.py": {"joblib", "pickle"}}
FILES = {
    f"{module}.{call}" for module in ("pickle", "joblib") for call in ("load", "loads", "dump", "dumps", "Unpickler")
}


def imported(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield (node.module or "").split(".")[0]
            yield from (alias.name for alias in node.names)


def calls(tree):
    return (node for node in ast.walk(tree) if isinstance(node, ast.Call))


def relative(path):
    return str(path.relative_to(SOURCES[0].parent))


@pytest.mark.parametrize("path", SOURCES, ids=relative)
def test_no_source_file_can_run_what_a_file_brings(path):
    tree = ast.parse(path.read_text())
    assert FORBIDDEN_MODULES & set(imported(tree)) == BETWEEN_PROCESSES.get(relative(path), set())
    assert not (FORBIDDEN_CALLS | FILES) & {ast.unparse(call.func) for call in calls(tree)}
    allowing = [k for call in calls(tree) for k in call.keywords if k.arg == "allow_pickle"]
    assert all(isinstance(k.value, ast.Constant) and k.value.value is False for k in allowing)


def test_all_rooms_are_searched():
    assert {"estimators", "data", "cli"} <= {path.parent.name for path in SOURCES}

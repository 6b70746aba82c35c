"""The benchmark of deep models: a run that was stopped goes on, with one line per finished result."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from cells import Cells, summary

ROOT = Path(__file__).resolve().parents[2]


def test_a_file_of_cells_remembers_what_was_measured(tmp_path):
    path = tmp_path / "cells"
    cells = Cells(path, ("data", "split"))
    cells.add({"data": "a", "split": 0, "seconds": 1.0}, {"data": "a", "split": 1})
    with path.open("a") as file:
        file.write('{"data": "a", "spl')  # a crash
    again = Cells(path, ("data", "split"))
    assert again.all == cells.all
    assert ("a", 0) in again
    assert ("a", 1) not in again  # a by-product, without seconds of its own
    again.add({"data": "b", "split": 0, "seconds": 3.0})
    assert [json.loads(line)["data"] for line in path.read_text().splitlines()] == ["a", "a", "b"]
    row = summary(again.all)
    assert (row["seconds"], row["nlpd"]) == (2.0, None)
    assert row["seconds_sd"] == pytest.approx(2**0.5)


def test_a_stopped_run_goes_on(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 2))
    np.savez(tmp_path / "yacht.npz", X=X, y=np.sin(X[:, 0]) + 0.1 * rng.standard_normal(200))
    out = tmp_path / "cells.jsonl"

    def run(splits: int) -> list[dict[str, object]]:
        words = ["--data", "yacht", "--methods", "deep-mercer", "--members", "2", "--epochs", "1", "--threads", "1"]
        line = [sys.executable, str(ROOT / "benchmarks" / "deep.py"), *words, "--splits", str(splits)]
        line += ["--append", str(out), "--json"]
        done = subprocess.run(line, env=os.environ | {"CERTGP_DATA": str(tmp_path)}, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        assert done.stderr.count("members 2 split") == 1  # one new split per call
        return json.loads(done.stdout)["summary"]

    run(1)
    first = out.read_text()
    mixture, alone = run(2)
    assert out.read_text().startswith(first)
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    assert [(cell["members"], cell["split"], cell["max_iter"]) for cell in lines] == [
        (2, 0, 1),
        (1, 0, 1),
        (2, 1, 1),
        (1, 1, 1),
    ]
    assert all(cell["seconds"] > 0 and cell["cpu_seconds"] > 0 for cell in lines if cell["members"] == 2)
    assert (mixture["splits"], alone["splits"], alone["seconds"]) == (2, 2, None)

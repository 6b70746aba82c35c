"""Cells are computed once and kept whole, whatever happens to the process that writes them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

import pytest

from certgp.errors import DataFileError
from certgp_paper.experiments.cells import Cell, Finished
from certgp_paper.experiments.store import CellStore, compute_cells, source_hash

CELLS = [Cell("family", {"data": data, "rank": rank}) for data in ("a", "b/c") for rank in (1, 20)]


def squares(settings):
    return {"square": settings["rank"] ** 2, "list": [1.5, None]}


def test_an_interrupted_run_loses_only_the_cell_in_progress(tmp_path):
    store, begun = CellStore(tmp_path), []

    def interrupted(settings):
        begun.append(settings)
        if len(begun) == 3:
            raise KeyboardInterrupt
        return squares(settings)

    with pytest.raises(KeyboardInterrupt):
        list(compute_cells(CELLS, interrupted, store))
    assert [f.cell for f in store.finished(CELLS)] == CELLS[:2]
    announced = []
    again = list(
        compute_cells(CELLS, squares, store, lambda cell, number, total: announced.append((cell, number, total)))
    )
    assert announced == [(CELLS[2], 3, 4), (CELLS[3], 4, 4)]
    assert [f["square"] for f in again] == [1, 400, 1, 400]
    assert [f["data"] for f in again] == ["a", "a", "b/c", "b/c"]
    assert [f.result for f in again] == [f.result for f in CellStore(tmp_path).finished(CELLS)]


def test_nothing_is_written_that_json_does_not_know(tmp_path):
    with pytest.raises(ValueError, match="not JSON compliant"):
        list(compute_cells(CELLS[:1], lambda settings: {"x": float("nan")}, CellStore(tmp_path)))
    assert list(tmp_path.iterdir()) == []


def test_a_line_is_a_cell_and_the_last_line_counts(tmp_path):
    store = CellStore(tmp_path)
    for cell, square in ((CELLS[0], 5), (CELLS[1], 6), (CELLS[0], 7)):
        store.save(Finished(cell, {"square": square}, 0.1, {"python": "3"}))
    assert [f["square"] for f in store.finished(CELLS)] == [7, 6]
    assert len(store.path("family").read_text().splitlines()) == 3
    store.compact("family")
    assert [json.loads(line)["result"]["square"] for line in store.path("family").read_text().splitlines()] == [6, 7]
    assert [f["square"] for f in store.finished(CELLS)] == [7, 6]
    assert [path.name for path in tmp_path.iterdir()] == ["family.jsonl"]


def test_every_torn_last_line_is_ignored_and_then_removed(tmp_path):
    store = CellStore(tmp_path)
    list(compute_cells(CELLS[:2], squares, store))
    path = store.path("family")
    whole = path.read_bytes()
    first = whole.index(b"\n") + 1
    for cut in range(first, len(whole) - 1):
        path.write_bytes(whole[:cut])  # as after a kill
        assert [f.cell for f in CellStore(tmp_path).finished(CELLS)] == CELLS[:1]
    store.save(Finished(CELLS[1], {"square": 400, "list": [1.5, None]}, 0.1))
    assert [f["square"] for f in store.finished(CELLS)] == [1, 400]
    assert path.read_bytes()[:first] == whole[:first]
    assert path.read_bytes().count(b"\n") == 2


def test_a_missing_line_break_loses_nothing(tmp_path):
    store = CellStore(tmp_path)
    list(compute_cells(CELLS[:2], squares, store))
    store.path("family").write_bytes(store.path("family").read_bytes().rstrip(b"\n"))
    assert len(store.finished(CELLS)) == 2
    list(compute_cells(CELLS[:3], squares, store))
    assert len(store.finished(CELLS)) == 3


@pytest.mark.parametrize("result", ["{}", "null", "[1]"])
def test_a_line_without_results_is_refused(tmp_path, result):
    store = CellStore(tmp_path)
    store.save(Finished(CELLS[1], {"square": 1}, 0.1))
    with store.path("family").open("a") as file:
        file.write(f'{{"settings": {{"data": "a", "rank": 1}}, "result": {result}, "seconds": 1, "made_by": {{}}}}\n')
    for attempt in (lambda: store.load(CELLS[0]), lambda: store.compact("family")):
        with pytest.raises(DataFileError, match=r"family\.jsonl, line 2 is not a finished cell .*delete the line"):
            attempt()


@pytest.mark.parametrize(
    "text", ['{"settings": {"data"', "[]", '{"settings": [1]}', '{"settings": {}, "result": {"x": 1}}']
)
def test_a_damaged_line_between_others_is_refused(tmp_path, text):
    store = CellStore(tmp_path)
    store.save(Finished(CELLS[0], {"square": 1}, 0.1))
    store.path("family").write_text(f"{text}\n" + store.path("family").read_text())
    with pytest.raises(DataFileError, match="line 1 is not a finished cell"):
        store.load(CELLS[0])


def test_what_another_process_has_finished_is_seen(tmp_path):
    mine, other = CellStore(tmp_path), CellStore(tmp_path)
    assert mine.load(CELLS[0]) is None
    other.save(Finished(CELLS[0], {"square": 1}, 0.1))
    assert mine.load(CELLS[0]) is not None
    other.save(Finished(CELLS[0], {"square": 2}, 0.1))
    other.compact("family")
    assert mine.load(CELLS[0])["square"] == 2


FILL = """
import sys
from pathlib import Path
from certgp_paper.experiments.cells import Cell, Finished
from certgp_paper.experiments.store import CellStore
store, own = CellStore(Path(sys.argv[1])), int(sys.argv[2])
for i in range(40):
    store.save(Finished(Cell("family", {"process": own, "number": i % 20}), {"text": "x" * 10_000, "i": i}, 0.1))
    if i % 10 == 9:
        store.compact("family")
    print(i, flush=True)
"""


def started(folder, number) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-c", FILL, folder, str(number)], stdout=subprocess.PIPE, text=True)


def test_processes_fill_one_file_together(tmp_path):
    processes = [started(tmp_path, number) for number in range(2)]
    for process in processes:
        process.communicate(timeout=60)
        assert process.returncode == 0
    cells = [Cell("family", {"process": p, "number": n}) for p in range(2) for n in range(20)]
    assert [f["i"] for f in CellStore(tmp_path).finished(cells)] == 2 * list(range(20, 40))
    assert [path.name for path in tmp_path.iterdir()] == ["family.jsonl"]


def test_a_killed_process_leaves_what_it_said_is_saved_and_no_lock(tmp_path):
    process = started(tmp_path, 0)
    told = [process.stdout.readline() for _ in range(7)]
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    cells = [Cell("family", {"process": 0, "number": n}) for n in range(20)]
    store = CellStore(tmp_path)
    assert len(store.finished(cells)) >= len(told)
    store.save(Finished(cells[19], {"i": 100}, 0.1))
    assert store.load(cells[19])["i"] == 100


def test_a_cell_that_fails_is_left_out_and_tried_again(tmp_path):
    store, told = CellStore(tmp_path), []

    def unlucky(settings):
        if settings["rank"] == 20:
            return {"square": float("inf")}
        raise ArithmeticError("no luck") if settings["data"] == "a" else FileNotFoundError("a bug of its own")

    with pytest.raises(FileNotFoundError):
        list(compute_cells(CELLS, unlucky, store, failed=lambda cell, error: told.append((cell, str(error)))))
    assert [cell for cell, _ in told] == CELLS[:2]
    assert told[0][1] == "no luck"
    assert store.finished(CELLS) == []
    assert len(list(compute_cells(CELLS, squares, store))) == 4


def test_cells_say_which_source_made_them(tmp_path):
    (cell,) = compute_cells(CELLS[:1], squares, CellStore(tmp_path))
    assert cell.made_by["source"] == source_hash()
    assert len(source_hash()) == 12

"""Cells are computed once, kept whole, and chosen by their settings."""

from __future__ import annotations

import pytest

from certgp.errors import DataFileError, InvalidInputError
from certgp.experiments.cells import Cell, CellStore, Finished, chosen, computed, source_hash

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
        list(computed(CELLS, interrupted, store))
    assert [f.cell for f in store.finished(CELLS)] == CELLS[:2]
    announced = []
    again = list(computed(CELLS, squares, store, lambda cell, number, total: announced.append((cell, number, total))))
    assert announced == [(CELLS[2], 3, 4), (CELLS[3], 4, 4)]
    assert [f["square"] for f in again] == [1, 400, 1, 400]
    assert [f["data"] for f in again] == ["a", "a", "b/c", "b/c"]
    assert [f.result for f in again] == [f.result for f in CellStore(tmp_path).finished(CELLS)]


def test_no_half_written_file_remains(tmp_path):
    with pytest.raises(ValueError, match="not JSON compliant"):
        list(computed(CELLS[:1], lambda settings: {"x": float("nan")}, CellStore(tmp_path)))
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_damaged_and_foreign_files_are_refused(tmp_path):
    store = CellStore(tmp_path)
    list(computed(CELLS[:1], squares, store))
    (path,) = tmp_path.rglob("*.json")
    assert path.name == "a-1.json"
    whole = path.read_text()
    path.write_text(whole[:20])
    with pytest.raises(DataFileError, match="delete it to compute it again"):
        store.load(CELLS[0])
    path.write_text(whole.replace('"a"', '"other"'))
    with pytest.raises(DataFileError, match="wanted"):
        store.load(CELLS[0])


def test_cells_are_chosen_by_their_settings():
    assert chosen(CELLS, ["rank=20"]) == [CELLS[1], CELLS[3]]
    assert chosen(CELLS, ["rank=1,20", "data=a"]) == CELLS[:2]
    assert chosen(CELLS, []) == CELLS


@pytest.mark.parametrize("result", ["{}", "null", "[1]"])
def test_a_cell_without_results_is_refused(tmp_path, result):
    store = CellStore(tmp_path)
    list(computed(CELLS[:1], squares, store))
    (path,) = tmp_path.rglob("*.json")
    path.write_text(f'{{"settings": {{"data": "a", "rank": 1}}, "result": {result}, "seconds": 1, "made_by": {{}}}}')
    with pytest.raises(DataFileError, match=r"a-1\.json is not a finished cell .*delete it to compute it again"):
        store.load(CELLS[0])


def test_a_result_that_is_not_there_names_the_cell():
    with pytest.raises(DataFileError, match=r"a-1\.json is not a finished cell \(it has no nlpd\)"):
        Finished(CELLS[0], {"rmse": 1.0}, 1.0)["nlpd"]


@pytest.mark.parametrize(
    ("conditions", "text"),
    [
        (["rank"], "key=value"),
        (["rank=7"], "'rank=7' fits no cell: rank has the values 1, 20$"),
        (["size=7"], "'size=7' fits no cell; settings are data, rank$"),
        (["rank=20", "data=c"], "'data=c' fits no cell among the cells with rank=20: data has the values a, b/c$"),
    ],
)
def test_conditions_that_fit_nothing_are_refused(conditions, text):
    with pytest.raises(InvalidInputError, match=text):
        chosen(CELLS, conditions)


def test_numbers_in_messages_are_in_their_own_order():
    cells = [Cell("family", {"rank": rank}) for rank in (100, 6, 50, 10)]
    with pytest.raises(InvalidInputError, match="6, 10, 50, 100"):
        chosen(cells, ["rank=7"])


def test_a_cell_that_fails_is_left_out_and_tried_again(tmp_path):
    store, told = CellStore(tmp_path), []

    def unlucky(settings):
        if settings["rank"] == 20:
            return {"square": float("inf")}
        raise ArithmeticError("no luck") if settings["data"] == "a" else FileNotFoundError("a bug of its own")

    with pytest.raises(FileNotFoundError):
        list(computed(CELLS, unlucky, store, failed=lambda cell, error: told.append((cell, str(error)))))
    assert [cell for cell, _ in told] == CELLS[:2]
    assert told[0][1] == "no luck"
    assert store.finished(CELLS) == []
    assert len(list(computed(CELLS, squares, store))) == 4


def test_cells_say_which_source_made_them(tmp_path):
    (cell,) = computed(CELLS[:1], squares, CellStore(tmp_path))
    assert cell.made_by["source"] == source_hash()
    assert len(source_hash()) == 12

"""Cells are chosen by their settings."""

from __future__ import annotations

import pytest

from certgp.errors import DataFileError, InvalidInputError
from certgp_paper.experiments.cells import Cell, Finished, select_cells

CELLS = [Cell("family", {"data": data, "rank": rank}) for data in ("a", "b/c") for rank in (1, 20)]


def test_cells_are_chosen_by_their_settings():
    assert select_cells(CELLS, ["rank=20"]) == [CELLS[1], CELLS[3]]
    assert select_cells(CELLS, ["rank=1,20", "data=a"]) == CELLS[:2]
    assert select_cells(CELLS, []) == CELLS


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
        select_cells(CELLS, conditions)


def test_numbers_in_messages_are_in_their_own_order():
    cells = [Cell("family", {"rank": rank}) for rank in (100, 6, 50, 10)]
    with pytest.raises(InvalidInputError, match="6, 10, 50, 100"):
        select_cells(cells, ["rank=7"])


def test_a_result_that_is_not_there_names_the_cell():
    with pytest.raises(DataFileError, match=r"the cell data=a rank=1 of family\.jsonl has no nlpd; delete its line"):
        Finished(CELLS[0], {"rmse": 1.0}, 1.0)["nlpd"]

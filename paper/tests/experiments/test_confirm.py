"""A sample of cells computed again speaks for its group, or against it, and never is forgotten."""

from __future__ import annotations

import pytest

from certgp_paper.experiments.cells import Cell, Finished
from certgp_paper.experiments.code import is_outdated
from certgp_paper.experiments.confirm import MARGIN, Confirmation, confirm_groups, draw_sample
from certgp_paper.experiments.experiment import Experiment
from certgp_paper.experiments.store import CellStore, compute_cells
from certgp_paper.experiments.trace import describe_confirmations

DATA, SPLITS = ("a", "b"), range(8)


def cell(method: str, data: str, split: int) -> Cell:
    return Cell("family", {"method": method, "data": data, "split": split})


CELLS = [cell(method, data, split) for method in ("steady", "moving") for data in DATA for split in SPLITS]


def compute(settings):
    """The steady method moved by a tenth of the margin up or down, the other one by three margins."""
    if settings["method"] == "moving":
        return {"nlpd": 1.0 + 3.0 * MARGIN}
    return {"nlpd": 1.0 + 0.1 * MARGIN * (-1) ** settings["split"]}


compute.__module__ = "certgp_paper.made_up"


@pytest.fixture
def store(tmp_path, monkeypatch):
    """Finished cells of earlier code."""
    monkeypatch.setattr("certgp_paper.experiments.code.code_version", lambda roots: "now")
    kept = CellStore(tmp_path)
    for each in CELLS:
        kept.save(Finished(each, {"nlpd": 1.0}, 1.0, {"version": "then"}))
    return kept


def confirmed(store: CellStore, count: int = 5, score: str = "nlpd", cells=CELLS) -> dict[str, Confirmation]:
    found = Experiment("made-up", "made up", lambda quick: CELLS, compute, lambda finished: [], score=score)

    def renew(drawn):
        list(compute_cells(drawn, compute, store, renew=True))

    return {group.what: group for group in confirm_groups(found, cells, store, count, renew)}


def outdated(store: CellStore, method: str) -> list[Finished]:
    finished = [each for each in store.finished(CELLS) if each["method"] == method]
    return [each for each in finished if is_outdated(each, compute)]


def test_a_group_that_stayed_is_confirmed_and_one_that_moved_is_not(store):
    groups = confirmed(store)
    assert groups["steady"].is_confirmed
    assert not groups["moving"].is_confirmed
    assert outdated(store, "steady") == []
    assert len(outdated(store, "moving")) == 2 * len(SPLITS) - 5
    text = groups["moving"].text()
    assert text.startswith("moving: not confirmed, 5 of 16 cells computed again moved by +0.0300 ± 0.0000")
    held = [each for each in store.finished(CELLS) if "confirmed" in each.made_by]
    assert {each["method"] for each in held} == {"steady"}
    assert len(held) == 11
    assert {each.made_by["version"] for each in held} == {"then"}
    mark = held[0].made_by["confirmed"]
    assert (mark["version"], mark["cells"], mark["of"]) == ("now", 5, 16)
    assert mark["largest_change"] == pytest.approx(0.1 * MARGIN)
    assert held[0]["nlpd"] == 1.0  # the figure is that of the version that made it
    (line,) = describe_confirmations(store.finished(CELLS))
    assert (line["what"], line["confirmed"], line["cells"]) == ("steady", 11, 5)


def test_cells_computed_again_keep_what_they_were(store):
    confirmed(store)
    again = [each for each in store.finished(CELLS) if each.made_by["version"] == "now"]
    assert len(again) == 10
    assert all(each.made_by["before"] == {"version": "then", "nlpd": 1.0} for each in again)


def test_a_second_try_adds_to_the_first(store):
    first = confirmed(store)["moving"]
    assert len(first.changes) == 5
    assert confirmed(store).keys() == {"moving"}
    assert len(outdated(store, "moving")) == 11  # five are known already: nothing was computed
    assert len(confirmed(store, 8)["moving"].changes) == 8


def test_the_largest_sample_of_a_group_is_told(store):
    own = [each for each in CELLS if each.settings["method"] == "steady"]
    assert len(confirmed(store, cells=own[:8])["steady"].changes) == 5
    assert len(confirmed(store, cells=own)["steady"].changes) == 6  # one of the other data set
    (line,) = describe_confirmations(store.finished(CELLS))
    assert (line["confirmed"], line["cells"], line["of"]) == (10, 6, 16)


def test_later_code_makes_confirmed_cells_outdated_again(store, monkeypatch):
    confirmed(store)
    monkeypatch.setattr("certgp_paper.experiments.code.code_version", lambda roots: "later")
    assert len(outdated(store, "steady")) == 16
    group = confirmed(store)["steady"]
    # drawn among cells that were never computed again, so that the change is that of all code since
    assert group.changes == tuple(each["nlpd"] - 1.0 for each in renewed(store, "steady", "later"))
    assert {each.made_by["before"]["version"] for each in renewed(store, "steady", "later")} == {"then"}


def renewed(store: CellStore, method: str, version: str) -> list[Finished]:
    return [each for each in store.finished(CELLS) if (each["method"], each.made_by["version"]) == (method, version)]


def test_a_spread_as_wide_as_the_margin_confirms_nothing():
    changes = (-MARGIN, MARGIN, -MARGIN, MARGIN, 0.0)
    group = Confirmation("x", "now", "nlpd", 20, changes, ())
    assert group.mean_change.mean == 0.0
    assert not group.is_confirmed
    few = Confirmation("x", "now", "nlpd", 2, (0.0, 0.0), ())
    assert not few.is_confirmed
    assert few.text() == "x: all computed again; how far 2 of 2 cells moved says nothing"


def test_other_figures_are_compared_relatively(store):
    for each in CELLS[:16]:
        store.save(Finished(each, {"rank": 200.0}, 1.0, {"version": "then"}))
    found = Experiment("made-up", "", lambda quick: CELLS, lambda settings: {"rank": 201.0}, lambda f: [], score="rank")
    found.compute.__module__ = "certgp_paper.made_up"

    def renew(drawn):
        list(compute_cells(drawn, found.compute, store, renew=True))

    (group,) = confirm_groups(found, CELLS[:16], store, 5, renew)
    assert group.changes == pytest.approx([0.005] * 5)
    assert group.is_confirmed


def finished(data: str, split: int, seconds: float) -> Finished:
    return Finished(cell("m", data, split), {"nlpd": 1.0}, seconds, {"version": "then"})


def test_samples_take_turns_over_data_sets_and_leave_out_dear_cells():
    pool = [finished("a", split, 1.0) for split in range(20)] + [finished("b", split, 1.0) for split in range(3)]
    dear = [finished("a", split, 1e4) for split in range(20, 30)]
    drawn = draw_sample([*pool, *dear], [], 5)
    assert len(drawn) == 5
    assert sorted(each["data"] for each in drawn).count("b") in (2, 3)
    assert max(each.seconds for each in drawn) == 1.0
    assert drawn == draw_sample([*pool, *dear], [], 5)
    known = drawn[:0] + [each for each in pool if each["data"] == "a"][:5]
    assert [each["data"] for each in draw_sample(pool[5:], known, 5)] == ["b"]  # five are known, none of them of b
    assert len(draw_sample(dear, [], 5)) == 5  # where there are no others

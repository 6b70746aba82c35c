"""Single columns: how values are read, what they become, and that a file brings the same rule back."""

from __future__ import annotations

import datetime
import json

import numpy as np
import pyarrow as pa
import pytest

from certgp.errors import ModelFileError, TableProblemsError
from certgp.tabular.columns import Filling, LevelColumn, MeanColumn, MomentColumn, NumberColumn, TruthColumn
from certgp.tabular.columns import column_from_description as rebuild
from certgp.tabular.encoding import TableOptions
from certgp.tabular.learning import shrunken_means
from certgp.tabular.parsing import CLOCK, GAP_WORDS, ISO, levels_of, moments_of, numbers_of, plain, truths_of
from certgp.tabular.reading import Roles, SurveyedTable
from certgp.tabular.source import FrameTable
from certgp.tabular.splitting import hold_out_groups, hold_out_latest

COLUMNS = [
    NumberColumn("a", Filling(2.0, flagged=True)),
    TruthColumn("b"),
    MomentColumn("c", ("trend", "season", "weekday", "time of day"), 0.0, ISO, Filling(5.0)),
    LevelColumn("d", ("x", "y", "z"), (0.5, 0.25, 0.25), has_gaps=True, takes_gaps=True),
    MeanColumn("e", ("p", "q"), ((1.0,), (3.0,)), (1.5,), None, takes_gaps=False),
]


def texts(*values: str | None) -> pa.Array:
    return plain(pa.array(values, pa.string()), GAP_WORDS)


@pytest.mark.parametrize("column", COLUMNS, ids=lambda column: column.kind)
def test_a_file_brings_the_same_rule_back(column) -> None:
    assert rebuild(json.loads(json.dumps(column.describe()))) == column
    assert column.words()
    with pytest.raises(ModelFileError, match="kind 'spell'"):
        rebuild(column.describe() | {"kind": "spell"})


def test_a_column_is_set_to_what_its_values_become() -> None:
    _, truth, moment, levels, mean = COLUMNS
    (names,) = levels.settings()
    assert names.labels == ("x", "y", "z", "missing")
    np.testing.assert_equal(names.numbers, levels.encode(texts("x", "y", "z", None), "."))
    two = LevelColumn("two", ("no", "yes"), (0.5, 0.5), has_gaps=False, takes_gaps=False)
    np.testing.assert_equal(two.settings()[0].numbers, two.encode(texts("no", "yes"), "."))
    np.testing.assert_equal(truth.settings()[0].numbers, truth.encode(texts("no", "yes"), "."))
    assert mean.settings()[0].numbers is None
    trend, season, weekday, clock = moment.settings()
    assert trend.outputs == (0,)
    encoded = moment.encode(texts("2024-01-01T06:00", "2025-12-31T12:00", "2026-01-01T18:00"), ".")
    np.testing.assert_allclose(weekday.numbers[[0, 2, 3]], encoded[:, weekday.outputs], atol=1e-12)
    assert [weekday.labels[k] for k in (0, 2, 3)] == ["Monday", "Wednesday", "Thursday"]
    np.testing.assert_allclose(season.numbers[[0, 0]], encoded[::2, season.outputs], atol=0.02)
    at_noon = clock.numbers[clock.grid.tolist().index(12.0)]
    np.testing.assert_allclose(at_noon, encoded[1, clock.outputs], atol=1e-12)


def test_numbers_dates_and_truths_of_texts() -> None:
    np.testing.assert_equal(
        numbers_of(texts("1,5", " -2,25", "NA", "x", "+3", "1e3", "inf"), ","),
        [1.5, -2.25, *[np.nan] * 2, 3.0, 1e3, np.nan],
    )
    np.testing.assert_equal(truths_of(texts("Yes", "no", "TRUE", "?", "maybe")), [1.0, 0.0, 1.0, np.nan, np.nan])
    day = (datetime.date(2024, 1, 31) - datetime.date(1970, 1, 1)).days
    found = moments_of(texts("2024-01-31", "2024-02-30", "2024-01-31 12:00", "2024-01-31T18:00:00.5Z", "soon"), ISO)
    np.testing.assert_allclose(found / 86_400.0, [day, np.nan, day + 0.5, day + 0.75 + 0.5 / 86_400, np.nan])
    np.testing.assert_equal(moments_of(texts("31.01.2024", "31.01.24"), "%d.%m.%Y") / 86_400.0, [day, np.nan])
    np.testing.assert_equal(moments_of(texts("7:30", "25:00"), CLOCK) / 3600.0, [7.5, np.nan])
    noon = pa.array([datetime.datetime(2024, 7, 1, 12)], pa.timestamp("us", "Europe/Berlin"))
    assert moments_of(noon, None)[0] % 86_400 == 14 * 3600  # what the clock on the wall shows
    assert levels_of(pa.array([1.0, None, 2.5])).to_pylist() == ["1", None, "2.5"]
    assert levels_of(pa.array([1, 7])).to_pylist() == ["1", "7"]


def test_gaps_are_filled_and_flagged_and_words_are_not() -> None:
    np.testing.assert_equal(COLUMNS[0].encode(texts("1", "", "x"), "."), [[1.0, 0.0], [2.0, 1.0], [np.nan, 0.0]])
    np.testing.assert_equal(TruthColumn("b").encode(texts("yes", ""), "."), [[1.0], [np.nan]])


def test_levels_unknown_ones_count_as_the_average_row() -> None:
    found = COLUMNS[3].encode(texts("y", "new", ""), ".")
    np.testing.assert_equal(found, [[0, 1, 0, 0], [0.5, 0.25, 0.25, 0], [0.5, 0.25, 0.25, 1]])
    assert COLUMNS[3].count_unknown(texts("y", "new", "")) == 1
    two = LevelColumn("d", ("x", "y"), (0.75, 0.25), has_gaps=False, takes_gaps=False)
    assert two.outputs == ("d=y",)
    np.testing.assert_equal(two.encode(texts("x", "y", "new", ""), "."), [[0.0], [1.0], [0.25], [np.nan]])
    np.testing.assert_equal(COLUMNS[4].encode(texts("p", "q", "new", ""), "."), [[1.0], [3.0], [1.5], [np.nan]])


def test_circles_close_and_weekdays_are_seven() -> None:
    column, hours = COLUMNS[2], 8766
    moments = pa.array(np.datetime64("2023-01-01T00", "us") + np.arange(hours) * np.timedelta64(1, "h"))
    found = dict(zip(column.outputs, column.encode(moments, ".").T, strict=True))
    for part in ("season", "weekday", "time of day"):
        np.testing.assert_allclose(found[f"c {part} sin"] ** 2 + found[f"c {part} cos"] ** 2, 1.0)
    assert np.unique(found["c weekday sin"].round(9) + 10 * found["c weekday cos"].round(9)).size == 7
    assert found["c season cos"][0] == found["c season cos"][8760] == 1.0  # both on the first of January
    np.testing.assert_allclose(np.diff(found["c trend"]) * 365.2425 * 24, 1.0)


def test_mean_targets_are_the_best_linear_prediction_of_random_effects() -> None:
    rng = np.random.default_rng(0)
    counts = rng.integers(1, 40, 300).astype(float)
    effects = rng.normal(5.0, 2.0, 300)
    codes = np.repeat(np.arange(300), counts.astype(int))
    y = effects[codes] + rng.normal(0.0, 3.0, len(codes))
    sums, squares = (np.bincount(codes, y**k)[:, None] for k in (1, 2))
    means, overall = shrunken_means(counts, sums, squares)
    plain_means = sums / counts[:, None]
    shrink = (counts * 4.0 / (counts * 4.0 + 9.0))[:, None]  # with the true variances
    np.testing.assert_allclose(means, overall + shrink * (plain_means - overall), atol=0.5)
    assert np.square(means[:, 0] - effects).mean() < 0.8 * np.square(plain_means[:, 0] - effects).mean()
    same, centre = shrunken_means(np.array([2.0, 0.0]), np.array([[4.0], [0.0]]), np.array([[8.0], [0.0]]))
    np.testing.assert_equal(np.ravel(same), [2.0, 2.0])
    np.testing.assert_equal(centre, [2.0])


def test_training_rows_get_means_that_leave_their_own_target_out() -> None:
    rng = np.random.default_rng(1)
    level, y = rng.integers(0, 100, 400).astype(str), rng.standard_normal(400)  # the level says nothing
    table = FrameTable(pa.table({"c": level, "x": rng.standard_normal(400), "y": y}))
    surveyed = SurveyedTable.of(table, Roles(("c", "x"), ("y",)), TableOptions(categories=("c",)))
    learned, training = surveyed.learn(np.arange(300))
    part = next(iter(table.parts(("c", "x"))))
    is_training = np.arange(400) < 300
    folds = np.concatenate([training.folds, np.zeros(100, int)])[:400]
    of_others = learned.encode(part.columns, folds, is_training, ".")[:, 0]
    of_all = learned.encoding.encode(part.columns)[:, 0]
    np.testing.assert_equal(of_others[300:], of_all[300:])
    raw = np.array([y[:300][level[:300] == each].mean() for each in level[:300]])
    assert np.corrcoef(raw, y[:300])[0, 1] > 0.4  # own targets leak into plain means
    assert abs(np.corrcoef(of_others[:300], y[:300])[0, 1]) < 0.2
    changed = y.copy()
    changed[300:] += 100.0  # rows that are held out
    again = FrameTable(pa.table({"c": level, "x": part.columns["x"], "y": changed}))
    assert (
        SurveyedTable.of(again, surveyed.roles, surveyed.options).learn(np.arange(300))[0].encoding == learned.encoding
    )


def test_hold_outs_keep_groups_and_times_together() -> None:
    groups = np.repeat(np.arange(30), np.random.default_rng(0).integers(1, 20, 30))
    held = hold_out_groups(groups, 0.2, 3, "g")
    assert not set(groups[held]) & set(groups[~held])
    assert 0.1 < held.mean() < 0.35
    times = np.random.default_rng(0).integers(0, 50, 300).astype(float)
    late = hold_out_latest(times, 0.2, "t")
    assert times[late].min() > times[~late].max()
    assert 0.1 < late.mean() < 0.3
    for split in (lambda: hold_out_groups(groups * 0, 0.2, 0, "g"), lambda: hold_out_latest(times * 0, 0.2, "t")):
        with pytest.raises(ValueError, match="one value only"):
            split()


def test_all_problems_are_told_at_once() -> None:
    n = 30
    frame = pa.table(
        {
            "mixed": [*map(str, range(n - 1)), "abc"],
            "comma": [f"{i},5" for i in range(n)],
            "gap": [None, *range(n - 1)],
            "either": [f"0{i % 9 + 1}/0{i % 9 + 1}/2024" for i in range(n)],
            "lists": [[i] for i in range(n)],
            "fine": np.arange(n) ** 2.0,
            "y": [-1.0, *range(1, n)],
        }
    )
    names = tuple(frame.column_names[:-1])
    with pytest.raises(TableProblemsError) as found:
        SurveyedTable.of(FrameTable(frame), Roles(names, ("y",)), TableOptions(log_target=True))
    told = found.value.problems
    assert len(told) == 6
    for name, words in {
        "mixed": "holds 'abc'",
        "comma": "decimal commas",
        "gap": "1 missing or infinite value(s), first in row 0",
        "either": "more than one way",
        "lists": "neither number, text nor date",
        "'y'": "needs numbers above zero",
    }.items():
        assert any(name in each and words in each for each in told), name


@pytest.mark.parametrize(
    ("y", "words"),
    [
        ([*map(str, range(29)), "unknown"], "correct it, or leave those rows out$"),
        (["dear", "cheap"] * 15, "not classes"),
    ],
)
def test_a_target_gets_advice_of_its_own(y: list[str], words: str) -> None:
    frame = FrameTable(pa.table({"x": np.arange(30) ** 2.0, "y": y}))
    with pytest.raises(TableProblemsError, match=words):
        SurveyedTable.of(frame, Roles(("x",), ("y",)), TableOptions())

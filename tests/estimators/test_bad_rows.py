"""Rows that cannot be used: the text names the argument, what was found and what to do."""

from __future__ import annotations

import os

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from estimator_cases import ALL, assert_mentions, error_of, every_estimator, pinned, problem, small
from sklearn.exceptions import NotFittedError

from certgp import ExactGP, MercerGP
from certgp.errors import InvalidInputError

X, Y = problem()
METHODS_OF_X = ("predict", "predict_interval", "sample_y")
METHODS_OF_X_AND_Y = ("fit", "partial_fit", "score", "nlpd")
BAD_NUMBERS = {"nan": (np.nan, "NaN"), "inf": (np.inf, "infinity"), "-inf": (-np.inf, "infinity")}


def spoiled(array, value, place=3):
    copy = array.copy()
    copy.flat[place] = value
    return copy


def call(model, method, rows=X, target=Y):
    return getattr(model, method)(*((rows, target) if method in METHODS_OF_X_AND_Y else (rows,)))


@pytest.fixture(scope="module", params=ALL, ids=lambda cls: cls.__name__)
def fitted(request):
    return pinned(request.param).fit(X, Y)


@pytest.mark.parametrize(("value", "name"), BAD_NUMBERS.values(), ids=BAD_NUMBERS)
class TestNotFinite:
    @pytest.mark.parametrize("method", [*METHODS_OF_X, *METHODS_OF_X_AND_Y[1:]])
    def test_in_x(self, fitted, method, value, name):
        assert_mentions(error_of(lambda: call(fitted, method, rows=spoiled(X, value))), "Input X contains", name)

    @pytest.mark.parametrize("method", METHODS_OF_X_AND_Y[1:])
    def test_in_y(self, fitted, method, value, name):
        text = error_of(lambda: call(fitted, method, target=spoiled(Y, value)))
        assert_mentions(text, "Input", "contains", name)

    @every_estimator
    def test_in_fit(self, cls, value, name):
        assert_mentions(error_of(lambda: small(cls).fit(spoiled(X, value), Y)), "Input X contains", name)
        assert_mentions(error_of(lambda: small(cls).fit(X, spoiled(Y, value))), "Input y contains", name)


@pytest.mark.parametrize("cls", [MercerGP, ExactGP])
class TestWords:
    def test_in_an_array(self, cls):
        words = X.astype(object)
        words[3, 1] = "red"
        text = error_of(lambda: small(cls).fit(words, Y))
        assert_mentions(text, "'red'")
        assert "X" in text.replace("Exception", ""), f"the argument is not named in {text!r}"

    def test_in_a_frame_names_the_column(self, cls):
        frame = pd.DataFrame({"height": X[:, 0], "colour": ["red"] * len(Y)})
        for table in (frame, pl.from_pandas(frame), pa.Table.from_pandas(frame)):
            assert_mentions(error_of(lambda t=table: small(cls).fit(t, Y)), "'red'", "column(s) colour of X")

    @pytest.mark.parametrize("kind", ["text", "object"])
    def test_in_the_target(self, cls, kind):
        words = np.where(Y > 0, "many", "few")
        text = error_of(lambda: small(cls).fit(X, words.astype(object) if kind == "object" else words))
        assert "y" in text.split(), f"the argument is not named in {text!r}"


WHEN = pd.date_range("2024-01-31", periods=len(Y))
DATED_FRAMES = {
    "pandas beside numbers": pd.DataFrame({"height": X[:, 0], "when": WHEN}),
    "pandas alone": pd.DataFrame({"when": WHEN}),
    "pandas with a zone": pd.DataFrame({"when": WHEN.tz_localize("UTC"), "height": X[:, 0]}),
    "pandas objects": pd.DataFrame({"when": [day.date() for day in WHEN], "height": X[:, 0]}),
    "pandas durations": pd.DataFrame({"when": WHEN - WHEN[0]}),
    "polars": pl.DataFrame({"when": WHEN.to_pydatetime().tolist(), "height": X[:, 0]}),
    "arrow": pa.table({"when": pa.array(WHEN), "height": X[:, 0]}),
}
DATES = {
    "pandas": pd.Series(WHEN),
    "array": WHEN.to_numpy(),
    "durations": (WHEN - WHEN[0]).to_numpy(),
    "list": WHEN.to_pydatetime().tolist(),
    "polars": pl.Series(WHEN.to_pydatetime().tolist()),
    "arrow": pa.array(WHEN),
}


class TestDates:
    @pytest.mark.parametrize("kind", DATED_FRAMES)
    def test_in_a_frame_name_the_column(self, kind):
        text = error_of(lambda: small(MercerGP).fit(DATED_FRAMES[kind], Y), InvalidInputError)
        assert_mentions(text, "column(s) when of X hold dates or times", "turn them into numbers", "or drop them")

    @pytest.mark.parametrize("rows", [WHEN.to_numpy()[:, None], [[day] for day in WHEN.to_pydatetime()]])
    def test_in_an_array_or_a_list(self, rows):
        text = error_of(lambda: small(ExactGP).fit(rows, Y), InvalidInputError)
        assert_mentions(text, "column(s) 0 of X hold dates or times")

    @pytest.mark.parametrize("kind", DATES)
    def test_in_the_target(self, kind):
        text = error_of(lambda: small(MercerGP).fit(X, DATES[kind]), InvalidInputError)
        assert_mentions(text, "the target y holds dates or times", "turn them into numbers")

    def test_in_rows_to_predict(self, fitted):
        dated = np.column_stack([WHEN.to_numpy(), WHEN.to_numpy()])
        for method in (*METHODS_OF_X, "nlpd"):
            text = error_of(lambda m=method: call(fitted, m, rows=dated), InvalidInputError)
            assert_mentions(text, "column(s) 0, 1 of X hold dates")


@every_estimator
@pytest.mark.parametrize("factor", [1e200, 1e-200])
class TestMagnitude:
    def test_of_x(self, cls, factor):
        frame = pd.DataFrame({"height": X[:, 0], "mass": factor * X[:, 1]})
        text = error_of(lambda: small(cls).fit(frame, Y), InvalidInputError)
        assert_mentions(text, "column mass of X", "too large" if factor > 1 else "too little", "rescale it")

    def test_of_y(self, cls, factor):
        text = error_of(lambda: small(cls).fit(X, factor * Y), InvalidInputError)
        assert_mentions(text, "the target y", "too large" if factor > 1 else "too little", "rescale it")


@every_estimator
class TestShape:
    def test_no_rows(self, cls):
        text = error_of(lambda: small(cls).fit(X[:0], Y[:0]))
        assert_mentions(text, "0 sample(s)", "minimum of 2 is required", cls.__name__)

    def test_one_row(self, cls):
        text = error_of(lambda: small(cls).fit(X[:1], Y[:1]))
        assert_mentions(text, "1 sample(s)", "minimum of 2 is required", cls.__name__)

    def test_no_columns(self, cls):
        assert_mentions(error_of(lambda: small(cls).fit(X[:, :0], Y)), "0 feature(s)", "minimum of 1 is required")

    def test_one_dimension(self, cls):
        text = error_of(lambda: small(cls).fit(X[:, 0], Y))
        assert_mentions(text, "Expected 2D array, got 1D array instead", "reshape(-1, 1)")

    def test_three_dimensions(self, cls):
        assert_mentions(error_of(lambda: small(cls).fit(X[:, :, None], Y)), "dim 3", "dim <= 2 is required")

    def test_x_and_y_of_different_length(self, cls):
        text = error_of(lambda: small(cls).fit(X, Y[:-1]))
        assert_mentions(text, "inconsistent numbers of samples: [80, 79]")

    def test_targets_of_three_axes(self, cls):
        text = error_of(lambda: small(cls).fit(X, np.stack([Y, Y])[:, :, None].swapaxes(0, 1)))
        assert_mentions(text, "Found array with dim 3")

    def test_no_target(self, cls):
        assert_mentions(error_of(lambda: small(cls).fit(X, None)), "requires y to be passed", "None")


@pytest.mark.parametrize("method", [*METHODS_OF_X, *METHODS_OF_X_AND_Y[1:]])
def test_another_number_of_columns(fitted, method):
    text = error_of(lambda: call(fitted, method, rows=X[:, :1]))
    assert_mentions(text, "X has 1 features", "expecting 2 features", type(fitted).__name__)


def test_predicting_one_dimensional_or_no_rows(fitted):
    assert_mentions(error_of(lambda: fitted.predict(X[0])), "Expected 2D array", "reshape(1, -1)")
    assert_mentions(error_of(lambda: fitted.predict(X[:0])), "0 sample(s)", "minimum of 1 is required")


def test_scoring_against_another_number_of_targets(fitted):
    for method in ("nlpd", "score", "partial_fit"):
        assert_mentions(error_of(lambda m=method: call(fitted, m, target=Y[:-1])), "inconsistent numbers of samples")


@every_estimator
@pytest.mark.parametrize("method", [*METHODS_OF_X, "predict_quantiles", "score", "nlpd", "certify"])
def test_nothing_works_before_fit(cls, method):
    model = small(cls)
    arguments = {"predict_quantiles": (X, 0.5), "score": (X, Y), "nlpd": (X, Y)}.get(method, (X,))
    with pytest.raises(NotFittedError, match=f"This {cls.__name__} instance is not fitted yet"):
        getattr(model, method)(*arguments)
    with pytest.raises(NotFittedError, match="Call 'fit'"):
        model.log_marginal_likelihood()


@every_estimator
def test_a_failed_first_fit_is_no_fit(cls):
    model = small(cls, length_scale=-1.0)
    with pytest.raises(InvalidInputError, match="length_scale"):
        model.fit(X, Y)
    with pytest.raises(NotFittedError, match="not fitted yet"):
        model.predict(X)


@pytest.fixture
def one_gibibyte(monkeypatch):
    real = os.sysconf
    sizes = {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": 2**18}
    monkeypatch.setattr(os, "sysconf", lambda name: sizes.get(name) or real(name))


def test_too_many_rows_for_an_exact_gp(one_gibibyte):
    rows, target = problem(10_000)
    text = error_of(lambda: ExactGP(solver="dense").fit(rows, target), InvalidInputError)
    assert_mentions(text, "10000 rows", "4 GiB", "1 GiB", "MercerGP", "SparseGP", "FourierGP", "fewer rows")


def test_pieces_that_no_longer_fit_an_exact_gp(one_gibibyte):
    model, twin = (pinned(ExactGP).fit(X, Y) for _ in range(2))
    rows, target = problem(10_000)
    assert_mentions(error_of(lambda: model.partial_fit(rows, target), InvalidInputError), "10080 rows", "1 GiB")
    assert np.array_equal(model.predict(X), twin.predict(X))

"""TableEncoder in scikit-learn's house, and TableGP from a frame to predictions and back from a file."""

from __future__ import annotations

from contextlib import suppress
from unittest import SkipTest

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import estimator_checks_generator

import certgp
from certgp import metrics
from certgp.data import ArrayRows
from certgp.errors import InvalidInputError, TableProblemsError
from certgp.estimators.effects import find_effects
from certgp.estimators.reporting import gather_facts
from certgp.plots import CalibrationDisplay, RankCurveDisplay
from certgp.tabular import TableEncoder, TableGP
from table_cases import SHOPS, messy

FRAME = messy()
TRAIN, NEW = FRAME[:180], FRAME[180:]
INPUTS = [name for name in FRAME.columns if name != "price"]


def quick() -> certgp.SparseGP:
    """Wherever the quality of a model does not matter."""
    return certgp.SparseGP(12, length_scale=4.0, optimize=False, random_state=0)


def decent() -> certgp.SparseGP:
    """With length scales of twelve standard deviations of each number."""
    spread = TableEncoder(missing="impute").fit_transform(TRAIN[INPUTS], np.log(TRAIN["price"])).std(0)
    return certgp.SparseGP(
        60, length_scale=12 * spread, signal_variance=5.0, noise_variance=0.02, optimize=False, random_state=0
    )


@pytest.fixture(scope="module")
def logged() -> TableGP:
    return TableGP(decent(), missing="impute", log_target=True).fit(TRAIN, "price")


@pytest.mark.parametrize("options", [{}, {"missing": "impute"}], ids=["refuse", "impute"])
def test_scikit_learns_checks(options) -> None:
    for estimator, check in estimator_checks_generator(TableEncoder(**options)):
        with suppress(SkipTest):  # the array API needs an environment variable
            check(estimator)


def test_what_is_done_to_each_column(logged) -> None:
    told = logged.columns_
    assert told["sold"] == "date: trend (years), season, weekday, time of day as sine and cosine"
    assert told["colour"].startswith("3 levels (blue, green, red)")
    assert told["shop"].startswith("20 levels: the mean target")
    assert "the median, with a column that says where" in told["size"]
    assert told["member"] == "true is 1, false 0"
    assert told["order_id"].startswith("left out: an identifier")
    assert told["currency"] == "left out: it does not vary ('EUR')"
    kept = TableGP(quick(), missing="impute", keep=["order_id"], drop=["sold"], max_levels=20).fit(TRAIN, "price")
    assert kept.columns_["order_id"] == "numbers as they are"
    assert "sold" not in kept.columns_
    assert len([name for name in kept.encoding_.names if name.startswith("shop=")]) == 20


def test_a_pipeline_learns_and_copies(logged) -> None:
    X, y = TRAIN[INPUTS], np.log(TRAIN["price"])
    pipeline = make_pipeline(clone(TableEncoder(missing="impute")), decent()).fit(X, y)
    assert tuple(pipeline[0].get_feature_names_out()) == logged.encoding_.names
    assert pipeline.score(NEW[INPUTS], np.log(NEW["price"])) > 0.6
    np.testing.assert_allclose(pipeline.predict(NEW[INPUTS]), logged.model_.predict(logged.encode(NEW)), rtol=1e-9)
    with pytest.raises(InvalidInputError, match="more than max_levels=10"):
        TableEncoder(missing="impute").fit(X)


def test_frames_of_all_kinds_and_orders_are_the_same(logged) -> None:
    mean = logged.predict(NEW)
    for other in (NEW[INPUTS[::-1]], pl.from_pandas(NEW), pa.Table.from_pandas(NEW), NEW.assign(more="x")):
        np.testing.assert_allclose(logged.predict(other), mean, rtol=1e-12)
    with pytest.raises(TableProblemsError, match="no columns 'colour', 'size'"):
        logged.predict(NEW.drop(columns=["colour", "size"]))


def test_log_targets_are_in_the_units_of_y(logged) -> None:
    z, model = logged.encode(NEW), logged.model_
    y = NEW["price"].to_numpy()
    inner = model.nlpd(ArrayRows(z.take(slice(None))[0], np.log(y), logged.encoding_.names))
    np.testing.assert_allclose(logged.nlpd(NEW), inner + np.log(y).mean(), rtol=1e-9)  # the Jacobian
    np.testing.assert_allclose(logged.predict_interval(NEW, 0.8), np.exp(model.predict_interval(z, 0.8)), rtol=1e-9)
    median, mean = logged.predict_quantiles(NEW, [0.5])[:, 0], logged.predict(NEW)
    np.testing.assert_allclose(median, np.exp(model.predict(z)), rtol=1e-9)
    assert (mean > median).all()
    lower, upper = logged.predict_interval(NEW)
    assert 0.85 < np.mean((lower <= y) & (y <= upper)) <= 1.0
    assert logged.score(NEW) > 0.5
    assert "log(price)" in logged.explain(logged.certify()).meaning[0]


def test_every_score_of_a_report_is_in_the_units_of_y(logged) -> None:
    facts = gather_facts(logged.model_, logged.encode_held_out(NEW), None)
    assert facts.card.model.nlpd == pytest.approx(logged.nlpd(NEW))
    assert facts.ranks[-1].nlpd == pytest.approx(logged.nlpd(NEW), rel=1e-6)


def test_a_report_draws_what_categories_and_dates_do(logged) -> None:
    found = {each.name: each.curves for each in find_effects(logged.model_, logged.encode_held_out(NEW))}
    (colour,) = found["colour"]
    at = dict(zip(colour.labels, colour.mean, strict=True))
    assert at["red"] - at["blue"] == pytest.approx(0.3, abs=0.1)  # of log(price), in the table's truth
    assert set(at) == {"red", "green", "blue", "missing"}
    (member,) = found["member"]
    assert member.mean[1] - member.mean[0] == pytest.approx(0.2, abs=0.1)
    assert [curve.name for curve in found["sold"]] == [
        "sold, years since the first", "sold, month of the year", "sold, weekday", "sold, hour of the day"
    ]  # fmt: skip


def test_a_notebook_shows_columns_and_what_was_learned(logged) -> None:
    assert "Learned" not in TableGP(quick())._repr_html_()
    shown = logged._repr_html_()
    assert "left out: it does not vary" in shown
    assert f"{logged.model_.noise_variance_:.5g}" in shown


def test_scorers_and_displays_take_a_table(logged) -> None:
    y = NEW["price"].to_numpy()
    assert metrics.neg_nlpd(logged, NEW, y) == pytest.approx(-logged.nlpd(NEW))
    lower, upper = logged.predict_interval(NEW, 0.8)
    assert metrics.Coverage(0.8)(logged, NEW, y) == pytest.approx(np.mean((lower <= y) & (y <= upper)))
    assert metrics.neg_crps(logged, NEW, y) == pytest.approx(-logged.distribution(NEW).crps(y).mean())
    shown = CalibrationDisplay.from_estimator(logged, NEW)
    np.testing.assert_allclose(shown.predicted.y, y)
    np.testing.assert_allclose(shown.predicted.mean, logged.predict(NEW))
    assert shown.target == "price"
    curve = RankCurveDisplay.from_estimator(logged, NEW[INPUTS], y).curve
    assert curve.nlpd[-1] == pytest.approx(logged.nlpd(NEW) - np.log(y).mean(), rel=1e-6)


def test_a_file_brings_model_and_columns_back(logged, tmp_path) -> None:
    logged.save(tmp_path / "table.model")
    again = certgp.load(tmp_path / "table.model")
    assert isinstance(again, TableGP)
    assert again.encoding_ == logged.encoding_
    np.testing.assert_allclose(again.predict(NEW), logged.predict(NEW), rtol=1e-12)
    found, known = again.certify(NEW[:5], rows=(TRAIN,), reference_rank=60), logged.certify(NEW[:5], reference_rank=60)
    np.testing.assert_allclose(found.mean_error, known.mean_error, rtol=1e-6)  # the training rows are found again
    with pytest.raises(certgp.CertgpError, match=r"not the rows of the fit|not the ones the model was conditioned on"):
        again.certify(NEW[:5], rows=(TRAIN[::-1],), reference_rank=60)


def test_unknown_levels_and_gaps_of_new_rows(logged) -> None:
    strange = NEW[:3].assign(shop="shop 99", colour="mauve", member=None, sold=pd.NaT)
    assert np.isfinite(logged.predict(strange)).all()
    refusing = TableGP(quick(), drop=["size", "colour"]).fit(TRAIN, "price")
    with pytest.raises(TableProblemsError) as found:
        refusing.predict(strange)
    assert ["member" in each or "sold" in each for each in found.value.problems] == [True, True]
    with pytest.raises(TableProblemsError, match="which is no date or time"):
        refusing.predict(NEW[:3].assign(sold=["2024-01-01", "soon", "2024-01-03"]))


def test_several_targets_and_arrays_as_target() -> None:
    two = TableGP(quick(), missing="impute").fit(FRAME[:100].assign(twice=2 * FRAME["price"]), ["price", "twice"])
    mean = two.predict(FRAME[100:110])
    y = np.stack([FRAME["price"][100:110], 2 * FRAME["price"][100:110]], 1)
    assert metrics.neg_nlpd(two, FRAME[100:110], y) == pytest.approx(-two.nlpd(FRAME[100:110], y).mean())
    y[0, 1] = np.nan
    assert np.isfinite([score(two, FRAME[100:110], y) for score in (metrics.neg_crps, metrics.Coverage())]).all()
    assert mean.shape == (10, 2)
    np.testing.assert_allclose(mean[:, 1], 2 * mean[:, 0], rtol=1e-6)
    assert sum(name.startswith("shop (mean target") for name in two.encoding_.names) == 2
    given = TableGP(quick(), missing="impute").fit(TRAIN[INPUTS], TRAIN["price"], np.ones(len(TRAIN)))
    named = TableGP(quick(), missing="impute").fit(TRAIN, "price")
    np.testing.assert_allclose(given.predict(NEW), named.predict(NEW), rtol=1e-9)
    assert len(SHOPS) == 20

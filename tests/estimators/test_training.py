"""Fits get better, say what they did and why they stopped, and can be watched and stopped."""

from __future__ import annotations

import pickle
import re
import warnings

import numpy as np
import pytest
import torch
from estimator_cases import ALL, UNTIED, assert_mentions, every_estimator, every_low_rank, problem, small

from certgp import ExactGP, FourierGP, MercerGP, SparseGP
from certgp.errors import ConvergenceWarning, InvalidInputError
from certgp.gp import profile_evidence
from certgp.training import Iteration

X, Y = problem(100)
FINISHED = (
    r"all rounds are done|the gradient vanished|the last iterations improved the objective by less than 1e-06 per row"
)
OBJECTIVES = [
    (MercerGP, {"objective": "marginal"}),
    (MercerGP, {"objective": "elbo"}),
    (MercerGP, {"projection": 1}),
    (MercerGP, {"objective": "marginal", "index_set": "optimal"}),
    (FourierGP, {}),
    (FourierGP, {"learn_frequencies": True}),
    (SparseGP, {"objective": "marginal"}),
    (SparseGP, {"objective": "elbo"}),
    (SparseGP, {"learn_inducing": False}),
    (ExactGP, {}),
]
every_objective = pytest.mark.parametrize(
    ("cls", "options"), OBJECTIVES, ids=lambda v: v.__name__ if isinstance(v, type) else "-".join(map(str, v.values()))
)


@every_objective
@pytest.mark.parametrize("start", [{}, {"length_scale": 0.2}], ids=str)
@pytest.mark.filterwarnings("ignore::certgp.errors.ConvergenceWarning")
def test_the_optimum_beats_the_start(cls, options, start):
    """Of the objective alone: rows left out may then ask for more noise than is likeliest (docs/decisions/0041)."""
    learned = small(cls, **options, **start, confirm=False).fit(X, Y)
    kept = small(cls, **options, **start, optimize=False).fit(X, Y)
    assert learned.log_marginal_likelihood_ > kept.log_marginal_likelihood_


@every_objective
@pytest.mark.filterwarnings("ignore::certgp.errors.ConvergenceWarning")
def test_the_fit_ends_at_its_best_point(cls, options):
    model = small(cls, **options).fit(X, Y)
    if cls is ExactGP:
        assert model.history_.values[-1] == pytest.approx(model.history_.values.min(), abs=1e-9)
        return
    reached = profile_evidence(model._model.process.statistics, options.get("objective", model.objective)).value / len(
        X
    )
    assert reached <= model.history_.values[-1] + 1e-9


@every_estimator
def test_history_records_every_iteration(cls):
    model = small(cls, max_iter=400).fit(X, Y)
    records = model.history_.iterations
    assert len(model.history_) == len(records) == model.n_iter_ >= 1
    assert [record.iteration for record in records] == list(range(1, model.n_iter_ + 1))
    assert np.isfinite(model.history_.values).all()
    assert np.array_equal(model.history_.values, [record.value for record in records])
    assert (np.diff(model.history_.seconds) >= 0).all()
    assert records[0].seconds > 0
    assert {record.rank for record in records} == {model.rank_}
    assert all(record.gradient_norm >= 0 for record in records)


@pytest.mark.parametrize("cls", [FourierGP, SparseGP, ExactGP])
def test_history_never_goes_up(cls):
    assert (np.diff(small(cls, max_iter=400).fit(X, Y).history_.values) <= 1e-12).all()


@pytest.mark.parametrize(
    ("cls", "options"), [(FourierGP, {}), (SparseGP, {"objective": "marginal", "jitter": 1e-4}), (ExactGP, {})]
)
def test_the_last_value_is_the_evidence_per_row(cls, options):
    """In standardised units; the scale of y enters by its logarithm."""
    model = small(cls, max_iter=1000, **options).fit(X, Y)
    expected = -model.log_marginal_likelihood_ / len(Y) - np.log(Y.std())
    assert model.history_.values[-1] == pytest.approx(expected, rel=1e-6)


@every_estimator
def test_a_finished_fit_says_why(cls):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = small(cls, max_iter=400).fit(X, Y)
    assert model.converged_ is True
    assert re.match(FINISHED, model.stop_reason_)


@every_estimator
def test_a_fit_that_keeps_its_hyper_parameters_says_so(cls):
    model = small(cls, optimize=False).fit(X, Y)
    assert (model.n_iter_, model.converged_, len(model.history_)) == (1, True, 0)
    assert_mentions(model.stop_reason_, "kept as given", "optimize=False")


@every_estimator
@pytest.mark.parametrize("max_iter", [1, 4])
def test_too_few_iterations_warn_with_advice(cls, max_iter):
    with pytest.warns(ConvergenceWarning) as caught:
        model = small(cls, max_iter=max_iter, length_scale=5.0).fit(X, Y)
    assert len(caught) == 1
    text = str(caught[0].message)
    assert_mentions(text, "stopped before it converged", "raise max_iter", f"max_iter={max_iter}")
    assert caught[0].filename == __file__
    assert model.converged_ is False
    assert_mentions(model.stop_reason_, f"max_iter={max_iter}")


@every_estimator
@pytest.mark.parametrize("max_iter", [1, 2, 5, 11])
@pytest.mark.filterwarnings("ignore::certgp.errors.ConvergenceWarning")
def test_max_iter_counts_all_iterations(cls, max_iter):
    assert 1 <= small(cls, max_iter=max_iter, length_scale=5.0).fit(X, Y).n_iter_ <= max_iter


@every_estimator
def test_callbacks_see_every_record(cls):
    seen, again = [], []
    model = small(cls, max_iter=400, callbacks=[seen.append, again.append]).fit(X, Y)
    assert all(isinstance(record, Iteration) for record in seen)
    assert seen == again
    kept = iter(seen)  # starts that were dropped are seen too, and are no part of the history
    assert all(record in kept for record in model.history_.iterations)


@every_estimator
@pytest.mark.parametrize("stop_at", [1, 3])
def test_a_callback_stops_the_fit_without_a_warning(cls, stop_at):
    seen = []

    def stop(record):
        return record.iteration >= stop_at

    model = small(cls, callbacks=[stop, seen.append]).fit(X, Y)
    assert model.n_iter_ == len(seen) == stop_at
    assert model.converged_ is False
    assert model.stop_reason_ == "a callback stopped the fit"
    assert np.isfinite(model.predict(X, return_std=True)).all()


@every_estimator
def test_a_stopped_fit_keeps_the_best_point_so_far(cls):
    stopped = small(cls, length_scale=5.0, callbacks=[lambda record: record.iteration >= 3]).fit(X, Y)
    start = small(cls, length_scale=5.0, optimize=False).fit(X, Y)
    assert stopped.log_marginal_likelihood_ > start.log_marginal_likelihood_


@every_estimator
def test_an_error_in_a_callback_reaches_the_user(cls):
    def fail(record):
        raise RuntimeError("disk full")

    with pytest.raises(RuntimeError, match="disk full"):
        small(cls, callbacks=[fail]).fit(X, Y)


@every_estimator
def test_callbacks_that_return_other_things_do_not_stop_the_fit(cls):
    watched = small(cls, max_iter=400, callbacks=[lambda record: None, lambda record: False]).fit(X, Y)
    assert np.array_equal(watched.predict(X), small(cls, max_iter=400).fit(X, Y).predict(X))


@every_estimator
def test_verbose_prints_a_line_per_iteration(cls, capsys):
    seen: list[Iteration] = []
    model = small(cls, max_iter=400, verbose=1, callbacks=[seen.append]).fit(X, Y)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(seen) >= model.n_iter_
    assert_mentions(lines[0], "iteration", "objective/row", "gradient", f"rank {model.rank_}")
    small(cls, max_iter=400).fit(X, Y)
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("cls", [MercerGP, FourierGP])
def test_float32_features_are_close_to_float64(cls):
    rows, target = problem(1_000)
    single, double = (small(cls, dtype=t, **UNTIED).fit(rows, target) for t in ("float32", "float64"))
    for a, b in zip(single.predict(rows, True), double.predict(rows, True), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-4 * np.abs(b).max())
    assert single.predict(rows).dtype == np.float64


@pytest.mark.parametrize("cls", [MercerGP, FourierGP])
@pytest.mark.filterwarnings("ignore::certgp.errors.ConvergenceWarning")
def test_float32_finds_the_optimum_of_float64(cls):
    """Both stop within the optimiser's tolerance of the same optimum, not at the same point."""
    rows, target = problem(500)
    options = {"rank": 60, "length_scale": (1.1, 1.5)}
    single, double = (small(cls, dtype=t, **options).fit(rows, target) for t in ("float32", "float64"))
    assert single.log_marginal_likelihood_ == pytest.approx(double.log_marginal_likelihood_, abs=1e-4 * len(target))
    difference = np.sqrt(np.mean((single.predict(rows) - double.predict(rows)) ** 2))
    assert difference < 0.01 * np.sqrt(double.noise_variance_)


@pytest.mark.parametrize("cls", [MercerGP, FourierGP])
def test_float32_at_a_rank_that_strains_it(cls):
    """Nearly dependent features: float32 sums must not meet float64 predictions of other features."""
    rows, target = problem(1_000)
    options = {"rank": 100, "length_scale": 2.0, "noise_variance": 0.01, "optimize": False}
    single, double = (small(cls, dtype=t, **options).fit(rows, target) for t in ("float32", "float64"))
    spread = double.predict(rows).std()
    np.testing.assert_allclose(single.predict(rows), double.predict(rows), rtol=1e-3, atol=1e-3 * spread)


def test_float32_is_refused_where_it_would_ruin_the_fit():
    with pytest.raises(ValueError, match="dtype='float32'") as caught:
        small(SparseGP, dtype="float32").fit(X, Y)
    assert_mentions(str(caught.value), "use dtype='float64'", "MercerGP or FourierGP")


@pytest.mark.parametrize("cls", [MercerGP, FourierGP], ids=lambda cls: cls.__name__)
@pytest.mark.filterwarnings("ignore::certgp.errors.ConvergenceWarning")
def test_mixed_precision_ends_in_float64_and_can_be_certified(cls):
    rows, target = problem(n=400, d=5)
    mixed, double = (small(cls, dtype=t, max_iter=60).fit(rows, target) for t in ("mixed", "float64"))
    assert mixed.history_.values[-1] == pytest.approx(double.history_.values[-1], abs=0.02)
    assert mixed._model.process.statistics.A.dtype == torch.float64
    assert mixed.predict(rows).dtype == np.float64
    assert mixed.certify().kl.upper >= 0.0


@every_low_rank
def test_starting_variances_do_not_matter_when_they_are_learned(cls):
    models = [
        small(cls, max_iter=400, signal_variance=s, noise_variance=n).fit(X, Y) for s, n in ((1.0, 0.1), (50.0, 3.0))
    ]
    np.testing.assert_allclose(models[0].predict(X), models[1].predict(X), rtol=1e-9)


@pytest.mark.filterwarnings("ignore::certgp.errors.ConvergenceWarning")
def test_learned_inducing_points_and_frequencies_fit_better():
    for cls, switch in ((SparseGP, "learn_inducing"), (FourierGP, "learn_frequencies")):
        moved, kept = (small(cls, rank=8, max_iter=400, **{switch: on}).fit(X, Y) for on in (True, False))
        assert moved.log_marginal_likelihood_ > kept.log_marginal_likelihood_


def test_a_given_input_scale_is_not_learned():
    from certgp.features import MercerMap

    model = small(MercerGP, input_scale=[1.5, 2.5], standardize=False, max_iter=400).fit(X, Y)
    features = model._model.process.model.features
    assert isinstance(features, MercerMap)
    np.testing.assert_allclose(features.log_input_scale.exp(), [1.5, 2.5])


def test_winsorised_inputs_change_nothing_inside_the_data_and_stand_still_outside():
    boxed, free = (small(FourierGP, winsorize=on, optimize=False).fit(X, Y) for on in (True, False))
    np.testing.assert_allclose(boxed.predict(X), free.predict(X), rtol=1e-12)
    np.testing.assert_allclose(boxed.predict(X + 1e3), boxed.predict(X + 1e6), rtol=1e-12)
    assert not np.allclose(free.predict(X + 1e3), free.predict(X + 1e6))


def test_noise_of_clean_data_stays_above_a_floor_and_predictions_finite():
    clean = np.sin(X[:, 0])
    for cls in ALL:
        model = small(cls, max_iter=400).fit(X, clean)
        assert model.noise_variance_ > 0
        assert np.isfinite(model.predict(X, return_std=True)).all()
        assert model.score(X, clean) > 0.99


@every_low_rank
@pytest.mark.filterwarnings("ignore::certgp.errors.ConvergenceWarning")
def test_so_far_is_the_model_that_a_stop_would_give_and_the_fit_goes_on(cls):
    at, seen = 4, []

    def watch(record):
        if record.iteration == at:
            seen.append(model.so_far())

    model = small(cls, max_iter=30, callbacks=[watch])
    plain = small(cls, max_iter=30).fit(X, Y)
    stopped = small(cls, max_iter=30, callbacks=[lambda record: record.iteration >= at]).fit(X, Y)
    model.fit(X, Y)
    early = seen[0]
    assert np.allclose(early.predict(X, return_std=True), stopped.predict(X, return_std=True), rtol=1e-8)
    assert early.nlpd(X, Y) == pytest.approx(stopped.nlpd(X, Y))
    assert early.converged_ is False
    assert_mentions(early.stop_reason_, "still running")
    assert np.array_equal(model.predict(X), plain.predict(X))
    assert not np.array_equal(model.predict(X), early.predict(X))


@every_low_rank
def test_a_fit_that_was_stopped_keeps_nothing_of_its_training(cls):
    rows, target = problem(n=3000, d=5)
    model = small(cls, callbacks=[lambda record: True]).fit(rows, target)
    with pytest.raises(InvalidInputError, match="while a fit runs"):
        model.so_far()
    model.callbacks = None
    assert len(pickle.dumps(model)) < rows.nbytes


@every_low_rank
def test_so_far_is_for_callbacks(cls):
    model = small(cls, optimize=False)
    for _ in range(2):
        with pytest.raises(InvalidInputError, match="while a fit runs"):
            model.so_far()
        model.fit(X, Y)


@pytest.mark.filterwarnings("ignore::certgp.errors.ConvergenceWarning")
@pytest.mark.parametrize(("rank", "draws"), [(6, 6), (25, 2), (60, 1)])
def test_few_inducing_points_have_more_starts(rank, draws):
    tried = SparseGP(rank, max_iter=20, random_state=0).fit(X, Y).trials_
    assert {trial.name for trial in tried} == {"greedy", "kmeans", *(f"kmeans {i}" for i in range(2, draws + 1))}
    assert tried[0].score == min(trial.score for trial in tried)


@pytest.mark.filterwarnings("ignore::certgp.errors.ConvergenceWarning")
def test_the_likelihood_alone_may_keep_the_input_scales():
    def names(**options):
        return {trial.name for trial in small(MercerGP, max_iter=20, **options).fit(X, Y).trials_}

    kept = {"all columns", "all columns, input scales kept"}
    assert names(objective="marginal", variance="lowrank") == kept
    assert names(objective="elbo") == names(objective="marginal", input_scale=1.0) == set()

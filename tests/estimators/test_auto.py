"""AutoGP: probes on subsamples, finals on all rows but the held-out ones, the best of them conditioned on all rows."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pytest
from estimator_cases import problem

import certgp
from certgp import AutoGP, SparseGP
from certgp.errors import CertgpWarning, InvalidInputError, NotCertifiableError, WeakSignalWarning
from certgp.training.recipes.local_rounds import LocalTraining
from certgp.training.recipes.race.contest import Contest

pytestmark = pytest.mark.filterwarnings("ignore::certgp.errors.CertgpWarning")
FEW = ("exact", "exact-matern", "exact-sum", "local", "mercer", "fourier-learned")
LOW_RANK = ("mercer", "mercer-marginal", "sparse", "fourier", "fourier-learned")


@pytest.fixture(scope="module")
def fitted():
    X, y = problem(n=400, d=3, seed=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CertgpWarning)
        return AutoGP(rank=20, max_iter=20, random_state=0).fit(X, y)


def test_all_candidates_for_so_few_rows_were_tried_and_the_best_finalist_won(fitted):
    assert sorted(trial.name for trial in fitted.trials_) == sorted(FEW)
    finals = [trial for trial in fitted.trials_ if trial.rows == 320]
    assert fitted.method_ in [trial.name for trial in finals]
    assert [trial.name for trial in fitted.trials_[: len(finals)]] == [trial.name for trial in finals]
    scores = [trial.score for trial in finals]
    assert scores == sorted(scores)
    assert min(scores) <= next(trial.score for trial in finals if trial.name == fitted.method_) <= min(scores) + 0.01


def test_it_says_what_it_tried_what_that_cost_and_why_it_chose(fitted):
    words = fitted.choice_
    assert words.startswith(f"{fitted.method_}: ")
    assert "on 80 training rows held out" in words
    assert all(f"{trial.name} {trial.score:.4g}" in words for trial in fitted.trials_)
    assert re.search(r"Tried 4 method\(s\) on 160 rows, then \d method\(s\) on 320 rows: \d+ CPU seconds", words)
    assert "certified" in words
    assert all(trial.seconds > 0.0 for trial in fitted.trials_)


def test_scores_are_in_the_units_of_y():
    X, y = problem(n=200)
    options = {"rank": 10, "max_iter": 5, "candidates": ("sparse", "fourier"), "random_state": 0}
    plain, scaled = AutoGP(**options).fit(X, y), AutoGP(**options).fit(X, 1000.0 * y)
    for one, other in zip(plain.trials_, scaled.trials_, strict=True):
        assert other.score == pytest.approx(one.score + np.log(1000.0))


def test_the_winner_is_conditioned_on_all_rows(fitted):
    assert fitted.n_rows_ == 400
    X, y = problem(n=300, d=3, seed=2)
    assert fitted.score(X, y) > 0.9


def test_few_rows_have_all_a_say_in_the_noise():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, (230, 2))  # 184 of them are learned in the race: too few for noise(x)
    y = np.sin(3.0 * X[:, 0]) + np.exp(2.0 * X[:, 1]) * 0.1 * rng.standard_normal(230)
    gp = AutoGP(candidates=("exact", "local"), max_iter=30, random_state=0).fit(X, y)
    assert gp.noise_gain_.accepted
    assert "trained again on all 230 rows" in gp.choice_


def test_the_second_training_of_a_local_model_keeps_its_kernel(monkeypatch):
    kernels, choose = [], LocalTraining._choose_kernel

    def watch(self, starts):
        kernels.append([start.kernel.name for start in starts])
        return choose(self, starts)

    monkeypatch.setattr(LocalTraining, "_choose_kernel", watch)
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, (600, 2))
    y = np.sign(np.sin(6.0 * X[:, 0])) + X[:, 1] + 0.1 * rng.standard_normal(600)
    gp = AutoGP(4, candidates=("local", "fourier"), warp=False, random_state=0).fit(X, y)
    assert gp.method_ == "local"
    assert kernels == [["matern12", "matern32", "matern52"], [gp.kernel_.name]]
    assert gp.noise_gain_ is not None


def test_it_is_the_model_it_names():
    X, y = problem(n=300, d=2)
    only = AutoGP(rank=15, candidates=("sparse",), max_iter=20, random_state=0).fit(X, y)
    alone = SparseGP(rank=15, max_iter=20, random_state=0).fit(X, y)
    np.testing.assert_array_equal(only.predict(X), alone.predict(X))
    np.testing.assert_array_equal(only.predict_quantiles(X, [0.1]), alone.predict_quantiles(X, [0.1]))
    assert only.method_ == "sparse"
    assert "nothing to choose" in only.choice_


def test_a_short_wave_is_left_to_near_rows():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (2_600, 2))
    y = np.sin(30.0 * X[:, 0]) + np.cos(25.0 * X[:, 1]) + 0.1 * rng.standard_normal(2_600)
    gp = AutoGP(rank=20, effort="low", candidates=("local", "sparse", "fourier"), max_iter=60, random_state=0)
    gp.fit(X[:2_200], y[:2_200])
    assert gp.method_ == "local"
    assert gp.score(X[2_200:], y[2_200:]) > 0.9


def test_a_trend_is_learned_by_whatever_wins():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 3))
    y = X @ [1.0, -2.0, 0.5] + 0.1 * rng.standard_normal(300)
    gp = AutoGP(rank=20, effort="low", max_iter=20, random_state=0).fit(X[:200], y[:200])
    assert gp.nlpd(X[200:], y[200:]) < 0.5 * np.log(2 * np.pi * np.e * 0.1**2) + 0.3  # of the noise alone, and a little


def test_few_rows_are_fitted_exactly_without_a_contest():
    X, y = problem(n=30)
    gp = AutoGP(rank=10, max_iter=10, random_state=0).fit(X, y)
    assert gp.method_ == "exact"
    assert gp.trials_ == ()


def test_repeated_rows_do_not_feign_accuracy():
    rng = np.random.default_rng(0)
    X = np.repeat(rng.standard_normal((60, 3)), 10, axis=0)
    y = np.repeat(rng.standard_normal(60), 10)  # nothing but the rows themselves to learn
    gp = AutoGP(rank=20, candidates=("local", "sparse"), max_iter=20, random_state=0).fit(X, y)
    assert min(trial.score for trial in gp.trials_) > 0.5  # copies of learned rows would give far below zero


def test_proof_is_preferred_at_a_price_that_is_told():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((500, 2))
    y = np.sin(4.0 * X[:, 0]) + 0.1 * rng.standard_normal(500)
    options = {"rank": 6, "candidates": ("fourier", "fourier-learned"), "max_iter": 30, "random_state": 0}
    accurate, proven = AutoGP(**options).fit(X, y), AutoGP(prefer="proof", **options).fit(X, y)
    assert accurate.method_ == "fourier-learned"
    assert re.search(
        rf"{accurate.method_} cannot be certified; prefer='proof' would cost [.\d]+ in NLPD", accurate.choice_
    )
    assert proven.method_ == "fourier"
    assert re.search(rf"{proven.method_} can be certified; the price of proof is [.\d]+ in NLPD", proven.choice_)
    with pytest.raises(NotCertifiableError):
        accurate.certify()
    assert proven.certify().kl.upper >= 0.0


@pytest.mark.parametrize(("effort", "finals"), [("low", 1), ("high", 4)])
def test_more_effort_trains_more_methods_on_all_rows(effort, finals):
    X, y = problem(n=150)
    gp = AutoGP(rank=10, effort=effort, candidates=LOW_RANK, max_iter=5, random_state=0).fit(X, y)
    assert 1 <= sum(trial.rows == 120 for trial in gp.trials_) <= finals


def test_kernels_without_mercer_features_leave_those_out():
    X, y = problem(n=200)
    named = ("exact", "local", "mercer", "sparse", "fourier")
    gp = AutoGP(rank=10, candidates=named, kernel="matern32", max_iter=5, random_state=0).fit(X, y)
    assert {trial.name for trial in gp.trials_} == {"exact", "local", "sparse", "fourier"}
    assert gp.kernel_.name == "matern32"


def test_saved_and_loaded_with_its_choice(fitted, tmp_path):
    fitted.save(tmp_path / "auto.model", include_training_data=True)
    loaded = certgp.load(tmp_path / "auto.model")
    X, _ = problem(n=50, d=3, seed=5)
    np.testing.assert_allclose(loaded.predict(X), fitted.predict(X), rtol=1e-12)
    assert (loaded.method_, loaded.choice_, loaded.trials_) == (fitted.method_, fitted.choice_, fitted.trials_)


@pytest.mark.parametrize("name", ["exact", "local", "mercer", "fourier"])
def test_certificates_and_further_rows_are_those_of_the_winner(name):
    X, y = problem(n=150, d=2)
    more = problem(n=20, d=2, seed=3)
    gp = AutoGP(rank=30, candidates=(name, "fourier-learned"), prefer="proof", max_iter=10, random_state=0).fit(X, y)
    assert gp.method_ == name
    assert 0.0 <= gp.certify().kl.upper < np.inf
    assert gp.partial_fit(*more).n_rows_ == 170
    assert np.isfinite(gp.predict(X)).all()


def test_a_rank_to_be_proven_is_sought_among_methods_that_can_prove_it():
    X, y = problem(n=300, d=1)
    gp = AutoGP(rank="auto", tolerance=0.05, max_rank=60, max_iter=20, random_state=0).fit(X, y)
    assert {trial.name for trial in gp.trials_} == {"mercer", "sparse", "fourier"}
    assert gp.choice_.startswith(f"{gp.method_}: lowest mean") or "it can be certified" in gp.choice_
    assert gp.certify().kl.upper <= 0.05 * 300
    assert gp.rank_ <= 60


@pytest.mark.parametrize("calls", [6, 30])
def test_an_interrupted_search_for_a_rank_says_what_it_had_chosen(calls):
    X, y = problem(n=300, d=1)
    gp = AutoGP(rank="auto", tolerance=1e-6, max_rank=128, random_state=0, callbacks=[After(calls, interrupt)])
    with pytest.warns(CertgpWarning, match="the fit was interrupted"):
        gp.fit(X, y)
    assert gp.method_ in ("mercer", "sparse", "fourier")
    assert gp.choice_.startswith(f"{gp.method_}: ")
    assert gp.trials_
    assert gp.stop_reason_ == "the fit was interrupted"
    assert gp.score(X, y) > 0.8


def test_inputs_that_do_not_vary_are_fitted():
    y = np.random.default_rng(0).standard_normal(80)
    gp = AutoGP(max_iter=5, random_state=0).fit(np.ones((80, 2)), y)
    assert gp.predict(np.ones((1, 2)))[0] == pytest.approx(y.mean(), abs=0.3)


def test_noise_that_is_asked_for_is_learned_from_all_rows():
    """The rows that a race learns from are fewer than noise(x) needs; all rows are enough."""
    X, y = problem(n=230, d=1)
    gp = AutoGP(noise="input", candidates=("exact", "mercer"), rank=10, max_iter=10, random_state=0).fit(X, y)
    assert {trial.name for trial in gp.trials_} == {"exact", "mercer"}
    assert gp.noise_gain_.accepted
    with pytest.raises(InvalidInputError, match="noise='input' needs"):
        AutoGP(noise="input", candidates=("exact", "mercer"), rank=10, random_state=0).fit(X[:150], y[:150])


def test_robust_fits_are_not_restrained_after_the_rows_were_weighed():
    rng = np.random.default_rng(0)
    X, _ = problem(n=120, d=1)
    y = np.sin(1.5 * X[:, 0]) + 0.1 * rng.standard_normal(120)
    y[::10] += 5.0
    with warnings.catch_warnings():
        warnings.simplefilter("error", WeakSignalWarning)
        gp = AutoGP(candidates=("exact", "exact-matern"), likelihood="student", max_iter=20, random_state=0).fit(X, y)
    error = gp.predict(X) - np.sin(1.5 * X[:, 0])
    assert np.sqrt(np.mean(error**2)) < 0.1


def test_so_far_speaks_of_the_method_in_training_or_of_the_best_before():
    X, y = problem(n=200, d=2)
    seen = []
    gp = AutoGP(rank=10, candidates=("sparse", "exact"), max_iter=5, random_state=0)
    gp.callbacks = [lambda record: seen.append(gp.so_far().score(X, y))]
    gp.fit(X, y)
    assert max(seen) > 0.5


class After:
    """A callback that does something at a given iteration of the race."""

    def __init__(self, calls: int, act) -> None:
        self.calls, self.act, self.left = calls, act, calls

    def __call__(self, record) -> bool:
        self.left -= 1
        return self.act() if self.left == 0 else False


def interrupt() -> bool:
    raise KeyboardInterrupt


@pytest.mark.parametrize("calls", [15, 45])
def test_an_interrupt_ends_with_the_best_model_so_far(calls):
    X, y = problem(n=200, d=2)
    gp = AutoGP(10, candidates=("sparse", "fourier"), max_iter=30, random_state=0, callbacks=[After(calls, interrupt)])
    with pytest.warns(CertgpWarning, match="the fit was interrupted; this is the best model so far"):
        gp.fit(X, y)
    assert gp.stop_reason_ == "the fit was interrupted"
    assert not gp.converged_
    assert gp.n_rows_ == 200
    assert gp.score(X, y) > 0.8


def test_an_interrupt_while_the_winner_learns_from_all_rows_leaves_the_final():
    X, y = problem(n=200, d=2)

    def callback(record) -> bool:
        return "on all rows" in record.stage and interrupt()

    gp = AutoGP(10, candidates=("exact", "local"), max_iter=10, random_state=0, callbacks=[callback])
    with pytest.warns(CertgpWarning, match="the fit was interrupted; this is the best model so far"):
        gp.fit(X, y)
    assert gp.n_rows_ == 200
    assert "trained again" not in gp.choice_
    assert gp.score(X, y) > 0.8


def test_an_interrupt_before_there_is_any_model_is_passed_on(monkeypatch):
    X, y = problem(n=200, d=2)
    monkeypatch.setattr(Contest, "probe", lambda self: interrupt())
    with pytest.raises(KeyboardInterrupt):
        AutoGP(10, candidates=("exact", "local"), random_state=0).fit(X, y)


def test_a_callback_that_stops_the_race_gets_the_best_so_far():
    X, y = problem(n=200, d=2)
    gp = AutoGP(10, candidates=("sparse", "fourier"), max_iter=30, random_state=0, callbacks=[After(40, lambda: True)])
    gp.fit(X, y)
    assert gp.n_rows_ == 200
    assert gp.score(X, y) > 0.8


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"candidates": ()}, "candidates must be some of"),
        ({"candidates": "mercer"}, "candidates must be some of"),
        ({"candidates": ("mercer", "boosting")}, "candidates must be some of"),
        ({"candidates": ("mercer",), "kernel": "matern12"}, "no method for rank=5, kernel='matern12'"),
        ({"candidates": ("sparse",), "dtype": "float32"}, "no method for"),
        ({"candidates": ("fourier-learned",), "prefer": "proof"}, "prefer='proof' needs a method"),
        ({"effort": "lots"}, "effort"),
        ({"prefer": "speed"}, "prefer"),
        ({"max_seconds": 0.0}, "max_seconds"),
        ({"rank": 0}, "rank"),
        ({"max_iter": 0}, "max_iter"),
    ],
)
def test_bad_parameters_are_refused(parameters, words):
    X, y = problem(n=60)
    with pytest.raises(InvalidInputError, match=words):
        AutoGP(**{"rank": 5, **parameters}).fit(X, y)


@pytest.fixture(scope="module")
def combined() -> tuple[AutoGP, np.ndarray, np.ndarray]:
    """Smooth in one part and rough in the other: a mixture of two exact GPs beats either."""
    rng = np.random.default_rng(1)
    X = rng.uniform(-2, 2, (300, 2))
    rough = np.where(X[:, 0] > 1, np.sign(np.sin(9 * X[:, 1])), np.sin(2 * X[:, 1]))
    y = rough + 0.02 * rng.standard_normal(300)
    names = ("exact", "exact-matern")
    return AutoGP(candidates=names, combine=True, noise="constant", max_iter=60, random_state=0).fit(X, y), X, y


def test_finalists_are_combined_where_held_out_rows_gain_by_it(combined):
    gp, X, y = combined
    assert gp.method_ == "exact-matern + exact"
    assert "gains" in gp.choice_
    assert "exact-matern and exact were then trained again on all 300 rows" in gp.choice_
    mean, std = gp.predict(X, return_std=True)
    members = gp._model.process.members
    means = [gp._model.standardiser.mean_to_user(each.moments(gp._model.tensor(X))[0].numpy()) for each in members]
    np.testing.assert_allclose(mean, gp._model.process.shares @ np.stack(means), rtol=1e-12)
    lower, upper = gp.predict_interval(X)
    assert ((lower < mean) & (mean < upper)).all()
    assert gp.sample_y(X[:5], 3).shape == (5, 3)
    draws = gp.sample_y(X[:1], 4_000, random_state=0)
    assert draws.std() == pytest.approx(std[0], rel=0.1)
    assert np.isfinite(gp.nlpd(X, y))


def test_a_combined_model_is_saved_and_refuses_certificates_with_the_reason(combined, tmp_path):
    gp, X, _ = combined
    gp.save(tmp_path / "combined.model", include_training_data=True)
    loaded = certgp.load(tmp_path / "combined.model")
    np.testing.assert_array_equal(loaded.predict_quantiles(X, [0.1, 0.9]), gp.predict_quantiles(X, [0.1, 0.9]))
    assert (loaded.method_, loaded.combine) == (gp.method_, True)
    for ask in (gp.certify, loaded.certify, lambda: gp.certify(X[:3]), gp.rank_curve):
        with pytest.raises(NotCertifiableError, match=r"mixture of the predictions of 2 models.*combine=False"):
            ask()

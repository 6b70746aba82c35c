"""AutoGP: a contest on held-out training rows, the winner trained on all of them."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np
import pytest
import torch
from estimator_cases import problem

import certgp
from certgp import AutoGP, FourierGP, MercerGP, SparseGP
from certgp.data import Chunk, ChunkSource
from certgp.errors import CertgpWarning, InvalidInputError, NotCertifiableError
from certgp.estimators.auto import CANDIDATES
from certgp.training import Stage, Trial
from certgp.training.recipes.race import _choose_winner, _Contender, _divide, _keep_promising

pytestmark = pytest.mark.filterwarnings("ignore::certgp.errors.CertgpWarning")


@pytest.fixture(scope="module")
def fitted():
    X, y = problem(n=600, d=3, seed=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CertgpWarning)
        return AutoGP(rank=20, max_iter=30, random_state=0).fit(X, y)


def test_all_candidates_were_tried_and_the_best_finalist_chosen(fitted):
    assert sorted(trial.name for trial in fitted.trials_) == sorted(CANDIDATES)
    scores = [trial.score for trial in fitted.trials_]
    assert scores == sorted(scores)
    best = fitted.trials_[0].name
    reason = "lowest mean negative log predictive density" if fitted.method_ == best else "it can be certified"
    assert fitted.method_ in (best, "mercer", "sparse")
    assert fitted.choice_.startswith(f"{fitted.method_}: {reason}")
    assert all(trial.name in fitted.choice_ for trial in fitted.trials_)


def contender(name, losses):
    return _Contender(
        name, None, name in ("mercer", "sparse"), None, None, Trial(name, 0.0, float(losses.mean()), 0.0), losses
    )


def test_a_method_that_can_be_certified_wins_ties_and_only_ties():
    losses = np.random.default_rng(0).standard_normal(2_000)
    noise = np.random.default_rng(1).standard_normal(2_000)
    noise -= noise.mean()  # standard error of the difference: 0.1 / sqrt(2000) = .0022
    learned, sparse = contender("fourier-learned", losses), contender("sparse", losses + 0.001 + 0.1 * noise)
    assert _choose_winner([learned, sparse]).name == "sparse"
    assert _choose_winner([sparse, learned]).name == "sparse"
    assert _choose_winner([learned, contender("sparse", losses + 0.004 + 0.1 * noise)]).name == "fourier-learned"
    assert _choose_winner([learned, contender("fourier", losses + 0.001 + 0.1 * noise)]).name == "fourier-learned"
    noisy = contender("sparse", losses + 0.02 + 2.0 * noise)  # within its standard error, but too dear
    assert _choose_winner([learned, noisy]).name == "fourier-learned"
    better = contender("mercer", losses - 0.01)
    assert _choose_winner([learned, sparse, better]).name == "mercer"


def test_methods_that_still_gain_stay_in_the_race():
    losses = np.zeros(100)
    before = [contender("mercer", losses + 1.0), contender("sparse", losses + 0.5), contender("fourier", losses + 0.7)]
    after = [contender("mercer", losses + 0.6), contender("sparse", losses + 0.4), contender("fourier", losses + 0.6)]
    assert [each.name for each in _keep_promising(before, after)] == ["mercer", "sparse"]
    assert [each.name for each in _keep_promising(after, after)] == ["sparse"]


def test_the_winner_is_conditioned_on_all_rows(fitted):
    assert fitted._model.process.n_rows == 600
    X, y = problem(n=300, d=3, seed=2)
    assert fitted.score(X, y) > 0.9


def test_it_is_the_model_it_names():
    X, y = problem(n=300, d=2)
    only = AutoGP(rank=15, candidates=("sparse",), max_iter=20, random_state=0).fit(X, y)
    alone = SparseGP(rank=15, max_iter=20, random_state=0).fit(X, y)
    np.testing.assert_array_equal(only.predict(X), alone.predict(X))
    assert only.method_ == "sparse"
    assert "nothing to choose" in only.choice_


@pytest.mark.parametrize(
    ("frequency", "unfit"), [(1.0, None), (9.0, "fourier")], ids=["smooth", "too fast for random frequencies"]
)
def test_never_much_worse_than_the_best_candidate_on_new_rows(frequency, unfit):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (800, 1))
    y = np.sin(frequency * X[:, 0]) + 0.1 * rng.standard_normal(800)
    new = rng.uniform(-1, 1, (500, 1))
    truth = np.sin(frequency * new[:, 0]) + 0.1 * rng.standard_normal(500)
    auto = AutoGP(rank=12, max_iter=40, random_state=0).fit(X, y)
    rivals = [MercerGP(12, max_iter=40, random_state=0), SparseGP(12, max_iter=40, random_state=0)]
    rivals.append(FourierGP(12, max_iter=40, random_state=0))
    best = min(model.fit(X, y).nlpd(new, truth) for model in rivals)
    assert auto.nlpd(new, truth) <= best + 0.05
    assert auto.method_ != unfit


def test_kernels_without_mercer_features_leave_those_out():
    X, y = problem(n=200)
    gp = AutoGP(rank=10, kernel="matern32", max_iter=10, random_state=0).fit(X, y)
    assert {trial.name for trial in gp.trials_} == {"sparse", "fourier", "fourier-learned"}
    assert gp.kernel_.name == "matern32"


def test_saved_and_loaded_with_its_choice(fitted, tmp_path):
    fitted.save(tmp_path / "auto.model")
    loaded = certgp.load(tmp_path / "auto.model")
    X, _ = problem(n=50, d=3, seed=5)
    np.testing.assert_array_equal(loaded.predict(X), fitted.predict(X))
    assert (loaded.method_, loaded.choice_, loaded.trials_) == (fitted.method_, fitted.choice_, fitted.trials_)


def test_certificates_are_those_of_the_winner():
    X, y = problem(n=300, d=2)
    gp = AutoGP(rank=30, candidates=("mercer", "sparse"), max_iter=20, random_state=0).fit(X, y)
    assert gp.certify().kl.upper >= 0.0
    learned = AutoGP(rank=10, candidates=("fourier-learned",), max_iter=10, random_state=0).fit(X, y)
    with pytest.raises(NotCertifiableError):
        learned.certify()


def test_a_rank_to_be_proven_is_sought_among_methods_that_can_prove_it():
    X, y = problem(n=300, d=1)
    gp = AutoGP(rank="auto", tolerance=0.05, max_rank=60, max_iter=20, random_state=0).fit(X, y)
    assert {trial.name for trial in gp.trials_} == {"mercer", "sparse", "fourier"}
    assert gp.certify().kl.upper <= 0.05 * 300
    assert gp.rank_ <= 60


def test_few_rows_are_fitted_without_a_contest():
    X, y = problem(n=30)
    gp = AutoGP(rank=10, max_iter=10, random_state=0).fit(X, y)
    assert gp.method_ == "mercer"
    assert gp.trials_ == ()


def test_so_far_speaks_of_the_method_in_training():
    X, y = problem(n=300, d=2)
    seen = []
    gp = AutoGP(rank=10, max_iter=10, random_state=0)
    gp.callbacks = [lambda record: seen.append(gp.so_far().score(X, y))]
    gp.fit(X, y)
    assert len(seen) >= len(CANDIDATES)
    assert max(seen) > 0.5


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"candidates": ()}, "candidates must be some of"),
        ({"candidates": "mercer"}, "candidates must be some of"),
        ({"candidates": ("mercer", "boosting")}, "candidates must be some of"),
        ({"candidates": ("mercer",), "kernel": "matern12"}, "no method for rank=5, kernel='matern12'"),
        ({"candidates": ("sparse",), "dtype": "float32"}, "no method for"),
        ({"rank": 0}, "rank"),
        ({"max_iter": 0}, "max_iter"),
    ],
)
def test_bad_parameters_are_refused(parameters, words):
    X, y = problem(n=60)
    with pytest.raises(InvalidInputError, match=words):
        AutoGP(**{"rank": 5, **parameters}).fit(X, y)


def test_a_run_that_follows_a_change_of_the_model_is_not_cut():
    rows, others = (ChunkSource(Chunk(torch.zeros(1, 1), torch.zeros(1))) for _ in range(2))

    def lengths(stages: Sequence[Stage], share: float) -> list[list[tuple[bool, int]]]:
        return [[(each.source is rows, each.max_iter) for each in part] for part in _divide(stages, rows, share)]

    plain = [Stage(rows, 100), Stage(others, 10)]
    assert lengths(plain, 0.25) == [[(True, 25)], [(True, 75), (False, 10)]]
    changed = [Stage(rows, 80, lambda: None), Stage(rows, 80, lambda: None), Stage(others, 10)]
    assert lengths(changed, 0.25) == [[(True, 80)], [(True, 80), (False, 10)]]
    assert lengths(changed, 1.0) == [[(True, 80), (True, 80)], [(False, 10)]]

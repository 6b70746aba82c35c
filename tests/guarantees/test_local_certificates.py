"""Certificates of local GPs through the public estimator, and the parts that they are made of."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.linalg
import torch

import certgp.guarantees as g
import helpers
from certgp import ExactGP, LocalGP
from certgp.data import Standardiser
from certgp.errors import NotCertifiableError
from certgp.gp.local import LocalProcess
from certgp.gp.neighbours import earlier_neighbours
from certgp.guarantees.exact_covariance import ExactCovariance
from certgp.guarantees.local_krylov import Krylov
from certgp.guarantees.local_sets import larger_sets
from certgp.kernels import Gaussian, Matern32, RationalQuadratic
from certgp.transforms import Identity, Projection

LENGTHS = [0.5, 0.8]


def problem_rows(n: int = 250) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.uniform(-3, 3, (n, 2))
    y = 5.0 + 3.0 * (np.sin(2.0 * X[:, 0]) * np.cos(X[:, 1]) + 0.1 * rng.standard_normal(n))
    return X, y, rng.uniform(-3, 3, (15, 2))


def fitted(**settings: object) -> tuple[LocalGP, np.ndarray, np.ndarray, np.ndarray]:
    X, y, X_new = problem_rows()
    options = {
        "neighbours": 8, "train_neighbours": 5, "kernel": Matern32(LENGTHS, 9.0), "noise_variance": 0.3, "metric": "ard"
    }  # fmt: skip
    gp = LocalGP(**(options | settings), optimize=False, random_state=0).fit(X, y)
    return gp, X, y, X_new


def dense_divergence(process: LocalProcess) -> float:
    S = process.kernel(process.inputs, process.inputs).numpy() + process.noise_variance * np.eye(process.n_rows)
    d = process.ordered_conditionals().variance + process.noise_variance
    return 0.5 * float(np.log(d).sum() - np.linalg.slogdet(S)[1])


def small_process(kernel=None, y=None, n: int = 120) -> LocalProcess:
    X, targets, _ = problem_rows(n)
    values = helpers.tensor((targets - 5.0) / 3.0) if y is None else y
    return LocalProcess(Identity(2), kernel or Matern32(LENGTHS, 1.2), helpers.tensor(X), values, 0.05, 8, 5)


@pytest.mark.parametrize("delta", [None, 1e-6])
def test_a_fitted_local_gp_is_certified_against_the_exact_gp(delta: float | None) -> None:
    gp, X, y, X_new = fitted()
    exact = ExactGP(kernel=gp.kernel_, noise_variance=gp.noise_variance_, optimize=False).fit(X, y)
    mean, std = exact.predict(X_new, return_std=True)
    found = gp.certify(X_new, delta=delta)
    assert found.confidence == 1.0 - (delta or 0.0)
    assert exact.log_marginal_likelihood() in found.log_evidence
    distance = np.abs(gp.predict(X_new) - mean)
    assert np.all(distance <= found.mean_error + 1e-9)
    assert np.all(distance >= found.mean_error_lower - 1e-9)
    latent = std**2 - gp.noise_variance_
    assert np.all(found.variance_lower <= latent + 1e-9)
    assert np.all(latent <= found.variance_upper + 1e-9)
    assert found.evidence["mean_resolution"] < 0.01
    assert 0.0 < found.kl.lower < found.kl.upper


def test_both_routes_hold_the_dense_divergence() -> None:
    process = small_process()
    problem, truth = g.LocalProblem.of(process), dense_divergence(small_process())
    certain = g.bracket_rows(problem)
    likely, dual, products = g.bracket_probes(problem, 0.05, 24, np.random.default_rng(0))
    assert truth in certain
    assert certain.upper < 1.5 * certain.lower
    assert truth in likely
    assert likely.upper < 2.0 * likely.lower
    assert dual.residual < 1e-2
    assert products < 40


def test_with_all_rows_as_neighbours_nothing_is_left() -> None:
    gp, _, _, X_new = fitted(neighbours=250, train_neighbours=249)
    found = gp.certify(X_new)
    assert found.kl.upper < 1e-6
    assert found.mean_error.max() < 1e-4


def test_training_rows_are_checked_in_any_order() -> None:
    gp, X, y, _ = fitted()
    order = np.random.default_rng(1).permutation(len(X))
    assert gp.certify(rows=(X[order], y[order])).kl.upper > 0.0
    with pytest.raises(NotCertifiableError, match="are not the ones the model was conditioned on"):
        gp.certify(rows=(X, y + 1.0))


def test_a_missed_tolerance_is_noted() -> None:
    gp, _, _, X_new = fitted()
    assert any("not to tol=1e-12" in note for note in gp.certify(X_new, tol=1e-12).notes)


def test_a_varying_prior_is_refused() -> None:
    kernel = helpers.VARYING["gaussian + linear"]
    with pytest.raises(NotCertifiableError, match="varies from row to row"):
        g.LocalProblem.of(small_process(kernel))


def test_targets_that_are_zero() -> None:
    process = small_process(y=torch.zeros(120, dtype=torch.float64))
    problem = g.LocalProblem.of(process)
    _, dual, _ = g.bracket_probes(problem, 0.05, 4, np.random.default_rng(0))
    assert dual.residual == 0.0
    assert dual.quadratic.upper == 0.0


def test_larger_sets_contain_the_models_own() -> None:
    points = np.random.default_rng(0).standard_normal((300, 2)).round(1)  # many equal distances
    own = earlier_neighbours(points, 5)
    larger = larger_sets(points, own, 12)
    for i in range(300):
        mine, theirs = set(own[i]) - {-1}, [row for row in larger[i] if row >= 0]
        assert mine <= set(theirs)
        assert len(theirs) == len(set(theirs)) == min(i, 12)
        assert all(row < i for row in theirs)


@pytest.mark.parametrize("kernel", [Gaussian([0.05, 0.1], 1.4), Matern32([0.05, 0.1], 1.4), RationalQuadratic(0.3)])
def test_products_with_the_exact_covariance_skip_nothing_that_matters(kernel) -> None:
    rng = np.random.default_rng(0)
    X, V = torch.from_numpy(rng.uniform(-3, 3, (1_300, 2)) + 50.0), rng.standard_normal((1_300, 3))
    covariance = ExactCovariance(kernel, X, 0.01)
    S = helpers.dense_kernel(kernel, X.numpy(), X.numpy()) + 0.01 * np.eye(1_300)
    for _ in range(2):  # the first product finds the row sums too
        error = np.linalg.norm(covariance.multiply(V) - S @ V, axis=0)
        allowed = (covariance.relative * 0.01 + covariance.spill) * np.linalg.norm(V, axis=0)
        assert np.all(error <= allowed + 1e-12)
    assert covariance.relative < 1e-4
    assert covariance.norm >= np.linalg.norm(S, 2)


def test_forms_of_the_logarithm_are_bracketed_after_every_step() -> None:
    process = small_process()
    problem = g.LocalProblem.of(process)
    W = problem.own.matrix.toarray()
    S = process.kernel(process.inputs, process.inputs).numpy() + process.noise_variance * np.eye(process.n_rows)
    values, vectors = np.linalg.eigh(W @ S @ W.T)
    start = np.random.default_rng(0).standard_normal((process.n_rows, 2))
    krylov = Krylov(problem.own, ExactCovariance(process.kernel, process.inputs, process.noise_variance), start, 0.0)
    truth = -np.sum(np.square(vectors.T @ start) * np.log(values)[:, None], axis=0)
    widths = []
    for _ in range(12):
        spectra = krylov.run(lambda _: True, 100)
        found = [one.minus_logarithm(float(values[0]), float(values[-1])) for one in spectra]
        assert all(form in interval for form, interval in zip(truth, found, strict=True))
        widths.append(found[0].upper - found[0].lower)
    assert widths[-1] < 1e-3 * widths[0]


def test_weights_from_the_steps_solve_the_exact_system() -> None:
    problem = g.LocalProblem.of(small_process())
    process = problem.process
    S = process.kernel(process.inputs, process.inputs).numpy() + process.noise_variance * np.eye(process.n_rows)
    y = process.y.numpy()
    dual = g.solve_targets(problem)
    exact = scipy.linalg.solve(S, y, assume_a="pos")
    rho = y - S @ dual.weights
    assert rho @ scipy.linalg.solve(S, rho, assume_a="pos") <= dual.residual**2 + 1e-15
    assert dual.quadratic.lower - 1e-9 <= y @ exact <= dual.quadratic.upper + 1e-9


def test_behind_a_linear_map_the_sentence_says_so() -> None:
    X, targets, _ = problem_rows(60)
    projection = Projection(
        torch.eye(2, dtype=torch.float64), torch.zeros(2, dtype=torch.float64), torch.eye(2, dtype=torch.float64)
    )
    process = LocalProcess(
        projection, Matern32(LENGTHS, 1.2), helpers.tensor(X), helpers.tensor(targets - 5.0), 0.05, 8, 5
    )
    standardiser = Standardiser(np.zeros(2), np.ones(2), 0.0, 1.0, np.zeros(2, dtype=bool))
    found = g.certify_local(process, standardiser, None, None, np.random.default_rng(0))
    assert "the outputs g(x) of its projection" in found.sentence()
    assert any("it is a GP on g(x)" in text for text in found.assumptions)


def test_a_far_local_gp_is_told_to_have_more_neighbours() -> None:
    found = g.certify_local(
        small_process(Gaussian(3.0, 50.0)), Standardiser(np.zeros(2), np.ones(2), 0.0, 1.0, np.zeros(2, dtype=bool)),
        None, None, np.random.default_rng(0),
    )  # fmt: skip
    far = replace(found, kl=g.Interval(150.0, 200.0))
    assert far.sentence().endswith("Raise train_neighbours (of LocalGP, in Python).")
    assert "Raise train_neighbours" in replace(found, kl=g.Interval(0.0, 200.0)).sentence()

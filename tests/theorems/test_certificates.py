"""Every certificate against the dense exact GP; a weakened bound fails the same check (ids: docs/theorems.md)."""

from __future__ import annotations

import math
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import certgp
from certgp.errors import NotCertifiableError, RankWarning
from certgp.gp import Statistics
from certgp.guarantees import Certificate, Interval, sharpened_trace_bound
from certgp.guarantees.rounding import accumulation_slack

INPUT_LAWS = ("gaussian", "uniform", "heavy", "clustered", "duplicated", "off-centre")


def draw_inputs(law: str, n: int, d: int, rng: np.random.Generator) -> np.ndarray:
    X = rng.standard_normal((n, d))
    return {
        "gaussian": X,
        "uniform": rng.uniform(-2, 2, (n, d)),
        "heavy": rng.standard_t(2, (n, d)).clip(-15, 15),
        "clustered": X * 0.1 + rng.integers(-1, 2, (n, 1)),
        "duplicated": X[rng.integers(0, n // 2 + 1, n)],
        "off-centre": X + 4.0,
    }[law]


@st.composite
def problems(draw: st.DrawFn) -> dict[str, object]:
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n, d = draw(st.integers(8, 70)), draw(st.integers(1, 4))
    X = draw_inputs(draw(st.sampled_from(INPUT_LAWS)), n, d, rng)
    y = np.sin(2.0 * X.sum(1)) + 0.3 * rng.standard_normal(n)
    return {
        "X": X,
        "y": y,
        "X_new": rng.standard_normal((7, d)) * 2.0,
        "rank": draw(st.integers(2, n)),
        "fixed": {
            "length_scale": draw(st.floats(0.1, 10.0)),
            "signal_variance": draw(st.floats(0.1, 5.0)),
            "noise_variance": 10.0 ** draw(st.floats(-3.0, 1.0)),
            "optimize": False,
            "standardize": False,
        },
    }


def dense_truth(problem: dict, gp: certgp.estimators.GPRegressor, kernel: str) -> tuple[float, certgp.ExactGP]:
    """KL(exact || model) by eigenvalues of the whitened difference, and the exact GP."""
    exact = certgp.ExactGP(kernel=kernel, **problem["fixed"]).fit(problem["X"], problem["y"])
    X = torch.from_numpy(problem["X"])
    K = exact.kernel_(X, X).numpy()
    phi = gp._model.process.features(X).numpy()
    noise = problem["fixed"]["noise_variance"]
    values, vectors = np.linalg.eigh(phi @ phi.T + noise * np.eye(len(K)))
    half = vectors / np.sqrt(values)
    e = np.linalg.eigvalsh(half.T @ (K - phi @ phi.T) @ half)
    return float(0.5 * np.sum(e - np.log1p(np.maximum(e, -1 + 1e-12)))), exact


def violations(certificate: Certificate, problem: dict, gp: object, kernel: str) -> list[str]:
    """Names of the statements of a certificate that the dense truth contradicts (beyond the oracle's own rounding)."""
    kl, exact = dense_truth(problem, gp, kernel)
    mean, std = exact.predict(problem["X_new"], return_std=True, include_noise=False)
    oracle = 1e-10 * len(problem["X"]) * (1.0 + 1.0 / problem["fixed"]["noise_variance"])
    model_mean = gp.predict(problem["X_new"])
    checks = {
        "kl": certificate.kl.lower - oracle <= kl <= certificate.kl.upper + oracle,
        "evidence": certificate.log_evidence.lower - oracle
        <= exact.log_marginal_likelihood()
        <= certificate.log_evidence.upper + oracle,
        "mean": bool((np.abs(mean - model_mean) <= certificate.mean_error + oracle).all()),
        "variance": bool(
            ((certificate.variance_lower - oracle <= std**2) & (std**2 <= certificate.variance_upper + oracle)).all()
        ),
    }
    return [name for name, holds in checks.items() if not holds]


def fitted(model: type, problem: dict, **options: object) -> certgp.estimators.GPRegressor:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RankWarning)
        return model(problem["rank"], random_state=0, **options, **problem["fixed"]).fit(problem["X"], problem["y"])


@given(problem=problems(), index_set=st.sampled_from(["optimal", "total_degree", "box"]))
@settings(max_examples=100, deadline=None, derandomize=True)
def test_mercer_certifies_itself(problem: dict, index_set: str) -> None:
    gp = fitted(certgp.MercerGP, problem, projection=None, index_set=index_set)
    assert violations(gp.certify(problem["X_new"]), problem, gp, "gaussian") == []


@given(problem=problems(), kernel=st.sampled_from(["gaussian", "matern12", "matern32", "matern52"]))
@settings(max_examples=100, deadline=None, derandomize=True)
def test_sparse_certifies_itself(problem: dict, kernel: str) -> None:
    gp = fitted(certgp.SparseGP, problem, kernel=kernel)
    assert violations(gp.certify(problem["X_new"]), problem, gp, kernel) == []


@given(
    problem=problems(),
    kernel=st.sampled_from(["gaussian", "matern12", "matern52"]),
    sampling=st.sampled_from(["iid", "sobol", "widened"]),
)
@settings(max_examples=100, deadline=None, derandomize=True)
def test_fourier_is_certified_through_a_reference(problem: dict, kernel: str, sampling: str) -> None:
    gp = fitted(certgp.FourierGP, problem, kernel=kernel, sampling=sampling, winsorize=False)
    certificate = gp.certify(problem["X_new"], reference_rank=60)
    assert violations(certificate, problem, gp, kernel) == []


@given(problem=problems())
@settings(max_examples=40, deadline=None, derandomize=True)
def test_reference_interval_holds_for_dominated_models_too(problem: dict) -> None:
    gp = fitted(certgp.MercerGP, problem, projection=None)
    certificate = gp.certify(problem["X_new"], reference_rank=problem["rank"] + 20)
    assert violations(certificate, problem, gp, "gaussian") == []


def test_sharpened_bound_is_below_the_papers_and_smooth_at_its_switch() -> None:
    gaps = np.logspace(-12, 4, 400)
    sharp = np.array([sharpened_trace_bound(gap, 1.0) for gap in gaps])
    assert (sharp < 0.5 * gaps).all()
    assert (np.diff(sharp) > 0).all()
    t = 1e-4
    assert sharpened_trace_bound(t * (1 - 1e-9), 1.0) == pytest.approx(
        sharpened_trace_bound(t * (1 + 1e-9), 1.0), rel=1e-6
    )


def rank_one_problem(gap: float) -> tuple[float, float]:
    """One dropped direction of size ``gap`` at unit noise: the case where the sharpened bound is exact."""
    return 0.5 * (gap - math.log1p(gap)), sharpened_trace_bound(gap, 1.0)


@pytest.mark.parametrize("gap", [1e-6, 1e-3, 0.1, 1.0, 50.0])
def test_trace_bound_is_attained_so_nothing_weaker_holds(gap: float) -> None:
    truth, bound = rank_one_problem(gap)
    assert truth == pytest.approx(bound, rel=1e-6)
    assert truth > 0.99 * bound  # a bound scaled by .99 would be violated


@pytest.mark.parametrize("statement", ["kl", "evidence", "mean", "variance"])
def test_the_soundness_check_can_fail(statement: str) -> None:
    """Weakened certificates are caught: each statement is contradicted when its bound is taken away."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 2))
    problem = {
        "X": X,
        "y": np.sin(3.0 * X[:, 0]),
        "X_new": rng.standard_normal((7, 2)),
        "rank": 8,
        "fixed": {"length_scale": 0.5, "noise_variance": 0.05, "optimize": False, "standardize": False},
    }
    gp = fitted(certgp.MercerGP, problem, projection=None)
    sound = gp.certify(problem["X_new"])
    weak = {
        "kl": {"kl": Interval(0.0, 0.05 * sound.kl.upper)},
        "evidence": {"log_evidence": Interval(sound.log_evidence.lower, gp.log_marginal_likelihood())},
        "mean": {"mean_error": 1e-6 * sound.mean_error},
        "variance": {"variance_upper": sound.variance_lower},
    }[statement]
    arguments = {name: getattr(sound, name) for name in sound.__dataclass_fields__} | weak
    assert violations(sound, problem, gp, "gaussian") == []
    assert violations(Certificate(**arguments), problem, gp, "gaussian") == [statement]


def test_rank_curve_equals_separate_models() -> None:
    rng = np.random.default_rng(1)
    X = rng.standard_normal((200, 2))
    y = np.sin(2 * X[:, 0]) + 0.1 * rng.standard_normal(200)
    fixed = {"length_scale": 1.0, "noise_variance": 0.02, "optimize": False}
    curve = certgp.MercerGP(40, projection=None, **fixed).fit(X, y).rank_curve()
    for rank in (1, 7, 40):
        gp = certgp.MercerGP(rank, projection=None, **fixed).fit(X, y)
        at = rank - 1
        assert curve.log_evidence[at] == pytest.approx(gp.log_marginal_likelihood(), rel=1e-9)
        assert curve.kl_bound[at] == pytest.approx(gp.certify().kl.upper, rel=1e-6)


def test_fourier_rank_curve_ends_at_the_fitted_model() -> None:
    rng = np.random.default_rng(2)
    X = rng.standard_normal((100, 2))
    gp = certgp.FourierGP(20, random_state=0).fit(X, np.sin(X[:, 0]) + 0.1 * rng.standard_normal(100))
    curve = gp.rank_curve()
    assert list(curve.ranks) == list(range(2, 21, 2))
    assert curve.log_evidence[-1] == pytest.approx(gp.log_marginal_likelihood(), rel=1e-9)


def test_learned_frequencies_and_missing_rows_refuse_with_the_reason(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    X, y = rng.standard_normal((50, 2)), rng.standard_normal(50)
    learned = certgp.FourierGP(10, learn_frequencies=True, optimize=False, random_state=0).fit(X, y)
    with pytest.raises(NotCertifiableError, match="learn_frequencies=False"):
        learned.certify()
    gp = certgp.FourierGP(10, random_state=0).fit(X, y)
    gp.save(tmp_path / "model.certgp")
    loaded = certgp.load(tmp_path / "model.certgp")
    with pytest.raises(NotCertifiableError, match=r"rows=\(X, y\)"):
        loaded.certify()
    assert loaded.certify(rows=(X, y)).kl.upper == pytest.approx(gp.certify().kl.upper)


def test_float32_and_nonsense_references_are_refused() -> None:
    rng = np.random.default_rng(3)
    X, y = rng.standard_normal((50, 2)), rng.standard_normal(50)
    with pytest.raises(NotCertifiableError, match="dtype='float64'"):
        certgp.FourierGP(10, dtype="float32", optimize=False).fit(X, y).certify()
    with pytest.raises(ValueError, match="reference_rank must be a whole number of at least 1, found 0"):
        certgp.FourierGP(10, optimize=False).fit(X, y).certify(reference_rank=0)


def test_exact_gp_is_its_own_truth() -> None:
    rng = np.random.default_rng(4)
    X = rng.standard_normal((30, 1))
    gp = certgp.ExactGP().fit(X, np.sin(X[:, 0]) + 0.1 * rng.standard_normal(30))
    certificate = gp.certify(X[:3])
    assert certificate.kl == Interval(0.0, 0.0)
    assert (certificate.mean_error == 0).all()
    with pytest.raises(NotCertifiableError, match="full rank"):
        gp.rank_curve()


def test_certificate_reads_well_and_says_vacuous() -> None:
    rng = np.random.default_rng(5)
    X = rng.standard_normal((300, 3))
    fixed = {"length_scale": 0.2, "noise_variance": 0.001, "optimize": False}
    weak = certgp.MercerGP(5, projection=None, **fixed).fit(X, np.sin(X[:, 0])).certify()
    assert weak.vacuous
    assert "vacuous" in str(weak)
    assert weak.to_dict()["kl"][1] == weak.kl.upper


def test_a_large_divergence_that_is_known_is_not_called_vacuous() -> None:
    rng = np.random.default_rng(5)
    X, fixed = rng.standard_normal((300, 1)), {"length_scale": 0.3, "noise_variance": 1e-3, "optimize": False}
    far = certgp.MercerGP(3, projection=None, **fixed).fit(X, np.sin(5 * X[:, 0])).certify(tol=0.1)
    assert far.kl.lower > 300
    assert not far.vacuous
    assert "far from the exact GP" in str(far)


def test_accumulation_slack_covers_a_naive_float64_sum() -> None:
    values = np.random.default_rng(6).random(100_000)
    naive = 0.0
    for value in values:
        naive += value
    assert abs(naive - math.fsum(values)) <= accumulation_slack(len(values), values.sum())
    assert accumulation_slack(10, 1.0) < 1e-12


def test_statistics_of_no_data_are_neutral() -> None:
    stats = Statistics.of(torch.ones((4, 3), dtype=torch.float64), torch.ones(4, dtype=torch.float64))
    total = stats + Statistics.zero(3)
    assert torch.equal(total.A, stats.A)
    assert total.n == stats.n

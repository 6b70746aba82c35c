"""fit(X, y, sample_weight=...): scikit-learn's conventions, and every estimator against the dense GP."""

from __future__ import annotations

import numpy as np
import pytest
from estimator_cases import problem

import certgp
from certgp import AutoGP, DeepFourierGP, ExactGP, FourierGP, LocalGP, MercerGP, SparseGP
from certgp.data import ArrayRows, WeightedRows
from certgp.errors import InvalidInputError, NotCertifiableError

X, Y = problem()
N = len(Y)
W = np.exp(np.random.default_rng(3).standard_normal(N))
FIXED = {"length_scale": [0.8, 1.1], "signal_variance": 1.3, "noise_variance": 0.1, "optimize": False}
EVERY = {
    "mercer": lambda **more: MercerGP(20, projection=None, random_state=0, **more),
    "sparse": lambda **more: SparseGP(20, random_state=0, **more),
    "fourier": lambda **more: FourierGP(20, random_state=0, **more),
    "exact": lambda **more: ExactGP(random_state=0, **more),
    "iterative": lambda **more: ExactGP(solver="iterative", random_state=0, **more),
    "local": lambda **more: LocalGP(10, train_neighbours=8, kernel="matern32", random_state=0, **more),
    "deep": lambda **more: DeepFourierGP(10, hidden=(8,), random_state=0, **more),
    "auto": lambda **more: AutoGP(10, random_state=0, **more),
}
SHORT = {"auto": {"max_iter": 5}, "deep": {"max_iter": 2}}
quiet = pytest.mark.filterwarnings("ignore::certgp.errors.CertgpWarning")
every = pytest.mark.parametrize("name", EVERY)


def made(name: str):
    return EVERY[name](**SHORT.get(name, {"max_iter": 8}))


def predicted(model) -> np.ndarray:
    return np.stack(model.predict(X[:20], return_std=True))


@quiet
@every
def test_weights_of_one_are_none_and_of_zero_leave_rows_out(name: str) -> None:
    plain, ones = made(name).fit(X, Y), made(name).fit(X, Y, sample_weight=np.ones(N))
    assert np.array_equal(predicted(ones), predicted(plain))
    assert ones.log_marginal_likelihood_ == plain.log_marginal_likelihood_
    weights = np.where(np.arange(N) % 4 == 0, 0.0, W)
    left = weights > 0
    several = made(name).fit(X, np.where(left, Y, 1e6), sample_weight=weights)
    assert np.array_equal(predicted(several), predicted(made(name).fit(X[left], Y[left], sample_weight=W[left])))
    assert several.n_rows_ == left.sum()
    assert not np.array_equal(predicted(several), predicted(made(name).fit(X[left], Y[left])))


@quiet
@pytest.mark.parametrize("name", ["mercer", "sparse", "exact", "iterative"])
def test_certified_distance_to_the_dense_weighted_gp(name: str) -> None:
    model = EVERY[name](**FIXED).fit(X, Y, sample_weight=W)
    (mean, std), truth = _dense(model, X[:20])
    certificate = model.certify(X[:20])
    assert np.all(np.abs(mean - truth["mean"]) <= certificate.mean_error + 1e-9)
    assert np.all(certificate.variance_lower <= truth["variance"] + 1e-9)
    assert np.all(truth["variance"] <= certificate.variance_upper + 1e-9)
    assert certificate.log_evidence.lower - 1e-6 <= truth["evidence"] <= certificate.log_evidence.upper + 1e-6
    if name == "exact":
        np.testing.assert_allclose(mean, truth["mean"], rtol=1e-9)
        np.testing.assert_allclose(std**2, truth["variance"] + model.noise_variance_, rtol=1e-9)
        assert model.log_marginal_likelihood_ == pytest.approx(truth["evidence"], rel=1e-9)


def _dense(model, new: np.ndarray) -> tuple[tuple[np.ndarray, np.ndarray], dict]:
    """Predictions of a model, and what dense NumPy says of the exact GP with the same hyper-parameters: the target has
    the mean that weights give it.
    """
    scales, signal = np.array(model.kernel_.describe()["length_scale"]), float(model.kernel_.signal_variance)

    def kernel(A: np.ndarray, B: np.ndarray) -> np.ndarray:
        return signal * np.exp(-0.5 * np.square((A[:, None] - B) / scales).sum(-1))

    centre = np.average(Y, weights=W)
    S = kernel(X, X) + np.diag(model.noise_variance_ / W)
    cross, y = kernel(new, X), Y - centre
    solved = np.linalg.solve(S, np.column_stack([y, cross.T]))
    evidence = -0.5 * (y @ solved[:, 0] + np.linalg.slogdet(S)[1] + N * np.log(2 * np.pi))
    variance = signal - np.sum(cross * solved[:, 1:].T, 1)
    return model.predict(new, return_std=True), {
        "mean": centre + cross @ solved[:, 0],
        "variance": variance,
        "evidence": evidence,
    }


@quiet
@every
def test_files_keep_weights(name: str, tmp_path) -> None:
    model = made(name).fit(X, Y, sample_weight=W)
    model.save(tmp_path / "m.model", include_training_data=True)
    again = certgp.load(tmp_path / "m.model")
    assert np.array_equal(predicted(again), predicted(model))
    assert again.log_marginal_likelihood_ == model.log_marginal_likelihood_


@quiet
@pytest.mark.parametrize("name", ["mercer", "sparse", "exact", "iterative"])
def test_partial_fit_of_two_halves_is_the_fit_of_all(name: str) -> None:
    kwargs = FIXED | {"standardize": False} | ({"inducing": X[:20]} if name == "sparse" else {})
    kwargs |= {"input_scale": 1.0} if name == "mercer" else {}
    whole = EVERY[name](**kwargs).fit(X, Y, sample_weight=W)
    halves = EVERY[name](**kwargs).fit(X[:60], Y[:60], sample_weight=W[:60])
    halves.partial_fit(X[60:], Y[60:], sample_weight=W[60:])
    near = 1e-9 if name != "iterative" else 1e-2  # its means are solved to a hundredth
    assert halves.log_marginal_likelihood_ == pytest.approx(whole.log_marginal_likelihood_, rel=near)
    np.testing.assert_allclose(predicted(halves)[0], predicted(whole)[0], rtol=10 * near, atol=near)


@quiet
def test_certificates_read_weights_again_and_tell_other_weights() -> None:
    model = SparseGP(20, max_iter=8, random_state=0).fit(X, Y, sample_weight=W)
    with_rows = model.certify(rows=(X, Y, W), reference_rank=40)
    assert with_rows.kl.upper <= model.certify().kl.upper * (1 + 1e-9)
    for rows in ((X, Y), (X, Y, W[::-1])):
        with pytest.raises(NotCertifiableError, match="not the ones"):
            model.certify(rows=rows)
    with pytest.raises(NotCertifiableError, match="these rows have weights"):
        made("local").fit(X, Y, sample_weight=W).certify()
    solved = made("local").fit(X, Y, sample_weight=W).certify(X[:3], tol=1e-3, exact_solve=lambda cost: True)
    assert solved.mean_error.shape == (3,)


@quiet
def test_rows_may_hold_their_weights_and_scores_are_weighted_means() -> None:
    held = WeightedRows(ArrayRows(X, Y), W)
    model = SparseGP(15, max_iter=8, random_state=0).fit(held)
    given = SparseGP(15, max_iter=8, random_state=0).fit(X, Y, sample_weight=W)
    assert np.array_equal(predicted(model), predicted(given))
    each = np.array([given.nlpd(X[i : i + 1], Y[i : i + 1]) for i in range(8)])
    assert given.nlpd(X[:8], Y[:8], sample_weight=W[:8]) == pytest.approx(np.average(each, weights=W[:8]))
    assert given.score(X, Y, sample_weight=W) == pytest.approx(model.score(held))
    with pytest.raises(InvalidInputError, match="leave sample_weight out"):
        model.fit(held, sample_weight=W)


@quiet
@pytest.mark.parametrize("name", ["exact", "sparse"])
def test_whole_weights_are_repeated_rows_where_hyper_parameters_are_held(name: str) -> None:
    times = np.random.default_rng(4).integers(1, 4, N)
    kwargs = FIXED | ({"inducing": X[:20]} if name == "sparse" else {})
    weighted = EVERY[name](**kwargs).fit(X, Y, sample_weight=times)
    repeated = EVERY[name](**kwargs).fit(np.repeat(X, times, 0), np.repeat(Y, times))
    np.testing.assert_allclose(predicted(weighted), predicted(repeated), rtol=1e-8)
    assert weighted.log_marginal_likelihood_ != pytest.approx(repeated.log_marginal_likelihood_)


@quiet
def test_known_noise_is_used() -> None:
    rng = np.random.default_rng(0)
    inputs, weights = rng.uniform(-3, 3, (400, 1)), np.where(np.arange(400) % 2 == 0, 1.0, 0.01)
    f = np.sin(2 * inputs[:, 0])
    y = f + 0.1 * rng.standard_normal(400) / np.sqrt(weights)
    known, blind = (SparseGP(20, max_iter=40, random_state=0).fit(inputs, y, w) for w in (weights, None))
    assert known.noise_variance_ == pytest.approx(0.01, rel=0.3)
    errors = [float(np.sqrt(np.mean((model.predict(inputs) - f) ** 2))) for model in (known, blind)]
    assert errors[0] < 0.4 * errors[1]


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (np.ones(N - 1), "one weight per row"),
        (np.ones((N, 2)), "1D"),
        (np.where(np.arange(N) == 5, np.nan, 1.0), "row 5"),
        (np.where(np.arange(N) == 7, -1.0, 1.0), "negative number in row 7"),
        (np.zeros(N), "zero for every row"),
        (["a"] * N, "one number per row"),
        (np.where(np.arange(N) == 0, 1.0, 0.0), "at least 2"),
    ],
)
def test_bad_weights_are_refused(weights: object, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        SparseGP(5).fit(X, Y, sample_weight=weights)

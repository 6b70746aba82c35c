"""y of shape (n, q): every method per output, and the same numbers as one fit each where hyper-parameters are held."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from estimator_cases import problem

import certgp
from certgp import ExactGP, FourierGP, LocalGP, MercerGP, SparseGP
from certgp.data import ArrayRows
from certgp.errors import InvalidInputError

X, Y0 = problem()
N = len(Y0)
RNG = np.random.default_rng(4)
WHOLE = np.stack([Y0, 40.0 + 5.0 * np.cos(X[:, 0]) + RNG.standard_normal(N), X[:, 1] ** 2], 1)
Y = WHOLE.copy()
Y[::4, 1] = np.nan
Y[RNG.random(N) < 0.3, 2] = np.nan
SEEN = ~np.isnan(Y)
W = np.exp(RNG.standard_normal(N))
NEW = X[:15] + 0.1
NOISE, SIGNAL = [0.1, 1.5, 0.02], [1.2, 20.0, 0.7]
HELD = {"length_scale": [0.8, 1.1], "optimize": False, "random_state": 0}
LOW_RANK = {
    # its features are centred where the rows are, and each output alone has rows of its own
    "mercer": lambda **more: MercerGP(20, projection=None, input_scale=1.0, **HELD | {"standardize": False} | more),
    "sparse": lambda **more: SparseGP(inducing=X[:20], **HELD | more),
    "fourier": lambda **more: FourierGP(20, winsorize=False, **HELD | more),
}
every_low_rank = pytest.mark.parametrize("name", LOW_RANK)
pytestmark = pytest.mark.filterwarnings("ignore::certgp.errors.CertgpWarning")


def one_by_one(name: str, weight: np.ndarray | None = None) -> list:
    return [
        LOW_RANK[name](noise_variance=NOISE[j], signal_variance=SIGNAL[j]).fit(
            X[rows], Y[rows, j], None if weight is None else weight[rows]
        )
        for j, rows in enumerate(SEEN.T)
    ]


@pytest.fixture(scope="module")
def learned() -> MercerGP:
    return MercerGP(15, max_iter=15, random_state=0).fit(X, Y)


@pytest.mark.parametrize("weight", [None, W], ids=["plain", "weighted"])
@every_low_rank
def test_held_hyper_parameters_give_what_one_fit_for_each_output_gives(name: str, weight: np.ndarray | None) -> None:
    several = LOW_RANK[name](noise_variance=NOISE, signal_variance=SIGNAL).fit(X, Y, weight)
    alone = one_by_one(name, weight)
    mean, std = several.predict(NEW, return_std=True)
    for j, each in enumerate(alone):
        expected = each.predict(NEW, return_std=True)
        np.testing.assert_allclose(mean[:, j], expected[0], rtol=1e-8, atol=1e-8)
        np.testing.assert_allclose(std[:, j], expected[1], rtol=1e-8)
    np.testing.assert_allclose(several.log_marginal_likelihood_, [a.log_marginal_likelihood_ for a in alone], rtol=1e-9)
    np.testing.assert_allclose(several.noise_variance_, NOISE, rtol=1e-12)
    scores = [each.nlpd(X[rows], Y[rows, j]) for j, (each, rows) in enumerate(zip(alone, SEEN.T, strict=True))]
    np.testing.assert_allclose(several.nlpd(X, Y), scores, rtol=1e-8)
    fits = [each.score(X[rows], Y[rows, j]) for j, (each, rows) in enumerate(zip(alone, SEEN.T, strict=True))]
    assert several.score(X, Y) == pytest.approx(np.mean(fits), rel=1e-8)
    assert several.n_rows_ == tuple(SEEN.sum(0))


@pytest.mark.parametrize("weight", [None, W], ids=["plain", "weighted"])
@every_low_rank
def test_certificates_are_those_of_each_output(name: str, weight: np.ndarray | None) -> None:
    several = LOW_RANK[name](noise_variance=NOISE, signal_variance=SIGNAL).fit(X, Y, weight)
    options = {} if name != "fourier" else {"reference_rank": 40}
    rows = (X, Y) if weight is None else (X, Y, weight)
    for found, read, each in zip(
        several.certify(NEW, **options),
        several.certify(NEW, rows=rows, **options),
        one_by_one(name, weight),
        strict=True,
    ):
        expected = each.certify(NEW, **options)
        assert found.n_rows == expected.n_rows
        assert found.kl.upper == pytest.approx(expected.kl.upper, rel=1e-5, abs=1e-9)
        assert read.kl.upper == pytest.approx(expected.kl.upper, rel=1e-5, abs=1e-9)
        np.testing.assert_allclose(found.variance_upper, expected.variance_upper, rtol=1e-6)


def test_the_exact_gp_lies_within_the_certificate_of_every_output() -> None:
    several = LOW_RANK["sparse"](noise_variance=NOISE, signal_variance=SIGNAL).fit(X, Y, W)
    mean = several.predict(NEW)
    for j, certificate in enumerate(several.certify(NEW)):
        rows = SEEN[:, j]
        exact = ExactGP(kernel=several.kernel_[j], noise_variance=NOISE[j], optimize=False, standardize=False)
        offset = several.models[j].standardiser.y_mean
        exact.fit(X[rows], Y[rows, j] - offset, W[rows])
        truth, latent = exact.predict(NEW, return_std=True, include_noise=False)
        assert (np.abs(mean[:, j] - offset - truth) <= certificate.mean_error + 1e-9).all()
        assert (latent**2 <= certificate.variance_upper + 1e-9).all()
        assert (latent**2 >= certificate.variance_lower - 1e-9).all()


def test_certificates_are_explained_output_by_output(learned: MercerGP) -> None:
    certificates = learned.certify()
    for given in (certificates, certificates[1]):
        with pytest.raises(InvalidInputError, match=r"has 3: call outputs_\[j\].explain"):
            learned.explain(given)
    assert learned.outputs_[1].explain(certificates[1]).text()


def test_shapes_of_every_prediction(learned: MercerGP) -> None:
    assert learned.predict(NEW).shape == (15, 3)
    assert learned.predict(NEW, return_cov=True)[1].shape == (15, 15, 3)
    assert learned.predict_quantiles(NEW, [0.1, 0.5]).shape == (15, 3, 2)
    lower, upper = learned.predict_interval(NEW)
    assert lower.shape == upper.shape == (15, 3)
    assert (lower < upper).all()
    assert learned.sample_y(NEW, 7).shape == (15, 3, 7)
    assert len(learned.rank_curve(X, Y)) == 3
    assert len(learned.noise_gain_) == 3


def test_one_estimator_for_each_output_says_the_same(learned: MercerGP) -> None:
    mean, std = learned.predict(NEW, return_std=True)
    quantiles, draws = learned.predict_quantiles(NEW, [0.2]), learned.predict(NEW, return_cov=True)[1]
    for j, part in enumerate(learned.outputs_):
        np.testing.assert_allclose(part.predict(NEW, return_std=True), [mean[:, j], std[:, j]], rtol=1e-8)
        np.testing.assert_allclose(part.predict_quantiles(NEW, [0.2]), quantiles[:, j], rtol=1e-8)
        np.testing.assert_allclose(part.predict(NEW, return_cov=True)[1], draws[..., j], rtol=1e-8)


def test_features_are_shared_and_variances_are_not(learned: MercerGP) -> None:
    first, second, third = (model.process for model in learned.models)
    assert first.model is second.model is third.model
    scales = [kernel.length_scale.tolist() for kernel in learned.kernel_]
    assert scales[0] == scales[1] == scales[2]
    assert len(set(learned.noise_variance_)) == 3


def test_shared_features_have_a_higher_evidence_than_those_learned_from_any_one_output(learned: MercerGP) -> None:
    """The sum is what is maximised: features of one output alone are worse for all together."""
    total = learned.log_marginal_likelihood_.sum()
    only = MercerGP(15, max_iter=15, random_state=0).fit(X[SEEN[:, 2]], Y[SEEN[:, 2], 2])
    lengths = {"length_scale": only.kernel_.length_scale.tolist(), "optimize": False, "random_state": 0}
    held = MercerGP(15, noise_variance=list(learned.noise_variance_), **lengths)
    held.set_params(signal_variance=[float(kernel.signal_variance) for kernel in learned.kernel_])
    assert held.fit(X, Y).log_marginal_likelihood_.sum() < total


@every_low_rank
def test_saved_loaded_and_pickled_models_say_the_same(name: str, tmp_path) -> None:
    several = LOW_RANK[name](noise_variance=NOISE, signal_variance=SIGNAL).fit(X, Y)
    several.save(tmp_path / "gp.model")
    expected = np.stack(several.predict(NEW, return_std=True))
    for other in (certgp.load(tmp_path / "gp.model"), pickle.loads(pickle.dumps(several))):
        np.testing.assert_allclose(np.stack(other.predict(NEW, return_std=True)), expected, rtol=1e-12)
        np.testing.assert_array_equal(other.noise_variance_, several.noise_variance_)
        assert other.models[0].process.model is other.models[2].process.model
        assert other.n_features_in_ == 2
    assert LOW_RANK[name]().set_params(**several.get_params()).fit(X, Y).noise_variance_.tolist() == NOISE


def test_a_file_holds_shared_features_once(tmp_path) -> None:
    several = LOW_RANK["sparse"]().fit(X, WHOLE)
    several.save(tmp_path / "all.model")
    several.outputs_[0].save(tmp_path / "one.model")
    assert (tmp_path / "all.model").stat().st_size < 2.5 * (tmp_path / "one.model").stat().st_size


@every_low_rank
def test_partial_fit_is_fit_on_all_rows_where_units_are_held(name: str) -> None:
    options = {"noise_variance": NOISE, "signal_variance": SIGNAL, "standardize": False}
    whole = LOW_RANK[name](**options).fit(X, Y, W)
    first = LOW_RANK[name](**options).fit(X[:60], Y[:60], W[:60])
    if name == "fourier":  # frequencies may depend on the rows that are there at the beginning
        whole = None
    first.partial_fit(X[60:], Y[60:], W[60:])
    assert first.n_rows_ == tuple(SEEN.sum(0))
    if whole is not None:
        np.testing.assert_allclose(first.predict(NEW), whole.predict(NEW), rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize("cls", [ExactGP, LocalGP])
def test_other_models_fit_each_output_by_itself(cls) -> None:
    options = {"kernel": "matern32", "length_scale": 1.0, "optimize": False, "random_state": 0}
    several = cls(**options, noise_variance=NOISE).fit(X, Y)
    mean, std = several.predict(NEW, return_std=True)
    for j, rows in enumerate(SEEN.T):
        alone = cls(**options, noise_variance=NOISE[j]).fit(X[rows], Y[rows, j])
        np.testing.assert_array_equal(alone.predict(NEW, return_std=True), [mean[:, j], std[:, j]])
    with pytest.raises(InvalidInputError, match="include_training_data"):
        several.save("nowhere")


def test_rows_objects_and_frames_hold_several_outputs_too() -> None:
    pandas = pytest.importorskip("pandas")
    expected = LOW_RANK["sparse"]().fit(X, Y).predict(NEW)
    for fitted in (
        LOW_RANK["sparse"]().fit(ArrayRows(X, Y)),
        LOW_RANK["sparse"]().fit(X, pandas.DataFrame(Y, columns=["a", "b", "c"])),
        LOW_RANK["sparse"]().fit(X, Y.tolist()),
    ):
        np.testing.assert_array_equal(fitted.predict(NEW), expected)


def test_a_constant_output_is_predicted_as_that_constant_and_does_not_disturb_the_others() -> None:
    both = np.stack([Y0, np.full(N, 7.0)], 1)
    options = {"max_iter": 10, "random_state": 0}
    found = SparseGP(10, **options).fit(X, both).predict(NEW)
    np.testing.assert_allclose(found[:, 1], 7.0, rtol=1e-6)
    np.testing.assert_allclose(found[:, 0], SparseGP(10, **options).fit(X, Y0).predict(NEW), rtol=1e-6)


def test_rows_without_any_target_are_left_out() -> None:
    gaps = np.vstack([WHOLE, np.full((3, 3), np.nan)])
    options = {"noise_variance": NOISE}
    found = LOW_RANK["mercer"](**options).fit(np.vstack([X, X[:3]]), gaps)
    np.testing.assert_array_equal(found.predict(NEW), LOW_RANK["mercer"](**options).fit(X, WHOLE).predict(NEW))


def test_noise_is_decided_for_each_output() -> None:
    rng = np.random.default_rng(0)
    x = rng.uniform(-2, 2, (400, 1))
    scatter = np.stack([np.full(400, 0.3), np.where(x[:, 0] > 0, 1.0, 0.05)], 1)
    both = np.sin(2 * x) + scatter * rng.standard_normal((400, 2))
    gp = SparseGP(12, max_iter=20, random_state=0).fit(x, both)
    assert gp.noise_model_[1] is not None
    assert gp.noise_gain_[1].gain > gp.noise_gain_[0].gain
    chosen = SparseGP(12, max_iter=20, random_state=0, noise=("constant", "input")).fit(x, both)
    assert [model is None for model in chosen.noise_model_] == [True, False]
    _, std = chosen.predict(np.array([[-1.0], [1.0]]), return_std=True)
    assert std[1, 1] > 2 * std[0, 1]
    np.testing.assert_allclose(std[1, 0], std[0, 0], rtol=0.1)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: SparseGP().fit(X, np.where(SEEN, Y, np.inf)), "y contains infinity in row 0.*output 1"),
        (lambda: SparseGP().fit(X, np.where(np.arange(N)[:, None] > 0, [np.nan, 1.0], Y[:, :2])), "output 0 of y"),
        (lambda: SparseGP(noise=("auto", "auto")).fit(X, Y), "noise has 2 values and y has 3 outputs"),
        (lambda: SparseGP(noise_variance=[0.1, 0.2]).fit(X, Y0), "noise_variance"),
        (lambda: SparseGP(5, max_iter=1).fit(X, Y0).nlpd(X, Y), r"y has shape \(n, 3\).*\(n,\)"),
        (lambda: SparseGP(5, max_iter=1).fit(X, Y[:, :2]).nlpd(X, Y0), r"y has shape \(n,\).*\(n, 2\)"),
        (lambda: SparseGP(5, max_iter=1).fit(X, Y[:, :2]).partial_fit(X, Y), r"\(n, 3\)"),
    ],
)
def test_errors_say_what_is_wrong(call, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        call()


def test_a_column_vector_is_still_one_output() -> None:
    with pytest.warns(UserWarning, match="column-vector"):
        gp = LOW_RANK["mercer"]().fit(X, Y0[:, None])
    assert gp.outputs_ is None
    assert gp.predict(NEW).shape == (15,)

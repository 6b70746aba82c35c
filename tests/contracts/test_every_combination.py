"""Every estimator with every kernel, variance, objective and option that it offers solves an easy problem."""

from __future__ import annotations

import numpy as np
import pytest

from certgp import ExactGP, FourierGP, MercerGP, SparseGP, load

KERNELS = ("gaussian", "matern12", "matern32", "matern52")
RANK = 30


def combinations():
    """Estimator and parameters; each option is varied on its own beside the full grid of kernel x variance."""
    for kernel in KERNELS:
        yield ExactGP, {"kernel": kernel}
        yield FourierGP, {"kernel": kernel, "variance": "lowrank"}
        for variance in ("dtc", "lowrank"):
            yield SparseGP, {"kernel": kernel, "variance": variance}
            if kernel == "gaussian":
                yield MercerGP, {"kernel": kernel, "variance": variance}
        for objective in ("elbo", "marginal"):
            yield SparseGP, {"kernel": kernel, "objective": objective}
        for sampling in ("iid", "orthogonal", "sobol", "widened", "leverage"):
            yield FourierGP, {"kernel": kernel, "sampling": sampling}
    for index_set in ("greedy", "optimal", "total_degree", "box"):
        for objective in ("elbo", "marginal"):
            yield MercerGP, {"index_set": index_set, "objective": objective}
    for projection in (None, 1, 2, "auto"):
        yield MercerGP, {"projection": projection}
    for dtype in ("float32", "float64"):
        for cls in (MercerGP, FourierGP):
            yield cls, {"dtype": dtype}
    yield MercerGP, {"input_scale": 1.5}
    yield FourierGP, {"learn_frequencies": True}
    yield SparseGP, {"inducing": "kmeans"}
    yield SparseGP, {"learn_inducing": False}


def name_of(value):
    return value.__name__ if isinstance(value, type) else "-".join(f"{v}" for v in value.values())


every_combination = pytest.mark.parametrize(("cls", "parameters"), list(combinations()), ids=name_of)
every_learning = pytest.mark.parametrize("optimize", [True, False], ids=["learned", "start"])


def easy_problem(n, seed=0, d=2):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    return X, np.sin(X[:, 0]) + 0.3 * X[:, 1] + 0.1 * rng.standard_normal(n)


def build(cls, parameters, optimize):
    options = {"optimize": optimize, "max_iter": 8, "random_state": 0}
    return cls(**parameters, **options, **({} if cls is ExactGP else {"rank": RANK}))


@every_combination
@every_learning
@pytest.mark.filterwarnings("ignore::certgp.errors.ConvergenceWarning")
def test_an_easy_problem_is_solved(cls, parameters, optimize):
    (X, y), (new, seen) = easy_problem(120), easy_problem(60, seed=1)
    model = build(cls, parameters, optimize).fit(X, y)
    mean, std = model.predict(new, return_std=True)
    latent = model.predict(new, return_std=True, include_noise=False)[1]
    assert np.isfinite([mean, std, latent]).all()
    assert (latent > 0).all()
    assert (std > latent).all()
    # leverage sampling favours high frequencies: below the effective dimension it needs its length-scales learned
    if optimize or parameters.get("sampling") != "leverage":
        assert model.score(new, seen) > 0.5
    assert np.isfinite(model.nlpd(new, seen))
    assert np.isfinite(model.log_marginal_likelihood_)
    assert model.noise_variance_ > 0
    assert model.rank_ == len(y) if cls is ExactGP else 1 <= model.rank_ <= RANK
    assert (model.kernel_.length_scale > 0).all()


@every_combination
@pytest.mark.filterwarnings("ignore::certgp.errors.CertgpWarning")
def test_everything_else_works_too(cls, parameters, tmp_path):
    (X, y), (new, seen) = easy_problem(60), easy_problem(20, seed=1)
    model = build(cls, parameters, optimize=False).fit(X, y)
    assert np.linalg.eigvalsh(model.predict(new, return_cov=True)[1])[0] > 0
    assert np.isfinite(model.sample_y(new, 3)).all()
    lower, upper = model.predict_interval(new)
    assert (lower < upper).all()
    model.partial_fit(new, seen)
    model.save(tmp_path / "model", **({"include_training_data": True} if cls is ExactGP else {}))
    assert np.array_equal(load(tmp_path / "model").predict(new), model.predict(new))


def test_modified_sampling_in_one_dimension():
    """The theorem's density puts almost all frequencies where the kernel has none; it still runs and stays finite."""
    X, y = easy_problem(120)
    model = FourierGP(100, sampling="modified", random_state=0, optimize=False).fit(X[:, :1], np.sin(X[:, 0]))
    assert np.isfinite(model.predict(X[:, :1], return_std=True)).all()
    assert y.shape == (120,)


@pytest.mark.parametrize("kernel", KERNELS[1:])
def test_modified_sampling_is_for_the_gaussian_kernel(kernel):
    X, y = easy_problem(60)
    with pytest.raises(ValueError, match="sampling='modified' is defined for the gaussian kernel only"):
        FourierGP(20, sampling="modified", kernel=kernel).fit(X, y)


@pytest.mark.parametrize("columns", [1, 3, 10])
@pytest.mark.parametrize("cls", [MercerGP, FourierGP, SparseGP, ExactGP])
@pytest.mark.filterwarnings("ignore::certgp.errors.ConvergenceWarning")
def test_any_number_of_columns(cls, columns):
    X, y = easy_problem(150, d=max(columns, 2))
    X, y = (X[:, :columns], y) if columns > 1 else (X[:, :1], np.sin(X[:, 0]))
    assert build(cls, {}, optimize=True).fit(X, y).score(X, y) > 0.5


@pytest.mark.parametrize(
    ("cls", "parameters"),
    [(MercerGP, {"projection": None}), (MercerGP, {}), (FourierGP, {}), (SparseGP, {}), (ExactGP, {})],
    ids=name_of,
)
@pytest.mark.filterwarnings("ignore::certgp.errors.ConvergenceWarning")
def test_thirty_columns_are_not_all_called_noise(cls, parameters):
    """A bound that starts loose has a false optimum at zero signal; a fit must not converge there."""
    X, y = easy_problem(200, d=30)
    assert cls(**parameters, max_iter=15, random_state=0).fit(X, y).score(X, y) > 0.5

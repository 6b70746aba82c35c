"""The contract of every registered feature map, kernel and estimator: what each claims is true, and nothing is lost."""

from __future__ import annotations

import json
import pickle

import numpy as np
import pytest
import registered_cases
import torch
from dense_truth import dense_truth
from registered_cases import KERNELS, MAPS, METHODS, missing_cases, rows_inside_and_far_out
from sklearn.base import clone

import certgp
from certgp.cli.main import main
from certgp.data import Chunk, ChunkSource
from certgp.engines import LocalEngine
from certgp.errors import NotCertifiableError
from certgp.features import build_features
from certgp.features.base import FEATURE_MAPS
from certgp.kernels import Gaussian, kernel_from_description
from certgp.methods import methods
from certgp.training import ExactObjective, LowRankObjective
from helpers import central_differences, dense_kernel, identity_model, random_inputs, random_target, randomise

pytestmark = pytest.mark.filterwarnings("ignore::certgp.errors.ConvergenceWarning")
ROUNDING = 1e-13  # of an eigenvalue, per row
ROWS = random_inputs(7, 30, 2)
TARGET = random_target(ROWS, 7)
every_map = pytest.mark.parametrize("case", MAPS.values(), ids=MAPS)
dominated = {name: case for name, case in MAPS.items() if case.cls.dominated}
approximating = {name: case for name, case in MAPS.items() if case.build(4).approximates_kernel}
trained = [(name, "marginal") for name in MAPS if MAPS[name].trained]
trained += [(name, "elbo") for name in dominated if MAPS[name].trained]
every_kernel = pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
every_method = pytest.mark.parametrize("name", METHODS)


def test_everything_that_is_registered_has_a_case():
    assert not missing_cases(), "\n".join(missing_cases())


def test_a_missing_case_is_named(monkeypatch):
    unknown = type("NewMap", (), {"__module__": "certgp.features.new"})
    monkeypatch.setitem(FEATURE_MAPS, "NewMap", unknown)
    monkeypatch.delitem(registered_cases.FAMILIES, "periodic")
    monkeypatch.delitem(registered_cases.METHODS, "exact")
    here = "tests/contracts/registered_cases.py"
    assert missing_cases() == [
        f"add a MapCase for NewMap to MAPS in {here}: a function of its rank",
        f"add a kernel of the family 'periodic' to FAMILIES in {here}",
        f"add quick options for 'exact' to METHODS in {here}",
    ]


# -------------------- feature maps


@pytest.mark.parametrize("case", dominated.values(), ids=dominated)
@torch.no_grad()
def test_where_domination_is_claimed_no_eigenvalue_is_negative(case):
    rows = rows_inside_and_far_out()
    for rank in (4, 20):
        features = case.build(rank)
        phi, kernel = features(rows), features.fixed_kernel()
        K = torch.from_numpy(dense_kernel(kernel, rows.numpy(), rows.numpy()))
        size = float(K.diagonal().max())
        rounding = features.rounding() if kernel.constant_diagonal else 1e-10 * size  # others are never certified
        assert rounding < 1e-7 * size
        least = float(torch.linalg.eigvalsh(K - phi @ phi.mT).min())
        assert least >= -len(rows) * (ROUNDING * size + rounding)


@pytest.mark.parametrize("case", approximating.values(), ids=approximating)
@torch.no_grad()
def test_where_a_kernel_is_approximated_the_error_vanishes_with_the_rank(case):
    rows = registered_cases.POINTS[:60] * 0.9

    def error(rank: int) -> float:
        features = case.build(rank)
        K = features.fixed_kernel()(rows, rows)
        phi = features(rows)
        return float((K - phi @ phi.mT).abs().max() / K.diagonal().max())

    assert error(4) > 2.0 * error(case.large)
    assert error(case.large) < case.error


@every_map
@torch.no_grad()
def test_where_decay_is_claimed_features_vanish_far_out(case):
    features = case.build(12)
    far = ROWS + torch.tensor([[300.0, -300.0]])
    phi = features(far)
    assert float(phi.abs().max()) < 1e-6 if features.decays else True
    assert torch.isfinite(phi).all()


@every_map
@torch.no_grad()
def test_leading_features_are_the_columns_they_are_said_to_be(case):
    features = case.build(12)
    for rank in (2, 8, 12):
        columns, factor = features.leading_columns(rank)
        part = features.leading(rank)
        assert part.rank == rank
        torch.testing.assert_close(part(ROWS), factor**0.5 * features(ROWS)[:, columns], rtol=1e-9, atol=1e-9)


@every_map
def test_a_description_and_the_state_give_the_same_map_back(case):
    features = case.build(12)
    if case.trained:
        randomise(features, 3, 0.1)
    description = json.loads(json.dumps(features.describe()))
    again = build_features(description, features.state_dict())
    assert type(again) is case.cls
    assert again.describe() == description
    assert (again.rank, again.dimension, again.decays) == (features.rank, features.dimension, features.decays)
    with torch.no_grad():
        assert torch.equal(again(ROWS), features(ROWS))


@pytest.mark.parametrize(("name", "objective"), trained)
def test_gradients_are_those_of_finite_differences(name, objective):
    model = identity_model(MAPS[name].build(6))
    randomise(model, 5, 0.05)
    target = LowRankObjective(model, ChunkSource(Chunk(ROWS, TARGET)), LocalEngine(), objective)
    learned = {name for name, p in model.named_parameters() if p.requires_grad}
    assert {f"features.log_{name}" for name in model.features.fixed_kernel().learned_values()} <= learned
    assert_gradient(target)


def assert_gradient(target) -> None:
    _, gradient = target.evaluate(target.start())
    numeric = central_differences(lambda values: target.evaluate(values)[0], target.start(), 2e-3)
    np.testing.assert_allclose(gradient, numeric, rtol=1e-5, atol=1e-8)
    assert np.abs(gradient).max() > 1e-5  # the rows speak, so the test is not empty


# -------------------- kernels


@every_kernel
def test_the_exact_evidence_has_the_gradient_of_every_learned_parameter(kernel):
    target = ExactObjective(kernel, Chunk(ROWS, TARGET), 0.1)
    learned = [name.removeprefix("log_") for name, _ in target.parameters.named]
    assert learned == [*kernel.expanded(2).learned_values(), "noise_ratio"]
    kept = {name for name in kernel.values if kernel.parameter(name).log_bounds} - set(learned)
    assert all(name.endswith("signal_variance") for name in kept)  # the overall factor, in closed form
    assert_gradient(target)


@every_kernel
def test_a_kernel_is_positive_semidefinite_and_survives_a_description(kernel):
    rows = rows_inside_and_far_out()
    K = kernel(rows, rows)
    assert float(torch.linalg.eigvalsh(K).min()) > -len(rows) * ROUNDING * float(K.diagonal().max())
    np.testing.assert_allclose(K, dense_kernel(kernel, rows.numpy(), rows.numpy()), rtol=1e-10, atol=1e-12)
    again = kernel_from_description(json.loads(json.dumps(kernel.describe())))
    assert again.values.keys() == kernel.values.keys()
    assert torch.equal(again(rows, rows), K)
    for column in kernel.decaying_columns(2):
        away = rows + 1e4 * torch.eye(2, dtype=torch.float64)[column]
        assert float(kernel(rows, away).abs().max()) < 1e-3


@every_kernel
@pytest.mark.parametrize("method", ["sparse", "exact"])
def test_a_model_with_any_kernel_is_saved_and_certified(kernel, method, tmp_path):
    X, y, new = ROWS.numpy() * [1.0, 5.0] + [0.0, 20.0], TARGET.numpy(), ROWS[:6].numpy() * [1.0, 5.0] + [0.1, 20.0]
    options = {"rank": 10, "random_state": 0} if method == "sparse" else {}
    model = methods()[method].load()(kernel=kernel, max_iter=6, **options).fit(X, y)
    assert model.kernel_.values.keys() == kernel.values.keys()
    assert_saved(model, new, tmp_path / "model")
    if method == "sparse" and not (kernel.constant_diagonal and has_rounding(kernel)):
        with pytest.raises(NotCertifiableError):
            model.certify(new)
        return
    dense_truth(model, X, y, new).check(model, model.certify(new), new)


def has_rounding(kernel) -> bool:
    try:
        kernel.rounding(ROWS)
    except NotCertifiableError:
        return False
    return True


def assert_saved(model, new, path) -> None:
    """Bit-equal predictions after save and load."""
    model.save(path, **({"include_training_data": True} if model.needs_training_data else {}))
    again = certgp.load(path)
    assert type(again) is type(model)
    assert same_predictions(again, model, new)
    assert again.log_marginal_likelihood() == model.log_marginal_likelihood()
    assert repr(again.kernel_) == repr(model.kernel_)


def same_predictions(first, second, new) -> bool:
    pairs = zip(first.predict(new, return_cov=True), second.predict(new, return_cov=True), strict=True)
    return all(np.array_equal(a, b) for a, b in pairs)


# -------------------- estimators


def problem(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 2)) * [1.0, 40.0] + [5.0, 0.0]
    return X, 20.0 + 3.0 * np.sin(X[:, 0]) + 0.02 * X[:, 1] + 0.3 * rng.standard_normal(n)


X, Y = problem(60, 0)
NEW = problem(8, 1)[0]


@pytest.fixture(scope="module")
def fitted():
    """Every method, fitted once."""
    return {name: methods()[name].load()(random_state=0, **options).fit(X, Y) for name, options in METHODS.items()}


@every_method
def test_every_estimator_is_saved_and_loaded_bit_by_bit(name, fitted, tmp_path):
    assert_saved(fitted[name], NEW, tmp_path / "model")


@every_method
def test_every_estimator_is_cloned_changed_and_pickled(name, fitted):
    model = fitted[name]
    copied = pickle.loads(pickle.dumps(model))
    assert same_predictions(copied, model, NEW)
    fresh = clone(model)
    assert vars(fresh).keys() == model.get_params().keys()
    assert fresh.get_params() == model.get_params()
    assert fresh.set_params(max_iter=2, kernel=Gaussian(3.0)) is fresh
    assert fresh.get_params()["max_iter"] == 2
    assert type(model)(**fresh.get_params()).get_params() == fresh.get_params()
    for parameter in ("max_iter", "kernel", "random_state", "standardize", "verbose", "callbacks"):
        assert parameter in fresh.get_params()


@every_method
@pytest.mark.filterwarnings("ignore::certgp.errors.ExtrapolationWarning")
def test_every_certificate_holds_the_truth(name, fitted):
    model = fitted[name]
    new = np.r_[NEW, NEW[:2] + 0.5 * np.ptp(X, axis=0), NEW[:2] - 30.0]  # inside, beside and far outside
    truth = dense_truth(model, X, Y, new)
    for certificate in (model.certify(), model.certify(new), model.certify(new, reference_rank=50)):
        truth.check(model, certificate, new)
    assert model.certify(new).mean_error is not None


@every_method
def test_the_command_line_fits_predicts_and_certifies(name, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.csv").write_text("a,b,y\n" + "\n".join(",".join(map(repr, row)) for row in np.c_[X, Y].tolist()))
    rank = [] if methods()[name].default_rank is None else ["--rank", "4"]
    fit = run(capsys, "fit", "t.csv", "--target", "y", "--method", name, *rank, "--max-iter", "2", "--out", "m")
    assert fit["method"] == name
    assert fit["rank"] == (len(Y) if name == "exact" else 4)
    predicted = run(capsys, "predict", "m", "t.csv", "--out", "p.csv")
    assert np.isfinite(predicted["scores"]["nlpd"])
    assert predicted["n_rows"] == len(Y)
    if fit["not_certifiable"]:  # AutoGP may choose frequencies that are learned
        assert name == "auto"
        return
    proven = run(capsys, "certify", "m", "t.csv", "--train", "t.csv")
    assert len(proven["mean_error"]) == len(Y)
    assert proven["kl"][0] <= proven["kl"][1]


def run(capsys, *arguments: str) -> dict:
    assert main([*arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)

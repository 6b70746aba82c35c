"""Deep estimators: the estimator contract, networks of the user's own, mixtures, files, checkpoints and refusals."""

from __future__ import annotations

import copy
import pickle
from functools import partial

import numpy as np
import pytest
import torch
from estimator_cases import assert_mentions, error_of, problem
from sklearn.base import clone
from sklearn.datasets import load_digits
from torch import nn

from certgp import DeepFourierGP, DeepMercerGP, ExactGP, load
from certgp.data import as_rows
from certgp.errors import CheckpointError, InvalidInputError, ModelFileError, NotCertifiableError
from certgp.gp import MixtureProcess
from certgp.kernels import Gaussian

DEEP = (DeepMercerGP, DeepFourierGP)
X, Y = problem(150, d=3, noise=0.2)
NEW, SEEN = problem(60, d=3, seed=1, noise=0.2)
QUICK = {"hidden": (16,), "max_iter": 2, "random_state": 0}

every_deep = pytest.mark.parametrize("cls", DEEP, ids=lambda cls: cls.__name__)


def quick(cls, **parameters):
    return cls(**QUICK | parameters)


def refusal(cls, **parameters):
    return error_of(lambda: quick(cls, **parameters).fit(X, Y), InvalidInputError)


@every_deep
def test_the_defaults_are_the_papers(cls):
    parameters = cls().get_params()
    assert parameters["hidden"] == (512, 256, 64)
    assert (parameters["rank"], parameters["embedding"]) == ((15, 1) if cls is DeepMercerGP else (40, 4))
    assert parameters["members"] == 1


@every_deep
@pytest.mark.parametrize("training", ["running", "full", "paper"])
@pytest.mark.filterwarnings("ignore::certgp.errors.ConvergenceWarning")
def test_every_way_of_training_learns(cls, training):
    options = {"running": {"max_iter": 8}, "full": {"max_iter": 40}, "paper": {"max_iter": 60, "batch_size": 32}}
    model = quick(cls, training=training, learning_rate=0.01, **options[training]).fit(X, Y)
    assert model.score(NEW, SEEN) > 0.8
    assert model.nlpd(NEW, SEEN) < 0.6
    lower, upper = model.predict_interval(NEW, 0.9)
    assert np.mean((lower <= SEEN) & (upper >= SEEN)) > 0.75
    assert model.n_iter_ == len(model.history_) >= 8


@every_deep
def test_a_seed_decides_everything_and_units_do_not_matter(cls):
    first, second, other = (quick(cls, random_state=s).fit(X, Y) for s in (0, 0, 1))
    assert np.array_equal(first.predict(NEW, return_std=True), second.predict(NEW, return_std=True))
    assert not np.allclose(first.predict(NEW), other.predict(NEW), atol=1e-3)
    scaled = quick(cls).fit(4.0 * X, 8.0 * Y)  # powers of two: standardised data are equal to the last bit
    np.testing.assert_allclose(scaled.predict(4.0 * NEW), 8.0 * first.predict(NEW), rtol=1e-6, atol=1e-6)
    assert scaled.nlpd(4.0 * NEW, 8.0 * SEEN) == pytest.approx(first.nlpd(NEW, SEEN) + np.log(8.0), abs=1e-6)
    np.testing.assert_allclose(scaled.kernel_.length_scale, first.kernel_.length_scale, rtol=1e-6)  # of g(x)


@every_deep
def test_predictive_distribution_is_consistent(cls):
    model = quick(cls).fit(X, Y)
    mean, std = model.predict(NEW, return_std=True)
    latent = model.predict(NEW, return_std=True, include_noise=False)[1]
    np.testing.assert_allclose(std**2 - latent**2, model.noise_scale_ * model.noise_variance_, rtol=1e-8)
    np.testing.assert_allclose(np.sqrt(np.diag(model.predict(NEW, return_cov=True)[1])), std, rtol=1e-8)
    np.testing.assert_allclose(model.predict_quantiles(NEW, [0.5])[:, 0], mean, rtol=1e-10)
    draws = model.sample_y(NEW[:5], 20_000, random_state=0)
    np.testing.assert_allclose(draws.mean(1), mean[:5], atol=0.05)
    np.testing.assert_allclose(draws.std(1), std[:5], rtol=0.05)


@every_deep
def test_held_out_rows_choose_the_epoch_and_may_raise_the_noise(cls):
    model = quick(cls, max_iter=6).fit(X, Y)
    validations = [i.validation for i in model.history_.iterations if i.validation is not None]
    assert len(validations) == 3
    best = 2 * (1 + int(np.argmin(validations)))
    assert f"epoch {best} was the best on held-out rows" in model.stop_reason_
    assert model.noise_scale_ >= 1.0
    assert quick(cls, calibrate=False).fit(X, Y).noise_scale_ == 1.0
    without = quick(cls, validation_fraction=0.0).fit(X, Y)
    assert without.noise_scale_ == 1.0
    assert all(i.validation is None for i in without.history_.iterations)


@every_deep
def test_partial_fit_conditions_on_further_rows(cls):
    """Optimised on the first rows, then extended: the statistics are those of a fit that had all rows."""
    model = quick(cls).fit(X, Y)
    before = copy.deepcopy(model).predict(NEW)
    model.partial_fit(NEW, SEEN)
    process = model._model.process
    with torch.no_grad():
        phi = process.model(torch.from_numpy(model._model.standardiser.inputs(np.vstack([X, NEW]))))
    np.testing.assert_allclose(process.statistics.A, phi.mT @ phi, rtol=1e-8, atol=1e-8)
    assert process.statistics.n == len(X) + len(NEW)
    assert process.noise_scale == model.noise_scale_
    assert np.mean((model.predict(NEW) - SEEN) ** 2) < np.mean((before - SEEN) ** 2)


@every_deep
def test_optimize_false_keeps_the_network_and_the_values_given(cls):
    parameters = {"length_scale": 0.7, "signal_variance": 2.0, "noise_variance": 0.3, "optimize": False}
    model = quick(cls, **parameters).fit(X, Y)
    assert model.kernel_.length_scale.tolist() == pytest.approx([0.7] * model.embedding)
    assert float(model.kernel_.signal_variance) == pytest.approx(2.0)
    assert model.noise_variance_ == pytest.approx(0.3)
    again = quick(cls, **parameters).fit(X[::-1], Y[::-1])
    np.testing.assert_allclose(again.predict(NEW), model.predict(NEW), rtol=1e-8, atol=1e-8)


@every_deep
def test_callbacks_and_verbose(cls, capsys):
    seen = []
    model = quick(cls, max_iter=6, callbacks=[lambda r: seen.append(r.iteration) or r.iteration == 3], verbose=1)
    model.fit(X, Y)
    assert seen == [1, 2, 3]
    assert model.stop_reason_.startswith("a callback stopped the fit")
    assert capsys.readouterr().out.count("objective/row") == 3


def test_few_rows_and_a_constant_target_are_fitted():
    for n in (2, 5, 12):
        model = quick(DeepFourierGP, cap_rank=False).fit(X[:n], Y[:n])
        assert np.isfinite(model.predict(NEW, return_std=True)).all()
    with pytest.warns(UserWarning, match="does not vary"):
        constant = quick(DeepMercerGP).fit(X, np.full(len(X), 3.0))
    np.testing.assert_allclose(constant.predict(NEW), 3.0, atol=1e-6)


# -------------------- heads


@pytest.mark.parametrize("index_set", ["optimal", "box"])
def test_mercer_heads_in_two_dimensions(index_set):
    model = quick(DeepMercerGP, rank=20, embedding=2, index_set=index_set, max_iter=4, learning_rate=0.01).fit(X, Y)
    assert model.rank_ == (20 if index_set == "optimal" else 16)
    assert model.score(NEW, SEEN) > 0.8
    assert model.kernel_.length_scale.shape == (2,)


@pytest.mark.parametrize(("kernel", "sampling"), [("gaussian", "iid"), ("matern12", "sobol"), ("matern52", "widened")])
def test_fourier_heads(kernel, sampling):
    model = quick(DeepFourierGP, kernel=kernel, sampling=sampling, rank=20, embedding=2, max_iter=4, learning_rate=0.01)
    model.fit(X, Y)
    assert model.score(NEW, SEEN) > 0.8
    assert model.kernel_.name == kernel


def test_elbo_and_kernel_objects():
    model = quick(DeepMercerGP, objective="elbo", kernel=Gaussian(0.5), variance="lowrank", learning_rate=0.01).fit(
        X, Y
    )
    assert model.score(NEW, SEEN) > 0.8
    text = refusal(DeepFourierGP, objective="elbo")
    assert_mentions(text, "objective='elbo'", "DeepFourierGP does not have", "use objective='marginal'")


def test_no_hidden_layer_is_a_linear_projection():
    model = quick(DeepMercerGP, hidden=(), max_iter=12).fit(X[:, :2], np.sin(X[:, 0] + X[:, 1]))
    weights = model._model.process.model.transform.module[0].weight.detach().numpy()[0]
    assert weights[0] / weights[1] == pytest.approx(X[:, 0].std() / X[:, 1].std(), rel=0.2)  # standardised columns


# -------------------- certificates


def test_certificate_speaks_of_the_gp_on_the_embedding():
    """Against the dense exact GP on g(x): KL and predictions lie within the bounds."""
    model = quick(DeepMercerGP, rank=12).fit(X, Y)
    certificate = model.certify(NEW[:10])
    assert any("GP on g(x)" in text and "network" in text for text in certificate.assumptions)
    process = model._model.process
    with torch.no_grad():
        embedded, at = (
            process.model.transform(torch.from_numpy(model._model.standardiser.inputs(rows))).numpy()
            for rows in (X, NEW[:10])
        )
    exact = ExactGP(
        length_scale=model.kernel_.length_scale.numpy(),
        signal_variance=process.signal_variance,
        noise_variance=process.noise_variance,
        optimize=False,
        standardize=False,
    ).fit(embedded, model._model.standardiser.target(Y))
    unit = model._model.standardiser.y_scale
    mean, std = exact.predict(at, return_std=True, include_noise=False)
    own = model.predict(NEW[:10])
    assert np.all(np.abs(own - model._model.standardiser.mean_to_user(mean)) <= certificate.mean_error + 1e-9)
    assert np.all(certificate.variance_lower <= (unit * std) ** 2 + 1e-9)
    assert np.all((unit * std) ** 2 <= certificate.variance_upper + 1e-9)
    evidence = exact.log_marginal_likelihood() - len(Y) * np.log(unit)
    assert certificate.log_evidence.lower - 1e-6 <= evidence <= certificate.log_evidence.upper + 1e-6
    assert certificate.kl.upper >= 0.0


def test_fourier_heads_are_certified_through_a_reference():
    model = quick(DeepFourierGP, rank=10, embedding=1).fit(X, Y)
    certificate = model.certify(reference_rank=60)
    assert 0.0 <= certificate.kl.lower <= certificate.kl.upper < np.inf
    assert any("GP on g(x)" in text for text in certificate.assumptions)
    assert model.rank_curve().log_evidence[-1] == pytest.approx(model.log_marginal_likelihood(), rel=1e-8)


# -------------------- mixtures


@pytest.fixture(scope="module")
def mixture():
    return quick(DeepFourierGP, members=3, rank=20, embedding=2).fit(X, Y)


def test_members_differ_and_the_first_is_the_single_model(mixture):
    alone = quick(DeepFourierGP, rank=20, embedding=2).fit(X, Y)
    means = [
        member.moments(torch.from_numpy(mixture._model.standardiser.inputs(NEW)))[0]
        for member in mixture._model.process.members
    ]
    assert torch.equal(
        means[0], alone._model.process.moments(torch.from_numpy(alone._model.standardiser.inputs(NEW)))[0]
    )
    assert not torch.allclose(means[0], means[1], atol=1e-3)
    assert mixture.n_iter_ == 3 * alone.n_iter_ == len(mixture.history_)


def test_mixture_predicts_the_density_mixture(mixture):
    """Moments, quantiles and NLPD against the members' Gaussians, by the definitions."""
    means, variances = mixture._model.member_moments(as_rows(NEW))
    noise = np.array([[member.predictive_noise] for member in mixture._model.process.members])
    variances = variances + mixture._model.standardiser.variance_to_user(noise)
    mean, std = mixture.predict(NEW, return_std=True)
    np.testing.assert_allclose(mean, means.mean(0))
    np.testing.assert_allclose(std**2, (variances + means**2).mean(0) - mean**2, rtol=1e-9)
    density = np.exp(-0.5 * (SEEN - means) ** 2 / variances) / np.sqrt(2 * np.pi * variances)
    assert mixture.nlpd(NEW, SEEN) == pytest.approx(-np.log(density.mean(0)).mean(), rel=1e-9)
    draws = mixture.sample_y(NEW[:3], 40_000, random_state=1)
    quantiles = mixture.predict_quantiles(NEW[:3], [0.1, 0.5, 0.9])
    np.testing.assert_allclose(np.quantile(draws, [0.1, 0.5, 0.9], axis=1).T, quantiles, atol=0.05)
    covariance = mixture.predict(NEW, return_cov=True)[1]
    np.testing.assert_allclose(np.sqrt(np.diag(covariance)), std, rtol=1e-9)


def test_mixtures_refuse_certificates_with_the_reason(mixture):
    for ask in (mixture.certify, mixture.rank_curve):
        text = error_of(ask, NotCertifiableError)
        assert_mentions(text, "mixture of 3 networks", "one GP on one embedding", "members=1")


def test_mixtures_are_saved_extended_and_copied(mixture, tmp_path):
    mixture.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert isinstance(again._model.process, MixtureProcess)
    assert np.array_equal(again.predict(NEW, return_std=True), mixture.predict(NEW, return_std=True))
    assert np.array_equal(again.predict_quantiles(NEW, [0.1]), mixture.predict_quantiles(NEW, [0.1]))
    extended = again.partial_fit(NEW, SEEN)
    assert extended._model.process.n_rows == len(X) + len(NEW)
    assert extended.nlpd(NEW, SEEN) < mixture.nlpd(NEW, SEEN)
    copied = pickle.loads(pickle.dumps(mixture))
    assert copied.nlpd(NEW, SEEN) == mixture.nlpd(NEW, SEEN)


# -------------------- networks of the user's own


def convolution() -> nn.Module:
    """8 x 8 images to two numbers."""
    return nn.Sequential(
        nn.Unflatten(1, (1, 8, 8)), nn.Conv2d(1, 4, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(36, 2)
    )


@pytest.fixture(scope="module")
def images():
    pixels, _ = load_digits(return_X_y=True)
    pixels = pixels[:400] + 0.01 * np.random.default_rng(0).standard_normal((400, 64))  # no constant column
    return pixels, (
        pixels.reshape(-1, 8, 8)[:, :, :4].sum((1, 2)) - pixels.reshape(-1, 8, 8)[:, :, 4:].sum((1, 2))
    ) / 30


def test_a_convolution_on_images(images, tmp_path):
    pixels, target = images
    torch.manual_seed(0)
    module = convolution()
    before = {name: tensor.clone() for name, tensor in module.state_dict().items()}
    model = DeepFourierGP(20, embedding=2, network=module, max_iter=6, random_state=0)
    model.fit(pixels[:300], target[:300])
    assert model.score(pixels[300:], target[300:]) > 0.7
    assert all(torch.equal(tensor, before[name]) for name, tensor in module.state_dict().items())  # copied, not changed
    model.save(tmp_path / "model")
    assert_mentions(
        error_of(lambda: load(tmp_path / "model"), ModelFileError),
        "weights of a Sequential",
        "load(path, network=module)",
    )
    again = load(tmp_path / "model", network=convolution())
    assert np.array_equal(again.predict(pixels, return_std=True), model.predict(pixels, return_std=True))
    wrong = nn.Sequential(nn.Linear(64, 2))
    assert_mentions(
        error_of(lambda: load(tmp_path / "model", network=wrong), ModelFileError), "does not have the weights"
    )


def test_batch_norm_dropout_and_members(images, tmp_path):
    pixels, target = images
    module = nn.Sequential(nn.Linear(64, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.1), nn.Linear(8, 1))
    model = DeepMercerGP(network=module, members=2, max_iter=2, random_state=0).fit(pixels, target)
    first, second = (member.model.transform.module[0].weight for member in model._model.process.members)
    assert not torch.allclose(first, second, atol=1e-2)  # further members start from weights of their own
    repeat = DeepMercerGP(network=module, members=2, max_iter=2, random_state=0).fit(pixels, target)
    assert np.array_equal(repeat.predict(pixels), model.predict(pixels))
    np.testing.assert_allclose(model.predict(pixels[:1]), model.predict(pixels)[:1], rtol=1e-9)  # batch norm is at rest
    clone(model)


def test_a_default_network_needs_no_module_at_load(tmp_path):
    model = quick(DeepMercerGP).fit(X, Y)
    model.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert again.hidden == [16]
    for ask in ({"return_std": True}, {"return_cov": True}):
        for a, b in zip(again.predict(NEW, **ask), model.predict(NEW, **ask), strict=True):
            assert np.array_equal(a, b)
    assert again.noise_scale_ == model.noise_scale_
    assert again.certify().kl == model.certify().kl
    again.set_params(random_state=0).fit(X, Y)
    assert np.array_equal(again.predict(NEW), model.predict(NEW))
    text = error_of(lambda: load(tmp_path / "model", network=nn.Linear(3, 1)), ModelFileError)
    assert_mentions(text, "no network of your own")


# -------------------- checkpoints and refusals


@pytest.mark.parametrize("members", [1, 2])
def test_an_interrupted_fit_goes_on(tmp_path, members):
    def interrupt(record):
        calls.append(record.iteration)
        if len(calls) == 4 * (members - 1) + 3:
            raise KeyboardInterrupt

    calls = []
    same = {"members": members, "max_iter": 4}
    expected = quick(DeepMercerGP, **same).fit(X, Y).predict(NEW)
    path = tmp_path / "run.checkpoint"
    with pytest.raises(KeyboardInterrupt):
        quick(DeepMercerGP, checkpoint=path, callbacks=[interrupt], **same).fit(X, Y)
    assert len(list(tmp_path.iterdir())) == members
    rest = []
    model = quick(DeepMercerGP, checkpoint=path, callbacks=[lambda r: rest.append(r.iteration) and None], **same)
    assert np.array_equal(model.fit(X, Y).predict(NEW), expected)
    assert rest == [3, 4]  # finished members are not trained again
    assert not list(tmp_path.iterdir())


def test_a_checkpoint_serves_its_own_fit_only(tmp_path):
    path = tmp_path / "run.checkpoint"

    def interrupt(record):
        if record.iteration == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        quick(DeepMercerGP, checkpoint=path, callbacks=[interrupt], max_iter=4).fit(X, Y)
    for other in ({"random_state": 1}, {"learning_rate": 1e-3}):
        fit = partial(quick(DeepMercerGP, checkpoint=path, max_iter=4, **other).fit, X, Y)
        text = error_of(fit, CheckpointError)
        assert_mentions(text, "belongs to another fit", "delete it")
    text = error_of(lambda: quick(DeepMercerGP, checkpoint=path, max_iter=4).fit(X + 1.0, Y), CheckpointError)
    assert "belongs to another fit" in text
    assert_mentions(refusal(DeepMercerGP, checkpoint=tmp_path / "no" / "run"), "checkpoint=", "does not exist")


def poisoned() -> nn.Module:
    module = nn.Linear(3, 1)
    with torch.no_grad():
        module.bias.fill_(np.inf)
    return module


@pytest.mark.parametrize(
    ("network", "reason"),
    [
        (nn.Linear(3, 2), "found (2, 2)"),
        (nn.Tanh(), "no parameters"),
        (poisoned(), "NaN or infinite weights"),
        (nn.Embedding(5, 1), "cannot map rows"),
        ("mlp", "torch.nn.Module"),
    ],
    ids=["width", "no parameters", "infinite", "not float", "word"],
)
def test_bad_networks_are_refused_before_training(network, reason):
    seen = []
    model = quick(DeepMercerGP, network=network, callbacks=[lambda r: seen.append(r) and None])
    assert_mentions(error_of(lambda: model.fit(X, Y), InvalidInputError), "network", reason)
    assert not seen


@every_deep
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("embedding", 0),
        ("hidden", (16, 0)),
        ("hidden", "wide"),
        ("training", "adam"),
        ("max_iter", 0),
        ("batch_size", 1),
        ("learning_rate", 0.0),
        ("shrinkage", -1.0),
        ("validation_fraction", 1.0),
        ("patience", 0),
        ("members", 0),
    ],
)
def test_bad_parameters(cls, name, value):
    assert_mentions(refusal(cls, **{name: value}), name, "must", "found")


def test_a_wild_learning_rate_is_reported():
    with pytest.warns(UserWarning, match="lower learning_rate"):
        model = quick(DeepFourierGP, network=nn.Linear(3, 4), learning_rate=1e38).fit(X, Y)
    assert not model.converged_
    assert np.isfinite(model.predict(NEW)).all()

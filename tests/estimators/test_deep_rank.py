"""rank="auto" for deep models: the certified divergence from the exact GP on g(x) meets the tolerance, or a warning
says why not.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch
from estimator_cases import assert_mentions, error_of, problem

from certgp import DeepFourierGP, DeepMercerGP, load
from certgp.errors import InvalidInputError, RankWarning
from certgp.guarantees import gaussian_kl

X, Y = problem(150, d=3, noise=0.2)
NEW, SEEN = problem(60, d=3, seed=1, noise=0.2)
QUICK = {"hidden": (16,), "max_iter": 4, "learning_rate": 0.01, "random_state": 0}
MODELS = [
    pytest.param(DeepMercerGP, {"tolerance": 1e-3}, id="mercer"),
    pytest.param(DeepMercerGP, {"tolerance": 1e-2, "embedding": 2}, id="mercer in two dimensions"),
    pytest.param(DeepFourierGP, {"tolerance": 2e-2, "embedding": 1}, id="fourier"),
]


def dense_kl(gp) -> float:
    """KL(exact GP on g(x) || model) over the training rows, with N x N matrices."""
    process = gp._model.process
    with torch.no_grad():
        embedded = process.model.transform(gp._model.tensor(X))
        K = process.signal_variance * process.model.features.kernel(embedded, embedded).numpy()
    phi, eye = process.features(gp._model.tensor(X)).numpy(), process.noise_variance * np.eye(len(X))
    return gaussian_kl(K + eye, phi @ phi.T + eye)


@pytest.mark.parametrize(("cls", "parameters"), MODELS)
def test_tolerance_is_met_at_a_frugal_rank(cls, parameters, tmp_path):
    gp = cls("auto", **QUICK | parameters).fit(X, Y)
    certificate = gp.certify()
    assert certificate.kl.upper <= gp.tolerance * len(X)
    assert certificate.kl.lower - 1e-6 <= dense_kl(gp) <= certificate.kl.upper + 1e-6
    assert any("GP on g(x)" in text for text in certificate.assumptions)
    assert gp.rank_ == gp._model.process.model.rank < 128
    assert gp.score(NEW, SEEN) > 0.8
    gp.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert again.certify().kl == certificate.kl
    assert np.array_equal(again.predict(NEW), gp.predict(NEW))


def test_the_network_is_that_of_the_default_rank_and_the_rank_the_smallest():
    gp = DeepMercerGP("auto", tolerance=1e-2, **QUICK).fit(X, Y)
    default = DeepMercerGP(**QUICK).fit(X, Y)
    pairs = zip(
        gp._model.process.model.transform.parameters(), default._model.process.model.transform.parameters(), strict=True
    )
    assert all(torch.equal(a, b) for a, b in pairs)
    assert gp.history_.values == pytest.approx(default.history_.values)
    assert gp.rank_ != default.rank_
    bound = gp.rank_curve().kl_bound
    assert bound[-1] <= gp.tolerance * len(X) < bound[-2]


@pytest.mark.parametrize(
    ("cls", "most", "rank"), [(DeepMercerGP, 3, 3), (DeepFourierGP, 9, 8)], ids=["mercer", "fourier"]
)
def test_max_rank_ends_the_search_with_a_reason(cls, most, rank):
    with pytest.warns(RankWarning, match=rf"ended at rank {rank} .* Raise max_rank \(now {most}\).*embedding"):
        gp = cls("auto", tolerance=1e-9, max_rank=most, **QUICK).fit(X, Y)
    assert gp.rank_ == rank
    assert np.isfinite(gp.predict(NEW)).all()


def test_without_learning_the_starting_values_are_kept():
    gp = DeepMercerGP("auto", tolerance=1e-2, length_scale=0.7, noise_variance=0.3, optimize=False, **QUICK).fit(X, Y)
    assert gp.kernel_.length_scale.tolist() == pytest.approx([0.7])
    assert gp.noise_variance_ == pytest.approx(0.3)
    assert gp.certify().kl.upper <= gp.tolerance * len(X)


@pytest.mark.parametrize(
    ("options", "fragments"),
    [
        ({"members": 2}, ("rank='auto' needs members=1", "members=2", "certificate", "give a number as rank")),
        ({"tolerance": 0.0}, ("tolerance must be positive",)),
        ({"max_rank": 0}, ("max_rank must be a whole number",)),
        ({"dtype": "float32"}, ("rank='auto'", "float32", "use dtype='float64'")),
    ],
)
def test_what_cannot_be_certified_is_refused(options, fragments):
    for cls in (DeepMercerGP, DeepFourierGP):
        text = error_of(lambda cls=cls: cls("auto", **QUICK | options).fit(X, Y), InvalidInputError)
        assert_mentions(text, *fragments)

"""The paper's protocol has the parts that its docstring names."""

from __future__ import annotations

import numpy as np
import pytest

from certgp.errors import InvalidInputError
from certgp.estimators.scores import score_gaussian
from certgp.features import total_degree_indices
from certgp_paper.training.paper_protocol import fit_as_in_paper, fit_as_released

rng = np.random.default_rng(0)
X = rng.standard_normal((400, 6))
Y = np.sin(X[:, 0] - X[:, 1]) + 0.1 * rng.standard_normal(400)
Y = (Y - Y.mean()) / Y.std()
TRAIN, TEST = slice(300), slice(300, None)


def fitted(method: str, train=fit_as_in_paper, epochs: int = 25):
    return train(method, 12, X[TRAIN], Y[TRAIN], 0, epochs)


@pytest.mark.parametrize("method", ["SGPR", "FGP", "MGP"])
def test_each_method_learns_with_a_length_scale_per_dimension(method):
    fit = fitted(method)
    scores = score_gaussian(*fit.moments(X[TEST]), Y[TEST])
    assert scores.rmse < 0.9
    assert scores.nlpd < 1.35
    assert fit.iterations == 25
    assert fit.process.model.rank == 12
    scales = fit.process.model.features.log_length_scale.detach().numpy()
    assert len(np.unique(scales)) == len(scales)
    assert (fit.process.signal_variance == pytest.approx(1.0)) == (method == "MGP")


def test_the_mercer_model_is_the_papers():
    fit = fitted("MGP")
    features = fit.process.model.features
    assert fit.dimension in range(3, 7)
    assert "training rows" in fit.dimension_rule
    np.testing.assert_array_equal(features.indices.numpy(), total_degree_indices(fit.dimension, 12))
    np.testing.assert_array_equal(features.log_input_scale.detach().numpy(), 0.0)  # alpha = 1 / sqrt 2
    z = fit.process.model.transform(fit.process.model.transform.mean.new_tensor(X[TRAIN]))
    np.testing.assert_allclose(z.detach().std(0, correction=0).numpy(), 1.0, rtol=1e-6)
    (_, dtc), (_, lowrank) = fit.moments(X[TEST]), fit.moments(X[TEST], "lowrank")
    assert (dtc > lowrank).all()


@pytest.mark.parametrize("method", ["FGP", "MGP"])
def test_the_released_code_has_one_length_scale(method):
    fit = fitted(method, fit_as_released)
    scales = fit.process.model.features.log_length_scale.detach().numpy()
    np.testing.assert_allclose(scales, scales[0], rtol=1e-12)
    assert score_gaussian(*fit.moments(X[TEST]), Y[TEST]).rmse < 0.97
    if method == "MGP":
        assert fit.dimension == 5
        assert fit.process.signal_variance == pytest.approx(1.0)


def test_other_methods_are_refused():
    with pytest.raises(InvalidInputError, match="does not differ"):
        fitted("SGPR", fit_as_released)
    with pytest.raises(InvalidInputError, match="choose one of SGPR, FGP, MGP"):
        fitted("XGP")

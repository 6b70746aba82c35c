"""ONNX graphs say what ``predict`` says, for every kind of model that is features and products; others are refused."""

from __future__ import annotations

import warnings

import numpy as np
import onnxruntime
import pytest
import torch

from certgp import DeepFourierGP, DeepMercerGP, ExactGP, FourierGP, LocalGP, MercerGP, SparseGP, load
from certgp.cli.main import main
from certgp.errors import CertgpWarning, InvalidInputError
from certgp.export import to_onnx
from certgp.export.model import make_graph
from certgp.kernels import Linear, Matern32, Periodic, RationalQuadratic

RNG = np.random.default_rng(0)
X = RNG.uniform(-2, 2, size=(240, 3)) * [1.0, 10.0, 0.1] + [0.0, 5.0, 0.0]
Y = 100 + 20 * (np.sin(2 * X[:, 0]) + 0.1 * X[:, 1] + (0.1 + 0.1 * np.abs(X[:, 0])) * RNG.standard_normal(240))
NEW = np.concatenate(
    [RNG.uniform(-2, 2, size=(40, 3)) * [1.0, 10.0, 0.1] + [0, 5, 0], [[9.0, -80.0, 3.0]], [[0, 900, 0]]]
)
SHORT = {"random_state": 0, "max_iter": 4}
COMPOSED = Matern32() * Periodic(columns=[0]) + RationalQuadratic(columns=[1, 2]) + Linear()

MODELS = {
    "mercer": MercerGP(20, projection=None, noise="constant", **SHORT),
    "mercer, projection": MercerGP(12, projection=2, noise="input", **SHORT),
    "mercer, lowrank": MercerGP(12, variance="lowrank", projection=None, noise="constant", **SHORT),
    "mercer, warped inputs": MercerGP(12, projection=2, warp=True, noise="constant", **SHORT),
    "fourier": FourierGP(20, noise="constant", **SHORT),
    "fourier, matern, input noise": FourierGP(20, kernel="matern52", noise="input", **SHORT),
    "sparse": SparseGP(15, noise="input", **SHORT),
    "sparse, student": SparseGP(15, likelihood="student", **SHORT),
    "sparse, composed kernel": SparseGP(15, kernel=COMPOSED, noise="constant", **SHORT),
    "deep mercer": DeepMercerGP(8, hidden=(16, 8), noise="constant", random_state=0, max_iter=2),
    "deep fourier, two members": DeepFourierGP(
        8, hidden=(16, 8), members=2, noise="constant", random_state=0, max_iter=2
    ),
}


def fit(model, y=Y):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CertgpWarning)
        return model.fit(X, y)


def run(path, rows):
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    return session.run(["mean", "std"], {"X": rows})


@pytest.mark.parametrize("name", MODELS)
def test_a_graph_says_what_predict_says(name, tmp_path):
    gp = fit(MODELS[name])
    for include_noise in (True, False):
        path = tmp_path / "gp.onnx"
        to_onnx(gp, path, include_noise=include_noise)
        known = gp.predict(NEW, return_std=True, include_noise=include_noise)
        for found, wanted in zip(run(path, NEW), known, strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-6)
    alone = np.concatenate([run(path, NEW[i : i + 1])[0] for i in range(len(NEW))])
    np.testing.assert_allclose(alone, known[0], rtol=1e-6)  # of any number of rows


def test_several_outputs_and_a_column_that_does_not_vary(tmp_path):
    y = np.stack([Y, np.cos(X[:, 0]) + 0.1 * RNG.standard_normal(240)], 1)
    gp = fit(SparseGP(10, noise="constant", **SHORT), y)
    to_onnx(gp, tmp_path / "two.onnx")
    for found, wanted in zip(run(tmp_path / "two.onnx", NEW), gp.predict(NEW, return_std=True), strict=True):
        assert found.shape == (len(NEW), 2)
        np.testing.assert_allclose(found, wanted, rtol=1e-6)


@pytest.mark.parametrize(
    "model",
    [
        ExactGP(noise="constant", **SHORT),
        LocalGP(neighbours=10, train_neighbours=5, noise="constant", metric="ard", **SHORT),
    ],
)
def test_models_that_predict_from_their_rows_are_refused(model, tmp_path):
    with pytest.raises(InvalidInputError, match="predicts from the training rows"):
        to_onnx(fit(model), tmp_path / "no.onnx")
    assert not list(tmp_path.iterdir())


def test_an_operation_that_has_no_node_is_refused_by_name():
    network = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ELU(), torch.nn.Linear(4, 1)).double()
    gp = fit(DeepMercerGP(6, network=network, noise="constant", random_state=0, max_iter=1))
    with pytest.raises(InvalidInputError, match="elu"):
        make_graph(gp)


def test_the_command_writes_the_same_graph(tmp_path, capsys):
    gp = fit(SparseGP(8, noise="constant", **SHORT))
    gp.save(tmp_path / "gp.model")
    assert main(["export", str(tmp_path / "gp.model"), "--onnx", str(tmp_path / "gp.onnx")]) == 0
    assert "mean and std" in capsys.readouterr().out
    np.testing.assert_allclose(run(tmp_path / "gp.onnx", NEW)[0], load(tmp_path / "gp.model").predict(NEW), rtol=1e-6)
    assert main(["export", str(tmp_path / "gp.model"), "--onnx", str(tmp_path / "gp.model")]) == 2

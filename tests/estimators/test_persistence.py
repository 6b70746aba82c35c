"""A saved model is one file without training data or code, and loads to bitwise the same model."""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import stat
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from estimator_cases import Case, assert_mentions, error_of, every_estimator, every_low_rank, pinned, problem, small
from safetensors import safe_open
from safetensors.torch import save_file

import certgp
from certgp import ExactGP, FourierGP, MercerGP, SparseGP, load
from certgp.errors import InvalidInputError, ModelFileError
from certgp.kernels import Gaussian, Matern52
from certgp.models import file as model_file

NEW = problem(30, seed=1)[0]
INDUCING = problem(15, seed=9)[0]
# short fits: what they have learned by then is saved as it is
pytestmark = pytest.mark.filterwarnings("ignore::certgp.errors.ConvergenceWarning")
MODELS = [
    Case("mercer", MercerGP, {"max_iter": 15}),
    Case("mercer-marginal-lowrank", MercerGP, {"objective": "marginal", "variance": "lowrank", "max_iter": 15}),
    Case("mercer-projected", MercerGP, {"projection": 1, "optimize": False}),
    Case("mercer-total-degree", MercerGP, {"index_set": "total_degree", "input_scale": (1.0, 2.0), "optimize": False}),
    Case("mercer-float32", MercerGP, {"dtype": "float32", "optimize": False}),
    Case("fourier", FourierGP, {"max_iter": 15}),
    Case("fourier-leverage", FourierGP, {"sampling": "leverage", "kernel": "matern52", "optimize": False}),
    Case("fourier-learned", FourierGP, {"learn_frequencies": True, "max_iter": 15}),
    Case("sparse", SparseGP, {"max_iter": 15}),
    Case("sparse-kernel-object", SparseGP, {"kernel": Matern52([0.5, 2.0], 3.0), "optimize": False}),
    Case("sparse-array", SparseGP, {"inducing": INDUCING, "learn_inducing": False, "max_iter": 15}),
    Case("sparse-list", SparseGP, {"inducing": INDUCING.tolist(), "jitter": 1e-8, "optimize": False}),
    Case("exact", ExactGP, {"max_iter": 15}),
    Case("exact-numpy-parameters", ExactGP, {"length_scale": np.array([0.5, 2.0]), "max_iter": np.int64(15)}),
]
every_model = pytest.mark.parametrize("case", MODELS, ids=lambda case: case.name)
NOT_SAVED = {"callbacks", "engine"}


def save(model, path):
    model.save(path, **({"include_training_data": True} if isinstance(model, ExactGP) else {}))
    return path


def same(first, second):
    """Bitwise equal arrays, or tuples of them."""
    if isinstance(first, tuple):
        return all(same(a, b) for a, b in zip(first, second, strict=True))
    return np.array_equal(first, second)


@pytest.fixture
def saved(tmp_path):
    """A saved model and its file."""
    model = pinned(MercerGP).fit(*problem())
    return model, save(model, tmp_path / "model.certgp")


@every_model
def test_predictions_survive_bitwise(case, tmp_path):
    X, y = problem()
    model = case.small().fit(X, 30.0 * y - 7.0)
    again = load(save(model, tmp_path / "model"))
    assert type(again) is type(model)
    for ask in ({}, {"return_std": True}, {"return_cov": True}, {"return_std": True, "include_noise": False}):
        assert same(again.predict(NEW, **ask), model.predict(NEW, **ask))
    assert np.array_equal(again.sample_y(NEW, 2), model.sample_y(NEW, 2))
    assert again.nlpd(X, y) == model.nlpd(X, y)
    assert again.log_marginal_likelihood() == model.log_marginal_likelihood()


@every_model
def test_attributes_survive(case, tmp_path):
    X, y = problem()
    model = case.small().fit(pd.DataFrame(X, columns=["a", "b"]), y)
    again = load(save(model, tmp_path / "model"))
    public = [name for name in vars(model) if name.endswith("_") and not name.startswith("_")]
    public.append("log_marginal_likelihood_")
    assert {"kernel_", "noise_variance_", "rank_", "log_marginal_likelihood_", "n_iter_"} < set(public)
    for name in public:
        before, after = getattr(model, name), getattr(again, name)
        if name == "kernel_":
            assert type(after) is type(before)
            assert np.array_equal(after.length_scale, before.length_scale)
            assert float(after.signal_variance) == float(before.signal_variance)
        elif name == "feature_names_in_":
            assert after.tolist() == before.tolist() == ["a", "b"]
        else:
            assert repr(after) == repr(before), name
    if case.name == "mercer-projected":
        assert np.array_equal(again.projection_, model.projection_)
    for name, value in model.get_params().items():
        if name not in NOT_SAVED:
            assert np.array_equal(np.ravel(str(getattr(again, name))), np.ravel(str(_as_saved(value)))), name


def _as_saved(value):
    """Arrays and tuples come back as lists."""
    return value.tolist() if isinstance(value, np.ndarray) else list(value) if isinstance(value, tuple) else value


@every_model
def test_a_loaded_model_goes_on_learning(case, tmp_path):
    X, y = problem(100)
    model = case.small().fit(X[:80], y[:80])
    again = load(save(model, tmp_path / "model")).partial_fit(X[80:], y[80:])
    model.partial_fit(X[80:], y[80:])
    assert np.array_equal(again.predict(NEW), model.predict(NEW))
    assert again.log_marginal_likelihood_ == model.log_marginal_likelihood_
    twice = load(save(again, tmp_path / "model"))
    assert np.array_equal(twice.predict(NEW, return_cov=True)[1], model.predict(NEW, return_cov=True)[1])


@every_model
def test_a_loaded_model_can_be_fitted_anew(case, tmp_path):
    X, y = problem()
    model = case.small().fit(X, y)
    again = load(save(model, tmp_path / "model")).fit(X, y)
    np.testing.assert_array_equal(again.predict(NEW), model.predict(NEW))


def test_a_seed_is_saved_and_a_generator_is_not(tmp_path):
    for given, kept in ((7, 7), (np.int64(7), 7), (None, None), (np.random.RandomState(7), None)):
        model = pinned(MercerGP, random_state=given).fit(*problem())
        assert load(save(model, tmp_path / "model")).random_state == kept


def contents(path):
    with safe_open(path, framework="np") as file:
        return {name: file.get_tensor(name) for name in file.keys()}, file.metadata()  # noqa: SIM118 (not a dict)


def numbers_of(value):
    """All numbers inside a JSON value."""
    if isinstance(value, dict):
        return [x for item in value.values() for x in numbers_of(item)]
    if isinstance(value, list):
        return [x for item in value for x in numbers_of(item)]
    return [float(value)] if isinstance(value, (int, float)) and not isinstance(value, bool) else []


@pytest.mark.parametrize(
    "case",
    [
        *(case for case in MODELS if case.cls is not ExactGP and "sparse-" not in case.name),
        Case("sparse-learned", SparseGP, {"max_iter": 200}),
    ],
    ids=lambda case: case.name,
)
def test_a_low_rank_file_holds_no_training_data(case, tmp_path):
    X, y = problem(83)
    model = case.small().fit(X, y)
    tensors, header = contents(save(model, tmp_path / "model"))
    assert not [name for name, tensor in tensors.items() if 83 in tensor.shape]
    standardised = (X - X.mean(0)) / X.std(0), (y - y.mean()) / y.std()
    secrets = np.concatenate([np.ravel(part) for part in (X, y, *standardised)])
    written = [*(np.ravel(t) for t in tensors.values()), np.array(numbers_of(json.loads(header["model"])))]
    written = np.concatenate([part.astype(np.float64) for part in written])
    distance = np.abs(written[:, None] - secrets).min(1)
    assert written[distance <= 1e-12].size == 0


@pytest.mark.parametrize("inducing", ["greedy", "kmeans"])
def test_inducing_points_that_stay_put_are_the_only_rows_in_a_file(inducing, tmp_path):
    """They are chosen from X, and the guide says so: at most rank inputs, never a target, and no other tensor."""
    X, y = problem(83)
    model = small(SparseGP, rank=20, inducing=inducing, optimize=False, standardize=False).fit(X, y)
    tensors, _ = contents(save(model, tmp_path / "model"))
    points = tensors.pop("model.features.inducing_points")
    assert points.shape == (20, 2)
    others = np.concatenate([np.ravel(t).astype(np.float64) for t in tensors.values()])
    secrets = np.concatenate([np.ravel(X), y])
    assert np.abs(others[:, None] - secrets).min() > 1e-12
    assert np.abs(np.ravel(points)[:, None] - y).min() > 1e-12


def test_an_exact_gp_asks_before_it_writes_its_rows(tmp_path):
    X, y = problem()
    model = pinned(ExactGP).fit(X, y)
    text = error_of(lambda: model.save(tmp_path / "model"), InvalidInputError)
    assert_mentions(text, "cannot predict without its training rows", "include_training_data=True", "low-rank")
    assert not list(tmp_path.iterdir())
    model.save(tmp_path / "model", include_training_data=True)
    assert np.array_equal(contents(tmp_path / "model")[0]["rows.X"], X)


@every_low_rank
def test_the_file_is_small_and_free_of_the_number_of_rows(cls, tmp_path):
    sizes = [save(pinned(cls).fit(*problem(n)), tmp_path / str(n)).stat().st_size for n in (100, 5_000)]
    assert sizes[1] <= sizes[0] + 64
    assert sizes[1] < 20_000


@every_estimator
def test_only_fitted_models_are_saved(cls, tmp_path):
    from sklearn.exceptions import NotFittedError

    with pytest.raises(NotFittedError, match="not fitted yet"):
        small(cls).save(tmp_path / "model")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "parameters",
    [
        {"inducing": list(INDUCING)},
        {"inducing": pd.DataFrame(INDUCING)},
        {"length_scale": list(np.float32([0.5, 2.0]))},
        {"length_scale": pd.Series([0.5, 2.0])},
        {"rank": np.int32(20)},
        {"kernel": Gaussian(np.array([0.5, 2.0]))},
        {"standardize": np.bool_(True)},
    ],
    ids=lambda parameters: next(iter(parameters)),
)
def test_every_parameter_that_fit_takes_can_be_saved(parameters, tmp_path):
    X, y = problem()
    model = small(SparseGP, optimize=False).set_params(**parameters).fit(X, y)
    again = load(save(model, tmp_path / "model"))
    assert np.array_equal(again.predict(NEW), model.predict(NEW))
    assert np.array_equal(again.fit(X, y).predict(NEW), model.predict(NEW))


# -- writing ---------------------------------------------------------------------------------------------------------


def test_saving_into_a_missing_directory_says_so(tmp_path):
    model = pinned(MercerGP).fit(*problem())
    text = error_of(lambda: model.save(tmp_path / "no" / "model"), ModelFileError)
    assert_mentions(text, tmp_path / "no", "does not exist", "create it")


def test_saving_to_a_directory_asks_for_a_file(tmp_path):
    model = pinned(MercerGP).fit(*problem())
    assert_mentions(
        error_of(lambda: model.save(tmp_path), ModelFileError), tmp_path, "is a directory", "name of a file"
    )


@pytest.mark.parametrize("where", ["rename", "write"])
@pytest.mark.parametrize("old", [True, False], ids=["replacing", "new"])
def test_a_failing_save_leaves_the_old_file_and_nothing_else(where, old, tmp_path, monkeypatch):
    path = tmp_path / "model"
    model = pinned(MercerGP).fit(*problem())
    if old:
        model.save(path)
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}

    def no_rename(*args, **kwargs):
        raise OSError(28, "No space left on device")

    def half_a_write(self, data):
        with self.open("wb") as file:
            file.write(data[:100])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(*((os, "replace", no_rename) if where == "rename" else (Path, "write_bytes", half_a_write)))
    other = pinned(MercerGP).fit(*problem(seed=4))
    with pytest.raises(OSError, match="No space left"):
        other.save(path)
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before


def test_saving_again_replaces_the_file(saved):
    _, path = saved
    other = pinned(FourierGP).fit(*problem(seed=4))
    other.save(str(path))
    assert np.array_equal(load(str(path)).predict(NEW), other.predict(NEW))
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_a_saved_file_is_as_readable_as_any_other(saved):
    """Others may load it: the mode is what the umask gives, not that of a private temporary file."""
    _, path = saved
    plain = path.parent / "plain"
    plain.write_bytes(b"")
    assert stat.S_IMODE(path.stat().st_mode) == stat.S_IMODE(plain.stat().st_mode)


def test_a_loaded_model_does_not_need_its_file_any_more(saved):
    model, path = saved
    again = load(path)
    size = path.stat().st_size
    path.write_bytes(b"\0" * size)
    path.unlink()
    assert np.array_equal(again.predict(NEW, return_std=True)[1], model.predict(NEW, return_std=True)[1])
    assert np.array_equal(again.partial_fit(*problem(10)).predict(NEW), model.partial_fit(*problem(10)).predict(NEW))


# -- reading what is no model ----------------------------------------------------------------------------------------


def header_size(path):
    return 8 + int.from_bytes(path.read_bytes()[:8], "little")


def flip(path, position, mask=0x10):
    content = bytearray(path.read_bytes())
    content[position] ^= mask
    path.write_bytes(content)


def test_a_missing_file(tmp_path):
    for path in (tmp_path / "nothing", tmp_path):
        assert_mentions(error_of(lambda path=path: load(path), ModelFileError), path, "does not exist or is not a file")


@pytest.mark.parametrize("keep", [0, 1, 7, 8, 9, "header - 1", "header", "header + 1", "half", -1])
def test_truncated_files(saved, keep):
    _, path = saved
    whole, header = path.read_bytes(), header_size(path)
    end = {"header - 1": header - 1, "header": header, "header + 1": header + 1, "half": len(whole) // 2}
    path.write_bytes(whole[: end.get(keep, keep)])
    assert_mentions(error_of(lambda: load(path), ModelFileError), path, "not a readable model file", "truncated")


def test_bytes_after_the_end(saved):
    _, path = saved
    path.write_bytes(path.read_bytes() + b"more")
    assert_mentions(error_of(lambda: load(path), ModelFileError), path, "not a readable model file")


@pytest.mark.parametrize("place", np.linspace(0.0, 1.0, 25))
def test_a_flipped_byte_in_the_tensors(saved, place):
    _, path = saved
    first, last = header_size(path), path.stat().st_size - 1
    flip(path, round(first + place * (last - first)))
    assert_mentions(error_of(lambda: load(path), ModelFileError), path, "damaged", "checksum", "save it again")


@pytest.mark.parametrize(
    "text", [b'"model":', b"MercerGP", b"noise_variance", b"checksum", b"statistics.A", b"y_scale"]
)
def test_a_flipped_byte_in_the_header(saved, text):
    _, path = saved
    flip(path, path.read_bytes().index(text) + 2, mask=0x01)
    assert_mentions(error_of(lambda: load(path), ModelFileError), path, "damaged")


def test_any_flipped_byte_is_refused_or_changes_nothing(saved):
    """Bytes all over the file damaged in turn: no other exception, no other prediction."""
    model, path = saved
    whole, expected = path.read_bytes(), model.predict(NEW, return_std=True)
    for position in sorted({*range(0, 600, 2), *range(0, len(whole), 23)}):
        path.write_bytes(whole)
        flip(path, position, mask=1 << position % 8)
        with contextlib.suppress(ModelFileError):
            assert same(load(path).predict(NEW, return_std=True), expected), position


def rewrite(path, **changes):
    """The same tensors under a changed header."""
    from safetensors.torch import load_file

    _, header = contents(path)
    save_file(load_file(path), path, metadata=header | changes)


def test_another_format_version(saved):
    _, path = saved
    rewrite(path, format_version="999", library_version="77.1.0")
    text = error_of(lambda: load(path), ModelFileError)
    assert_mentions(text, path, "999", "77.1.0", certgp.__version__, "fit again")


def test_an_unknown_estimator(saved):
    _, path = saved
    body = json.dumps({"estimator": "os.system"})
    _, tensors = model_file._read(path)
    rewrite(path, model=body, checksum=model_file._checksum(tensors, body))
    assert_mentions(error_of(lambda: load(path), ModelFileError), "os.system", "not known here")


def test_another_safetensors_file(tmp_path):
    import torch

    for metadata in (None, {"format": "pt"}):
        save_file({"weights": torch.zeros(3, dtype=torch.bfloat16)}, tmp_path / "other", metadata=metadata)
        text = error_of(lambda: load(tmp_path / "other"), ModelFileError)
        assert_mentions(text, tmp_path / "other", "safetensors file but not a certgp model")


class Payload:
    """Unpickling this creates a file."""

    def __init__(self, witness):
        self.witness = witness

    def __reduce__(self):
        return open, (str(self.witness), "w")


def test_a_pickle_is_refused_and_not_executed(tmp_path):
    path, witness = tmp_path / "model.pkl", tmp_path / "executed"
    path.write_bytes(pickle.dumps(Payload(witness)))
    assert_mentions(error_of(lambda: load(path), ModelFileError), path, "not a readable model file", "of another kind")
    assert not witness.exists()


@pytest.mark.parametrize("text", ["", "x", "a,b,y\n1,2,3\n" * 50, "{}"], ids=["empty", "short", "csv", "json"])
def test_a_text_file(tmp_path, text):
    path = tmp_path / "rows.csv"
    path.write_text(text)
    assert_mentions(error_of(lambda: load(path), ModelFileError), path, "not a readable model file", "of another kind")

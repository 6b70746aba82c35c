"""Small fits of every estimator with fixed seeds, and all that they say: what a change of the code must leave alone."""

from __future__ import annotations

import gzip
import json
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import certgp
from certgp.errors import CertgpError
from certgp.kernels import Gaussian, Matern32

Values = dict[str, Any]
FOLDER = Path(__file__).parent
MODELS = FOLDER / "models"
RECORD = FOLDER / "fits.json.gz"


def rows(n: int, columns: int, seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, columns)) * np.linspace(0.5, 3.0, columns) + np.linspace(-1.0, 4.0, columns)
    scaled = (X - X.mean(0)) / X.std(0)
    y = 7.0 + 3.0 * np.sin(2.0 * scaled[:, 0]) + scaled[:, -1] ** 2 + 0.4 * rng.normal(size=n)
    return X, y


def new_rows(columns: int) -> Any:
    X, _ = rows(12, columns, seed=1)
    X[-1] += 30.0  # far outside
    return X


Build = Callable[[], Any]
_KEPT: Values = {"optimize": False, "length_scale": 1.5, "signal_variance": 4.0, "noise_variance": 0.3}

# name -> (constructor, number of rows, number of columns)
KEPT: dict[str, tuple[Build, int, int]] = {
    "kept-mercer": (lambda: certgp.MercerGP(12, projection=None, random_state=0, **_KEPT), 150, 2),
    "kept-mercer-box": (
        lambda: certgp.MercerGP(9, projection=None, index_set="box", input_scale=2.0, random_state=0, **_KEPT),
        150,
        2,
    ),
    "kept-projection": (lambda: certgp.MercerGP(12, projection=2, random_state=0, **_KEPT), 150, 6),
    "kept-fourier": (lambda: certgp.FourierGP(12, random_state=0, **_KEPT), 150, 2),
    "kept-fourier-leverage": (lambda: certgp.FourierGP(12, sampling="leverage", random_state=0, **_KEPT), 150, 2),
    "kept-sparse": (lambda: certgp.SparseGP(12, random_state=0, **_KEPT), 150, 2),
    "kept-sparse-matern": (
        lambda: certgp.SparseGP(12, kernel="matern32", inducing="kmeans", random_state=0, **_KEPT),
        150,
        2,
    ),
    "kept-exact": (lambda: certgp.ExactGP(**_KEPT), 60, 2),
    "kept-exact-kernel": (
        lambda: certgp.ExactGP(kernel=Matern32([1.0, 2.0], 3.0), noise_variance=0.3, optimize=False, standardize=False),
        60,
        2,
    ),
    "kept-deep-mercer": (
        lambda: certgp.DeepMercerGP(8, hidden=(8,), optimize=False, noise_variance=0.5, random_state=0),
        150,
        3,
    ),
}

TRAINED: dict[str, tuple[Build, int, int]] = {
    "mercer": (lambda: certgp.MercerGP(15, random_state=0, max_iter=60), 400, 2),
    "mercer-marginal": (
        lambda: certgp.MercerGP(15, objective="marginal", variance="lowrank", random_state=0, max_iter=60),
        400,
        6,
    ),
    "mercer-projection": (lambda: certgp.MercerGP(20, random_state=1, max_iter=60, calibrate=True), 400, 6),
    "mercer-optimal": (
        lambda: certgp.MercerGP(15, index_set="optimal", kernel=Gaussian([1.0, 2.0]), random_state=0, max_iter=40),
        300,
        2,
    ),
    "mercer-auto": (lambda: certgp.MercerGP("auto", tolerance=1e-2, random_state=0, max_iter=40, max_rank=64), 300, 1),
    "mercer-many": (lambda: certgp.MercerGP(10, random_state=0, max_iter=30), 7000, 2),
    "fourier": (lambda: certgp.FourierGP(20, random_state=0, max_iter=40), 400, 3),
    "fourier-learned": (lambda: certgp.FourierGP(20, learn_frequencies=True, random_state=0, max_iter=40), 400, 3),
    "fourier-matern": (
        lambda: certgp.FourierGP(20, kernel="matern52", sampling="sobol", winsorize=False, random_state=0, max_iter=40),
        400,
        2,
    ),
    "fourier-auto": (
        lambda: certgp.FourierGP("auto", tolerance=0.1, random_state=0, max_iter=30, max_rank=128),
        300,
        1,
    ),
    "sparse": (lambda: certgp.SparseGP(12, random_state=0, max_iter=100), 400, 3),
    "sparse-marginal": (
        lambda: certgp.SparseGP(12, kernel="matern52", objective="marginal", random_state=0, max_iter=60),
        400,
        2,
    ),
    "sparse-auto": (lambda: certgp.SparseGP("auto", tolerance=1e-2, random_state=0, max_iter=40, max_rank=64), 300, 1),
    "exact": (lambda: certgp.ExactGP(random_state=0, max_iter=40), 120, 2),
    "exact-calibrated": (lambda: certgp.ExactGP(kernel="matern52", random_state=0, calibrate=True), 120, 2),
    "auto": (lambda: certgp.AutoGP(12, random_state=0, max_iter=40), 400, 3),
    "auto-rank": (lambda: certgp.AutoGP("auto", tolerance=1e-2, max_rank=64, random_state=0, max_iter=30), 300, 2),
    "auto-few": (lambda: certgp.AutoGP(6, random_state=0, max_iter=20), 40, 2),
    "deep-mercer": (lambda: certgp.DeepMercerGP(6, hidden=(12,), max_iter=6, random_state=0), 300, 3),
    "deep-mercer-full": (
        lambda: certgp.DeepMercerGP(6, hidden=(6,), embedding=2, training="full", max_iter=20, random_state=0),
        300,
        3,
    ),
    "deep-mercer-auto": (
        lambda: certgp.DeepMercerGP("auto", tolerance=1e-2, hidden=(8,), max_iter=6, random_state=0),
        300,
        2,
    ),
    "deep-fourier": (lambda: certgp.DeepFourierGP(8, hidden=(12,), embedding=2, max_iter=6, random_state=0), 300, 3),
    "deep-fourier-members": (
        lambda: certgp.DeepFourierGP(8, hidden=(8,), embedding=2, members=2, max_iter=4, random_state=0),
        300,
        3,
    ),
    "deep-fourier-paper": (
        lambda: certgp.DeepFourierGP(8, hidden=(8,), embedding=2, training="paper", max_iter=5, random_state=0),
        300,
        3,
    ),
}
CASES = KEPT | TRAINED
# What another processor moves further than the numbers it is made of: a square root of a nearly singular covariance
# turns rounding eps into sqrt(eps).
SENSITIVE = {"samples": 1e-6}
# fits that differ on purpose since 0.2.0: leverage draws from a shuffled pool; the paper's deep recipe follows its text
CHANGED = ("kept-fourier-leverage", "deep-fourier-paper")


def read_record() -> Values:
    """What every case said when the record was made."""
    return json.loads(gzip.decompress(RECORD.read_bytes()))


def write_record(record: Values) -> None:
    """Replace the record; the same one gives the same bytes."""
    RECORD.write_bytes(gzip.compress(json.dumps(record).encode(), mtime=0))


def fitted(name: str) -> Any:
    build, n, columns = CASES[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return build().set_params(noise="constant").fit(*rows(n, columns))  # as when the record was made


def predictions(model: Any, columns: int) -> Values:
    """What a model says of new rows; also of one that was loaded."""
    X = new_rows(columns)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mean, std = model.predict(X, return_std=True)
        _, latent = model.predict(X, return_std=True, include_noise=False)
        _, covariance = model.predict(X, return_cov=True)
        return {
            "mean": mean,
            "std": std,
            "latent": latent,
            "covariance": covariance,
            "quantiles": model.predict_quantiles(X, [0.1, 0.5, 0.9]),
            "samples": model.sample_y(X, 2, random_state=3),
            "nlpd": model.nlpd(X, mean + 0.3),
            "rank": model.rank_,
            "noise_variance": model.noise_variance_,
            "noise_scale": model.noise_scale_,
            "log_marginal_likelihood": model.log_marginal_likelihood(),
            "length_scale": model.kernel_.length_scale.detach().numpy(),
            "signal_variance": float(model.kernel_.signal_variance),
            "n_iter": model.n_iter_,
        }


def statements(model: Any, columns: int, training: tuple[Any, Any]) -> Values:
    """Certificates of every kind, rank curves, and the model after more rows."""
    X = new_rows(columns)
    y_scale = float(np.std(training[1]))
    asked: dict[str, Callable[[], Any]] = {
        "certificate": lambda: certificate(model.certify()),
        "certificate rows": lambda: certificate(model.certify(X[:-1])),
        "certificate reference": lambda: certificate(model.certify(X, reference_rank=60, rows=training)),
        "certificate tolerance": lambda: certificate(model.certify(X[:-1], tol=0.01 * y_scale)),
        "certificate delta": lambda: certificate(model.certify(reference_rank=20, delta=0.01)),
        "certificate solved": lambda: certificate(
            model.certify(X[:-1], tol=1e-3 * y_scale, max_reference_rank=20, exact_solve=lambda cost: True)
        ),
        "rank curve": lambda: curve(model.rank_curve()),
        "rank curve rows": lambda: curve(model.rank_curve(X, np.full(len(X), 8.0))),
        "extended": lambda: predictions(model.partial_fit(*rows(30, columns, seed=2)), columns),
    }
    said: Values = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, ask in asked.items():
            try:
                said[name] = ask()
            except (CertgpError, TypeError):
                said[name] = "refused"
    return said


def certificate(found: Any) -> Values:
    values = found.to_dict()
    return {key: values[key] for key in values if key not in ("sentence", "notes", "assumptions", "vacuous", "theorem")}


def curve(found: Any) -> Values:
    return {name: getattr(found, name) for name in ("ranks", "log_evidence", "elbo", "kl_bound", "nlpd")}


def plain(value: Any) -> Any:
    """As JSON: arrays as lists."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, np.ndarray):
        return value.tolist()
    return value.item() if isinstance(value, np.generic) else value


def differences(found: Any, recorded: Any, where: str, tolerance: float) -> Iterator[str]:
    """Where two records differ by more than a relative tolerance (of the largest number of an array)."""
    if isinstance(recorded, dict):
        if not isinstance(found, dict) or found.keys() != recorded.keys():
            yield f"{where}: keys {found if not isinstance(found, dict) else list(found)} instead of {list(recorded)}"
            return
        for key in recorded:
            allowed = max(tolerance, SENSITIVE.get(key, 0.0))
            yield from differences(found[key], recorded[key], f"{where}.{key}", allowed)
        return
    if recorded is None or isinstance(recorded, str) or found is None or isinstance(found, (str, dict)):
        if found != recorded:
            yield f"{where}: {found!r} instead of {recorded!r}"
        return
    a, b = np.asarray(found, dtype=np.float64), np.asarray(recorded, dtype=np.float64)
    if a.shape != b.shape:
        yield f"{where}: shape {a.shape} instead of {b.shape}"
        return
    if a.size:
        gap, size = float(np.abs(a - b).max()), float(np.abs(b).max())
        if not (gap <= tolerance * max(size, 1e-12) or np.array_equal(a, b, equal_nan=True)):
            yield f"{where}: differs by {gap:.3g} of {size:.3g}"

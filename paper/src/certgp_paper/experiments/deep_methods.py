"""The methods of the paper's deep table; ``deep_effort`` says how long each is trained."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from certgp.estimators import DeepFourierGP, DeepMercerGP, SparseGP
from certgp_paper.baselines.random_feature_deep_gp import RandomFeatureDeepGP
from certgp_paper.baselines.two_step import NetworkRegressor, TwoStepGP
from certgp_paper.experiments.deep_effort import FULL, Effort

Array = NDArray[np.float64]


class Method(Protocol):
    """What the table needs of a regressor."""

    def fit(self, X: ArrayLike, y: ArrayLike) -> object: ...
    def predict(self, X: ArrayLike) -> Array: ...
    def nlpd(self, X: ArrayLike, y: ArrayLike) -> float: ...


def method_names() -> list[str]:
    """All methods, in the order of the paper's table."""
    return list(_METHODS)


def build(method: str, n: int, seed: int, effort: Effort = FULL) -> Method:
    """The method, unfitted, for n training rows."""
    return _METHODS[method](n, seed, effort)


def build_as_in_paper(method: str, data: str, seed: int, effort: Effort = FULL) -> Method:
    """DMGP or DFGP, unfitted, for a data set by its name, as the paper's text defines and trains them.

    The low-rank model's own variance (``"paper"``: without a fall-back to the prior), its box of indices, iid
    frequencies, and ``training="paper"``; no row is held out and nothing is calibrated.
    """
    options: dict[str, Any] = {
        "hidden": effort.hidden,
        "training": "paper",
        "max_iter": effort.recipe_epochs,
        "batch_size": effort.batch_size,
        "learning_rate": effort.recipe_rate(data),
        "calibrate": False,
        "noise": "constant",
        "variance": "paper",
        "random_state": seed,
    }
    if method == "DMGP":
        return DeepMercerGP(index_set="box", **options)
    return DeepFourierGP(sampling="iid", **options)


def build_at(method: str, d: int, m: int, seed: int, effort: Effort = FULL) -> Method:
    """DMGP with m eigenfunctions for each of d dimensions (rank m^d), or DFGP with m frequencies (rank 2m)."""
    hidden, max_iter = effort.hidden, effort.network_epochs
    if method == "DMGP":
        # the paper's variance too: a box of 2 x 2 loses most of the prior variance, and the likelihood does not see it
        return DeepMercerGP(
            m**d,
            embedding=d,
            index_set="box",
            variance="lowrank",
            hidden=hidden,
            max_iter=max_iter,
            noise="constant",
            random_state=seed,
        )
    return DeepFourierGP(2 * m, embedding=d, hidden=hidden, max_iter=max_iter, noise="constant", random_state=seed)


def _svigp(size: int) -> Callable[[int, int, Effort], Method]:
    def make(n: int, seed: int, effort: Effort) -> Method:
        from certgp_paper.baselines.svigp import StochasticVariationalGP  # GPyTorch is slow to import

        epochs, batch = effort.epochs(n), effort.batch(n)
        return StochasticVariationalGP(effort.inducing[size], max_iter=epochs, batch_size=batch, random_state=seed)

    return make


def _sgpr(size: int) -> Callable[[int, int, Effort], Method]:
    def make(n: int, seed: int, effort: Effort) -> Method:
        points = effort.inducing[size]
        iterations = effort.sparse_iterations(n, points)
        return SparseGP(points, max_iter=iterations, noise="constant", random_state=seed)

    return make


def _dkl(size: int) -> Callable[[int, int, Effort], Method]:
    def make(n: int, seed: int, effort: Effort) -> Method:
        from certgp_paper.baselines.deep_kernel import DeepKernelGP  # GPyTorch is slow to import

        return DeepKernelGP(
            effort.grids[size],
            hidden=effort.hidden,
            pretraining=effort.network_epochs,
            max_iter=effort.steps_of_all_rows(n),
            random_state=seed,
        )

    return make


def _rfedgp(n: int, seed: int, effort: Effort) -> Method:
    return RandomFeatureDeepGP(
        frequencies=effort.frequencies,
        samples=effort.samples,
        max_iter=effort.epochs(n),
        batch_size=effort.batch(n),
        random_state=seed,
    )


def _network(cls: Callable[..., Method], *arguments: str) -> Callable[[int, int, Effort], Method]:
    """Networks with one treatment: all have their noise calibrated on held-out training rows."""

    def make(n: int, seed: int, effort: Effort) -> Method:
        return cls(*arguments, hidden=effort.hidden, max_iter=effort.network_epochs, calibrate=True, random_state=seed)

    return make


_METHODS: dict[str, Callable[[int, int, Effort], Method]] = {
    "SVIGP": _svigp(0),
    "SVIGP+": _svigp(1),
    "SGPR": _sgpr(0),
    "SGPR+": _sgpr(1),
    "DKL": _dkl(0),
    "DKL+": _dkl(1),
    "RFEDGP": _rfedgp,
    "DMGP": _network(partial(DeepMercerGP, noise="constant")),
    "DFGP": _network(partial(DeepFourierGP, noise="constant")),
    "DNN+S": _network(NetworkRegressor),
    "DNN+M": _network(TwoStepGP, "mercer"),
    "DNN+F": _network(TwoStepGP, "fourier"),
}

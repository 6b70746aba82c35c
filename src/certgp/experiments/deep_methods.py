"""The methods of the paper's deep table and how long each is trained.

The paper ran everything for 100 epochs of Adam in batches of 1,000 rows, on 32 cores. Here, for one thread:

    SVIGP, SVIGP+      250 and 500 inducing points; 100 epochs of Adam in batches of 1,000, at most 4,200 steps (100
                       epochs of protein)
    RFEDGP             two hidden layers of three GPs with 100 frequencies each; epochs as for SVIGP
    SGPR, SGPR+        250 and 500 inducing points; L-BFGS on all rows, 500 iterations, fewer where they are dear
    DKL, DKL+          grids of 5,000 and 10,000; 40 epochs on squared error, then 60 steps on the evidence of all rows
                       (as many as in GPyTorch's own example), fewer on large data
    DMGP, DFGP         this library's defaults: 40 epochs in batches of 250
    DNN+S, +M, +F      the same network, rows and epochs on squared error, then the noise of the training rows

Small data get smaller batches, at least ten an epoch. All networks have the paper's widths D-512-256-64-d.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from certgp.estimators import DeepFourierGP, DeepMercerGP, SparseGP
from certgp.experiments.random_feature_deep_gp import RandomFeatureDeepGP
from certgp.experiments.two_step import NetworkRegressor, TwoStepGP

Array = NDArray[np.float64]
_FEWEST_BATCHES, _SMALLEST_BATCH = 10, 32
_FEWEST_ITERATIONS, _FEWEST_JOINT_STEPS = 60, 20


class Method(Protocol):
    """What the table needs of a regressor."""

    def fit(self, X: ArrayLike, y: ArrayLike) -> object: ...
    def predict(self, X: ArrayLike) -> Array: ...
    def nlpd(self, X: ArrayLike, y: ArrayLike) -> float: ...


@dataclass(frozen=True)
class Effort:
    """How large the models are and how long they are trained."""

    hidden: tuple[int, ...] = (512, 256, 64)
    network_epochs: int = 40
    most_epochs: int = 100  # of SVIGP and RFEDGP
    most_steps: int = 4_200  # of SVIGP and RFEDGP
    batch_size: int = 1_000
    inducing: tuple[int, int] = (250, 500)
    iterations: int = 500  # of SGPR
    dearest_sparse: float = 8e11  # iterations x rows x points^2 at most
    grids: tuple[int, int] = (5_000, 10_000)
    joint_steps: int = 60  # of DKL
    dearest_joint: float = 5e6  # steps x rows at most
    frequencies: int = 100  # of RFEDGP, per layer
    samples: int = 20

    def batch(self, n: int) -> int:
        """Rows per step of SVIGP and RFEDGP on n rows."""
        return min(self.batch_size, max(_SMALLEST_BATCH, n // _FEWEST_BATCHES))

    def epochs(self, n: int) -> int:
        """Epochs of SVIGP and RFEDGP on n rows."""
        steps_an_epoch = -(-n // self.batch(n))
        return max(1, min(self.most_epochs, self.most_steps // steps_an_epoch))

    def sparse_iterations(self, n: int, points: int) -> int:
        """L-BFGS iterations of SGPR."""
        affordable = int(self.dearest_sparse / (n * points**2))
        return min(self.iterations, max(_FEWEST_ITERATIONS, affordable))

    def steps_of_all_rows(self, n: int) -> int:
        """Steps of DKL's second stage."""
        return min(self.joint_steps, max(_FEWEST_JOINT_STEPS, int(self.dearest_joint / n)))


FULL = Effort()
QUICK = Effort(
    hidden=(32, 16),
    network_epochs=5,
    most_steps=100,
    inducing=(20, 40),
    iterations=20,
    grids=(100, 200),
    joint_steps=5,
    frequencies=20,
    samples=5,
)


def method_names() -> list[str]:
    """All methods, in the order of the paper's table."""
    return list(_METHODS)


def build(method: str, n: int, seed: int, effort: Effort = FULL) -> Method:
    """The method, unfitted, for n training rows."""
    return _METHODS[method](n, seed, effort)


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
            random_state=seed,
        )
    return DeepFourierGP(2 * m, embedding=d, hidden=hidden, max_iter=max_iter, random_state=seed)


def _svigp(size: int) -> Callable[[int, int, Effort], Method]:
    def make(n: int, seed: int, effort: Effort) -> Method:
        from certgp.experiments.svigp import StochasticVariationalGP  # GPyTorch is optional

        epochs, batch = effort.epochs(n), effort.batch(n)
        return StochasticVariationalGP(effort.inducing[size], max_iter=epochs, batch_size=batch, random_state=seed)

    return make


def _sgpr(size: int) -> Callable[[int, int, Effort], Method]:
    def make(n: int, seed: int, effort: Effort) -> Method:
        points = effort.inducing[size]
        return SparseGP(points, max_iter=effort.sparse_iterations(n, points), random_state=seed)

    return make


def _dkl(size: int) -> Callable[[int, int, Effort], Method]:
    def make(n: int, seed: int, effort: Effort) -> Method:
        from certgp.experiments.deep_kernel import DeepKernelGP  # GPyTorch is optional

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
    "DMGP": _network(DeepMercerGP),
    "DFGP": _network(DeepFourierGP),
    "DNN+S": _network(NetworkRegressor),
    "DNN+M": _network(TwoStepGP, "mercer"),
    "DNN+F": _network(TwoStepGP, "fourier"),
}

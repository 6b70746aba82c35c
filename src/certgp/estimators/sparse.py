"""SparseGP: variational sparse GP regression with inducing points."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch

from certgp.data import RowSource
from certgp.errors import InvalidInputError
from certgp.estimators.automatic_rank import AUTOMATIC
from certgp.estimators.planned import Plan, PlannedRegressor, TrialRows
from certgp.estimators.validation import check_choice, check_engine, numbers, one_number, starting_values
from certgp.features import NystromMap
from certgp.features.inducing import INDUCING_METHODS, inducing_points
from certgp.features.nystrom import DEFAULT_JITTER
from certgp.gp import LowRankModel
from certgp.gp.profile import DEFAULT_NOISE_RATIO_BOUNDS
from certgp.kernels import Kernel
from certgp.training import Callback, Candidate, Stage, even_parts, exchange_inducing_points
from certgp.transforms import Identity

_INITIAL_ROWS = 20_000  # k-means on 5,000 rows of protein ended at an objective of 1.1063 instead of 1.1047
# Few points have many local optima and cheap fits, so they get more draws of k-means to start from. On protein (five
# splits) six draws instead of one take the mean objective from 1.2335 to 1.2316 at rank 6, from 1.2151 to 1.2129 at 10.
_MOST_DRAWS, _POINTS_IN_ALL = 6, 60
_EXCHANGES, _SETTLING = 4, 40  # on all rows; iterations that points need afterwards (measured: docs/benchmarks.md)
_TRIAL_SHARE, _WARM_SHARE = 0.1, 0.1  # of max_iter: trial of a start, rest of the subsample; all rows get the rest


class SparseGP(PlannedRegressor):
    """Sparse GP regression (SGPR, Titsias 2009): the kernel seen through r inducing points, below the kernel for
    every X.

    Parameters
    ----------
    rank : number of inducing points, or "auto"
    tolerance, max_rank : for ``rank="auto"``, as in ``MercerGP``
    inducing : where they start: "greedy" (pivoted Cholesky: the points that the others explain least), "kmeans", or an
        array (r, D) in the units of X. Points that are learned may have a better start in k-means, so "greedy" then
        tries both on a subsample, with several draws of k-means where points are few, and keeps the start that
        predicts held-out rows best
    learn_inducing : move them during the fit: by gradients, and now and then those that are hardly missed go to rows
        where they are worth more (unless they were given)
    jitter : part of the definition, Phi Phi' = K_xz (K_zz + jitter sf2 I)^-1 K_zx
    kernel : "gaussian", "matern12", "matern32", "matern52" or a kernel object with starting values
    objective : "elbo" (a lower bound on the exact evidence) or "marginal"
    variance : "dtc" adds the prior variance lost by truncation (the usual SGPR predictive), "lowrank" does not
    length_scale, signal_variance, noise_variance : starting values in the units of the data, kept when
        ``optimize=False``. Signal variance and noise are optimised in closed form, so with ``optimize=True`` their
        starting values do not matter.
    max_iter, standardize, calibrate, dtype, engine, checkpoint, cap_rank, random_state, verbose, callbacks :
        as in ``MercerGP``
    """

    def __init__(
        self,
        rank: int | Literal["auto"] = 100,
        *,
        tolerance: float = 1e-3,
        max_rank: int = 1_000,
        inducing: Any = "greedy",
        learn_inducing: bool = True,
        jitter: float = DEFAULT_JITTER,
        kernel: str | Kernel = "gaussian",
        objective: str = "elbo",
        variance: str = "dtc",
        length_scale: float | Sequence[float] | None = None,
        signal_variance: float | None = None,
        noise_variance: float | None = None,
        optimize: bool = True,
        max_iter: int = 600,
        standardize: bool = True,
        calibrate: bool = False,
        dtype: str = "float64",
        engine: Any = "local",
        checkpoint: str | Path | None = None,
        cap_rank: bool = True,
        random_state: Any = None,
        verbose: int = 0,
        callbacks: Sequence[Callback] | None = None,
    ) -> None:
        self.rank = rank
        self.tolerance = tolerance
        self.max_rank = max_rank
        self.inducing = inducing
        self.learn_inducing = learn_inducing
        self.jitter = jitter
        self.kernel = kernel
        self.objective = objective
        self.variance = variance
        self.length_scale = length_scale
        self.signal_variance = signal_variance
        self.noise_variance = noise_variance
        self.optimize = optimize
        self.max_iter = max_iter
        self.standardize = standardize
        self.calibrate = calibrate
        self.dtype = dtype
        self.engine = engine
        self.checkpoint = checkpoint
        self.cap_rank = cap_rank
        self.random_state = random_state
        self.verbose = verbose
        self.callbacks = callbacks

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if isinstance(self.inducing, str):
            check_choice("inducing", self.inducing, INDUCING_METHODS)
        elif self.rank == AUTOMATIC:
            raise InvalidInputError("rank='auto' chooses inducing points itself; use inducing='greedy' or 'kmeans'")
        if self.dtype != "float64":
            raise InvalidInputError(
                f"dtype={self.dtype!r} keeps fewer digits than whitening by inducing points needs; use "
                "dtype='float64', or MercerGP or FourierGP"
            )
        one_number("jitter", self.jitter, "lie in [0, 1)", lambda x: 0.0 <= x < 1.0)

    def _usable_rank(self, rank: object) -> int:
        """Given inducing points decide the rank themselves."""
        if isinstance(self.inducing, str):
            return super()._usable_rank(rank)
        return len(self._given_points(len(self._standardiser.x_mean)))

    def _plan(self, source: RowSource, rows: TrialRows, rank: int, max_iter: int, rng: np.random.Generator) -> Plan:
        start = starting_values(self, self._standardiser, 0.5 * float(np.sqrt(source.n_columns)))
        trial_share, warm_share = round(_TRIAL_SHARE * max_iter), round(_WARM_SHARE * max_iter) if rows.many else 0
        candidates = []
        for name, points in self._starting_points(source, start.kernel, rank, rng).items():
            features = NystromMap(start.kernel, points, jitter=self.jitter, learn_inducing=self.learn_inducing)
            model = LowRankModel(Identity(source.n_columns), features)
            scan = partial(self._starting_scale, model, source, rng)
            rounds = [[Stage(rows.learn, trial_share, scan)]] if trial_share else []
            if warm_share:
                exchange = partial(self._exchange, model, rows.learn, rng) if warm_share >= _SETTLING else None
                rounds.append([Stage(rows.learn, warm_share, exchange)])
            left = max_iter - trial_share - warm_share
            rest = self._last_stages(model, source, left, rng)
            if not rounds:
                rest[0] = replace(rest[0], prepare=scan)
            candidates.append(Candidate(name, model, rounds, rest))
        return Plan.of(candidates, start)

    def _last_stages(
        self, model: LowRankModel, source: RowSource, max_iter: int, rng: np.random.Generator
    ) -> list[Stage]:
        """On all rows, each after an exchange of points; where iterations are few, one without."""
        parts = min(_EXCHANGES, max_iter // _SETTLING)
        if parts == 0:
            return [Stage(source, max_iter)]
        exchange = partial(self._exchange, model, source, rng)
        return [Stage(source, length, exchange) for length in even_parts(max_iter, parts)]

    def _exchange(self, model: LowRankModel, source: RowSource, rng: np.random.Generator) -> bool:
        """Did points move? Where gradients bring them to their places, none does."""
        if not (self.learn_inducing and isinstance(self.inducing, str)):
            return False
        engine, bounds = check_engine(self.engine), DEFAULT_NOISE_RATIO_BOUNDS
        return exchange_inducing_points(model, source, engine, self.objective, bounds, rng) > 0

    def _starting_points(
        self, source: RowSource, kernel: Kernel, rank: int, rng: np.random.Generator
    ) -> dict[str, torch.Tensor]:
        """By name, the inducing points from which a fit may start."""
        if not isinstance(self.inducing, str):
            return {"given": self._given_points(source.n_columns)}
        sample = source.sample(max(_INITIAL_ROWS, rank), rng)
        both = self.inducing == "greedy" and self.optimize and self.learn_inducing
        if not both:
            return {self.inducing: inducing_points(self.inducing, kernel, sample.X, rank, rng)}
        draws = min(_MOST_DRAWS, max(1, _POINTS_IN_ALL // rank))
        methods = {"greedy": "greedy", "kmeans": "kmeans"} | {f"kmeans {i}": "kmeans" for i in range(2, draws + 1)}
        return {name: inducing_points(method, kernel, sample.X, rank, rng) for name, method in methods.items()}

    def _given_points(self, n_columns: int) -> torch.Tensor:
        wanted = f"be one of {', '.join(INDUCING_METHODS)} or a finite array of shape (r, {n_columns})"
        points = numbers("inducing", self.inducing, wanted)
        if points.ndim != 2 or points.shape[1] != n_columns or len(points) == 0:
            raise InvalidInputError(f"inducing must {wanted}, found an array of shape {points.shape}")
        if not np.isfinite(points).all():
            raise InvalidInputError(f"inducing must {wanted}, found NaN or infinity in it")
        return torch.from_numpy(self._standardiser.inputs(points))

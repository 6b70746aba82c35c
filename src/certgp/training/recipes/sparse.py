"""How a sparse GP is trained: inducing points started in several ways, moved by gradients and by exchanges."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import torch

from certgp.checks import check_choice, numbers, one_number
from certgp.data import RowSource
from certgp.errors import InvalidInputError
from certgp.features import NystromMap
from certgp.features.inducing import INDUCING_METHODS, inducing_points
from certgp.gp import LowRankModel
from certgp.kernels import Kernel
from certgp.training.full_batch.selection import exchange_inducing_points
from certgp.training.full_batch.stages import Stage, even_parts
from certgp.training.full_batch.trials import Candidate
from certgp.training.recipes.settings import AUTOMATIC, Settings
from certgp.training.recipes.staged import Job, Plan, Recipe
from certgp.transforms import Identity

# Why these numbers: docs/decisions/0001 (draws), 0005 (exchanges), 0009 (the rest)
_INITIAL_ROWS = 20_000
_MOST_DRAWS, _POINTS_IN_ALL = 6, 60  # few points have many local optima and cheap fits: more draws of k-means
_EXCHANGES, _SETTLING = 4, 40  # on all rows; iterations that points need afterwards
_TRIAL_SHARE, _WARM_SHARE = 0.1, 0.1  # of max_iter: trial of a start, rest of the subsample; all rows get the rest


@dataclass(frozen=True, eq=False)
class SparseRecipe(Recipe):
    """Inducing points; the parameters are those of ``SparseGP``."""

    inducing: Any
    learn_inducing: bool
    jitter: float

    def check(self, settings: Settings) -> None:
        if isinstance(self.inducing, str):
            check_choice("inducing", self.inducing, INDUCING_METHODS)
        elif settings.rank == AUTOMATIC:
            raise InvalidInputError("rank='auto' chooses inducing points itself; use inducing='greedy' or 'kmeans'")
        if settings.dtype != "float64":
            raise InvalidInputError(
                f"dtype={settings.dtype!r} keeps fewer digits than whitening by inducing points needs; use "
                "dtype='float64', or MercerGP or FourierGP"
            )
        one_number("jitter", self.jitter, "lie in [0, 1)", lambda x: 0.0 <= x < 1.0)

    def usable_rank(self, settings: Settings) -> int | None:
        """Given inducing points decide the rank themselves."""
        return None if isinstance(self.inducing, str) else len(self._given_points(settings))

    def plan(self, job: Job) -> Plan:
        settings, source, learn, max_iter = job.settings, job.source, job.rows.learn, job.settings.max_iter
        start = settings.start(0.5 * float(np.sqrt(source.n_columns)))
        trial_share = round(_TRIAL_SHARE * max_iter)
        warm_share = round(_WARM_SHARE * max_iter) if job.rows.many else 0
        candidates = []
        for name, points in self._starting_points(job, start.kernel).items():
            features = NystromMap(start.kernel, points, jitter=self.jitter, learn_inducing=self.learn_inducing)
            model = LowRankModel(Identity(source.n_columns), features)
            scan = partial(job.choose_length_scales, model)
            rounds = [[Stage(learn, trial_share, scan)]] if trial_share else []
            if warm_share:
                exchange = partial(self._exchange, job, features, learn) if warm_share >= _SETTLING else None
                rounds.append([Stage(learn, warm_share, exchange)])
            rest = self._last_stages(job, features, max_iter - trial_share - warm_share)
            if not rounds:
                rest[0] = replace(rest[0], prepare=scan)
            candidates.append(Candidate(name, model, rounds, rest))
        return Plan.of(candidates, start)

    def _last_stages(self, job: Job, features: NystromMap, max_iter: int) -> list[Stage]:
        """On all rows, each after an exchange of points; where iterations are few, one without."""
        parts = min(_EXCHANGES, max_iter // _SETTLING)
        if parts == 0:
            return [Stage(job.source, max_iter)]
        exchange = partial(self._exchange, job, features, job.source)
        return [Stage(job.source, length, exchange) for length in even_parts(max_iter, parts)]

    def _exchange(self, job: Job, features: NystromMap, source: RowSource) -> bool:
        """Did points move? Where gradients bring them to their places, none does."""
        if not (self.learn_inducing and isinstance(self.inducing, str)):
            return False
        transform, settings = Identity(source.n_columns), job.settings
        return exchange_inducing_points(transform, features, source, settings.engine, settings.objective, job.rng) > 0

    def _starting_points(self, job: Job, kernel: Kernel) -> dict[str, torch.Tensor]:
        """By name, the inducing points from which a fit may start."""
        if not isinstance(self.inducing, str):
            return {"given": self._given_points(job.settings)}
        rank, rng = job.rank, job.rng
        sample = job.source.sample(max(_INITIAL_ROWS, rank), rng)
        both = self.inducing == "greedy" and job.settings.optimize and self.learn_inducing
        if not both:
            return {self.inducing: inducing_points(self.inducing, kernel, sample.X, rank, rng)}
        draws = min(_MOST_DRAWS, max(1, _POINTS_IN_ALL // rank))
        methods = {"greedy": "greedy", "kmeans": "kmeans"} | {f"kmeans {i}": "kmeans" for i in range(2, draws + 1)}
        return {name: inducing_points(method, kernel, sample.X, rank, rng) for name, method in methods.items()}

    def _given_points(self, settings: Settings) -> torch.Tensor:
        n_columns = len(settings.standardiser.x_scale)
        wanted = f"be one of {', '.join(INDUCING_METHODS)} or a finite array of shape (r, {n_columns})"
        points = numbers("inducing", self.inducing, wanted)
        if points.ndim != 2 or points.shape[1] != n_columns or len(points) == 0:
            raise InvalidInputError(f"inducing must {wanted}, found an array of shape {points.shape}")
        if not np.isfinite(points).all():
            raise InvalidInputError(f"inducing must {wanted}, found NaN or infinity in it")
        return torch.from_numpy(settings.standardiser.inputs(points))

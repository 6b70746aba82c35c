"""The recipe for a feature map of one's own: one start, one run on all rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from torch import Tensor

from certgp.features import FeatureMap
from certgp.gp import LowRankModel
from certgp.kernels import Kernel
from certgp.training.full_batch.stages import Stage
from certgp.training.full_batch.trials import Candidate
from certgp.training.recipes.settings import Settings, check_needs_domination
from certgp.training.recipes.staged import Job, Plan, Recipe
from certgp.transforms import Identity

BuildFeatures = Callable[[Kernel, Tensor, int, np.random.Generator], FeatureMap]
_SAMPLE_ROWS = 10_000


@dataclass(frozen=True, eq=False)
class PlainRecipe(Recipe):
    """Any feature map on all columns, trained by L-BFGS from the usual start.

    ``build(kernel, inputs, rank, rng)`` makes the map for a starting kernel, a sample of standardised inputs (n, D) and
    a rank. ``features`` is its class, which says whether the map is dominated by the kernel.
    """

    features: type[FeatureMap]
    build: BuildFeatures

    @property
    def group(self) -> int:  # type: ignore[override]
        """That of the map."""
        return self.features.group

    def check(self, settings: Settings) -> None:
        if not self.features.dominated:
            check_needs_domination(settings, self.features.__name__)

    def plan(self, job: Job) -> Plan:
        settings, source = job.settings, job.source
        start = settings.start(float(np.sqrt(source.n_columns)))
        features = self.build(start.kernel, source.sample(_SAMPLE_ROWS, job.rng).X, job.rank, job.rng)
        model = LowRankModel(Identity(source.n_columns), features)
        scan = partial(job.choose_length_scales, model)
        return Plan.of([Candidate("start", model, [], [Stage(source, settings.max_iter, scan)])], start)

"""How a Mercer GP is trained: projections tried on a subsample, index sets chosen anew between runs."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from certgp.checks import check_choice, check_count
from certgp.data import Chunk, RowSource
from certgp.data.spread import bulk_moments
from certgp.errors import InvalidInputError
from certgp.features import MercerMap
from certgp.features.mercer import INDEX_SETS
from certgp.gp import LowRankModel
from certgp.training.full_batch.selection import reselect_indices
from certgp.training.full_batch.stages import Stage, even_parts
from certgp.training.full_batch.trials import Candidate
from certgp.training.recipes.settings import Settings, check_per_dimension
from certgp.training.recipes.staged import Job, Plan, Recipe
from certgp.transforms import (
    Identity,
    Projection,
    Transform,
    input_moments,
    principal_directions,
    sliced_inverse_directions,
)

_START_LENGTH_SCALE = 2.4  # eps = .3 in the paper's parametrisation
_KEPT = ", input scales kept"
_AUTO_DIMENSIONS = (4, 9)  # both are tried (docs/decisions/0001)
_INITIAL_ROWS = 10_000
_FIRST_SHARE, _TRIAL_SHARE, _TRIAL_ROUNDS = 0.12, 0.08, 4  # of max_iter on the subsample; all rows get the rest
_RUN = 84  # iterations on all rows between two choices of the index set; shorter runs end far behind (0008)


@dataclass(frozen=True, eq=False)
class MercerRecipe(Recipe):
    """Eigenfunctions of the Gaussian kernel; the parameters are those of ``MercerGP``."""

    projection: int | Literal["auto"] | None
    index_set: str
    input_scale: float | Sequence[float] | None

    def check(self, settings: Settings) -> None:
        check_choice("index_set", self.index_set, (*INDEX_SETS, "greedy"))

    def plan(self, job: Job) -> Plan:
        settings, sample = job.settings, job.source.sample(_INITIAL_ROWS, job.rng)
        candidates = []
        for name, transform in self._initial_transforms(settings, sample).items():
            dimension = None if transform.is_identity else transform.dimension
            start = settings.start(_START_LENGTH_SCALE, dimension)
            for learned in self._scales_learned(settings):
                scales = self._input_scales(settings, transform, sample)
                features = MercerMap(start.kernel, scales, job.rank, self._first_index_set(settings))
                features.log_input_scale.requires_grad_(learned)
                model = LowRankModel(deepcopy(transform), features)
                candidates.append(
                    Candidate(name + ("" if learned else _KEPT), model, *self._stages(job, model, features))
                )
        return Plan.of(candidates, start)

    def _scales_learned(self, settings: Settings) -> tuple[bool, ...]:
        """Whether the input scales are learned: given ones are not; the likelihood alone may be better off either way.

        With ``objective="marginal"`` learned scales may narrow the functions until no choice from the pool is as good
        as the present one; the ELBO holds them back (docs/decisions/0006).
        """
        if self.input_scale is not None:
            return (False,)
        return (True, False) if settings.objective == "marginal" and settings.optimize else (True,)

    def _initial_transforms(self, settings: Settings, sample: Chunk) -> dict[str, Transform]:
        """By name, the transforms from which a fit may start."""
        n_columns = sample.X.shape[1]
        dimensions = self._projected_dimensions(n_columns)
        if not dimensions:
            return {"all columns": Identity(n_columns)}
        mean, covariance = input_moments(sample.X)
        found: dict[str, Transform] = {}
        for d in dimensions:
            principal = principal_directions(covariance, d)
            found[f"{d} principal directions"] = Projection(principal, mean, covariance)
        d = dimensions[0]  # in more dimensions the two starts differ little
        inverse = sliced_inverse_directions(sample.X, sample.y, d)
        by_slices: dict[str, Transform] = {f"{d} directions by slices of y": Projection(inverse, mean, covariance)}
        return by_slices | found if settings.optimize else by_slices

    def _first_index_set(self, settings: Settings) -> str:
        """A greedy set needs a fitted model to choose by, so it starts as the set that favours no dimension."""
        if self.index_set != "greedy":
            return self.index_set
        return "total_degree" if settings.optimize else "optimal"

    def _stages(self, job: Job, model: LowRankModel, features: MercerMap) -> tuple[list[list[Stage]], list[Stage]]:
        """Two rounds of trials on the subsample, and the stages of the fit itself."""
        settings, learn, max_iter = job.settings, job.rows.learn, job.settings.max_iter

        def choose(rows: RowSource) -> bool:
            """Choose the index set at the present parameters; False for sets that do not depend on them."""
            if self.index_set == "greedy":
                engine, objective = settings.engine, settings.objective
                reselect_indices(model.transform, features, job.rank, rows, engine, objective, job.rng)
            else:
                features.choose_indices(job.rank)
            return self.index_set in ("greedy", "optimal")

        first = Stage(learn, round(_FIRST_SHARE * max_iter), partial(job.choose_length_scales, model))
        again = Stage(learn, round(_TRIAL_SHARE * max_iter), partial(choose, learn))
        rounds = [_drop_empty([first, again]), _drop_empty([again] * (_TRIAL_ROUNDS - 1))]
        left = max_iter - sum(stage.max_iter for stages in rounds for stage in stages)
        lengths = even_parts(left, max(2, left // _RUN))
        last = [Stage(job.source, length, partial(choose, job.source)) for length in lengths]
        return [stages for stages in rounds if stages], _drop_empty(last)

    def _projected_dimensions(self, n_columns: int) -> list[int]:
        """The dimensions to try; none where all columns are used as they are."""
        if self.projection is None:
            return []
        if self.projection == "auto":
            return [] if n_columns <= _AUTO_DIMENSIONS[0] else [min(d, n_columns) for d in _AUTO_DIMENSIONS]
        wanted = check_count("projection", self.projection)
        if wanted > n_columns:
            raise InvalidInputError(
                f"projection={wanted} is more than the {n_columns} column(s) of X; use at most {n_columns}, or None"
            )
        return [wanted]

    def _input_scales(self, settings: Settings, transform: Transform, sample: Chunk) -> NDArray[np.float64]:
        """Scale of the input measure per kernel dimension, in standardised units."""
        if self.input_scale is None:
            spread = bulk_moments(transform(sample.X).detach())[1].numpy()
            return np.where(spread > 0, spread, 1.0)
        given = check_per_dimension("input_scale", self.input_scale, transform.dimension)
        return given / settings.standardiser.kernel_units[1] if transform.is_identity else given


def _drop_empty(stages: list[Stage]) -> list[Stage]:
    return [stage for stage in stages if stage.max_iter > 0]

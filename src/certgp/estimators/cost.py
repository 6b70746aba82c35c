"""What a fit to many rows will cost, from a measurement on the first of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone

from certgp.checks import check_positive, check_rank
from certgp.data import PickedRows, Rows, StandardisedRows, Standardiser, summarise
from certgp.errors import InvalidInputError
from certgp.estimators.base import GPRegressor
from certgp.estimators.fitting import make_settings
from certgp.estimators.validation import load_rows
from certgp.training.full_batch.growth import largest_subset
from certgp.training.full_batch.speed import Speed
from certgp.training.full_batch.two_folds import kept_bytes
from certgp.training.recipes import StagedTrainer

_FIRST_ROWS = 16_384
_LEAST_RANK, _LARGEST_RANK = 2, 4_000


@dataclass(frozen=True)
class FitEstimate:
    """Rows, passes, memory and seconds of a fit that has not begun; one that converges early takes less."""

    n_rows: int
    rank: int
    passes: float  # evaluations of objective and gradient, in units of all rows
    seconds_per_pass: float  # of the statistics over all rows, as for conditioning
    seconds_per_evaluation: float  # of objective and gradient on all rows
    seconds: float
    memory: int  # bytes beside the rows themselves
    rank_in_time: int | None = None  # the largest rank for ``max_seconds``, where that was given

    def __str__(self) -> str:
        text = (
            f"{self.n_rows:,} rows at rank {self.rank}: about {in_words(self.seconds)} and "
            f"{self.memory / 2**20:,.0f} MiB beside the rows; {self.passes:.1f} evaluations on all rows of "
            f"{in_words(self.seconds_per_evaluation)} each, a pass for predictions or conditioning "
            f"{in_words(self.seconds_per_pass)}"
        )
        return text if self.rank_in_time is None else f"{text}; rank {self.rank_in_time} would end in time"


def estimate_fit(
    model: GPRegressor, X: ArrayLike | Rows, y: ArrayLike | None = None, max_seconds: float | None = None
) -> FitEstimate:
    """What ``model.fit(X, y)`` would cost, from the speed on the first 16,384 rows; for Mercer, Fourier and sparse GPs.

    With ``max_seconds`` also the largest rank that would end in time. The model itself stays as it is.
    """
    rows = load_rows(clone(model), X, y, least_rows=2)
    first = PickedRows(rows, np.arange(min(rows.n_rows, _FIRST_ROWS)))
    summary = summarise(first)
    standardiser = Standardiser.of(summary)
    trainer = model.trainer(make_settings(model, model.trainer_parameters(), standardiser, summary))
    if not isinstance(trainer, StagedTrainer):
        raise InvalidInputError(
            f"estimate_fit is for MercerGP, FourierGP and SparseGP, found {type(model).__name__}; their cost follows "
            "from passes over the rows"
        )
    limit = None if max_seconds is None else check_positive("max_seconds", max_seconds)
    rank, source = check_rank(trainer.settings.rank), StandardisedRows(first, standardiser)
    speed, seen = trainer.measure(source, rank), trainer.rows_seen(rows.n_rows)
    grows = trainer.grows(rows.n_rows)
    subset = largest_subset(rows.n_rows, rows.n_columns) if grows else 0
    return FitEstimate(
        n_rows=rows.n_rows,
        rank=rank,
        passes=seen / rows.n_rows,
        seconds_per_pass=speed.fold * rows.n_rows,
        seconds_per_evaluation=speed.evaluation * rows.n_rows,
        seconds=speed.evaluation * seen,
        memory=8 * subset * (rows.n_columns + 1) + kept_bytes(subset or rows.n_rows, rank),
        rank_in_time=None if limit is None else _rank_for(trainer, source, rank, speed, limit / seen),
    )


def _rank_for(trainer: StagedTrainer, source: StandardisedRows, rank: int, speed: Speed, limit: float) -> int:
    """The largest rank r at which an evaluation takes at most ``limit`` seconds per row, in multiples of the features'
    group: a r + b r^2 goes through the times at the given rank and at half of it.
    """
    half = max(trainer.group, rank // 2 // trainer.group * trainer.group)
    at_half = trainer.measure(source, half).evaluation if half < rank else 0.0
    square = max(0.0, (speed.evaluation / rank - at_half / half) / (rank - half)) if half < rank else 0.0
    line = max(speed.evaluation / rank - square * rank, 0.0)
    ranks = np.arange(max(_LEAST_RANK, trainer.group), _LARGEST_RANK + 1, trainer.group)
    in_time = ranks[line * ranks + square * ranks**2 <= limit]
    return int(in_time[-1]) if len(in_time) else int(ranks[0])


def in_words(seconds: float) -> str:
    """Seconds, minutes or hours."""
    for unit, size in (("h", 3600.0), ("min", 60.0), ("s", 1.0)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{1000.0 * seconds:.3g} ms"

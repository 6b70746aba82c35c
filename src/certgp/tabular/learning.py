"""From the training rows of a table to what is done to each of its columns.

Nothing here looks at a held-out row: medians, levels, mean targets and spans of dates come from the rows that are
marked as training rows. The means that training rows themselves get leave out their own fold.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from certgp.errors import InvalidInputError, TableProblemsError
from certgp.tabular.columns import (
    DAY,
    WEEK,
    YEAR,
    Column,
    Filling,
    LeftOut,
    LevelColumn,
    MeanColumn,
    MomentColumn,
    NumberColumn,
    TruthColumn,
)
from certgp.tabular.encoding import Encoding, TableOptions
from certgp.tabular.parsing import CLOCK, gaps_in, levels_of, moments_of, numbers_of, truths_of
from certgp.tabular.source import RawTable
from certgp.tabular.survey import MOST_LEVELS, ColumnSurvey

Array = NDArray[np.float64]
Integers = NDArray[np.int64]
FOLDS = 5
_SAMPLED = 200_000  # training rows whose numbers are kept for a median; of more, every second, third, ...
_SEASON = 0.5 * YEAR  # span of dates from which a season is more than a trend


@dataclass(frozen=True, eq=False)
class Training:
    """The rows of a table to learn from, by their numbers among all that could be read."""

    is_training: NDArray[np.bool_]  # (n,)
    targets: Array | None  # (n, q) as the model learns them
    folds: Integers  # (n,) of training rows, for means of other rows

    @property
    def stride(self) -> int:
        """Every how many-th row is kept for a median."""
        return max(1, int(self.is_training.sum()) // _SAMPLED)


@dataclass(frozen=True, eq=False)
class Learned:
    """An encoding, and what training rows get instead of its mean targets."""

    encoding: Encoding
    others: Mapping[str, Array] = field(default_factory=dict)  # name -> (folds, levels + 2, targets)

    def encode(
        self, columns: Mapping[str, pa.Array], folds: Integers, training: NDArray[np.bool_], decimal: str
    ) -> Array:
        """Rows as numbers (n, D), training rows with the means of other folds."""
        parts = []
        for column in self.encoding.columns:
            found = column.encode(columns[column.name], decimal)
            if isinstance(column, MeanColumn) and training.any():
                codes = column.codes(columns[column.name])[training]
                found[training] = self.others[column.name][folds[training], codes]
            parts.append(found)
        return np.concatenate(parts, 1)


def learn_encoding(
    table: RawTable, surveys: Mapping[str, ColumnSurvey], training: Training, options: TableOptions
) -> Learned:
    """One pass over the training rows; columns that tell nothing are left out with a reason."""
    learners = {name: _learner(survey, training, options) for name, survey in surveys.items()}
    active = {name: learner for name, learner in learners.items() if not isinstance(learner, LeftOut)}
    if active:
        for part in table.parts(list(active)):
            here = slice(part.start, part.start + len(part))
            rows = np.flatnonzero(training.is_training[here])
            for name, learner in active.items():
                learner.add(part.columns[name].take(pa.array(rows)), part.start + rows)
    columns: list[Column] = []
    left_out: list[LeftOut] = []
    others: dict[str, Array] = {}
    for name, each in learners.items():
        found = each if isinstance(each, LeftOut) else each.column()
        if isinstance(found, LeftOut):
            left_out.append(found)
            continue
        columns.append(found)
        if isinstance(each, _Levels) and isinstance(found, MeanColumn):
            others[name] = each.means_of_others(found)
    if not columns:
        told = "; ".join(f"{column.name!r}: {column.reason}" for column in left_out)
        raise TableProblemsError([f"no input column of {table.title} is left to learn from ({told})"])
    encoding = Encoding(
        tuple(columns), tuple(left_out), (), options.log_target, options.imputes, table.text, asdict(options)
    )
    return Learned(encoding, others)


def _learner(survey: ColumnSurvey, training: Training, options: TableOptions) -> LeftOut | _Numbers | _Levels:
    what, name = survey.what, survey.name
    if what == "empty":
        return LeftOut(name, "it is empty")
    if survey.is_identifier and name not in options.keep:
        return LeftOut(name, survey.why_left_out())
    if what == "category":
        if len(survey.levels) > MOST_LEVELS:
            return LeftOut(name, f"it has more than {MOST_LEVELS:,} levels")
        return _Levels(survey, training, options)
    return _Numbers(survey, training, options)


class _Numbers:
    """Numbers, truths and moments: their range, and some of them for a median."""

    def __init__(self, survey: ColumnSurvey, training: Training, options: TableOptions) -> None:
        self._survey, self._training, self._options = survey, training, options
        self._kept: list[Array] = []
        self._least, self._largest, self._gaps, self._seen = np.inf, -np.inf, 0, 0
        self._clock = [np.inf, -np.inf]  # least and largest time of day

    def add(self, values: pa.Array, rows: Integers) -> None:
        """Further training rows."""
        what, survey = self._survey.what, self._survey
        if what == "moment":
            found = moments_of(values, survey.form)
        else:
            found = truths_of(values) if what == "truth" else numbers_of(values, survey.decimal)
        self._gaps += int(gaps_in(values).sum())
        stride = self._training.stride
        self._kept.append(found[(-self._seen) % stride :: stride])
        self._seen += len(found)
        known = found[np.isfinite(found)]
        if len(known):
            self._least, self._largest = min(self._least, known.min()), max(self._largest, known.max())
            times = known % DAY
            self._clock = [min(self._clock[0], times.min()), max(self._clock[1], times.max())]

    def column(self) -> Column | LeftOut:
        """What is done to it."""
        survey = self._survey
        if not self._least < self._largest and not self._gaps:
            value = f" ({self._least:g})" if survey.what == "number" else ""
            return LeftOut(survey.name, f"it does not vary{value}")
        known = np.concatenate(self._kept)
        known = known[np.isfinite(known)]
        centre = known.mean() if survey.what == "truth" else np.median(known) if len(known) else 0.0
        filling = Filling(float(centre), self._gaps > 0) if self._options.imputes else Filling()
        if survey.what == "moment":
            return self._moment(filling)
        kind = TruthColumn if survey.what == "truth" else NumberColumn
        return kind(survey.name, filling)

    def _moment(self, filling: Filling) -> Column | LeftOut:
        """Only what the span of the training rows shows: a season needs half a year, a weekday a week."""
        span, form = self._largest - self._least, self._survey.form
        has_clock = self._clock[0] < self._clock[1]
        if form == CLOCK:
            parts = ["time of day"]
        else:
            parts = ["trend"] + (["season"] if span >= _SEASON else []) + (["weekday"] if span >= WEEK else [])
            parts += ["time of day"] if has_clock and span >= 0.5 * DAY else []
        return MomentColumn(self._survey.name, tuple(parts), float(self._least), form, filling)


class _Levels:
    """Categories: counts of levels and, for mean targets, sums over each fold."""

    def __init__(self, survey: ColumnSurvey, training: Training, options: TableOptions) -> None:
        self._survey, self._training, self._options = survey, training, options
        self._levels = sorted(survey.levels)
        self._values = pa.array(self._levels, pa.string())
        width = len(self._levels) + 1  # the last is a gap
        q = 0 if training.targets is None else training.targets.shape[1]
        self._counts = np.zeros((FOLDS, width))
        self._sums, self._squares = np.zeros((FOLDS, width, q)), np.zeros((FOLDS, width, q))
        # squares of small differences from a far-off mean would drown in rounding
        self._centre = np.zeros(q) if training.targets is None else training.targets[training.is_training].mean(0)

    def add(self, values: pa.Array, rows: Integers) -> None:
        """Further training rows."""
        found = pc.fill_null(pc.index_in(levels_of(values), self._values), len(self._levels))
        codes = np.asarray(found.to_numpy(zero_copy_only=False), dtype=np.int64)
        folds, width = self._training.folds[rows], self._counts.shape[1]
        cells = folds * width + codes
        self._counts += np.bincount(cells, minlength=FOLDS * width).reshape(FOLDS, width)
        if self._training.targets is None:
            return
        y = self._training.targets[rows] - self._centre
        for j in range(y.shape[1]):
            self._sums[:, :, j] += np.bincount(cells, y[:, j], FOLDS * width).reshape(FOLDS, width)
            self._squares[:, :, j] += np.bincount(cells, y[:, j] ** 2, FOLDS * width).reshape(FOLDS, width)

    def column(self) -> Column | LeftOut:
        """What is done to it."""
        name, imputes = self._survey.name, self._options.imputes
        counts = self._counts.sum(0)
        seen = np.flatnonzero(counts[:-1])
        has_gaps = bool(counts[-1])
        if len(seen) + has_gaps < 2:
            value = f" ({self._levels[seen[0]]!r})" if len(seen) else ""
            return LeftOut(name, f"it does not vary{value}")
        levels = tuple(self._levels[i] for i in seen)
        if len(seen) <= self._options.max_levels:
            shares = tuple(float(counts[i]) / float(counts[:-1].sum()) for i in seen)
            return LevelColumn(name, levels, shares, has_gaps, imputes)
        if self._training.targets is None:
            raise InvalidInputError(
                f"column {name!r} has {len(seen)} levels, more than max_levels={self._options.max_levels}, and becomes "
                "the mean target of each; give y, raise max_levels or leave it out"
            )
        means, overall = shrunken_means(counts, self._sums.sum(0), self._squares.sum(0))
        means, overall = means + self._centre, overall + self._centre
        q = len(overall)
        return MeanColumn(
            name,
            levels,
            tuple(tuple(float(each) for each in means[i]) for i in seen),
            tuple(float(each) for each in overall),
            tuple(float(each) for each in means[-1]) if has_gaps else None,
            imputes,
            ("",) if q == 1 else tuple(f" {j}" for j in range(q)),
        )

    def means_of_others(self, column: MeanColumn) -> Array:
        """For each fold the means of all others: (folds, levels + 2, targets), in the order of the column's codes."""
        kept = set(column.levels)
        seen = [i for i, level in enumerate(self._levels) if level in kept]
        found = []
        for fold in range(FOLDS):
            rest = [k for k in range(FOLDS) if k != fold]
            means, overall = shrunken_means(*(each[rest].sum(0) for each in (self._counts, self._sums, self._squares)))
            found.append(np.concatenate([means[[*seen, -1]], overall[None]]) + self._centre)
        return np.stack(found)


def shrunken_means(counts: Array, sums: Array, squares: Array) -> tuple[Array, Array]:
    """Means of levels drawn to the mean of all, (levels, q) and (q,), from counts (levels,) and sums of y and y^2.

    m_l = m + n_l t2 / (n_l t2 + w) (ybar_l - m); w is the variance within levels and t2 that between them, by the
    analysis of variance: t2 = (sum_l n_l (ybar_l - m)^2 - (L - 1) w) / (n - sum_l n_l^2 / n), zero where negative.
    """
    n, used = counts.sum(), counts > 0
    size = np.maximum(counts, 1.0)[:, None]
    overall = sums.sum(0) / max(n, 1.0)
    means = np.where(used[:, None], sums / size, overall)
    between = (counts[:, None] * np.square(means - overall)).sum(0)
    within = np.maximum((squares - size * np.square(means))[used].sum(0), 0.0) / max(n - used.sum(), 1.0)
    spread = n - np.square(counts).sum() / max(n, 1.0)
    variance = np.maximum((between - (used.sum() - 1.0) * within) / max(spread, 1.0), 0.0)
    trust = counts[:, None] * variance
    with np.errstate(invalid="ignore"):
        shrink = np.where(trust > 0.0, trust / (trust + within), 0.0)
    return overall + shrink * (means - overall), overall

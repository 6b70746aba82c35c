"""Exceptions and warnings that say what was found and what to do about it."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence


class CertgpError(Exception):
    """Base of every error that certgp raises on purpose."""


class InvalidInputError(CertgpError, ValueError):
    """An argument or a data set cannot be used; the text names it, what was found and the remedy."""


class CheckpointError(CertgpError, ValueError):
    """A checkpoint belongs to another fit or cannot be read; a fit does not go on without it."""


class NotPositiveDefiniteError(CertgpError, ArithmeticError):
    """A matrix that must be positive definite is not, in floating point."""


class NotCertifiableError(CertgpError):
    """The statement that was asked for has no proof for this model; the text says which one has."""


class ModelFileError(CertgpError, ValueError):
    """A model file is missing, damaged, of another version or not a model file."""


class DataFileError(CertgpError, ValueError):
    """A data file cannot be read or does not hold what was asked for."""


class TableProblemsError(CertgpError, ValueError):
    """Everything that is wrong with a table, column by column, in one message.

    ``first`` is the column and the row (from 0) of the first problem, where it is about values.
    """

    def __init__(self, problems: Sequence[str], first: tuple[str, int] | None = None) -> None:
        self.problems, self.first = tuple(problems), first
        lines = [f"  {i}. {problem}" for i, problem in enumerate(self.problems, 1)]
        several = "\n".join([f"the table has {len(lines)} problems", *lines])
        super().__init__(self.problems[0] if len(lines) == 1 else several)


class ClusterError(CertgpError, RuntimeError):
    """A cluster cannot be reached or was lost; the text says what to do about it."""


class CertgpWarning(UserWarning):
    """Base of every warning that certgp gives."""


class RankWarning(CertgpWarning):
    """The rank asked for cannot be reached with these rows; a smaller one is used."""


class ConstantDataWarning(CertgpWarning):
    """A column or the target does not vary; the fit goes on without its information."""


class FarNumbersWarning(CertgpWarning):
    """Numbers of a column, few or one of them repeated, are so far from all others that they would decide its scale."""


class WeightScaleWarning(CertgpWarning):
    """Weights of rows are so small or so large on average that the noise which suits them may not be found."""


class RepeatedRowsWarning(CertgpWarning):
    """Some rows are verbatim copies of others and count once."""


class WeakSignalWarning(CertgpWarning):
    """Rows not fitted to are predicted little better than by a constant; the model was drawn towards one."""


class FarPredictionWarning(CertgpWarning):
    """Some predictions are far outside the range of the training targets."""


class ConvergenceWarning(CertgpWarning):
    """The optimiser stopped before it met its tolerance."""


class ExtrapolationWarning(CertgpWarning):
    """Some rows lie outside the range of the training inputs."""

    outside = 0  # number of these rows
    columns: tuple[str, ...] = ()

    @classmethod
    def of(
        cls, outside: int, well_outside: int, n_rows: int, columns: Sequence[str], returns_to_prior: bool = True
    ) -> ExtrapolationWarning:
        """The warning that ``outside`` of ``n_rows`` rows lie outside, in these columns; some of them well outside."""
        names = ", ".join(columns[:10]) + (", ..." if len(columns) > 10 else "")
        there = "fall back towards the prior" if returns_to_prior else "are extrapolations and may be far off"
        warning = cls(
            f"{outside} of {n_rows} row(s) lie outside the range of the training inputs, {well_outside} of them by "
            f"more than a tenth of it, in column(s) {names}; predictions {there} there"
        )
        warning.outside, warning.columns = outside, tuple(columns)
        return warning


class BadRowsWarning(CertgpWarning):
    """Rows or files that cannot be used were left out, as was asked for."""


class HeaderWarning(CertgpWarning):
    """A table seems to have no line of column names; its first row is read as names."""


class VacuousBoundWarning(CertgpWarning):
    """A bound holds but says nothing: the number is larger than the trivial one."""


def warn_user(message: str | CertgpWarning, category: type[CertgpWarning] = CertgpWarning) -> None:
    """Warn at the line of the user's code that called into certgp, however deep the cause lies."""
    level, frame = 2, sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__", "").split(".")[0] in ("certgp", "sklearn"):
        if frame.f_back is None:
            break
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)

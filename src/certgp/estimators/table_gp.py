"""From a frame to a fitted model, and from another frame to its predictions."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.metrics import r2_score
from sklearn.utils.validation import check_is_fitted

from certgp.checks import check_fraction, check_levels
from certgp.data import ArrayRows, Rows
from certgp.data.files import Keeping
from certgp.errors import InvalidInputError
from certgp.estimators.auto import AutoGP
from certgp.estimators.base import GPRegressor
from certgp.estimators.held_out import distribution_of_target
from certgp.estimators.notebook import table_view
from certgp.estimators.table_encoder import columns_of
from certgp.guarantees import Certificate, Explanation
from certgp.report import Report
from certgp.tabular.encoding import DEFAULT_MAX_LEVELS, Encoding, TableOptions
from certgp.tabular.learning import Learned
from certgp.tabular.reading import CheckedTable, Roles, SurveyedTable
from certgp.tabular.source import FrameTable, as_arrow

Array = NDArray[np.float64]
_WEIGHTS = "sample_weight"


class TableGP(RegressorMixin, BaseEstimator):
    """A Gaussian process for a table with categories, dates, gaps and whatever else people have in theirs.

    ``TableGP().fit(frame, "price").predict(new_frame)``. Columns become numbers as ``TableEncoder`` says; ``model_`` is
    the fitted estimator behind, ``columns_`` says what was done to each column.

    Parameters
    ----------
    model : the estimator that learns; by default ``AutoGP()``
    missing : "refuse" or "impute", what to do with gaps among the inputs
    log_target : learn log(y): for positive targets with a long tail. Predictions are then means of y and their standard
        deviations, quantiles and intervals those of y, and ``nlpd`` a density in the units of y; ``certify`` and the
        parameters of ``model_`` speak of log(y)
    categories : columns of numbers that are names, such as codes
    keep : columns to use although they look like identifiers
    drop : columns to leave out
    max_levels : of a category with a column each; more become mean targets
    random_state : seed of the folds of the mean targets
    """

    def __init__(
        self,
        model: GPRegressor | None = None,
        *,
        missing: str = "refuse",
        log_target: bool = False,
        categories: Sequence[str] = (),
        keep: Sequence[str] = (),
        drop: Sequence[str] = (),
        max_levels: int = DEFAULT_MAX_LEVELS,
        random_state: int = 0,
    ) -> None:
        self.model = model
        self.missing = missing
        self.log_target = log_target
        self.categories = categories
        self.keep = keep
        self.drop = drop
        self.max_levels = max_levels
        self.random_state = random_state

    @staticmethod
    def of(model: GPRegressor) -> TableGP:
        """Around a fitted estimator that knows its table (``encoding_``)."""
        given = {name: value for name, value in model.encoding_.options.items() if name != "seed"}
        found = TableGP(clone(model), random_state=model.encoding_.options.get("seed", 0), **given)
        return found._hold(model)

    def fit(self, X: Any, y: str | Sequence[str] | ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Learn from a frame X. y names its target column, or several, or holds the targets (n,) or (n, q)."""
        surveyed = self._survey(X, y, sample_weight)
        learned, rows = _rows_of(surveyed)
        model = AutoGP() if self.model is None else clone(self.model)
        model.fit(rows)
        return self._hold(remember_table(model, learned.encoding))

    def _hold(self, model: GPRegressor) -> Self:
        self.model_, self.encoding_ = model, model.encoding_
        self.feature_names_in_ = np.array(self.encoding_.inputs, dtype=object)
        self.n_features_in_ = len(self.feature_names_in_)
        return self

    @property
    def columns_(self) -> dict[str, str]:
        """What was done to each column of the table."""
        check_is_fitted(self)
        return dict(self.encoding_.lines())

    def encode(self, X: Any) -> ArrayRows:
        """Rows of a frame as ``model_`` takes them; unknown levels and gaps are treated as the fit decided."""
        check_is_fitted(self)
        checked = CheckedTable.of(FrameTable(X), self.encoding_)
        return ArrayRows(checked.numbers(), names=self.encoding_.names)

    def encode_held_out(self, X: Any, y: ArrayLike | None = None) -> ArrayRows:
        """Rows of a frame with their target as ``model_`` has learned it; without y the frame holds it."""
        target = self.encoding_.target(self._target(X, y))
        encoded = self.encode(X).take(slice(None))[0]
        return ArrayRows(encoded, target[:, 0] if target.shape[1] == 1 else target, self.encoding_.names)

    def distribution(self, X: Any) -> Any:
        """The predictive distribution of a new y at each row, in its units."""
        return distribution_of_target(self.fitted, self.encode(X))

    def predict(self, X: Any, return_std: bool = False) -> Array | tuple[Array, Array]:
        """Predictive mean of y (n,), or (n, q), optionally with its standard deviation."""
        mean, variance = self.distribution(X).moments()
        return (mean, np.sqrt(variance)) if return_std else mean

    def predict_quantiles(self, X: Any, quantiles: ArrayLike) -> Array:
        """Quantiles of a new y: (n, number of quantiles), of several outputs (n, q, ...)."""
        found: Array = self.distribution(X).quantiles(check_levels("quantiles", quantiles))
        return found

    def predict_interval(self, X: Any, coverage: float = 0.95) -> tuple[Array, Array]:
        """Lower and upper ends of the central interval that holds a new y with probability ``coverage``."""
        half = 0.5 * check_fraction("coverage", coverage)
        ends = self.predict_quantiles(X, [0.5 - half, 0.5 + half])
        return ends[..., 0], ends[..., 1]

    def nlpd(self, X: Any, y: ArrayLike | None = None) -> Any:
        """Mean negative log predictive density in the units of y; without y the frame holds it. Of outputs (q,)."""
        target = self._target(X, y)
        found = self.distribution(X)
        if target.shape[1] == 1:
            return -float(found.log_density(target[:, 0]).mean())
        return -found.log_density(target).mean(0)

    def score(self, X: Any, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None) -> float:
        """R^2 of the predictive means."""
        target = self._target(X, y)
        return float(r2_score(target, np.asarray(self.predict(X)).reshape(target.shape), sample_weight=sample_weight))

    def certify(self, X: Any = None, *, rows: tuple[Any, ...] | None = None, **options: Any) -> Any:
        """How far the model is from the exact GP on the same numbers, with proof, as ``GPRegressor.certify``; of log(y)
        where that was learned. ``rows`` is the frame of the fit with its target, (frame,), (frame, y) or
        (frame, y, sample_weight), after loading from a file.
        """
        given = None if rows is None else self.training_rows(*rows)
        return self.fitted.certify(None if X is None else self.encode(X), rows=given, **options)

    def explain(self, certificate: Certificate, X: Any = None, **options: Any) -> Explanation:
        """A certificate in words."""
        return self.fitted.explain(certificate, None if X is None else self.encode(X), **options)

    def report(
        self, X: Any, y: ArrayLike | None = None, *, rows: tuple[Any, ...] | None = None, **options: Any
    ) -> Report:
        """One page about the model, judged by rows that it has not learned from, as ``GPRegressor.report``."""
        held_out = self.encode_held_out(X, y)
        return self.fitted.report(held_out, rows=None if rows is None else self.training_rows(*rows), **options)

    def save(self, path: str | Path, include_training_data: bool = False) -> None:
        """Write model and encoding to one file; ``certgp.load`` reads it. The file holds the names of levels."""
        self.fitted.save(path, include_training_data)

    _html_repr = table_view  # of scikit-learn's notebook views

    @property
    def fitted(self) -> GPRegressor:
        """The fitted estimator behind."""
        check_is_fitted(self)
        return self.model_

    def training_rows(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> Rows:
        """The frame of the fit as the model learned from it: with mean targets of other rows."""
        y = list(self.encoding_.targets) if y is None else y
        learned, rows = _rows_of(self._survey(X, y, sample_weight))
        if learned.encoding.columns != self.encoding_.columns:
            raise InvalidInputError("these are not the rows of the fit: their columns would be encoded otherwise")
        return rows

    def _survey(self, X: Any, y: Any, sample_weight: ArrayLike | None) -> SurveyedTable:
        options = TableOptions(
            self.missing,
            self.log_target,
            tuple(self.categories),
            tuple(self.keep),
            self.max_levels,
            int(self.random_state),
        )
        table, targets = _with_targets(as_arrow(X), y)
        dropped = [self.drop] if isinstance(self.drop, str) else list(self.drop)
        inputs = [name for name in table.column_names if name not in (*targets, *dropped)]
        if sample_weight is not None:
            table = table.append_column(_WEIGHTS, pa.array(np.asarray(sample_weight, dtype=np.float64)))
        return SurveyedTable.of(
            FrameTable(table), Roles(tuple(inputs), targets, None if sample_weight is None else _WEIGHTS), options
        )

    def _target(self, X: Any, y: ArrayLike | None) -> Array:
        """y (n, q), given or a column of the frame."""
        if y is not None:
            return columns_of(y)
        table = as_arrow(X)
        missing = [name for name in self.encoding_.targets if name not in table.column_names]
        if missing:
            raise InvalidInputError(f"the frame has no column {missing[0]!r}, the target; give y")
        return np.stack([np.asarray(table.column(name).to_numpy(), float) for name in self.encoding_.targets], 1)


def remember_table(model: GPRegressor, encoding: Encoding) -> GPRegressor:
    """Tell a fitted estimator what its numbers were."""
    model.encoding_ = encoding
    model.target_name_ = ", ".join(encoding.targets)
    return model


def _rows_of(surveyed: SurveyedTable) -> tuple[Learned, Rows]:
    learned, training = surveyed.learn(np.arange(surveyed.n_rows))
    return learned, surveyed.rows(learned, training, Keeping(memory=np.inf))


def _with_targets(table: pa.Table, y: Any) -> tuple[pa.Table, tuple[str, ...]]:
    """The table with its targets, and their names: columns of it, or further ones called y, or y0, y1, ..."""
    if isinstance(y, str) or (isinstance(y, (list, tuple)) and y and all(isinstance(name, str) for name in y)):
        names = (y,) if isinstance(y, str) else tuple(y)
        missing = [name for name in names if name not in table.column_names]
        if missing:
            raise InvalidInputError(f"y names the column {missing[0]!r}, and the table has {table.column_names}")
        return table, names
    if y is None:
        raise InvalidInputError(
            "requires y to be passed, but the target y is None: name its column, or give its values"
        )
    values = columns_of(y)
    if len(values) != table.num_rows:
        raise InvalidInputError(f"X has {table.num_rows} rows but y has {len(values)} values; give one y per row")
    names = ("y",) if values.shape[1] == 1 else tuple(f"y{j}" for j in range(values.shape[1]))
    for name, column in zip(names, values.T, strict=True):
        if name in table.column_names:
            raise InvalidInputError(
                f"X has a column {name!r}, the name of the target; rename it, or name y by its column"
            )
        table = table.append_column(name, pa.array(column))
    return table, names

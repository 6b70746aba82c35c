"""A scikit-learn transformer that turns a table of any columns into numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_array, check_consistent_length, check_is_fitted, validate_data

from certgp.data.columns import TARGET, as_numbers
from certgp.data.files import frame_names
from certgp.data.rows import is_frame
from certgp.errors import InvalidInputError
from certgp.tabular.encoding import DEFAULT_MAX_LEVELS, Encoding, TableOptions
from certgp.tabular.learning import Learned, Training
from certgp.tabular.reading import CheckedTable, Roles, SurveyedTable
from certgp.tabular.source import FrameTable

Array = NDArray[np.float64]


class TableEncoder(TransformerMixin, BaseEstimator):
    """Numbers from a pandas or polars frame, an Arrow table or an array of any columns.

    Numbers stay as they are; true and false become 1 and 0; dates become a trend and circles of season, weekday and
    time of day; categories of few levels a column of 0 and 1 each, those of many the mean target of each level, drawn
    to the mean of all; identifiers, free text and constant columns are left out. ``encoding_.lines()`` says what was
    done.

    ``fit_transform(X, y)``, which a pipeline calls, gives training rows the mean targets of *other* training rows, so
    that a model does not trust them too much; ``transform`` gives those of all.

    Parameters
    ----------
    missing : "refuse" names all columns with gaps; "impute" fills them in (median, share of true, median moment) with a
        column that says where; a gap of a category is a level of its own
    categories : columns of numbers that are names, such as codes
    keep : columns to use although they look like identifiers
    max_levels : of a category with a column each
    random_state : seed of the five folds of the mean targets
    """

    def __init__(
        self,
        *,
        missing: str = "refuse",
        categories: Sequence[str] = (),
        keep: Sequence[str] = (),
        max_levels: int = DEFAULT_MAX_LEVELS,
        random_state: int = 0,
    ) -> None:
        self.missing = missing
        self.categories = categories
        self.keep = keep
        self.max_levels = max_levels
        self.random_state = random_state

    def fit(self, X: Any, y: ArrayLike | None = None) -> Self:
        """Learn what to do with each column of X; y (n,) or (n, q) is needed where a category has many levels."""
        self._learn(X, y)
        return self

    def fit_transform(self, X: Any, y: ArrayLike | None = None) -> Array:
        """Learn, and give the training rows as numbers (n, D), with mean targets of other rows."""
        surveyed, learned, training = self._learn(X, y)
        parts = [
            learned.encode(part.columns, training.folds[here], training.is_training[here], ".")
            for part in surveyed.table.parts(learned.encoding.inputs)
            for here in [slice(part.start, part.start + len(part))]
        ]
        return np.concatenate(parts)

    def transform(self, X: Any) -> Array:
        """Rows of another table as numbers (n, D); its columns may come in another order."""
        check_is_fitted(self)
        checked = CheckedTable.of(FrameTable(self._checked(X, reset=False)), self.encoding_)
        return checked.numbers()

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Names of the numbers that the columns become."""
        check_is_fitted(self)
        if input_features is not None and list(input_features) != list(self._columns):
            raise InvalidInputError(
                f"input_features is not equal to feature_names_in_: found {list(input_features)}, and the table of the "
                f"fit has {list(self._columns)}; leave it out"
            )
        return np.array(self.encoding_.names, dtype=object)

    def _learn(self, X: Any, y: ArrayLike | None) -> tuple[SurveyedTable, Learned, Training]:
        options = TableOptions(
            self.missing, False, tuple(self.categories), tuple(self.keep), self.max_levels, int(self.random_state)
        )
        table = FrameTable(self._checked(X, reset=True))
        if y is not None:
            check_consistent_length(X if is_frame(X) else np.asarray(X), y)
        surveyed = SurveyedTable.of(table, Roles(table.names), options)
        learned, training = surveyed.learn(np.arange(surveyed.n_rows), None if y is None else columns_of(y))
        self.encoding_: Encoding = learned.encoding
        self._columns = table.names
        return surveyed, learned, training

    def _checked(self, X: Any, reset: bool) -> Any:
        """X after scikit-learn's checks; a frame whose columns come in another order is put in that of the fit."""
        if not is_frame(X):
            least = 2 if reset else 1  # of one row nobody can tell what varies
            X = check_array(X, dtype=None, ensure_all_finite=False, ensure_min_samples=least, input_name="X")
            if X.dtype.kind == "c":
                raise InvalidInputError("Complex data not supported: X holds complex numbers; give real ones")
            validate_data(self, X, reset=reset, skip_check_array=True)
            return X
        if reset:
            names = frame_names(X)
            self.feature_names_in_, self.n_features_in_ = np.array(names, dtype=object), len(names)
        return X

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.missing == "impute"
        tags.input_tags.categorical = tags.input_tags.string = True
        return tags


def columns_of(y: ArrayLike) -> Array:
    """Targets (n, q) from (n,) or (n, q)."""
    values = np.asarray(y)
    values = values[:, None] if values.ndim == 1 else values
    return np.stack([as_numbers(column, TARGET, range(len(values))) for column in values.T], 1).astype(np.float64)

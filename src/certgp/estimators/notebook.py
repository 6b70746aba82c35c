"""What a notebook shows of an estimator: scikit-learn's diagram, and after a fit what was learned, of a table also what
was done to its columns.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sklearn.utils import estimator_html_repr

from certgp.estimators.report_words import settings_of, summarise_fit
from certgp.markup import Markup, tag, two_columns

if TYPE_CHECKING:
    from certgp.estimators.base import GPRegressor
    from certgp.estimators.table_gp import TableGP


def notebook_view(self: GPRegressor) -> str:
    """HTML of the parameters and, once fitted, of the model in words and its learned values; of outputs each."""
    return str(estimator_html_repr(self)) + _all_learned(self)


def table_view(self: TableGP) -> str:
    """The same of a model of a table."""
    diagram = str(estimator_html_repr(self))
    if "encoding_" not in vars(self):
        return diagram
    columns = tag("details", tag("summary", tag("strong", "Columns")), two_columns(self.encoding_.lines()), open=True)
    return diagram + columns + _all_learned(self.fitted)


def _all_learned(model: GPRegressor) -> str:
    if model.outputs_ is not None:
        return "".join(_learned(part, f"Output {j}") for j, part in enumerate(model.outputs_))
    return _learned(model, "Learned") if "kernel_" in vars(model) else ""


def _learned(part: GPRegressor, title: str) -> Markup:
    told = [tag("p", text) for text in summarise_fit(part)]
    return tag("details", tag("summary", tag("strong", title)), *told, two_columns(settings_of(part)), open=True)

"""What a notebook shows of an estimator: scikit-learn's diagram, and after a fit what was learned."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sklearn.utils import estimator_html_repr

from certgp.estimators.report_words import settings_of, summarise_fit
from certgp.markup import Markup, tag, two_columns

if TYPE_CHECKING:
    from certgp.estimators.base import GPRegressor


def notebook_view(self: GPRegressor) -> str:
    """HTML of the parameters and, once fitted, of the model in words and its learned values; of outputs each."""
    diagram = str(estimator_html_repr(self))
    if self.outputs_ is not None:
        return diagram + "".join(_learned(part, f"Output {j}") for j, part in enumerate(self.outputs_))
    fitted = "kernel_" in vars(self)
    return diagram + _learned(self, "Learned") if fitted else diagram


def _learned(part: GPRegressor, title: str) -> Markup:
    told = [tag("p", text) for text in summarise_fit(part)]
    return tag("details", tag("summary", tag("strong", title)), *told, two_columns(settings_of(part)), open=True)

"""scikit-learn's callbacks (``sklearn.callback``, from 1.9 on, experimental): a fit tells them of every iteration.

``gp.set_callbacks(ProgressBar(), ScoringMonitor(...)).fit(X, y)``. Each iteration is a task below the fit; the model as
it would be if the fit stopped there is made only for callbacks that ask for it. One that returns True ends the fit. An
older scikit-learn has no such protocol, and estimators have no ``set_callbacks`` then; the parameter ``callbacks``
always works.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from certgp.errors import InvalidInputError
from certgp.training import Iteration

try:
    from sklearn.callback import CallbackSupportMixin as _Support
    from sklearn.callback import with_callbacks
except ImportError:  # scikit-learn before 1.9
    _Support, with_callbacks = object, None

Fitted = TypeVar("Fitted")
SklearnCallbacks: Any = _Support  # what an estimator derives from


def fit_and_tell(estimator: Any, fit: Callable[[], Fitted], X: Any, y: Any, weights: Any) -> Fitted:
    """Run ``fit``, telling the callbacks that ``set_callbacks`` was given."""
    if with_callbacks is None or "_skl_callbacks" not in vars(estimator):
        return fit()
    told: Fitted = with_callbacks(lambda self: _tell(self, fit, X, y, weights))(estimator)
    return told


def _tell(estimator: Any, fit: Callable[[], Fitted], X: Any, y: Any, weights: Any) -> Fitted:
    known = {"X": X, "y": y, "metadata": None if weights is None else {"sample_weight": weights}}
    root = estimator._init_callback_context(max_subtasks=None)
    root.call_on_fit_task_begin(estimator=estimator, **known)

    def each(record: Iteration) -> bool:
        task = root.subcontext(task_name=f"iteration {record.iteration}")
        task.call_on_fit_task_begin(estimator=estimator, **known)
        state = {"reconstruction_attributes": lambda: _so_far(estimator)}
        return bool(task.call_on_fit_task_end(estimator=estimator, **known, **state))

    estimator.told = each
    try:
        fitted = fit()
    finally:
        vars(estimator).pop("told", None)
    root.call_on_fit_task_end(estimator=estimator, **known, reconstruction_attributes=lambda: vars(estimator))
    return fitted


def _so_far(estimator: Any) -> dict[str, Any] | None:
    """The fitted attributes if the fit stopped now; None where it cannot be known."""
    try:
        return dict(vars(estimator.so_far()))
    except InvalidInputError:
        return None

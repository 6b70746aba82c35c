"""Tables as people have them: categories, dates, gaps and identifiers become numbers by rules that training rows fix.

``TableGP`` takes a frame and gives a fitted model; ``TableEncoder`` is the scikit-learn transformer inside it. The
command line does the same with files.
"""

from importlib import import_module
from typing import Any

from certgp.tabular.encoding import Encoding, TableOptions

__all__ = ["Encoding", "TableEncoder", "TableGP", "TableOptions"]
_ESTIMATORS = {"TableEncoder": "table_encoder", "TableGP": "table_gp"}


def __getattr__(name: str) -> Any:
    """The scikit-learn classes live among the estimators and are looked up there when they are asked for."""
    if name not in _ESTIMATORS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"certgp.estimators.{_ESTIMATORS[name]}"), name)

"""How a fold over chunks runs, and how independent tasks do."""

from certgp.engines.base import Engine, Summable
from certgp.engines.folds import fold_feature_statistics, fold_statistics
from certgp.engines.local import LocalEngine, one_thread_below, sum_over
from certgp.engines.side_by_side import run_side_by_side, spare_workers

__all__ = [
    "Engine",
    "LocalEngine",
    "Summable",
    "fold_feature_statistics",
    "fold_statistics",
    "one_thread_below",
    "run_side_by_side",
    "spare_workers",
    "sum_over",
]

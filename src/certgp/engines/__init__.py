"""How a fold over chunks runs."""

from certgp.engines.base import Engine, Summable
from certgp.engines.local import LocalEngine, sum_over

__all__ = ["Engine", "LocalEngine", "Summable", "sum_over"]

"""All reproductions by the name they have on the command line. Modules are imported when they are asked for."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from certgp.errors import InvalidInputError

if TYPE_CHECKING:
    from certgp_paper.experiments.experiment import Experiment

# name -> module and variable
_EXPERIMENTS = {
    "figure1": ("figure1", "FIGURE1"),
    "figure2": ("figure2", "FIGURE2"),
    "predictive": ("predictive", "PREDICTIVE"),
    "curves": ("curves", "CURVES"),
    "ranks": ("ranks", "RANKS"),
    "table-nlpd": ("linear_table", "TABLE_NLPD"),
    "table-rmse": ("linear_table", "TABLE_RMSE"),
    "seeds": ("seeds", "SEEDS_TABLE"),
    "scaling": ("scaling", "SCALING"),
    "row-cost": ("row_cost", "ROW_COST"),
    "exact-gp": ("exact_gp", "EXACT_GP"),
    "table-deep": ("deep_table", "TABLE_DEEP"),
    "sensitivity": ("sensitivity", "SENSITIVITY"),
    "electric": ("electric", "ELECTRIC"),
}


def experiment_names() -> list[str]:
    """Names of all reproductions, in the order of the paper."""
    return list(_EXPERIMENTS)


def experiment(name: str) -> Experiment:
    """The reproduction of this name."""
    from certgp_paper.experiments.experiment import Experiment  # slow: the names alone must come at once

    if name not in _EXPERIMENTS:
        raise InvalidInputError(f"unknown experiment {name!r}; known ones: {', '.join(_EXPERIMENTS)}")
    module, variable = _EXPERIMENTS[name]
    found = getattr(import_module(f"certgp_paper.experiments.{module}"), variable)
    if not isinstance(found, Experiment):
        raise TypeError(f"certgp_paper.experiments.{module}.{variable} is not an Experiment")
    return found

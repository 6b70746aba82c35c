"""Fitting hyper-parameters: the objective, the optimiser, and what they did."""

from certgp.training.evaluation_log import EvaluationLog
from certgp.training.history import Callback, History, Iteration
from certgp.training.lbfgs import OptimisationResult, minimise
from certgp.training.objective import ExactObjective, LowRankObjective, Objective
from certgp.training.parameters import ParameterVector
from certgp.training.schedule import Stage, even_parts, run_stages
from certgp.training.selection import exchange_inducing_points, reselect_indices
from certgp.training.start import choose_exact_starting_scale, choose_starting_scale
from certgp.training.trials import Candidate, Trial, TrialsResult, try_candidates

__all__ = [
    "Callback",
    "Candidate",
    "EvaluationLog",
    "ExactObjective",
    "History",
    "Iteration",
    "LowRankObjective",
    "Objective",
    "OptimisationResult",
    "ParameterVector",
    "Stage",
    "Trial",
    "TrialsResult",
    "choose_exact_starting_scale",
    "choose_starting_scale",
    "even_parts",
    "exchange_inducing_points",
    "minimise",
    "reselect_indices",
    "run_stages",
    "try_candidates",
]

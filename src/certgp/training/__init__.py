"""Fitting hyper-parameters: the objective, the optimiser, and what they did."""

from certgp.training.evaluation_log import EvaluationLog
from certgp.training.full_batch.lbfgs import minimise
from certgp.training.full_batch.objective import ExactObjective, LowRankObjective, Objective
from certgp.training.full_batch.selection import exchange_inducing_points, reselect_indices
from certgp.training.full_batch.stages import Stage, even_parts, run_stages
from certgp.training.full_batch.start import choose_exact_starting_scale, choose_starting_scale
from certgp.training.full_batch.trials import Candidate, Trial, TrialsResult, try_candidates
from certgp.training.history import Callback, History, Iteration, OptimisationResult
from certgp.training.parameters import ParameterVector
from certgp.training.progress import Meter, Status
from certgp.training.stopping import StopRule

__all__ = [
    "Callback",
    "Candidate",
    "EvaluationLog",
    "ExactObjective",
    "History",
    "Iteration",
    "LowRankObjective",
    "Meter",
    "Objective",
    "OptimisationResult",
    "ParameterVector",
    "Stage",
    "Status",
    "StopRule",
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

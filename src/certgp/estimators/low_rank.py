"""What Mercer, Fourier and sparse GPs share: a model is planned, trained in stages and conditioned once on all rows."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from certgp.data import ArraySource, Chunk
from certgp.errors import ConvergenceWarning
from certgp.estimators.base import GPRegressor, unoptimised
from certgp.estimators.validation import (
    DTYPES,
    OBJECTIVES,
    VARIANCES,
    StartingValues,
    capped_rank,
    check_choice,
    check_count,
    check_engine,
    generator,
)
from certgp.gp import LowRankModel, LowRankProcess, log_evidence
from certgp.gp.profile import DEFAULT_NOISE_RATIO_BOUNDS, profile_evidence
from certgp.kernels import Kernel
from certgp.training import OptimisationResult, Stage, run_stages
from certgp.training.objective import fold_feature_statistics


@dataclass(frozen=True, eq=False)
class Plan:
    """A model at its starting values and the stages that train it."""

    model: LowRankModel
    stages: Sequence[Stage]
    start: StartingValues


class LowRankRegressor(GPRegressor):
    """A GP whose covariance is Phi Phi' + s2 I. Subclasses choose the features (``_plan``)."""

    _process: LowRankProcess
    rank: int
    kernel: str | Kernel
    objective: str
    variance: str
    length_scale: float | Sequence[float] | None
    signal_variance: float | None
    noise_variance: float | None
    optimize: bool
    max_iter: int
    dtype: str
    engine: Any
    cap_rank: bool

    @abstractmethod
    def _plan(self, source: ArraySource, rank: int, max_iter: int, rng: np.random.Generator) -> Plan:
        """Build the model for standardised rows."""

    def _check_parameters(self) -> None:
        check_choice("objective", self.objective, OBJECTIVES)
        check_choice("variance", self.variance, VARIANCES)
        check_choice("dtype", self.dtype, tuple(DTYPES))
        check_count("max_iter", self.max_iter)
        check_engine(self.engine)

    def _fit_process(
        self, X: NDArray[np.floating], y: NDArray[np.floating]
    ) -> tuple[LowRankProcess, OptimisationResult]:
        rank = capped_rank(self.rank, X, self.cap_rank)
        source = self._source(X, y)
        plan = self._plan(source, rank, self.max_iter, generator(self.random_state))
        learn = self.optimize and not source.target_is_constant
        outcome = self._train(plan) if learn else unoptimised()
        stats = fold_feature_statistics(plan.model, source, check_engine(self.engine))
        signal, noise = float(plan.start.kernel.signal_variance), plan.start.noise_variance
        if learn:
            best = profile_evidence(stats, self.objective, DEFAULT_NOISE_RATIO_BOUNDS)
            signal, noise = best.signal_variance, best.noise_variance
        return LowRankProcess(plan.model.requires_grad_(False), stats, signal, noise, self.variance), outcome

    def _train(self, plan: Plan) -> OptimisationResult:
        engine = check_engine(self.engine)
        outcome = run_stages(
            plan.model, plan.stages, engine, self.objective, DEFAULT_NOISE_RATIO_BOUNDS, self._observers()
        )
        if not outcome.converged and not outcome.stopped:
            warnings.warn(f"the fit stopped before it converged: {outcome.reason}", ConvergenceWarning, stacklevel=4)
        return outcome

    def _source(self, X: NDArray[np.floating], y: NDArray[np.floating]) -> ArraySource:
        return ArraySource(X, y, self._standardiser, DTYPES[self.dtype])

    def _extend_process(self, X: NDArray[np.floating], y: NDArray[np.floating]) -> LowRankProcess:
        more = fold_feature_statistics(self._process.model, self._source(X, y), check_engine(self.engine))
        return self._process.updated(more)

    def _kernel_units(self) -> NDArray[np.float64]:
        """Units of the kernel's inputs, one per kernel dimension."""
        return self._standardiser.x_scale

    def _kernel_in_user_units(self) -> Kernel:
        features = self._process.model.features
        scales = features.log_length_scale.detach().exp().numpy() * self._kernel_units()
        return features.kernel_family(scales, self._process.signal_variance * self._standardiser.y_scale**2)

    def _log_evidence(self) -> float:
        stats = self._process.statistics.scaled(self._process.signal_variance)
        return log_evidence(stats, self._process.noise_variance)

    def _n_rows(self) -> int:
        return self._process.statistics.n

    def _rank(self) -> int:
        return self._process.model.rank


def input_moments(rows: Chunk) -> tuple[torch.Tensor, torch.Tensor]:
    """Mean (D,) and covariance (D, D) of sampled standardised inputs."""
    mean = rows.X.mean(0)
    centred = rows.X - mean
    return mean, centred.mT @ centred / rows.X.shape[0]

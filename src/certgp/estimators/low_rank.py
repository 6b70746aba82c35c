"""What Mercer, Fourier and sparse GPs share: a model is planned, trained in stages and conditioned once on all rows."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from certgp.data import ArraySource, Chunk, ChunkSource, RowSource
from certgp.errors import ConvergenceWarning, InvalidInputError, NotCertifiableError, warn_user
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
    checked_rows,
    generator,
)
from certgp.features import FeatureMap
from certgp.gp import GaussianProcess, LowRankModel, LowRankProcess, Statistics, log_evidence
from certgp.gp.profile import DEFAULT_NOISE_RATIO_BOUNDS, profile_evidence
from certgp.guarantees import (
    Certificate,
    Interval,
    RankCurve,
    certify_dominated,
    certify_through_reference,
    fourier_rank_curve,
    nested_rank_curve,
    pointwise_bounds,
)
from certgp.kernels import Kernel
from certgp.training import OptimisationResult, Stage, choose_starting_scale, run_stages
from certgp.training.objective import fold_feature_statistics
from certgp.transforms import Identity

_START_ROWS = 2_000
_WARM_ROWS = 4_000  # twice as many above 40,000 rows
_REFERENCE_FACTOR = 4  # default reference rank, in multiples of the model's


@dataclass(frozen=True, eq=False)
class Plan:
    """A model at its starting values and the stages that train it."""

    model: LowRankModel
    stages: Sequence[Stage]
    start: StartingValues


class LowRankRegressor(GPRegressor):
    """A GP whose covariance is Phi Phi' + s2 I. Subclasses choose the features (``_plan``)."""

    _process: LowRankProcess
    _training_rows: tuple[NDArray[np.floating], NDArray[np.floating]] | None = None  # for certificates; not copied
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

    def certify(
        self,
        X: ArrayLike | None = None,
        *,
        reference_rank: int | None = None,
        rows: tuple[ArrayLike, ArrayLike] | None = None,
    ) -> Certificate:
        """How far this model is from the exact GP with the same hyper-parameters, with proof.

        Features below the kernel (Mercer, Nystrom) certify themselves from their statistics. ``reference_rank`` asks
        for a certificate through a larger reference model instead, which bounds the KL divergence from both sides and
        works for Fourier features too; it reads the training rows once more (``rows=(X, y)`` after loading from a
        file). With X, ``mean_error``, ``variance_lower`` and ``variance_upper`` bound every prediction.
        """
        check_is_fitted(self)
        if self.dtype != "float64":
            raise NotCertifiableError(
                "float32 features leave rounding errors that the bounds do not cover; fit with dtype='float64' instead"
            )
        process = self._process
        if reference_rank is None and process.model.features.minorises:
            certificate = certify_dominated(process.statistics, process.signal_variance, process.noise_variance)
            return self._with_predictions(certificate, X, process.model.features, process.statistics)
        result = certify_through_reference(
            process.model,
            process.signal_variance,
            process.noise_variance,
            self._rows_for_certificate(rows),
            check_engine(self.engine),
            check_count("reference_rank", _REFERENCE_FACTOR * self.rank_ if reference_rank is None else reference_rank),
            generator(self.random_state),
        )
        if not result.model_statistics.close_to(process.statistics):
            raise NotCertifiableError(
                "these rows are not the ones the model was conditioned on (X or y changed after fit, or others were "
                "given); pass the original ones as certify(rows=(X, y))"
            )
        return self._with_predictions(result.certificate, X, result.reference, result.statistics)

    def _with_predictions(
        self, certificate: Certificate, X: ArrayLike | None, reference: FeatureMap, stats: Statistics
    ) -> Certificate:
        """The certificate in the units of y, with bounds on the predictions at X where X is given."""
        process, unit = self._process, self._standardiser.y_scale
        evidence = certificate.log_evidence
        if evidence is not None:
            evidence = Interval(self._user_evidence(evidence.lower), self._user_evidence(evidence.upper))
        if not isinstance(process.model.transform, Identity):
            kind = type(process.model.transform).__name__.lower()
            about = f"the exact GP meant here has the same {kind} g(x) in front of its kernel: it is a GP on g(x)"
            certificate = replace(certificate, assumptions=(*certificate.assumptions, about))
        certificate = replace(certificate, log_evidence=evidence)
        if X is None:
            return certificate
        inputs = self._tensor(self._validated(X))
        with torch.no_grad():
            features = math.sqrt(process.signal_variance) * reference(process.model.transform(inputs))
        bounds = pointwise_bounds(
            stats.scaled(process.signal_variance), features, process.signal_variance, process.noise_variance
        )
        mean, _ = process.moments(inputs)
        return replace(
            certificate,
            theorem=certificate.theorem + ", P1 (pointwise)",
            mean_error=unit * ((mean - bounds.mean).abs() + bounds.mean_error).numpy(),
            variance_lower=unit**2 * bounds.variance_lower.numpy(),
            variance_upper=unit**2 * bounds.variance_upper.numpy(),
        )

    def _rows_for_certificate(self, rows: tuple[ArrayLike, ArrayLike] | None) -> ArraySource:
        if rows is not None:
            X, y = checked_rows(self, *rows, reset=False)
        elif self._training_rows is not None:
            X, y = self._training_rows
        else:
            raise NotCertifiableError(
                "this certificate reads the training rows again, and a model that was loaded, unpickled or extended by "
                "partial_fit does not have them; pass certify(rows=(X, y))"
            )
        if len(X) != self._n_rows():
            raise InvalidInputError(f"rows has {len(X)} rows but the model was conditioned on {self._n_rows()}")
        return self._source(X, y)

    def rank_curve(self) -> RankCurve:
        """Log evidence and guarantee for every rank up to the fitted one, at the fitted hyper-parameters."""
        check_is_fitted(self)
        process = self._process
        curve = nested_rank_curve if process.model.features.minorises else fourier_rank_curve
        result = curve(process.statistics, process.signal_variance, process.noise_variance)
        shift = self._user_evidence(0.0)
        elbo = None if result.elbo is None else result.elbo + shift
        return replace(result, log_evidence=result.log_evidence + shift, elbo=elbo)

    def __getstate__(self) -> dict[str, Any]:
        """Without the training rows: a pickled model is as small as a saved one."""
        state: dict[str, Any] = super().__getstate__()
        return state | {"_training_rows": None} if "_training_rows" in state else state

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
        self._training_rows = (X, y)
        rank = self._usable_rank(X)
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

    def _fit_calibrated(
        self, X: NDArray[np.floating], y: NDArray[np.floating]
    ) -> tuple[GaussianProcess, OptimisationResult]:
        fitted = super()._fit_calibrated(X, y)
        self._training_rows = (X, y)
        return fitted

    def _usable_rank(self, X: NDArray[np.floating]) -> int:
        """The rank asked for, as far as these rows can carry it."""
        return capped_rank(self.rank, X, self.cap_rank)

    def _starting_scale(self, model: LowRankModel, source: ArraySource, rng: np.random.Generator) -> None:
        """Look for length-scales at which the model explains something, unless the user gave them."""
        if self.length_scale is not None or isinstance(self.kernel, Kernel):
            return
        rows = ChunkSource(source.sample(_START_ROWS, rng))
        choose_starting_scale(model, rows, check_engine(self.engine), self.objective, DEFAULT_NOISE_RATIO_BOUNDS)

    def _warm_rows(self, source: ArraySource, rng: np.random.Generator) -> RowSource:
        """A subsample on which a good basin is found cheaply, or all rows where there are few."""
        size = _WARM_ROWS * (2 if source.n_rows > 40_000 else 1)
        return ChunkSource(source.sample(size, rng)) if source.n_rows > 1.5 * size else source

    def _train(self, plan: Plan) -> OptimisationResult:
        engine = check_engine(self.engine)
        outcome = run_stages(
            plan.model, plan.stages, engine, self.objective, DEFAULT_NOISE_RATIO_BOUNDS, self._observers()
        )
        if not outcome.converged and not outcome.stopped:
            warn_user(f"the fit stopped before it converged: {outcome.reason}", ConvergenceWarning)
        return outcome

    def _source(self, X: NDArray[np.floating], y: NDArray[np.floating]) -> ArraySource:
        return ArraySource(X, y, self._standardiser, DTYPES[self.dtype])

    def _extend_process(self, X: NDArray[np.floating], y: NDArray[np.floating]) -> LowRankProcess:
        self._training_rows = None
        more = fold_feature_statistics(self._process.model, self._source(X, y), check_engine(self.engine))
        return self._process.updated(more)

    def _kernel_units(self) -> NDArray[np.float64]:
        """Units of the kernel's inputs, one per kernel dimension."""
        return self._standardiser.x_scale

    def _low_rank_members(self) -> list[LowRankProcess]:
        """The process, or those of which it is the mixture."""
        return [member for member in self._process.members if isinstance(member, LowRankProcess)]

    def _kernel_in_user_units(self) -> Kernel:
        process = self._low_rank_members()[0]
        features = process.model.features
        scales = features.log_length_scale.detach().exp().numpy() * self._kernel_units()
        return features.kernel_family(scales, process.signal_variance * self._standardiser.y_scale**2)

    def _log_evidence(self) -> float:
        """Of the process, or the mean over those of which it is the mixture."""
        members = self._low_rank_members()
        return float(np.mean([log_evidence(p.statistics.scaled(p.signal_variance), p.noise_variance) for p in members]))

    def _n_rows(self) -> int:
        return self._low_rank_members()[0].statistics.n

    def _rank(self) -> int:
        return self._low_rank_members()[0].model.rank


def input_moments(rows: Chunk) -> tuple[torch.Tensor, torch.Tensor]:
    """Mean (D,) and covariance (D, D) of sampled standardised inputs."""
    mean = rows.X.mean(0)
    centred = rows.X - mean
    return mean, centred.mT @ centred / rows.X.shape[0]

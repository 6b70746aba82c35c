"""What Mercer, Fourier and sparse GPs share: a model is planned, trained in stages and conditioned once on all rows."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from certgp.checks import check_positive
from certgp.data import ArraySource, Chunk, ChunkSource, RowSource
from certgp.errors import ConvergenceWarning, InvalidInputError, NotCertifiableError, warn_user
from certgp.estimators.automatic_rank import AUTOMATIC, fit_with_automatic_rank
from certgp.estimators.base import GPRegressor, unoptimised
from certgp.estimators.certification import DEFAULT_MAX_REFERENCE_RANK, Confirm, Request, certify_fitted
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
from certgp.gp import LowRankModel, LowRankProcess, log_evidence
from certgp.gp.profile import DEFAULT_NOISE_RATIO_BOUNDS, profile_evidence
from certgp.guarantees import Certificate, RankCurve, ValidationRows, nested_rank_curve, paired_rank_curve
from certgp.guarantees.statistical import DEFAULT_PROBES
from certgp.kernels import Kernel
from certgp.training import OptimisationResult, Stage, choose_starting_scale, run_stages
from certgp.training.objective import fold_feature_statistics

_START_ROWS = 2_000
_WARM_ROWS = 4_000  # twice as many above 40,000 rows


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
    _certificate: Certificate | None = None  # the tightest statement about the training rows so far
    rank: int | Literal["auto"]
    tolerance: float
    max_rank: int
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
        tol: float | None = None,
        max_reference_rank: int = DEFAULT_MAX_REFERENCE_RANK,
        delta: float | None = None,
        probes: int = DEFAULT_PROBES,
        exact_solve: bool | Confirm = False,
        rows: tuple[ArrayLike, ArrayLike] | None = None,
    ) -> Certificate:
        """How far this model is from the exact GP with the same hyper-parameters, with proof.

        Parameters
        ----------
        X : rows to predict; ``mean_error``, ``variance_lower`` and ``variance_upper`` then bound every prediction
        reference_rank : certify through a reference of this many features, from both sides. Without it, features below
            the kernel (Mercer, Nystrom) certify themselves from their statistics, and others take a reference that
            doubles until its half-width is 1 % of the divergence
        tol : double the reference until the half-width of the KL divergence per row, or with X the error of the exact
            means in the units of y, is at most this
        max_reference_rank : where the doubling ends
        delta : where the rigorous interval of the KL divergence stays too wide, tighten it with ``probes`` random
            products by the exact kernel matrix, O(N^2); the statement then holds with probability 1 - delta
        exact_solve : where the reference is too weak for ``tol``, compute the exact means by conjugate gradients with
            streamed products by the exact kernel matrix, O(N^2) each. The cost is estimated first: True prints it to
            stderr and goes on, a function of the ``CostEstimate`` decides by returning True or False
        rows : the training rows (X, y), needed after loading from a file for everything but the saved certificate

        Without arguments the best certificate that is known is returned: a saved or earlier one, where it is tighter.
        """
        check_is_fitted(self)
        request = Request(reference_rank, tol, max_reference_rank, delta, probes, exact_solve)
        known = self._certificate
        if X is None and rows is None and request.plain and known is not None and self._training_rows is None:
            return known
        new = None if X is None else self._validated(X)
        certificate = certify_fitted(self, new, lambda: self._rows_for_certificate(rows), request)
        if X is None and request.plain and known is not None and known.kl.upper <= certificate.kl.upper:
            return known
        surely = certificate.confidence == 1.0
        if surely and (known is None or certificate.kl.upper < known.kl.upper):
            self._certificate = certificate.without_rows()
        return certificate

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

    def rank_curve(self, X: ArrayLike | None = None, y: ArrayLike | None = None) -> RankCurve:
        """Log evidence and guarantee for every rank up to the fitted one, at the fitted hyper-parameters.

        With validation rows X (n, D), y (n,) also their mean negative log predictive density at every rank.
        """
        check_is_fitted(self)
        process = self._process
        features, stats, sf2, s2 = (
            process.model.features,
            process.statistics,
            process.signal_variance,
            process.noise_variance,
        )
        rows = self._validation_rows(X, y)
        if features.minorises:
            result = nested_rank_curve(stats, sf2, s2, rows)
        else:
            result = paired_rank_curve(features, stats, sf2, s2, rows)
        shift = self._user_evidence(0.0)
        elbo = None if result.elbo is None else result.elbo + shift
        nlpd = None if result.nlpd is None else result.nlpd + math.log(self._standardiser.y_scale)
        return replace(result, log_evidence=result.log_evidence + shift, elbo=elbo, nlpd=nlpd)

    def _validation_rows(self, X: ArrayLike | None, y: ArrayLike | None) -> ValidationRows | None:
        if X is None and y is None:
            return None
        if X is None or y is None:
            raise InvalidInputError("rank_curve takes validation rows as X and y together; one of them is missing")
        rows, target = checked_rows(self, X, y, reset=False)
        inputs, process = self._tensor(rows), self._process
        with torch.no_grad():
            features = process.model(inputs)
        targets = torch.from_numpy(self._standardiser.target(target))
        return ValidationRows(features, targets, process.carried(inputs), process.variance_kind == "dtc")

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
        if self.rank == AUTOMATIC:
            check_positive("tolerance", self.tolerance)
            check_count("max_rank", self.max_rank)
        check_engine(self.engine)

    def _fit_process(
        self, X: NDArray[np.floating], y: NDArray[np.floating]
    ) -> tuple[LowRankProcess, OptimisationResult]:
        self._training_rows, self._certificate = (X, y), None
        if self.rank == AUTOMATIC:
            return fit_with_automatic_rank(self, X, y)
        return self._fit_at(self._source(X, y), self._usable_rank(X, self.rank))

    def _fit_at(self, source: ArraySource, rank: int) -> tuple[LowRankProcess, OptimisationResult]:
        """Train at one rank and condition on all rows."""
        plan = self._plan(source, rank, self.max_iter, generator(self.random_state))
        learn = self.optimize and not source.target_is_constant
        outcome = self._train(plan) if learn else unoptimised()
        stats = fold_feature_statistics(plan.model, source, check_engine(self.engine))
        signal, noise = float(plan.start.kernel.signal_variance), plan.start.noise_variance
        if learn:
            best = profile_evidence(stats, self.objective, DEFAULT_NOISE_RATIO_BOUNDS)
            signal, noise = best.signal_variance, best.noise_variance
        return LowRankProcess(plan.model.requires_grad_(False), stats, signal, noise, self.variance), outcome

    def _usable_rank(self, X: NDArray[np.floating], rank: object) -> int:
        """The rank asked for, as far as these rows can carry it."""
        return capped_rank(rank, X, self.cap_rank)

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
        self._training_rows, self._certificate = None, None
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

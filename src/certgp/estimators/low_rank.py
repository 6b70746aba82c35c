"""What Mercer, Fourier and sparse GPs share: a model is planned, trained in stages and conditioned once on all rows."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy, deepcopy
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, Self

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
from certgp.estimators.fingerprint import fingerprint
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
from certgp.gp import GaussianProcess, LowRankModel, LowRankProcess, log_evidence
from certgp.gp.calibration import gaussian_nlpd
from certgp.gp.profile import DEFAULT_NOISE_RATIO_BOUNDS, profile_evidence
from certgp.guarantees import Certificate, RankCurve, ValidationRows, nested_rank_curve, paired_rank_curve
from certgp.guarantees.statistical import DEFAULT_PROBES
from certgp.kernels import Kernel
from certgp.training import (
    Candidate,
    EvaluationLog,
    OptimisationResult,
    Stage,
    TrialsResult,
    choose_starting_scale,
    run_stages,
    try_candidates,
)
from certgp.training.objective import fold_feature_statistics
from certgp.transforms import Clip, Identity

_START_ROWS = 2_000
_CHECKPOINT_SEED = 0
_WARM_ROWS = 4_000  # twice as many above 40,000 rows


@dataclass(frozen=True, eq=False)
class Plan:
    """A model at its starting values and the stages that train it; or several, to be tried before one is trained."""

    model: LowRankModel
    stages: Sequence[Stage]
    start: StartingValues
    candidates: Sequence[Candidate] = ()

    @staticmethod
    def of(candidates: Sequence[Candidate], start: StartingValues) -> Plan:
        """A plan that tries candidates."""
        return Plan(candidates[0].model, candidates[0].stages, start, candidates)


@dataclass(frozen=True, eq=False)
class TrialRows:
    """A subsample on which starts are compared and good basins found cheaply, and rows held out from it."""

    learn: RowSource
    held_out: Chunk
    many: bool  # are there so many more rows that a subsample is worth training on?


class LowRankRegressor(GPRegressor):
    """A GP whose covariance is Phi Phi' + s2 I. Subclasses choose the features (``_plan``)."""

    _process: LowRankProcess
    _training_rows: tuple[NDArray[np.floating], NDArray[np.floating]] | None = None  # for certificates; not copied
    _unfinished: Callable[[], LowRankProcess] | None = None  # only during a fit, for ``so_far``
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
    checkpoint: str | Path | None

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

    def so_far(self) -> Self:
        """In a callback: the model that this fit would return if it stopped now, while it goes on.

        For scores on other rows along the way; costs one pass over the training rows.
        """
        process = self._process_so_far()
        if process is None:
            raise InvalidInputError("so_far() is for callbacks, while a fit runs; afterwards use the model itself")
        model = copy(self)
        model._unfinished, model._process = None, process
        model._box_in()
        model._publish(replace(unoptimised(), converged=False, reason="the fit was still running"))
        return model

    def _process_so_far(self) -> LowRankProcess | None:
        return None if self._unfinished is None else self._unfinished()

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
        return ValidationRows(features, targets, process.carried(inputs), process.regained(inputs))

    def __getstate__(self) -> dict[str, Any]:
        """Without the training rows: a pickled model is as small as a saved one."""
        state: dict[str, Any] = super().__getstate__()
        return state | {"_training_rows": None} if "_training_rows" in state else state

    @abstractmethod
    def _plan(self, source: RowSource, rows: TrialRows, rank: int, max_iter: int, rng: np.random.Generator) -> Plan:
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
        rng = generator(self._seed())
        rows = self._trial_rows(source, rng)
        plan = self._plan(source, rows, rank, self.max_iter, rng)
        if not self.optimize or source.target_is_constant:
            return self._condition(plan, source, learn=False), unoptimised()
        with self._evaluation_log(rank) as log:
            plan, trials = self._tried(plan, source, rows, log)
            self.trials_ = () if trials is None else trials.trials
            outcome = self._train(plan, source, None if trials is None else trials.outcome, log)
        return self._condition(plan, source), outcome

    def _tried(
        self, plan: Plan, source: RowSource, rows: TrialRows, log: EvaluationLog | None, alone: bool = False
    ) -> tuple[Plan, TrialsResult | None]:
        """The plan of the candidate that does best on rows held out from the trials. One without rivals has no trial
        (unless it is to be tried ``alone``): its first stages become part of the fit, on all rows where there are few.
        """
        if len(plan.candidates) == 1 and not alone:
            (only,) = plan.candidates
            first = [stage for stages in only.rounds for stage in stages]
            first = first if rows.many else [replace(stage, source=source) for stage in first]
            return replace(plan, stages=[*first, *only.stages], candidates=()), None
        if not any(candidate.rounds for candidate in plan.candidates):  # too few iterations to try anything
            return replace(plan, candidates=()), None

        def begin(candidate: Candidate) -> None:
            self._unfinished = partial(self._condition, replace(plan, model=candidate.model), source)

        def score(model: LowRankModel) -> float:
            return self._held_out_nlpd(replace(plan, model=model), rows)

        engine, observers = check_engine(self.engine), self._observers()
        result = try_candidates(
            plan.candidates, begin, score, engine, self.objective, DEFAULT_NOISE_RATIO_BOUNDS, observers, log
        )
        return Plan(result.best.model, result.best.stages, plan.start), result

    def _held_out_nlpd(self, plan: Plan, rows: TrialRows, source: RowSource | None = None) -> float:
        """Mean negative log predictive density of the held-out rows given the subsample, or another source."""
        process = self._condition(plan, rows.learn if source is None else source)
        mean, variance = process.moments(rows.held_out.X)
        total = variance + process.noise_variance
        return gaussian_nlpd(rows.held_out.y.numpy(), mean.numpy(), total.numpy())

    def _condition(self, plan: Plan, source: RowSource, learn: bool = True) -> LowRankProcess:
        """The process at the present parameters, with its own copy of them, given all rows."""
        model = deepcopy(plan.model).requires_grad_(False)
        stats = fold_feature_statistics(model, source, check_engine(self.engine))
        signal, noise = float(plan.start.kernel.signal_variance), plan.start.noise_variance
        if learn:
            best = profile_evidence(stats, self.objective, DEFAULT_NOISE_RATIO_BOUNDS)
            signal, noise = best.signal_variance, best.noise_variance
        return LowRankProcess(model, stats, signal, noise, self.variance)

    def _fit_calibrated(
        self, X: NDArray[np.floating], y: NDArray[np.floating]
    ) -> tuple[GaussianProcess, OptimisationResult]:
        fitted = super()._fit_calibrated(X, y)
        self._training_rows = (X, y)
        return fitted

    def _usable_rank(self, X: NDArray[np.floating], rank: object) -> int:
        """The rank asked for, as far as these rows can carry it."""
        return capped_rank(rank, X, self.cap_rank)

    def _starting_scale(self, model: LowRankModel, source: RowSource, rng: np.random.Generator) -> None:
        """Look for length-scales at which the model explains something, unless the user gave them."""
        if self.length_scale is not None or isinstance(self.kernel, Kernel):
            return
        rows = ChunkSource(source.sample(_START_ROWS, rng))
        choose_starting_scale(model, rows, check_engine(self.engine), self.objective, DEFAULT_NOISE_RATIO_BOUNDS)

    def _trial_rows(self, source: ArraySource, rng: np.random.Generator) -> TrialRows:
        """At most 4,000 rows (8,000 of many) to learn from and half as many to compare on; four fifths and one fifth
        where there are few.
        """
        size = _WARM_ROWS * (2 if source.n_rows > 40_000 else 1)
        held_out = max(1, min(size // 2, source.n_rows // 5))
        learned = max(1, min(size, source.n_rows - held_out))
        sample = source.sample(learned + held_out, rng)
        order = torch.from_numpy(rng.permutation(len(sample.y)))
        here, there = order[:learned].sort().values, order[learned:].sort().values
        learn = self._warm_up(Chunk(sample.X[here], sample.y[here]))
        return TrialRows(learn, Chunk(sample.X[there], sample.y[there]), source.n_rows > 1.5 * size)

    def _warm_up(self, rows: Chunk) -> ChunkSource:
        """A subsample in the precision of trials: rounding does not matter where only a basin is sought."""
        warm = torch.float64 if self.dtype == "float64" else torch.float32
        return ChunkSource(Chunk(rows.X.to(warm), rows.y.to(warm)))

    def _train(
        self,
        plan: Plan,
        source: RowSource,
        after: OptimisationResult | None = None,
        log: EvaluationLog | None = None,
        warn: bool = True,
    ) -> OptimisationResult:
        """Run the stages of a plan, after those of a trial where there was one."""
        if after is not None and after.stopped:
            return after
        engine, observers = check_engine(self.engine), self._observers()
        self._unfinished = partial(self._condition, plan, source)
        outcome = run_stages(
            plan.model, plan.stages, engine, self.objective, DEFAULT_NOISE_RATIO_BOUNDS, observers, log, after
        )
        self._unfinished = None
        if warn and not outcome.converged and not outcome.stopped:
            warn_user(f"the fit stopped before it converged: {outcome.reason}", ConvergenceWarning)
        return outcome

    def _seed(self) -> Any:
        """The random state, fixed for the whole fit where a checkpoint must be able to repeat it."""
        if self.checkpoint is None or isinstance(self.random_state, (int, np.integer)):
            return self.random_state
        if self.random_state is None:
            return _CHECKPOINT_SEED
        raise InvalidInputError(
            f"checkpoint needs random_state to be a whole number or None, found {self.random_state!r}: a resumed fit "
            "draws the same subsamples again"
        )

    @contextmanager
    def _evaluation_log(self, rank: int) -> Iterator[EvaluationLog | None]:
        """The checkpoint of this fit: it stays when the fit is interrupted and is removed when it is done."""
        if self.checkpoint is None or self._training_rows is None:
            yield None
            return
        path = Path(self.checkpoint)
        if self.rank == AUTOMATIC:  # one fit per rank
            path = path.with_name(f"{path.name}.{rank}")
        log = EvaluationLog(path, fingerprint(self, *self._training_rows, self._seed()))
        try:
            yield log
        except BaseException:
            log.close()
            raise
        log.remove()

    def _source(self, X: NDArray[np.floating], y: NDArray[np.floating]) -> ArraySource:
        return ArraySource(X, y, self._standardiser, DTYPES[self.dtype])

    def _extend_process(self, X: NDArray[np.floating], y: NDArray[np.floating]) -> LowRankProcess:
        self._training_rows, self._certificate = None, None
        more = fold_feature_statistics(self._process.model, self._source(X, y), check_engine(self.engine))
        return self._process.updated(more)

    def _kernel_units(self) -> NDArray[np.float64]:
        """Units of the kernel's inputs, one per kernel dimension: those of X, or none behind a projection."""
        transform = self._low_rank_members()[0].model.transform
        return self._standardiser.x_scale if isinstance(transform, (Identity, Clip)) else np.ones(transform.dimension)

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

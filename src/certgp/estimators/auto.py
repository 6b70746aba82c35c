"""AutoGP: the low-rank model that predicts held-out rows best."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from certgp.data import Chunk, Rows, RowSource, StandardisedRows, SubsetSource
from certgp.errors import InvalidInputError, NotCertifiableError
from certgp.estimators.automatic_rank import AUTOMATIC, fit_with_automatic_rank
from certgp.estimators.base import unoptimised
from certgp.estimators.fourier import FourierGP
from certgp.estimators.low_rank import LowRankRegressor
from certgp.estimators.mercer import MercerGP
from certgp.estimators.planned import Plan, PlannedRegressor, TrialRows
from certgp.estimators.sparse import SparseGP
from certgp.estimators.validation import generator
from certgp.features import FourierMap
from certgp.gp import LowRankProcess
from certgp.kernels import Kernel
from certgp.training import Callback, EvaluationLog, OptimisationResult, Stage, Trial

_LEARNED = "fourier-learned"
CANDIDATES = ("mercer", "mercer-marginal", "sparse", "fourier", _LEARNED)
_HARD_TO_CERTIFY = ("mercer-marginal", _LEARNED)  # no use where a rank is to be proven
_CERTIFIABLE = ("mercer", "sparse")  # from their own statistics, at no cost
_PRICE_OF_PROOF = 0.01  # in held-out NLPD: what a method that can certify itself may cost
_SHARES = (0.25, 0.4, 1.0)  # of what is left of the iterations on all rows, for those still in the race
_LAST_SHARE = 0.15  # of the winner's iterations, on all rows at the end
_HELD_OUT = 3_000
_SUBSAMPLE_SHARE, _LEAST_SUBSAMPLE, _MOST_SUBSAMPLE = 4, 4_000, 8_000
_FEWEST_ROWS = 50  # below, held-out rows say nothing
_TRIAL_RANK = 100  # at which methods are compared where the rank is to be found


@dataclass(frozen=True, eq=False)
class _Contender:
    """A method in the contest: its estimator, its plan, what its training reached so far."""

    name: str
    estimator: PlannedRegressor
    plan: Plan
    outcome: OptimisationResult
    trial: Trial
    losses: NDArray[np.float64]  # of the held-out rows; their mean is the trial's score


class AutoGP(LowRankRegressor):
    """Picks among Mercer, Fourier and sparse GPs: all are trained on a subsample, the one that predicts rows held out
    from it best is trained on all rows.

    Which one wins depends on the data, and their own objectives do not tell (they are evidences of different models, or
    bounds of different tightness): rows that none of them has seen do. ``method_`` names the winner, ``trials_`` holds
    the scores of all, ``choice_`` says it in words.

    Parameters
    ----------
    rank : number of features, or "auto" (see ``MercerGP``)
    candidates : methods to choose from: "mercer" (certifiable: ELBO), "mercer-marginal" (the paper's likelihood),
        "sparse", "fourier", "fourier-learned" (learned frequencies: not an approximation of a kernel any more, so
        ``certify`` refuses it; leave it out where you need certificates)
    kernel : "gaussian", "matern12", "matern32" or "matern52"; Mercer models are for the Gaussian kernel only
    max_iter : optimiser iterations of each candidate; None takes each method's own default
    tolerance, max_rank, standardize, calibrate, dtype, engine, checkpoint, cap_rank, random_state, verbose, callbacks :
        as in ``MercerGP``
    """

    _active: PlannedRegressor | None = None  # the method being trained, during a fit

    def __init__(
        self,
        rank: int | Literal["auto"] = 100,
        *,
        candidates: Sequence[str] = CANDIDATES,
        tolerance: float = 1e-3,
        max_rank: int = 1_000,
        kernel: str | Kernel = "gaussian",
        max_iter: int | None = None,
        standardize: bool = True,
        calibrate: bool = False,
        dtype: str = "float64",
        engine: Any = "local",
        checkpoint: str | Path | None = None,
        cap_rank: bool = True,
        random_state: Any = None,
        verbose: int = 0,
        callbacks: Sequence[Callback] | None = None,
    ) -> None:
        self.rank = rank
        self.candidates = candidates
        self.tolerance = tolerance
        self.max_rank = max_rank
        self.kernel = kernel
        self.max_iter = max_iter
        self.standardize = standardize
        self.calibrate = calibrate
        self.dtype = dtype
        self.engine = engine
        self.checkpoint = checkpoint
        self.cap_rank = cap_rank
        self.random_state = random_state
        self.verbose = verbose
        self.callbacks = callbacks

    def _check_parameters(self) -> None:
        for estimator in self._contestants().values():
            estimator._check_parameters()

    def _check_certifiable(self) -> None:
        features = self._process.model.features
        if isinstance(features, FourierMap) and features.learns_frequencies:
            others = tuple(name for name in self.candidates if name != _LEARNED)
            raise NotCertifiableError(
                f"AutoGP chose '{_LEARNED}', whose learned frequencies approximate no kernel, so there is no exact GP "
                f"to compare it with; leave it out to certify: candidates={others or ('fourier',)!r}"
            )
        super()._check_certifiable()

    def _contestants(self) -> dict[str, PlannedRegressor]:
        """Unfitted estimators by name, with the parameters they share with this one."""
        names = self.candidates
        if isinstance(names, str) or not names or any(name not in CANDIDATES for name in names):
            raise InvalidInputError(f"candidates must be some of {', '.join(CANDIDATES)}, found {names!r}")
        family = self.kernel if isinstance(self.kernel, str) else getattr(self.kernel, "name", "")
        usable = [
            name
            for name in dict.fromkeys(names)
            if (family == "gaussian" or not name.startswith("mercer"))
            and (self.dtype != "float32" or name != "sparse")
            and (self.rank != AUTOMATIC or name not in _HARD_TO_CERTIFY)
        ]
        if not usable:
            raise InvalidInputError(
                f"candidates={tuple(names)!r} has no method for rank={self.rank!r}, kernel={self.kernel!r} and "
                f"dtype={self.dtype!r}; "
                "add 'fourier'"
            )
        return {name: self._contestant(name) for name in usable}

    def _contestant(self, name: str) -> PlannedRegressor:
        built: dict[str, PlannedRegressor] = {
            "mercer": MercerGP(),
            "mercer-marginal": MercerGP(objective="marginal", variance="lowrank"),
            "sparse": SparseGP(),
            "fourier": FourierGP(),
            _LEARNED: FourierGP(learn_frequencies=True),
        }
        shared = {
            parameter: value
            for parameter, value in self.get_params(deep=False).items()
            if parameter not in ("candidates", "calibrate") and not (parameter == "max_iter" and value is None)
        }
        if name == "sparse" and self.dtype == "mixed":
            shared["dtype"] = "float64"  # whitening by inducing points needs the digits
        estimator = built[name]
        estimator.set_params(**shared)
        return estimator

    def _fit_process(self, rows: Rows) -> tuple[LowRankProcess, OptimisationResult]:
        self._remember(rows)
        contestants = self._contestants()
        for estimator in contestants.values():
            estimator._standardiser, estimator._summary = self._standardiser, self._summary
            estimator._training_rows = rows
        source = self._source(rows)
        if len(contestants) == 1 or rows.n_rows < _FEWEST_ROWS or self._summary.target_is_constant:
            name, estimator = next(iter(contestants.items()))
            self._announce(name, (), f"{name}: there was nothing to choose from or too few rows to compare")
            return self._taken_over(estimator, *estimator._fit_process(rows))
        with self._evaluation_log(0) as log:
            winner = self._contest(contestants, source, log)
            self._active = winner.estimator
            if self.rank == AUTOMATIC:
                return self._taken_over(winner.estimator, *fit_with_automatic_rank(winner.estimator, rows))
            last = Stage(source, max(1, round(_LAST_SHARE * winner.estimator.max_iter)))  # with the held-out rows
            plan = replace(winner.plan, stages=[*winner.plan.stages, last])
            outcome = winner.estimator._train(plan, source, winner.outcome, log)
        return self._taken_over(winner.estimator, winner.estimator._condition(plan, source), outcome)

    def _taken_over(
        self, estimator: PlannedRegressor, process: LowRankProcess, outcome: OptimisationResult
    ) -> tuple[LowRankProcess, OptimisationResult]:
        self._active, self._certificate = None, estimator._certificate
        return process, outcome

    def _contest(
        self,
        contestants: dict[str, PlannedRegressor],
        source: StandardisedRows,
        log: EvaluationLog | None,
    ) -> _Contender:
        """All are trained on a subsample, then further on all rows but the held-out ones, since some methods gain more
        from many rows and iterations than others (measured: docs/benchmarks.md). A method leaves the race when it is
        behind and another gain like its last one would not bring it to the front.
        """
        rng = generator(self._seed())
        rows, learned = self._trial_rows_of(source, rng)
        field = [self._entered(name, each, learned, rows, rng, log) for name, each in contestants.items()]
        finalists = field
        latest = {contender.name: contender for contender in field}
        for share in _SHARES:
            further = [self._trained_further(each, rows, learned, share, log) for each in finalists]
            latest |= {contender.name: contender for contender in further}
            finalists = _still_in_the_race(finalists, further)
            if len(finalists) == 1:
                break
        winner = _winner(finalists)
        self._announce(winner.name, _trials(latest.values()), _reason(winner, _ranked(finalists)[0], latest, rows))
        return winner

    def _entered(
        self,
        name: str,
        estimator: PlannedRegressor,
        source: SubsetSource,
        rows: TrialRows,
        rng: np.random.Generator,
        log: EvaluationLog | None,
    ) -> _Contender:
        started, self._active = time.perf_counter(), estimator
        wanted = min(_TRIAL_RANK, self.max_rank) if self.rank == AUTOMATIC else self.rank
        rank = estimator._usable_rank(wanted)
        plan = estimator._plan(source, rows, rank, estimator.max_iter, rng)
        plan, result = estimator._tried(plan, source, rows, log, alone=True)
        outcome = unoptimised() if result is None else result.outcome
        losses = estimator._held_out_losses(plan, rows)
        trial = Trial(name, outcome.value, float(losses.mean()), time.perf_counter() - started)
        return _Contender(name, estimator, plan, outcome, trial, losses)

    def _trained_further(
        self,
        contender: _Contender,
        rows: TrialRows,
        source: RowSource,
        share: float,
        log: EvaluationLog | None,
    ) -> _Contender:
        """The next stages, as far as they are on this source, for a share of their iterations; and the score they lead
        to.
        """
        started = time.perf_counter()
        stages, later = _divided(contender.plan.stages, source, share)
        if not stages or contender.outcome.stopped:
            return contender
        estimator, plan = contender.estimator, replace(contender.plan, stages=stages)
        self._active = estimator
        outcome = estimator._train(plan, source, contender.outcome, log, warn=False)
        losses = estimator._held_out_losses(plan, rows, source)
        seconds = contender.trial.seconds + time.perf_counter() - started
        trial = Trial(contender.name, outcome.value, float(losses.mean()), seconds)
        return replace(contender, outcome=outcome, trial=trial, losses=losses, plan=replace(plan, stages=later))

    def _trial_rows_of(self, source: StandardisedRows, rng: np.random.Generator) -> tuple[TrialRows, SubsetSource]:
        """The subsample and the held-out rows, and a source of all rows but the latter."""
        held_out = np.sort(rng.permutation(source.n_rows)[: max(1, min(_HELD_OUT, source.n_rows // 5))])
        learned = SubsetSource(source, np.setdiff1d(np.arange(source.n_rows), held_out))
        size = int(np.clip(source.n_rows // _SUBSAMPLE_SHARE, min(_LEAST_SUBSAMPLE, learned.n_rows), _MOST_SUBSAMPLE))
        chunk = source.take(held_out)
        held = Chunk(chunk.X.double(), chunk.y.double())
        return TrialRows(self._warm_up(learned.sample(size, rng)), held, many=True), learned

    def _process_so_far(self) -> LowRankProcess | None:
        return None if self._active is None else self._active._process_so_far()

    def _announce(self, name: str, trials: tuple[Trial, ...], reason: str) -> None:
        self.method_, self.trials_, self.choice_ = name, trials, reason
        if self.verbose:
            print(reason)


def _ranked(contenders: Sequence[_Contender]) -> list[_Contender]:
    return sorted(contenders, key=lambda contender: contender.trial.score)


def _as_good_as_the_best(contenders: Sequence[_Contender]) -> list[_Contender]:
    """The best and those whose mean loss exceeds its by no more than the standard error of the difference: below that,
    rounding would decide.
    """
    ranked = _ranked(contenders)
    return [each for each in ranked if _as_good(each.losses - ranked[0].losses)]


def _still_in_the_race(before: Sequence[_Contender], after: Sequence[_Contender]) -> list[_Contender]:
    """Those as good as the best, and those whose last gain, if repeated, would bring them to the front."""
    front = _ranked(after)[0].trial.score
    tied = _as_good_as_the_best(after)
    gains = [old.trial.score - new.trial.score for old, new in zip(before, after, strict=True)]
    return [new for new, gain in zip(after, gains, strict=True) if new in tied or new.trial.score - gain <= front]


def _winner(finalists: Sequence[_Contender]) -> _Contender:
    """The best, or a method that can certify itself where held-out rows cannot tell it from the best and the price, as
    far as they know it, is small.
    """
    tied = _as_good_as_the_best(finalists)
    dearest = tied[0].trial.score + _PRICE_OF_PROOF
    return next((each for each in tied if each.name in _CERTIFIABLE and each.trial.score <= dearest), tied[0])


def _trials(contenders: Iterable[_Contender]) -> tuple[Trial, ...]:
    return tuple(each.trial for each in _ranked(list(contenders)))


def _as_good(differences: NDArray[np.float64]) -> bool:
    return bool(differences.mean() <= differences.std() / np.sqrt(len(differences)))


def _divided(stages: Sequence[Stage], source: RowSource, share: float) -> tuple[list[Stage], list[Stage]]:
    """The leading stages on a source, up to a share of their iterations, and what remains of all stages.

    A stage that begins with a change of the model (a new index set) is not cut, though it exceeds the share: an
    optimiser that starts anew in its middle ends far behind (bike: test NLPD -2.21 instead of -2.85).
    """
    leading = list(takewhile(lambda stage: stage.source is source, stages))
    budget = round(share * sum(stage.max_iter for stage in leading))
    now: list[Stage] = []
    later = list(stages)
    while later and budget > 0 and later[0].source is source:
        stage = later.pop(0)
        length = stage.max_iter if stage.prepare is not None else min(budget, stage.max_iter)
        now.append(replace(stage, max_iter=length))
        if stage.max_iter > length:
            later.insert(0, Stage(source, stage.max_iter - length))
        budget -= length
    return now, later


def _reason(winner: _Contender, best: _Contender, latest: Mapping[str, _Contender], rows: TrialRows) -> str:
    scores = ", ".join(f"{trial.name} {trial.score:.4g}" for trial in _trials(latest.values()))
    why = (
        "lowest mean negative log predictive density"
        if winner is best
        else f"it can be certified, and {best.name} is not better by more than the standard error of the difference"
    )
    return (
        f"{winner.name}: {why} on {len(rows.held_out.y)} rows held out from the training rows "
        f"(standardised units: {scores})"
    )

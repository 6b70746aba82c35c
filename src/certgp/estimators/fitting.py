"""One fit: rows in the user's units, what trains on them, and the fitted model that comes out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from certgp.checks import check_positive
from certgp.data import (
    ChunkSource,
    Rows,
    RowSource,
    StandardisedRows,
    Standardiser,
    Summary,
    WeightedRows,
    summarise,
    target_is_constant,
)
from certgp.data.rows import read_target
from certgp.data.summary import DISTINCT_LIMIT
from certgp.errors import InvalidInputError, warn_user
from certgp.estimators.fingerprint import fingerprint
from certgp.estimators.validation import check_engine, new_generator
from certgp.estimators.warping import Warping, choose_warping
from certgp.gp import GaussianProcess, LowRankProcess, noise_scale
from certgp.gp.student import StudentNoise
from certgp.guarantees import Certificate
from certgp.guarantees.automatic_rank import SCOUT_ROWS, Scout, search_rank
from certgp.guarantees.certify import note_input_noise
from certgp.guarantees.subject import Subject, note_warped_inputs
from certgp.models import FittedModel
from certgp.training.evaluation_log import FitCheckpoint
from certgp.training.progress import ProgressLine
from certgp.training.recipes import AUTOMATIC, DTYPES, Fit, Settings, Trainer
from certgp.training.stopping import INTERRUPTED, StopRule, interrupted_outcome, is_out_of_time, with_cuts
from certgp.training.student import ROUNDS, choose_student, settle_weights

_CHECKPOINT_SEED = 0
_CALIBRATION_SHARE = 0.1  # of the rows
_FEWEST_CALIBRATION_ROWS = 10


@dataclass(frozen=True, eq=False)
class Fitting:
    """A fit that is going on."""

    rows: Rows  # in the user's units
    given: Rows  # the same, without the weights that Student-t noise has found so far
    summary: Summary
    settings: Settings
    source: RowSource  # the same rows, standardised
    trainer: Trainer
    new_generator: Callable[[], np.random.Generator]  # of the user's random state
    warping: Warping

    def run(self, calibrate: bool) -> tuple[FittedModel, Fit]:
        """Train on all rows; with ``calibrate`` unless the training itself holds rows back to scale the noise."""
        if calibrate and not self.trainer.calibrates:
            if self.settings.is_student:
                raise InvalidInputError(
                    "calibrate=True scales Gaussian noise, and likelihood='student' scales its own on rows predicted "
                    "without their targets; leave calibrate=False"
                )
            model, fit = self._calibrate()
            self.trainer.decide_noise(model.process, self.source)
        else:
            fit, certificate = self._train_or_rescue()
            fit, process = self._settle_or_rescue(fit)
            model = self.model(process, certificate if process is fit.process else None)
        if self.settings.is_student and not target_is_constant(self.source):
            given = StandardisedRows(self.given, self.settings.standardiser)
            for member in model.process.members:
                member.noise_model = choose_student(member, given, self.source, self.settings.new_generator())
        if model.certificate is not None:
            known = note_warped_inputs(model.standardiser, model.certificate)
            model = replace(model, certificate=note_input_noise(model.process, known))
        fit = self._told_cuts(fit)
        if fit.choice is not None and self.warping.words is not None:
            fit = replace(fit, choice=f"{fit.choice} {self.warping.words}")
        return model, fit

    def _train_or_rescue(self) -> tuple[Fit, Certificate | None]:
        """Train on all rows; interrupted by the user, the model so far where there is one. With a checkpoint the fit is
        to go on later instead.
        """
        try:
            return self._train(self.source)
        except KeyboardInterrupt:
            process = None if self.settings.checkpoint is not None else self.trainer.process_so_far()
            if process is None:
                raise
            warn_user("the fit was interrupted; this is the best model so far")
            return Fit(process, interrupted_outcome(), interrupted=True), None
        finally:
            if self.settings.line is not None:
                self.settings.line.close()

    def _settle_or_rescue(self, fit: Fit) -> tuple[Fit, GaussianProcess]:
        """The process as far as rows left out confirm it; interrupted by the user, as it was trained."""
        try:
            return fit, self.trainer.settle(fit, self.source)
        except KeyboardInterrupt:
            warn_user("the fit was interrupted after training; rows left out have not confirmed the model")
            return interrupted(fit), fit.process

    def reweigh(self, process: GaussianProcess) -> Rows | None:
        """The rows with the weights that Student-t noise finds; None where it is Gaussian."""
        noises = [member.noise_model for member in process.members]
        noise = next((each for each in noises if isinstance(each, StudentNoise)), None)
        if noise is None:
            return None
        settings, rows = self.settings, self.given
        source = StandardisedRows(rows, settings.standardiser)
        factors = settle_weights(process, source, noise, settings, settings.new_generator()).numpy()
        given = rows.weights(slice(None))
        return WeightedRows(rows, factors if given is None else given * factors)

    def model(self, process: GaussianProcess, certificate: Certificate | None = None) -> FittedModel:
        """A process in the user's units."""
        lower, upper = self.summary.range()
        in_float64, standardiser = self.settings.dtype != "float32", self.settings.standardiser
        targets = self.summary.target_range()
        return FittedModel(process, standardiser, lower, upper, in_float64, certificate, self.rows, targets)

    def _train(self, source: RowSource) -> tuple[Fit, Certificate | None]:
        """Train on some rows: at the rank asked for, or at the smallest one whose certificate meets the tolerance."""
        settings = self.settings
        if settings.rank != AUTOMATIC:
            return self.told(self.trainer.fit(source, settings.rank)), None
        proven: list[tuple[GaussianProcess, Certificate]] = []

        def search(trainer: Trainer) -> Fit:
            reached: list[Fit] = []  # the last fit that is whole

            def fit_at(rank: int) -> Fit:
                reached[:] = [trainer.fit_at(source, rank)]
                return reached[0]

            some = source.sample(SCOUT_ROWS, settings.new_generator())
            # a copy, so that the trainer's model so far is never that of the scout
            scout = Scout(partial(copy(trainer).fit_at, ChunkSource(some)), some, settings.max_rank)
            has_time, usable = trainer.settings.has_time_for, trainer.usable_rank
            try:
                fit, process, certificate = search_rank(
                    fit_at, usable, self._subject, source, settings.tolerance, settings.max_rank, scout, has_time
                )
            except KeyboardInterrupt:
                if not reached or settings.checkpoint is not None or trainer.process_so_far() is not None:
                    raise
                warn_user("the fit was interrupted; this is the best model so far, whose rank is not proven to suffice")
                return interrupted(reached[0])
            proven.append((process, certificate))
            return replace(fit, process=process)

        fit = self.told(self.trainer.fit_automatically(source, search))
        if not proven:  # interrupted before the first rank was judged
            return fit, None
        process, certificate = proven[0]
        return fit, certificate if fit.process is process else None

    def told(self, fit: Fit) -> Fit:
        """A fit that was put off says why."""
        reason = self.settings.put_off if fit.outcome.stopped else None
        return fit if reason is None else replace(fit, outcome=replace(fit.outcome, reason=reason))

    def _told_cuts(self, fit: Fit) -> Fit:
        """A fit says what was shortened to keep to its time limit."""
        cuts = {} if self.settings.stop is None else self.settings.stop.cuts
        return replace(fit, outcome=with_cuts(fit.outcome, cuts))

    def _subject(self, process: LowRankProcess) -> Subject:
        return Subject(process, self.settings.standardiser, self.settings.engine, self.new_generator)

    def _calibrate(self) -> tuple[FittedModel, Fit]:
        """Fit nine tenths of the rows, scale the predictive noise to suit the last tenth, condition on these too."""
        n = self.rows.n_rows
        order, count = self.new_generator().permutation(n), round(_CALIBRATION_SHARE * n)
        if count < _FEWEST_CALIBRATION_ROWS:
            raise InvalidInputError(
                f"calibrate=True holds back a tenth of the rows and needs at least {_FEWEST_CALIBRATION_ROWS} there, "
                f"but {n} rows give {count}; use calibrate=False or more rows"
            )
        held_out, learned = np.sort(order[:count]), np.sort(order[count:])
        fit, _ = self._train(self.source.subset(learned))
        model = self.model(fit.process)
        aside = self.rows.pick(held_out)
        (mean,), (variance,) = model.member_moments(aside)
        y = read_target(aside)
        weights = aside.weights(slice(None))
        noise = model.noise_variance if weights is None else model.noise_variance / weights
        model.process.noise_scale = noise_scale(y, mean, variance, noise)
        more = self.source.subset(held_out)
        extended = model.extended(more, model.lower, model.upper, self.settings.engine)
        return self.model(extended.process), fit


def units_of(summary: Summary, standardize: bool) -> Standardiser:
    """What leads from the user's units to those of a fit, and back."""
    scaled = Standardiser.of(summary)
    return scaled if standardize else Standardiser.identity(len(scaled.x_scale), scaled.ignored)


def prepare_fitting(
    estimator: Any,
    rows: Rows,
    summary: Summary,
    given: Rows,
    source: RowSource | None = None,
    warping: Warping | None = None,
) -> Fitting:
    """A fit of an estimator to rows of this summary, which ``source`` has standardised where there is one, as
    ``warping`` says; else that is decided here, unless it was decided before, on rows of other weights.
    """
    settings = make_settings(
        estimator, estimator.trainer_parameters(), units_of(summary, estimator.standardize), summary
    )
    if source is None or warping is None:
        warping = choose_warping(estimator, settings, [rows], warping)
    settings = warping.applied(settings)
    if source is None:
        source = StandardisedRows(rows, settings.standardiser, DTYPES[settings.dtype])
    seeded, trainer = partial(new_generator, estimator.random_state), estimator.trainer(settings)
    if source.elsewhere is not None:
        check_trains_elsewhere(type(estimator).__name__, trainer)
    if settings.stop is not None:
        after = trainer.seconds_after_training(source.n_rows, source.n_columns)
        settings.stop.reserve(after, trainer.most_reserved)
    return Fitting(rows, given, summary, settings, source, trainer, seeded, warping)


def check_trains_elsewhere(name: str, trainer: Trainer) -> None:
    """Refuse rows on a cluster where training reads them again and again in this process."""
    settings = trainer.settings
    here = "certgp.read brings the rows here"
    if not trainer.only_folds:
        raise InvalidInputError(
            f"{name} trains on the rows themselves, in this process, and these lie on a cluster; {here}, and "
            "MercerGP, FourierGP and SparseGP train on a cluster (all models predict there)"
        )
    if settings.is_student:
        raise InvalidInputError(
            f"likelihood='student' weighs the rows in this process, and these lie on a cluster; {here}, and "
            "likelihood='gaussian' works there"
        )
    if settings.engine.in_process:
        raise InvalidInputError(
            f"the rows lie on a cluster and engine='local' trains here; give the engine that read them (engine=), or "
            f"{here}"
        )


def run_rounds(
    prepare: Callable[[Rows, Summary], Fitting], rows: Rows, summary: Summary, calibrate: bool
) -> tuple[FittedModel, Fit]:
    """One fit; with Student-t noise some more, each on the rows as the one before has weighed them."""
    fitting = prepare(rows, summary)
    model, fit = fitting.run(calibrate)
    for _ in range(ROUNDS):
        if fit.outcome.stopped and not is_out_of_time(fit.outcome):  # each round has its own part of the time
            break
        try:
            weighted = fitting.reweigh(model.process)
            if weighted is None:
                break
            fitting = prepare(weighted, summarise(weighted))
            model, fit = fitting.run(calibrate)
        except KeyboardInterrupt:
            warn_user("the fit was interrupted; this is the model before the last weighing of the rows")
            return model, interrupted(fit)
    return model, fit


def interrupted(fit: Fit) -> Fit:
    """The same fit, after which the user wanted no more."""
    outcome = replace(fit.outcome, converged=False, stopped=True, reason=INTERRUPTED)
    return replace(fit, outcome=outcome, interrupted=True)


def make_settings(
    estimator: BaseEstimator, parameters: Mapping[str, Any], standardiser: Standardiser, summary: Summary | None = None
) -> Settings:
    """What an estimator's parameters say to whatever trains it, on rows of this summary; refuses what cannot work."""
    path, automatic = parameters.get("checkpoint"), parameters.get("rank") == AUTOMATIC
    seed = parameters["random_state"] if path is None else _repeatable_seed(parameters["random_state"])
    digest, distinct = ("", DISTINCT_LIMIT) if summary is None else (summary.digest, summary.distinct_rows)
    checkpoint = None if path is None else FitCheckpoint(Path(path), fingerprint(estimator, digest, seed), automatic)
    blank = Settings(
        standardiser=standardiser,
        new_generator=partial(new_generator, seed),
        checkpoint=checkpoint,
        distinct_rows=distinct,
        engine=check_engine(parameters.get("engine", "local")),
        stop=_time_limit(parameters),
        line=_progress_line(parameters.get("verbose", 0)),
    )
    return blank.with_parameters(parameters)


def _progress_line(verbose: int) -> ProgressLine | None:
    return ProgressLine(every_line=verbose > 1) if verbose else None


def _time_limit(parameters: Mapping[str, Any]) -> StopRule | None:
    """The time limit, of which each round of a fit with Student-t noise has its part."""
    seconds = parameters.get("max_seconds")
    if seconds is None:
        return None
    rounds = 1 + ROUNDS if parameters.get("likelihood") == "student" else 1
    return StopRule(check_positive("max_seconds", seconds) / rounds)


def _repeatable_seed(random_state: Any) -> int:
    """The random state, fixed for the whole fit, because a resumed fit must be able to repeat it."""
    if isinstance(random_state, (int, np.integer)):
        return int(random_state)
    if random_state is None:
        return _CHECKPOINT_SEED
    raise InvalidInputError(
        f"checkpoint needs random_state to be a whole number or None, found {random_state!r}: a resumed fit draws the "
        "same subsamples again"
    )


def fitted_attributes(model: FittedModel, fit: Fit) -> dict[str, Any]:
    """What a fitted estimator shows beside its kernel, all in the user's units."""
    outcome, process = fit.outcome, model.process
    found = {
        "noise_variance_": model.noise_variance,
        "noise_scale_": process.noise_scale,
        "rank_": process.rank,
        "n_iter_": max(1, outcome.n_iter),
        "converged_": outcome.converged,
        "stop_reason_": outcome.reason,
        "history_": outcome.history,
        "trials_": fit.trials,
    }
    return found if fit.method is None else found | {"method_": fit.method, "choice_": fit.choice}

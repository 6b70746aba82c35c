"""AutoGP: the model that predicts held-out rows best, of all that the budget allows to try."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from inspect import signature
from typing import Any, Literal

from certgp.checks import check_positive, check_rank
from certgp.errors import InvalidInputError
from certgp.estimators.base import GPRegressor
from certgp.estimators.parameters import LowRankParameters, SharedParameters
from certgp.kernels import Kernel, named_kernel
from certgp.methods import CONTESTANTS, Contestant, methods
from certgp.training.recipes import AUTOMATIC, Entry, Race, Settings, Terms
from certgp.training.student import ROUNDS

CANDIDATES = tuple(each.name for each in CONTESTANTS)
_COMPARED_RANK = 100  # at which methods are compared where the rank is to be found
_TERMS = tuple(field.name for field in fields(Terms))


class AutoGP(LowRankParameters, SharedParameters, GPRegressor):
    """Picks among exact, local, Mercer, sparse, Fourier and deep GPs the one that predicts held-out rows best.

    Cheap probes on subsamples come first, the better half goes on to larger ones, and the most promising methods are
    trained on all rows but the held-out ones. The winner is then conditioned on these too; up to 2,000 rows it is
    trained again on all of them. ``method_`` names it, ``trials_`` holds what all methods reached and cost, ``choice_``
    says it in words. Interrupted by the user, a fit ends with the best model so far and a warning (with ``checkpoint``
    it raises, to go on later).

    Parameters
    ----------
    rank : number of features of low-rank models, or "auto" (see ``MercerGP``), which exact, local and deep models and
        those without a proof do not take part in
    effort : how many methods are trained on all rows. "exact-sum" and "local" are, where rows are few enough for a fit
        of some seconds ("low") or always. Of the others "low" trains the one that the probes like best, and better than
        these, "medium" up to three and "high", after larger probes, up to four, as long as all fits together are
        estimated to cost at most about 2.5 (high: 6) times the winner's, or 12 (60) seconds
    max_seconds : of wall-clock time; fits are stopped early to keep it, to about a fifth. Which method wins may then
        depend on the speed of the machine; without it, it does not. ``choice_`` names methods for which there was no
        time
    prefer : "accuracy", or "proof": only methods whose distance to the exact GP can be proven win, not learned
        frequencies and networks, and ``choice_`` says what that costs. With "accuracy" such a method wins where
        held-out rows cannot tell it from the best and prefer it by no more than .01 nats to the one that wins
    combine : let the mixture of the finalists' predictive distributions predict, with the weights under which held-out
        rows are likeliest, where that gains more than its standard error on rows that the weights have not seen.
        ``certify`` refuses such a model. Predictions cost the sum of those of all members
    candidates : methods to choose from: up to 2,000 rows "exact", "exact-matern" and "exact-sum" (a smooth function and
        a rough one, Matern 5/2 + 1/2, each with its own length-scales); "local", "mercer" (ELBO), "mercer-marginal"
        (the paper's likelihood), "sparse", "fourier", "fourier-learned" (learned frequencies), "deep-fourier". By
        default those that suit the number of rows: up to 2,000 exact GPs, "local", "mercer" and "fourier-learned", from
        there on all but exact GPs
    kernel : "auto" (each method's own), or a name or a kernel object for all. Candidates that cannot take it are left
        out: Mercer models need the Gaussian kernel, Fourier models one with a spectral law
    max_iter : optimiser iterations of each candidate; None takes each method's own default
    tolerance, max_rank, dtype, engine, checkpoint, cap_rank : see ``LowRankParameters``
    warp : "auto", True or False, see ``SharedParameters``; ``choice_`` says what was decided and what it gains
    standardize, noise, likelihood, calibrate, random_state, verbose, callbacks : see ``SharedParameters``

    Notes
    -----
    Exact and local models hold the training rows, and so do their files: ``save(path, include_training_data=True)``,
    or leave both out of ``candidates``.
    """

    candidates: Sequence[str] = CANDIDATES
    effort: str = "medium"
    prefer: str = "accuracy"
    combine: bool = False
    kernel: str | Kernel = AUTOMATIC
    max_iter: int | None = None
    warp: bool | Literal["auto"] = AUTOMATIC

    def trainer(self, settings: Settings) -> Race:
        terms = Terms(self.effort, self._seconds_for_a_race(), self.prefer, self.combine)
        entries = [self._enter(each, settings) for each in self._select_candidates()]
        return Race(entries, settings, terms)

    def trainer_parameters(self) -> dict[str, Any]:
        """Those that the contestants share: each has its own kernel and number of iterations where none is given."""
        parameters = super().trainer_parameters()
        left_out = {"candidates", "calibrate", *_TERMS}  # among them max_seconds: the race keeps its own time
        left_out |= {"max_iter"} if self.max_iter is None else set()
        left_out |= {"kernel"} if self._kernel() is None else set()
        return {name: value for name, value in parameters.items() if name not in left_out}

    def _seconds_for_a_race(self) -> float | None:
        """All, or a part of them where Student-t noise takes several fits."""
        if self.max_seconds is None or self.likelihood != "student":
            return self.max_seconds
        return check_positive("max_seconds", self.max_seconds) / (1 + ROUNDS)

    def _enter(self, contestant: Contestant, settings: Settings) -> Entry:
        estimator = self._contestant(contestant)
        unnamed = tuple(self.candidates) == CANDIDATES and self.rank != AUTOMATIC
        rank = min(_COMPARED_RANK, self.max_rank) if self.rank == AUTOMATIC else check_rank(self.rank)
        return Entry(
            contestant.name,
            estimator.trainer,
            settings.with_parameters(estimator.get_params(deep=False)),
            rank if contestant.most_rank is None else min(rank, contestant.most_rank),
            contestant.can_be_certified,
            contestant.probe_iterations,
            max(contestant.least_rows, contestant.least_unnamed_rows if unnamed else 0),
            contestant.most_rows,
            contestant.is_seeded,
            contestant.keeps_gaining,
        )

    def _contestant(self, contestant: Contestant) -> Any:
        """An unfitted estimator with the parameters that it shares with this one."""
        method = methods()[contestant.method]
        cls, shared = method.load(), self.trainer_parameters()
        known = set(signature(cls).parameters)
        if method.default_rank is None:
            known -= {field.name for field in fields(LowRankParameters)}  # the same names mean other things there
        if contestant.method == "sparse" and self.dtype == "mixed":
            shared["dtype"] = "float64"  # whitening by inducing points needs the digits
        return cls(**{name: value for name, value in shared.items() if name in known} | dict(contestant.options))

    def _kernel(self) -> Kernel | None:
        """The kernel of all contestants; None where each has its own."""
        if isinstance(self.kernel, str) and self.kernel == AUTOMATIC:
            return None
        kernel = named_kernel(self.kernel) if isinstance(self.kernel, str) else self.kernel
        if not isinstance(kernel, Kernel):
            raise InvalidInputError(f"kernel must be a name or a kernel object, found {kernel!r}")
        return kernel

    def _select_candidates(self) -> list[Contestant]:
        """The candidates that can work with the other parameters."""
        names = self.candidates
        if isinstance(names, str) or not names or any(name not in CANDIDATES for name in names):
            raise InvalidInputError(f"candidates must be some of {', '.join(CANDIDATES)}, found {names!r}")
        kernel = self._kernel()
        usable = [each for each in CONTESTANTS if self._can_work(each, kernel)]
        chosen = [each for name in dict.fromkeys(names) for each in usable if each.name == name]
        if not chosen:
            remedy = f"add {' or '.join(repr(each.name) for each in usable)}" if usable else "use dtype='float64'"
            raise InvalidInputError(
                f"candidates={tuple(names)!r} has no method for rank={self.rank!r}, kernel={self.kernel!r} and "
                f"dtype={self.dtype!r}; {remedy}"
            )
        if self.prefer == "proof" and not any(each.can_be_certified for each in chosen):
            raise InvalidInputError(
                f"prefer='proof' needs a method that can be certified, and none of candidates={tuple(names)!r} can; "
                "add 'local', 'sparse' or 'mercer', or use prefer='accuracy'"
            )
        return chosen

    def _can_work(self, contestant: Contestant, kernel: Kernel | None) -> bool:
        return (
            (kernel is None or _takes_kernel(contestant, kernel))
            and (self.dtype != "float32" or contestant.method not in ("sparse", "exact", "local"))
            and (self.rank != AUTOMATIC or contestant.finds_rank)
        )


def _takes_kernel(contestant: Contestant, kernel: Kernel) -> bool:
    """Can a method work with this kernel? One that is set apart by its own cannot."""
    return (
        "kernel" not in contestant.options
        and (kernel.has_mercer_expansion or contestant.method != "mercer")
        and (kernel.has_spectral_law or contestant.method not in ("fourier", "deep-fourier"))
    )

"""AutoGP: the low-rank model that predicts held-out rows best."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from certgp.errors import InvalidInputError
from certgp.estimators.base import GPRegressor
from certgp.estimators.parameters import LowRankParameters, SharedParameters
from certgp.kernels import Kernel, kernel_from_name
from certgp.methods import CONTESTANTS, Contestant, methods
from certgp.training.recipes import AUTOMATIC, Entry, Race, Settings

CANDIDATES = tuple(each.name for each in CONTESTANTS)


class AutoGP(LowRankParameters, SharedParameters, GPRegressor):
    """Picks among Mercer, Fourier and sparse GPs: all are trained on a subsample, the one that predicts rows held out
    from it best is trained on all rows.

    ``method_`` names the winner, ``trials_`` holds the scores of all, ``choice_`` says it in words.

    Parameters
    ----------
    rank : number of features, or "auto" (see ``MercerGP``)
    candidates : methods to choose from: "mercer" (certifiable: ELBO), "mercer-marginal" (the paper's likelihood),
        "sparse", "fourier", "fourier-learned" (learned frequencies: not an approximation of a kernel any more, so
        ``certify`` refuses it; leave it out where you need certificates)
    kernel : any kernel: a name or a kernel object, also a sum or a product. Candidates that cannot take it are left
        out: Mercer models need the Gaussian kernel, Fourier models one with a spectral law
    max_iter : optimiser iterations of each candidate; None takes each method's own default
    tolerance, max_rank, dtype, engine, checkpoint, cap_rank : see ``LowRankParameters``
    standardize, noise, likelihood, calibrate, random_state, verbose, callbacks : see ``SharedParameters``
    """

    candidates: Sequence[str] = CANDIDATES
    max_iter: int | None = None

    def trainer(self, settings: Settings) -> Race:
        entries = {}
        for each in self._select_candidates():
            estimator = self._contestant(each)
            own = settings.with_parameters(estimator.get_params(deep=False)).for_contestant(each.name)
            entries[each.name] = Entry(estimator.trainer(own), each.certifies_itself)
        return Race(entries, settings)

    def trainer_parameters(self) -> dict[str, Any]:
        """Those that the contestants share: each has its own number of iterations where none is given."""
        parameters = super().trainer_parameters()
        left_out = ("candidates", "calibrate", *(() if self.max_iter is not None else ("max_iter",)))
        return {name: value for name, value in parameters.items() if name not in left_out}

    def _contestant(self, contestant: Contestant) -> Any:
        """An unfitted estimator with the parameters that it shares with this one."""
        shared = self.trainer_parameters()
        if contestant.method == "sparse" and self.dtype == "mixed":
            shared["dtype"] = "float64"  # whitening by inducing points needs the digits
        return methods()[contestant.method].load()(**contestant.options, **shared)

    def _select_candidates(self) -> list[Contestant]:
        """The candidates that can work with the other parameters."""
        names = self.candidates
        if isinstance(names, str) or not names or any(name not in CANDIDATES for name in names):
            raise InvalidInputError(f"candidates must be some of {', '.join(CANDIDATES)}, found {names!r}")
        kernel = kernel_from_name(self.kernel)() if isinstance(self.kernel, str) else self.kernel
        if not isinstance(kernel, Kernel):
            raise InvalidInputError(f"kernel must be a name or a kernel object, found {kernel!r}")
        usable = [each for each in CONTESTANTS if self._can_work(each, kernel)]
        chosen = [each for name in dict.fromkeys(names) for each in usable if each.name == name]
        if not chosen:
            remedy = f"add {' or '.join(repr(each.name) for each in usable)}" if usable else "use dtype='float64'"
            raise InvalidInputError(
                f"candidates={tuple(names)!r} has no method for rank={self.rank!r}, kernel={self.kernel!r} and "
                f"dtype={self.dtype!r}; {remedy}"
            )
        return chosen

    def _can_work(self, contestant: Contestant, kernel: Kernel) -> bool:
        return (
            (kernel.has_mercer_expansion or contestant.method != "mercer")
            and (kernel.has_spectral_law or contestant.method != "fourier")
            and (self.dtype != "float32" or contestant.method != "sparse")
            and (self.rank != AUTOMATIC or contestant.finds_rank)
        )

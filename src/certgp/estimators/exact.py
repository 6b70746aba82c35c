"""ExactGP: the oracle."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from certgp.data import Chunk
from certgp.errors import ConvergenceWarning, InvalidInputError, NotCertifiableError, warn_user
from certgp.estimators.base import GPRegressor, unoptimised
from certgp.estimators.certification import DEFAULT_MAX_REFERENCE_RANK, OTHER_ROWS, Request, row_pair
from certgp.estimators.row_bounds import Confirm
from certgp.estimators.validation import StartingValues, check_count, checked_rows, generator, starting_values
from certgp.gp import ExactProcess
from certgp.guarantees import Certificate, Interval, RankCurve
from certgp.guarantees.statistical import DEFAULT_PROBES
from certgp.kernels import Kernel
from certgp.training import Callback, ExactObjective, OptimisationResult, choose_exact_starting_scale, minimise

_SCAN_ROWS = 1_000
_DENSE_COPIES = 5  # matrices of N x N alive during one evaluation


class ExactGP(GPRegressor):
    """The exact GP: O(N^3) time and O(N^2) memory, for a few thousand rows and as the truth that the others
    approximate.

    Parameters
    ----------
    kernel : "gaussian", "matern12", "matern32", "matern52" or a kernel object with starting values
    length_scale, signal_variance, noise_variance : starting values in the units of the data; kept when
    ``optimize=False`` max_iter, standardize, calibrate, random_state, verbose, callbacks : as in ``MercerGP``
    """

    _process: ExactProcess

    def __init__(
        self,
        *,
        kernel: str | Kernel = "gaussian",
        length_scale: float | Sequence[float] | None = None,
        signal_variance: float | None = None,
        noise_variance: float | None = None,
        optimize: bool = True,
        max_iter: int = 100,
        standardize: bool = True,
        calibrate: bool = False,
        random_state: Any = None,
        verbose: int = 0,
        callbacks: Sequence[Callback] | None = None,
    ) -> None:
        self.kernel = kernel
        self.length_scale = length_scale
        self.signal_variance = signal_variance
        self.noise_variance = noise_variance
        self.optimize = optimize
        self.max_iter = max_iter
        self.standardize = standardize
        self.calibrate = calibrate
        self.random_state = random_state
        self.verbose = verbose
        self.callbacks = callbacks

    def save(self, path: str | Path, include_training_data: bool = False) -> None:
        """Write the fitted model to one file. An exact GP predicts from its rows, so they must be allowed into the
        file.
        """
        check_is_fitted(self)
        if not include_training_data:
            raise InvalidInputError(
                "an exact GP cannot predict without its training rows, and model files hold none by default; "
                "call save(path, include_training_data=True) to write them, or fit a low-rank model"
            )
        super().save(path)

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
        """The exact GP is its own truth: every distance is zero.

        The arguments are those of ``MercerGP.certify``, so that code for one model runs for the other. They are
        checked; there is nothing left for them to sharpen.
        """
        check_is_fitted(self)
        Request(reference_rank, tol, max_reference_rank, delta, probes, exact_solve)
        if rows is not None:
            self._check_same_rows(*checked_rows(self, *row_pair(rows), reset=False))
        evidence = self.log_marginal_likelihood()
        new = None if X is None else self._validated(X)
        variance = None if new is None else self._moments(new)[1]
        return Certificate(
            kl=Interval(0.0, 0.0),
            log_evidence=Interval(evidence, evidence),
            n_rows=self._n_rows(),
            theorem="X0 (identity)",
            evidence={},
            assumptions=("floating-point rounding of a dense Cholesky factorisation is not accounted for",),
            mean_error=None if new is None else np.zeros(len(new)),
            variance_lower=variance,
            variance_upper=variance,
        )

    def _check_same_rows(self, X: NDArray[np.floating], y: NDArray[np.floating]) -> None:
        given, own = self._rows(X, y), self._process
        same = given.X.shape == own.X.shape and torch.allclose(given.X, own.X) and torch.allclose(given.y, own.y)
        if not same:
            raise NotCertifiableError(OTHER_ROWS)

    def rank_curve(self) -> RankCurve:
        """An exact GP has no rank to vary."""
        raise NotCertifiableError("an exact GP has full rank; rank_curve() belongs to MercerGP, FourierGP and SparseGP")

    def _check_parameters(self) -> None:
        check_count("max_iter", self.max_iter)

    def _fit_process(self, X: NDArray[np.floating], y: NDArray[np.floating]) -> tuple[ExactProcess, OptimisationResult]:
        _check_memory(len(X))
        start = starting_values(self, self._standardiser, float(np.sqrt(X.shape[1])))
        rows = self._rows(X, y)
        if not self.optimize or bool((rows.y == rows.y[0]).all()):
            return ExactProcess(start.kernel, rows.X, rows.y, start.noise_variance), unoptimised()
        return self._train(rows, start)

    def _train(self, rows: Chunk, start: StartingValues) -> tuple[ExactProcess, OptimisationResult]:
        ratio = start.noise_variance / float(start.kernel.signal_variance)
        objective = ExactObjective(start.kernel, rows, ratio)
        if self.length_scale is None and not (isinstance(self.kernel, Kernel) and self.kernel.lengths_given):
            self._scan(objective, rows, start)
        outcome = minimise(objective, max_iter=self.max_iter, rank=len(rows.y), callbacks=self._observers())
        if not outcome.converged and not outcome.stopped:
            warn_user(f"the fit stopped before it converged: {outcome.reason}", ConvergenceWarning)
        kernel, noise = objective.solution()
        return ExactProcess(kernel, rows.X, rows.y, noise), outcome

    def _scan(self, objective: ExactObjective, rows: Chunk, start: StartingValues) -> None:
        """Find starting length-scales, on some of the rows where there are many."""
        pick = torch.from_numpy(np.sort(generator(self.random_state).permutation(len(rows.y))[:_SCAN_ROWS]))
        ratio = start.noise_variance / float(start.kernel.signal_variance)
        some = ExactObjective(start.kernel, Chunk(rows.X[pick], rows.y[pick]), ratio)
        choose_exact_starting_scale(some)
        objective.parameters.set(some.parameters.get())

    def _extend_process(self, X: NDArray[np.floating], y: NDArray[np.floating]) -> ExactProcess:
        old, more = self._process, self._rows(X, y)
        _check_memory(len(old.y) + len(more.y))
        rows, target = torch.cat([old.X, more.X]), torch.cat([old.y, more.y])
        extended = ExactProcess(old.kernel, rows, target, old.noise_variance)
        extended.noise_scale = old.noise_scale
        return extended

    def _rows(self, X: NDArray[np.floating], y: NDArray[np.floating]) -> Chunk:
        return Chunk(self._tensor(X), torch.from_numpy(self._standardiser.target(y)))

    def _kernel_in_user_units(self) -> Kernel:
        units = self._standardiser
        return self._process.kernel.to_user(units.x_mean, units.x_scale, units.y_scale)

    def _log_evidence(self) -> float:
        return self._process.log_evidence()

    def _n_rows(self) -> int:
        return int(self._process.y.shape[0])

    def _rank(self) -> int:
        return self._n_rows()


def _check_memory(n: int) -> None:
    """Refuse before the machine starts to swap."""
    needed = _DENSE_COPIES * 8 * n * n
    available = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if needed > 0.8 * available:
        raise InvalidInputError(
            f"an exact GP on {n} rows needs about {needed / 2**30:.0f} GiB of memory and this machine has "
            f"{available / 2**30:.0f} GiB; use MercerGP, SparseGP or FourierGP, or fewer rows"
        )

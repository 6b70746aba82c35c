"""What all low-rank GPs share once they are fitted, and the checkpoint of a fit."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from certgp.data import Chunk, ChunkSource, Rows, StandardisedRows, check_finite
from certgp.errors import InvalidInputError, NotCertifiableError
from certgp.estimators.automatic_rank import AUTOMATIC
from certgp.estimators.base import GPRegressor, unoptimised
from certgp.estimators.certification import DEFAULT_MAX_REFERENCE_RANK, Request, certify_fitted, row_pair
from certgp.estimators.fingerprint import fingerprint
from certgp.estimators.row_bounds import Confirm
from certgp.estimators.validation import (
    DTYPES,
    check_engine,
    load_rows,
)
from certgp.gp import GaussianProcess, LowRankProcess, log_evidence
from certgp.guarantees import (
    Certificate,
    RankCurve,
    ValidationRows,
    check_certifiable,
    nested_rank_curve,
    paired_rank_curve,
)
from certgp.guarantees.statistical import DEFAULT_PROBES
from certgp.kernels import Kernel
from certgp.training import (
    EvaluationLog,
    OptimisationResult,
)
from certgp.training.objective import fold_feature_statistics
from certgp.transforms import Clip, Identity

_CHECKPOINT_SEED = 0


class LowRankRegressor(GPRegressor):
    """A GP whose covariance is Phi Phi' + s2 I: certificates, curves over the rank, further rows. How it is trained is
    for subclasses to say.
    """

    _process: LowRankProcess
    _training_rows: Rows | None = None  # for certificates; not copied
    _fitted_dtype: str | None = None  # None where the model was loaded: its parameter tells
    _unfinished: Callable[[], LowRankProcess] | None = None  # only during a fit, for ``so_far``
    _certificate: Certificate | None = None  # the tightest statement about the training rows so far
    rank: int | Literal["auto"]
    tolerance: float
    max_rank: int
    kernel: str | Kernel
    dtype: str
    engine: Any
    cap_rank: bool
    checkpoint: str | Path | None

    def certify(
        self,
        X: ArrayLike | Rows | None = None,
        *,
        reference_rank: int | None = None,
        tol: float | None = None,
        max_reference_rank: int = DEFAULT_MAX_REFERENCE_RANK,
        delta: float | None = None,
        probes: int = DEFAULT_PROBES,
        exact_solve: bool | Confirm = False,
        rows: tuple[ArrayLike, ArrayLike] | Rows | None = None,
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
        rows : the training rows, a pair (X, y) or a ``Rows`` object, needed after loading from a file for everything
            but the saved certificate; they are checked against what the model was conditioned on

        Without arguments the best certificate that is known is returned: a saved or earlier one, where it is tighter.
        """
        check_is_fitted(self)
        request = Request(reference_rank, tol, max_reference_rank, delta, probes, exact_solve)
        known = self._certificate
        if X is None and rows is None and request.plain and known is not None and self._training_rows is None:
            return known
        new = None if X is None else self._validated(X).take(slice(None))[0]
        certificate = certify_fitted(
            self, new, lambda: self._rows_for_certificate(rows), request, check_rows=rows is not None
        )
        if X is None and request.plain and known is not None and known.kl.upper <= certificate.kl.upper:
            return known
        surely = certificate.confidence == 1.0
        if surely and (known is None or certificate.kl.upper < known.kl.upper):
            self._certificate = certificate.without_rows()
        return certificate

    def _check_certifiable(self) -> None:
        """Refuse a model that approximates no kernel, and say what to change."""
        check_certifiable(self._process.model)

    def _rows_for_certificate(self, rows: tuple[ArrayLike, ArrayLike] | Rows | None) -> StandardisedRows:
        if rows is not None:
            found = load_rows(self, *row_pair(rows), reset=False)
            check_finite(found)
        elif self._training_rows is not None:
            found = self._training_rows
        else:
            raise NotCertifiableError(
                "this certificate reads the training rows again, and a model that was loaded, unpickled, copied deeply "
                "or extended by partial_fit does not have them: certify(rows=(X, y)) in Python, --train FILE on the "
                "command line"
            )
        if found.n_rows != self._n_rows():
            raise InvalidInputError(
                f"rows has {found.n_rows} rows but the model was conditioned on {self._n_rows()}; pass those given to "
                "fit"
            )
        return self._source(found)

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

    def rank_curve(self, X: ArrayLike | Rows | None = None, y: ArrayLike | None = None) -> RankCurve:
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
            result = nested_rank_curve(stats, sf2, s2, rows, features.rounding())
            if not self._in_float64():  # rounding of float32 features is beyond what the bounds allow for
                result = replace(result, elbo=None, kl_bound=None)
        else:
            result = paired_rank_curve(features, stats, sf2, s2, rows)
        shift = self._user_evidence(0.0)
        elbo = None if result.elbo is None else result.elbo + shift
        nlpd = None if result.nlpd is None else result.nlpd + math.log(self._standardiser.y_scale)
        return replace(result, log_evidence=result.log_evidence + shift, elbo=elbo, nlpd=nlpd)

    def _validation_rows(self, X: ArrayLike | Rows | None, y: ArrayLike | None) -> ValidationRows | None:
        if X is None and y is None:
            return None
        if X is None or (y is None and not isinstance(X, Rows)):
            raise InvalidInputError("rank_curve takes validation rows as X and y together; one of them is missing")
        rows = load_rows(self, X, y, reset=False)
        check_finite(rows)
        chunk = StandardisedRows(rows, self._standardiser).take(slice(None))
        process = self._process
        with torch.no_grad():
            features = process.model(chunk.X)
        return ValidationRows(features, chunk.y, process.carried(chunk.X), process.regained(chunk.X))

    def __getstate__(self) -> dict[str, Any]:
        """Without the training rows: a pickled model is as small as a saved one."""
        state: dict[str, Any] = super().__getstate__()
        return state | {"_training_rows": None} if "_training_rows" in state else state

    def _fit_calibrated(self, rows: Rows) -> tuple[GaussianProcess, OptimisationResult]:
        fitted = super()._fit_calibrated(rows)
        self._training_rows = rows
        return fitted

    def _warm_up(self, rows: Chunk) -> ChunkSource:
        """A subsample in the precision of trials: rounding does not matter where only a basin is sought."""
        warm = torch.float64 if self.dtype == "float64" else torch.float32
        return ChunkSource(Chunk(rows.X.to(warm), rows.y.to(warm)))

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
        log = EvaluationLog(path, fingerprint(self, self._summary.digest, self._seed()))
        try:
            yield log
        except BaseException:
            log.close()
            raise
        log.remove()

    def _source(self, rows: Rows) -> StandardisedRows:
        return StandardisedRows(rows, self._standardiser, DTYPES[self.dtype])

    def _extend_process(self, rows: Rows) -> LowRankProcess:
        self._training_rows, self._certificate = None, None
        more = fold_feature_statistics(self._process.model, self._source(rows), check_engine(self.engine))
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

    def _remember(self, rows: Rows) -> None:
        """What a certificate will ask for: the rows of this fit, and its arithmetic."""
        self._training_rows, self._certificate, self._fitted_dtype = rows, None, self.dtype

    def _in_float64(self) -> bool:
        """Were the statistics folded in float64? ``set_params(dtype=...)`` after a fit does not change them."""
        return (self._fitted_dtype or self.dtype) != "float32"

    def _rank(self) -> int:
        return self._low_rank_members()[0].model.rank

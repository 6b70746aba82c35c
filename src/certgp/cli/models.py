"""From the names on the command line to estimators."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from certgp.errors import InvalidInputError

if TYPE_CHECKING:
    from certgp.estimators import GPRegressor
    from certgp.training import Callback

METHODS = ("auto", "mercer", "fourier", "sparse", "exact", "deep-mercer", "deep-fourier")
KERNELS = ("gaussian", "matern12", "matern32", "matern52", "rational_quadratic", "periodic", "linear")
DEFAULT_RANK = 100
DEFAULT_RANKS = {"deep-mercer": 15, "deep-fourier": 40}  # on a learned embedding few features are enough


def check_model_options(method: str, kernel: str, rank: int | str | None) -> None:
    """Refuse combinations that no estimator accepts, before torch is even imported."""
    if method in ("mercer", "deep-mercer") and kernel != "gaussian":
        others = "fourier, sparse or exact" if method == "mercer" else "deep-fourier"
        raise InvalidInputError(
            f"--method {method} needs --kernel gaussian, found {kernel}; use --method {others} with this kernel"
        )
    if method == "exact" and rank is not None:
        raise InvalidInputError("--method exact has no rank; leave --rank out or choose another --method")


def build_model(
    method: str,
    kernel: str,
    rank: int | str | None,
    seed: int,
    callbacks: Sequence[Callback] = (),
    max_iter: int | None = None,
) -> GPRegressor:
    """An unfitted estimator; without ``max_iter`` each method keeps its own default."""
    wanted = DEFAULT_RANKS.get(method, DEFAULT_RANK) if rank is None else rank
    model = _unfitted(method, kernel, wanted, seed, callbacks)
    if max_iter is not None:
        model.set_params(max_iter=max_iter)
    return model


def certifies_itself(model: GPRegressor) -> bool:
    """Can predictions of this fitted model be certified without reading its training rows again?"""
    from certgp.gp import LowRankProcess

    process = model._process
    return not isinstance(process, LowRankProcess) or process.model.features.dominated


def _unfitted(method: str, kernel: str, rank: Any, seed: int, callbacks: Sequence[Callback]) -> GPRegressor:
    from certgp.estimators import AutoGP, DeepFourierGP, DeepMercerGP, ExactGP, FourierGP, MercerGP, SparseGP

    if method == "auto":
        return AutoGP(rank, kernel=kernel, random_state=seed, callbacks=callbacks)
    if method == "deep-mercer":
        return DeepMercerGP(rank, kernel=kernel, random_state=seed, callbacks=callbacks)
    if method == "deep-fourier":
        return DeepFourierGP(rank, kernel=kernel, random_state=seed, callbacks=callbacks)
    if method == "mercer":
        return MercerGP(rank, kernel=kernel, random_state=seed, callbacks=callbacks)
    if method == "fourier":
        return FourierGP(rank, kernel=kernel, random_state=seed, callbacks=callbacks)
    if method == "sparse":
        return SparseGP(rank, kernel=kernel, random_state=seed, callbacks=callbacks)
    return ExactGP(kernel=kernel, random_state=seed, callbacks=callbacks)

"""From the names on the command line to estimators."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from certgp.errors import InvalidInputError

if TYPE_CHECKING:
    from certgp.estimators import GPRegressor
    from certgp.training import Callback

METHODS = ("mercer", "fourier", "sparse", "exact")
KERNELS = ("gaussian", "matern12", "matern32", "matern52")
DEFAULT_RANK = 100


def check_model_options(method: str, kernel: str, rank: int | str | None) -> None:
    """Refuse combinations that no estimator accepts, before torch is even imported."""
    if method == "mercer" and kernel != "gaussian":
        raise InvalidInputError(
            f"--method mercer needs --kernel gaussian, found {kernel}; "
            "use --method fourier, sparse or exact with this kernel"
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
    model = _unfitted(method, kernel, DEFAULT_RANK if rank is None else rank, seed, callbacks)
    if max_iter is not None:
        model.set_params(max_iter=max_iter)
    return model


def _unfitted(method: str, kernel: str, rank: Any, seed: int, callbacks: Sequence[Callback]) -> GPRegressor:
    from certgp.estimators import ExactGP, FourierGP, MercerGP, SparseGP

    if method == "mercer":
        return MercerGP(rank, kernel=kernel, random_state=seed, callbacks=callbacks)
    if method == "fourier":
        return FourierGP(rank, kernel=kernel, random_state=seed, callbacks=callbacks)
    if method == "sparse":
        return SparseGP(rank, kernel=kernel, random_state=seed, callbacks=callbacks)
    return ExactGP(kernel=kernel, random_state=seed, callbacks=callbacks)

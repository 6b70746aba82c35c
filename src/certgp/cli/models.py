"""From the names on the command line to estimators."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from certgp.errors import InvalidInputError
from certgp.methods import methods

if TYPE_CHECKING:
    from certgp.estimators import GPRegressor
    from certgp.training import Callback

KERNELS = ("gaussian", "matern12", "matern32", "matern52", "rational_quadratic", "periodic", "linear")
NOISES = ("auto", "constant", "input")
WARPS: dict[str, bool | str] = {"auto": "auto", "yes": True, "no": False}


def describe_default_ranks() -> str:
    """For the help: the usual default, and the methods that have another."""
    usual = methods()["auto"].default_rank
    others = [f"{m.name} {m.default_rank}" for m in methods().values() if m.default_rank not in (usual, None)]
    return ", ".join([str(usual), *others])


def check_model_options(method: str, kernel: str | None, rank: int | str | None) -> None:
    """Refuse combinations that no estimator accepts, before torch is even imported."""
    chosen = methods()[method]
    if kernel is not None and chosen.kernel not in (None, kernel):
        raise InvalidInputError(
            f"--method {method} needs --kernel {chosen.kernel}, found {kernel}; use --method {chosen.other_kernels} "
            "with this kernel"
        )
    if chosen.default_rank is None and rank is not None:
        raise InvalidInputError(f"--method {method} has no rank; leave --rank out or choose another --method")


def build_model(
    method: str,
    kernel: str | None,
    rank: int | str | None,
    seed: int,
    callbacks: Sequence[Callback] = (),
    max_iter: int | None = None,
) -> GPRegressor:
    """An unfitted estimator; without ``kernel`` or ``max_iter`` each method keeps its own default."""
    chosen = methods()[method]
    options: dict[str, Any] = {"random_state": seed, "callbacks": callbacks}
    if kernel is not None:
        options["kernel"] = kernel
    if chosen.default_rank is not None:
        options["rank"] = chosen.default_rank if rank is None else rank
    if max_iter is not None:
        options["max_iter"] = max_iter
    model: GPRegressor = chosen.load()(**options)
    return model


def set_options(model: GPRegressor, arguments: argparse.Namespace, **further: object) -> None:
    """Give the model the parameters that options of ``certgp fit`` name, and further ones."""
    if arguments.rank == "auto":
        model.set_params(tolerance=arguments.tolerance)
    if arguments.noise is not None:
        model.set_params(noise=arguments.noise)
    if arguments.warp is not None:
        model.set_params(warp=WARPS[arguments.warp])
    model.set_params(likelihood=arguments.likelihood, **further)
    _set_where_possible(model, "--checkpoint", "checkpoint", arguments)
    _set_where_possible(model, "--time-limit", "max_seconds", arguments)


def _set_where_possible(model: GPRegressor, option: str, name: str, arguments: argparse.Namespace) -> None:
    """Give the model a parameter that an option names; methods that lack it are told apart here."""
    value = vars(arguments)[name]
    if value is None:
        return
    if name not in model.get_params(deep=False):
        raise InvalidInputError(f"{option} is not for --method {arguments.method}; leave it out")
    model.set_params(**{name: value})

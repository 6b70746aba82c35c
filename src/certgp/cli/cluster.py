"""A Dask cluster on the command line: ``--scheduler ADDRESS``."""

from __future__ import annotations

import argparse
from functools import cache
from typing import TYPE_CHECKING

from certgp.errors import InvalidInputError

if TYPE_CHECKING:
    from certgp.engines.dask import DaskEngine

TRAINED_THERE = ("mercer", "fourier", "sparse")


def add_scheduler_option(parser: argparse.ArgumentParser, what: str) -> None:
    """Where the work is done."""
    parser.add_argument(
        "--scheduler",
        metavar="ADDRESS",
        help=f"of a Dask cluster, such as tcp://host:8786, whose workers read the files themselves and {what}",
    )


def check_method(arguments: argparse.Namespace) -> None:
    """Refuse to train a model on a cluster that trains in one process."""
    if arguments.scheduler is not None and arguments.method not in TRAINED_THERE:
        raise InvalidInputError(
            f"--scheduler is for --method {', '.join(TRAINED_THERE)}, found --method {arguments.method}, which trains "
            "in this process; choose one of them, or leave --scheduler out ('certgp predict --scheduler' takes all "
            "models)"
        )


def refuse_scheduler(arguments: argparse.Namespace, what: str) -> None:
    """Refuse to send to a cluster what is read in this process only."""
    if vars(arguments).get("scheduler") is not None:
        raise InvalidInputError(
            f"--scheduler is for tables of numbers; {what} is read in this process: leave --scheduler out"
        )


def engine_of(arguments: argparse.Namespace) -> DaskEngine | None:
    """The engine of the cluster that was asked for; None where the work is done here."""
    address = vars(arguments).get("scheduler")
    return None if address is None else _engine_at(address)


@cache
def _engine_at(address: str) -> DaskEngine:
    try:
        from certgp.engines.dask import DaskEngine
    except ImportError as error:
        raise InvalidInputError(f"--scheduler: {error}") from error
    return DaskEngine(address)

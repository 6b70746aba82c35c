"""What 'certgp fit' proves at once, and what to type for more."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from certgp.cli.words import in_cli_words
from certgp.errors import NotCertifiableError

if TYPE_CHECKING:
    from certgp.estimators import GPRegressor
    from certgp.guarantees import Certificate

_CERTIFIED_AT_ONCE = 5_000  # rows of a local model
_SOLVED_EXACTLY = 20_000  # rows, up to which the exact system takes seconds where a reference proves little
_REFERENCE = 4  # times the rank
_AT_ONCE, _SHARE = 1.0, 0.05  # CPU seconds, and share of the fit's, that a proof may take unasked


@dataclass(frozen=True, eq=False)
class Proof:
    """A certificate, or why there is none: it cannot be, or it was put off."""

    certificate: Certificate | None = None
    obstacle: str | None = None
    put_off: str | None = None


def prove(model: GPRegressor, seconds: float) -> Proof:
    """The certificate that is saved with a model whose fit took so many CPU seconds; put off where it would take long
    beside it.
    """
    from certgp.estimators import LocalGP
    from certgp.guarantees.reference import seconds_to_read

    is_local = isinstance(model, LocalGP) or model.method_ == "local"
    if is_local and model.rank_ > _CERTIFIED_AT_ONCE:
        return Proof(put_off=f"bounds for a local model of {model.rank_:,} rows take a while")
    try:
        if model.certifies_itself:
            return Proof(model.certify())
        # features that do not certify themselves: one pass through a reference
        rank = _REFERENCE * model.rank_
        cost = seconds_to_read(model.n_rows_, rank)
        if cost > max(_AT_ONCE, _SHARE * seconds):
            return Proof(put_off=f"reading a reference of {rank:,} features would take about {cost:.0f} s")
        return Proof(model.certify(reference_rank=rank))
    except NotCertifiableError as error:
        return Proof(obstacle=in_cli_words(str(error)))


def certify_command(arguments: argparse.Namespace, outputs: Sequence[GPRegressor]) -> str:
    """What to type for useful bounds on new predictions: through the training rows, to a tenth of the noise, of several
    outputs the least.
    """
    from certgp.estimators.held_out import yardstick_of
    from certgp.guarantees.words import tolerance_for

    command = f"certgp certify {shlex.quote(str(arguments.out))} NEW"
    if any(each.needs_training_data for each in outputs):  # the file holds the rows
        return command
    solve = " --exact-solve" if max(each.n_rows_ for each in outputs) <= _SOLVED_EXACTLY else ""
    tolerance = min(tolerance_for(yardstick_of(each)) for each in outputs)
    return f"{command} --train {shlex.join(arguments.data)} --tol {tolerance:g}{solve}{_bad_rows(arguments)}"


def report_command(arguments: argparse.Namespace, has_test: bool) -> str:
    """What to type for the whole picture; the table of the fit will do where the fit held rows out."""
    model, table = shlex.quote(str(arguments.out)), shlex.join(arguments.data)
    rows = table if has_test else f"NEW --train {table}"
    return f"certgp report {model} {rows}{_bad_rows(arguments)} --out report.html"


def _bad_rows(arguments: argparse.Namespace) -> str:
    """The rows of the fit are found again only where the same ones are left out."""
    return " --on-bad-rows skip" if arguments.on_bad_rows == "skip" else ""

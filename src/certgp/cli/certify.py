"""certgp certify: what is proven about a saved model."""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from certgp.cli.arguments import (
    DATA_HELP,
    add_command,
    add_reading_options,
    coverage,
    positive_int,
    positive_number,
    refuse_overwriting,
)
from certgp.cli.cluster import add_scheduler_option, engine_of, refuse_scheduler
from certgp.cli.fitted_rows import training_rows
from certgp.cli.new_rows import ModelFacts, read_new
from certgp.cli.output import Console
from certgp.cli.table_options import add_text_options
from certgp.cli.words import in_cli_words
from certgp.errors import InvalidInputError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from certgp.cli.arguments import Commands
    from certgp.data import Rows
    from certgp.data.tables import TableFiles
    from certgp.estimators import GPRegressor
    from certgp.guarantees import Certificate, CostEstimate

ABOVE_MAX_ERROR = 3  # exit code
_EXAMPLES = """\
  certgp certify price.model                                      the certificate saved with the model
  certgp certify price.model new.csv                              bounds on every prediction at new.csv (Fourier models,
                                                                  which --method auto may choose, need --train)
  certgp certify price.model new.csv --train train.csv --tol 0.1  sharper ones, through a reference on the training rows
  certgp certify price.model new.csv --train train.csv --tol 0.1 --exact-solve --yes --out bounds.csv
  certgp certify price.model new.csv --train train.csv --tol 0.1 --max-error 1 || echo 'not proven within 1'
"""


def add_parser(commands: Commands) -> None:
    """Declare the command and its options."""
    parser = add_command(commands, "certify", "say with proof how far a model is from the exact GP", _EXAMPLES, run)
    parser.add_argument("model", metavar="MODEL", type=Path, help="file that 'certgp fit' or save() wrote")
    parser.add_argument("data", nargs="*", metavar="DATA", help=f"rows whose predictions to certify: {DATA_HELP}")
    parser.add_argument(
        "--train",
        nargs="+",
        metavar="FILE",
        help="the training rows, with the target; a reference model read over them gives sharper and two-sided bounds",
    )
    parser.add_argument("--reference-rank", metavar="N", type=positive_int, help="size of that reference")
    parser.add_argument(
        "--tol",
        metavar="T",
        type=positive_number,
        help="double the reference until the KL half-width per row is at most T or, with DATA, the means of the exact "
        "GP are known to +-T; the model's own distance to them may be larger, and is then shown to be",
    )
    parser.add_argument(
        "--max-error",
        metavar="E",
        type=positive_number,
        help=f"with DATA: exit with code {ABOVE_MAX_ERROR} unless every prediction is proven to lie within E of the "
        "exact GP's, in the units of the target, or of its logarithm after --log-target",
    )
    parser.add_argument("--delta", metavar="P", type=coverage, help="allow a statistical statement that fails with P")
    parser.add_argument(
        "--exact-solve",
        action="store_true",
        help="where the reference is too weak for --tol, solve the exact system; asks first, showing the cost",
    )
    add_text_options(parser, "those of the fit")
    add_reading_options(parser)
    add_scheduler_option(parser, "pass over those of --train there")
    parser.add_argument("--yes", action="store_true", help="do not ask before --exact-solve")
    parser.add_argument(
        "--out",
        metavar="FILE",
        type=Path,
        help="with DATA: .csv, .parquet or .npz file for one row per prediction: mean, mean_error (the bound), "
        "mean_error_lower, std_lower, std_upper (of the exact GP's function)",
    )


def run(arguments: argparse.Namespace, console: Console) -> int:
    """Check, read, certify, print, judge."""
    _check(arguments)
    console.status("starting")
    from certgp.data.tables import check_writable

    facts = ModelFacts.read(arguments.model)
    files = facts.open(arguments.data, arguments) if arguments.data else None
    if arguments.out is not None:
        check_writable(arguments.out)
        refuse_overwriting(arguments.out, [arguments.model, *(files.files if files else ())])
    if facts.encoding is not None:
        refuse_scheduler(arguments, "a table with categories, dates or gaps")
    train = facts.open(arguments.train, arguments) if arguments.train else None
    checked = None if files is None else facts.check(files, arguments)
    from certgp.estimators.persistence import load_estimator  # torch: all that is cheap has been checked

    model = load_estimator(arguments.model)
    here = argparse.Namespace(**vars(arguments) | {"scheduler": None})  # new rows are few
    X = None if files is None else read_new(model, files, checked, here, console)
    console.status("certifying")
    started = time.perf_counter()
    found = _certificates(model, X, train, arguments, console)
    fields: dict[str, object] = {"command": "certify", "model": str(arguments.model)}
    told = {each.name: _tell(each, X) for each in found}
    fields |= told[""][0] if len(told) == 1 else {"outputs": {name: own for name, (own, _) in told.items()}}
    fields["seconds"] = time.perf_counter() - started
    saved = "" if arguments.out is None else f"\n\nbounds of every row: {arguments.out}{_units(model)}"
    if arguments.out is not None and X is not None:
        _write_bounds(arguments.out, found, X)
    texts = [f"{name}\n{'=' * len(name)}\n{text}" if name else text for name, (_, text) in told.items()]
    console.result(fields, "\n\n".join(texts) + saved)
    return max(_judged(each.certificate, arguments.max_error, console) for each in found)


@dataclass(frozen=True, eq=False)
class Certified:
    """An output with its certificate; that of a model of one has no name."""

    name: str
    model: GPRegressor
    certificate: Certificate


def _tell(found: Certified, X: Rows | None) -> tuple[dict[str, object], str]:
    """A certificate for machines and for people."""
    from certgp.estimators.held_out import models_log

    explained = found.model.explain(found.certificate, X)
    fields = found.certificate.to_dict()
    meaning, text = [in_cli_words(each) for each in explained.meaning], in_cli_words(explained.text())
    notes = [in_cli_words(each) for each in found.certificate.notes]
    fields |= {"verdict": explained.verdict, "meaning": meaning, "limits": list(explained.limits), "notes": notes}
    errors = found.certificate.mean_error
    if errors is None or not models_log(found.model):
        return fields, text
    worst, target = math.exp(float(errors.max())), found.model.target_name_
    words = f"In the units of {target}: no median of it would change by more than a factor of {worst:.4g}."
    return fields | {"median_factor": worst}, f"{words}\n\n{text}"


def _write_bounds(path: Path, found: Sequence[Certified], X: Rows) -> None:
    """One row per prediction; of several outputs a group of columns for each."""
    from certgp.data.tables import write_table

    bounds = {each.name: _bounds(each.model, X, each.certificate) for each in found}
    write_table(path, {f"{c}_{name}" if name else c: each for name, own in bounds.items() for c, each in own.items()})


def _units(model: GPRegressor) -> str:
    """What the numbers of a file are about, where it is not the target itself."""
    from certgp.estimators.held_out import modelled_target, models_log

    return f" (all columns are about {modelled_target(model)})" if models_log(model) else ""


def _bounds(model: GPRegressor, X: Rows, certificate: Certificate) -> dict[str, NDArray[np.float64]]:
    """Columns of bounds; those that this certificate does not have are left out. All are of log(y) where that was
    learned.
    """
    import numpy as np

    lower, upper = certificate.variance_lower, certificate.variance_upper
    columns = {
        "mean": np.asarray(model.predict(X)),
        "mean_error": certificate.mean_error,
        "mean_error_lower": certificate.mean_error_lower,
        "std_lower": None if lower is None else np.sqrt(lower),
        "std_upper": None if upper is None else np.sqrt(upper),
    }
    return {name: values for name, values in columns.items() if values is not None}


def _judged(certificate: Certificate, most: float | None, console: Console) -> int:
    """The exit code, and a line that says why it is not 0."""
    if most is None or certificate.mean_error is None or certificate.mean_error_lower is None:
        return 0
    above = int((certificate.mean_error > most).sum())
    surely = int((certificate.mean_error_lower > most).sum())
    if not above:
        return 0
    console.notice(
        f"above --max-error {most:g}: {above} of {len(certificate.mean_error)} prediction(s) are not proven to lie "
        f"within it, of which {surely} are proven to lie outside"
        + ("" if surely == above else "; --train FILE with a small --tol may prove more")
    )
    return ABOVE_MAX_ERROR


def _check(arguments: argparse.Namespace) -> None:
    """Refuse options that would do nothing."""
    asked = [name for name in ("reference_rank", "tol", "delta") if getattr(arguments, name) is not None]
    asked += ["exact_solve"] if arguments.exact_solve else []
    asked += ["scheduler"] if arguments.scheduler is not None else []
    if asked and not arguments.train:
        option = asked[0].replace("_", "-")
        raise InvalidInputError(f"--{option} reads the training rows again; give them with --train FILE")
    if arguments.exact_solve and (arguments.tol is None or not arguments.data):
        raise InvalidInputError("--exact-solve needs --tol and DATA, the rows whose predictions to certify")
    for option, value in {"--max-error": arguments.max_error, "--out": arguments.out}.items():
        if value is not None and not arguments.data:
            raise InvalidInputError(f"{option} needs DATA, the rows whose predictions to certify")


def _certificates(
    model: GPRegressor, X: Rows | None, train: TableFiles | None, arguments: argparse.Namespace, console: Console
) -> list[Certified]:
    """The certificate of each output."""
    from certgp.estimators.outputs import name_outputs

    found = _certify(model, X, train, arguments, console)
    if model.outputs_ is None:
        return [Certified("", model, found)]
    named = zip(name_outputs(model), model.outputs_, found, strict=True)
    return [Certified(name, part, own) for name, part, own in named]


def _certify(
    model: GPRegressor, X: Rows | None, train: TableFiles | None, arguments: argparse.Namespace, console: Console
) -> Any:
    import numpy as np

    from certgp.checks import check_reference_rank

    if train is None:
        return model.certify(X)
    rows, engine = training_rows(model, train, arguments, console), engine_of(arguments)
    if engine is not None:
        if "engine" not in model.get_params(deep=False):
            raise InvalidInputError(f"--scheduler is not for a {type(model).__name__}, which is certified here")
        model.set_params(engine=engine)
    if arguments.reference_rank is not None:
        check_reference_rank("--reference-rank", arguments.reference_rank, rows.n_rows)
    return model.certify(
        X,
        rows=rows,
        reference_rank=arguments.reference_rank or (None if arguments.tol else 4 * int(np.max(model.rank_))),
        tol=arguments.tol,
        delta=arguments.delta,
        exact_solve=_asking(arguments.yes, console) if arguments.exact_solve else False,
        progress=lambda text: console.status(f"certifying: {text}"),
    )


def _asking(yes: bool, console: Console) -> Callable[[CostEstimate], bool]:
    """A function that shows the cost and asks; without a terminal it needs --yes."""

    def confirm(cost: CostEstimate) -> bool:
        console.notice(f"note: {cost}")
        if yes:
            return True
        if not sys.stdin.isatty():
            raise InvalidInputError("--exact-solve asks before it starts and there is no terminal; add --yes")
        print("start? [y/N] ", end="", file=sys.stderr, flush=True)
        return sys.stdin.readline().strip().lower() in ("y", "yes")

    return confirm

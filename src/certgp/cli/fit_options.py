"""The options of certgp fit, and which of them go together."""

from __future__ import annotations

import argparse
from pathlib import Path

from certgp.cli.arguments import (
    DATA_HELP,
    DROP_HELP,
    WEIGHTS_HELP,
    add_reading_options,
    fraction,
    positive_int,
    positive_number,
    rank,
    seed,
)
from certgp.cli.cluster import add_scheduler_option, check_method
from certgp.cli.models import KERNELS, NOISES, WARPS, check_model_options, describe_default_ranks
from certgp.cli.table_options import add_column_options, add_hold_out_options
from certgp.errors import InvalidInputError
from certgp.methods import CONTESTANTS, methods

EXAMPLES = """\
  certgp fit train.csv --target price --out price.model
  certgp fit train.npz --method sparse --kernel matern52 --rank 300 --out y.model
  certgp fit train.npz --method deep-fourier --out y.model
  certgp fit train.csv --target price --time-limit 60 --prefer proof --include-training-data --out price.model
  certgp fit train.csv --target price --method local --include-training-data --out price.model
  certgp fit sales.csv --target price --sep ';' --decimal , --missing impute --log-target --out price.model
  certgp fit sales.csv --target price --group customer --out price.model
  certgp fit 'parts/*.parquet' --target y --drop id --test-fraction 0.1 --out y.model --json
  certgp fit 'parts/*.parquet' --target y --method mercer --scheduler tcp://host:8786 --out y.model
"""
_RACE_OPTIONS = ("effort", "prefer", "combine")


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare all of them."""
    parser.add_argument("data", nargs="+", metavar="DATA", help=DATA_HELP)
    parser.add_argument(
        "--target",
        metavar="COL",
        help="column to predict, or several with commas between them; .npz files have a default, y",
    )
    parser.add_argument("--weights", metavar="COL", help=WEIGHTS_HELP)
    parser.add_argument("--out", metavar="MODEL", type=Path, required=True, help="file to save the model in")
    _add_model_options(parser)
    _add_race_options(parser)
    _add_limits(parser)
    parser.add_argument(
        "--include-training-data",
        action="store_true",
        help="allow the training rows into the model file, which exact and local models cannot predict without",
    )
    parser.add_argument("--drop", metavar="COL", action="append", default=[], help=DROP_HELP)
    add_column_options(parser)
    add_hold_out_options(parser)
    parser.add_argument(
        "--test-fraction",
        metavar="F",
        type=fraction,
        help="share of the rows to score on and not to learn from; 0 learns from all and gives no scores (default: "
        "0.1, at most 2,000 rows, and 0 where there are fewer than 100)",
    )
    add_reading_options(parser)
    add_scheduler_option(parser, "pass over them there (--method mercer, fourier and sparse)")


def _add_model_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--method",
        choices=tuple(methods()),
        default="auto",
        help="kind of model (default: auto, the one that predicts held-out training rows best)",
    )
    parser.add_argument(
        "--rank",
        metavar="N|auto",
        type=rank,
        help=f"number of features, or auto (default: {describe_default_ranks()})",
    )
    parser.add_argument(
        "--tolerance",
        metavar="T",
        type=positive_number,
        default=1e-3,
        help="for --rank auto: certified KL divergence to the exact GP per row (default: 0.001)",
    )
    parser.add_argument(
        "--kernel",
        choices=KERNELS,
        help="covariance function (default: gaussian; local chooses a Matern kernel by held-out rows)",
    )
    parser.add_argument(
        "--noise",
        choices=NOISES,
        help="scatter of new observations: constant, dependent on the input, or auto, where held-out rows gain by it "
        "(default: auto)",
    )
    parser.add_argument(
        "--warp",
        choices=tuple(WARPS),
        help="bend skewed input columns before the kernel sees them; auto: where held-out rows gain by it (default: "
        "auto for --method auto, else no)",
    )
    parser.add_argument(
        "--likelihood",
        choices=("gaussian", "student"),
        default="gaussian",
        help="student: for targets with outliers, which then count less (default: gaussian)",
    )


def _add_race_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--effort",
        choices=("low", "medium", "high"),
        help="for --method auto: how many methods are tried how long (default: medium)",
    )
    parser.add_argument(
        "--prefer",
        choices=("accuracy", "proof"),
        help="for --method auto: proof leaves models out that cannot be certified (default: accuracy)",
    )
    parser.add_argument(
        "--combine",
        action="store_true",
        default=None,
        help="for --method auto: predict by a mixture of the best models where held-out rows gain by it; it cannot be "
        "certified",
    )


def _add_limits(parser: argparse.ArgumentParser) -> None:
    """How long a fit may take, and what is left of one that was interrupted."""
    parser.add_argument(
        "--time-limit",
        "--max-seconds",
        dest="max_seconds",
        metavar="SECONDS",
        type=positive_number,
        help="train for about so long at most and keep the best model so far; reading, proof and scores come on top",
    )
    parser.add_argument(
        "--checkpoint",
        metavar="FILE",
        type=Path,
        help="keep an interrupted fit in this file: the same command goes on from it (not with --method exact)",
    )
    parser.add_argument(
        "--max-iter", metavar="N", type=positive_int, help="most iterations (default: the method's own)"
    )
    parser.add_argument("--seed", metavar="S", type=seed, default=0, help="seed of all random choices (default: 0)")


def check_options(arguments: argparse.Namespace) -> None:
    """Refuse what does not go together, before anything is read."""
    check_model_options(arguments.method, arguments.kernel, arguments.rank)
    _check_race_options(arguments)
    check_method(arguments)
    _check_rows_may_be_saved(arguments)


def _check_race_options(arguments: argparse.Namespace) -> None:
    """Refuse options of the race where there is none."""
    for name in _RACE_OPTIONS:
        if vars(arguments)[name] is not None and arguments.method != "auto":
            raise InvalidInputError(
                f"--{name.replace('_', '-')} is for --method auto, found --method {arguments.method}; leave it out"
            )


def race_options(arguments: argparse.Namespace) -> dict[str, object]:
    """Parameters of AutoGP; methods whose files would hold the training rows take part where that is allowed."""
    if arguments.method != "auto":
        return {}
    given = vars(arguments)
    options = {name: given[name] for name in _RACE_OPTIONS if given[name] is not None}
    if not arguments.include_training_data:
        options["candidates"] = tuple(each.name for each in CONTESTANTS if not methods()[each.method].holds_rows)
    return options


def _check_rows_may_be_saved(arguments: argparse.Namespace) -> None:
    """Refuse to fit a model that could not be saved."""
    if methods()[arguments.method].holds_rows and not arguments.include_training_data:
        raise InvalidInputError(
            f"--method {arguments.method} predicts from the training rows themselves, so the model file would hold "
            "them; add --include-training-data to allow it, or choose a low-rank --method"
        )


def check_model_path(path: Path) -> None:
    """Refuse a name under which the model would be taken for data, or would replace a file that is no model."""
    from certgp.data.reading import READABLE, ending
    from certgp.data.tables import check_writable
    from certgp.model_header import is_model_file

    if ending(path) in READABLE:
        raise InvalidInputError(
            f"--out {path} has the ending of a data file; choose another for the model, such as {path.stem}.model"
        )
    check_writable(path, endings=())
    if path.exists() and path.stat().st_size and not is_model_file(path):
        raise InvalidInputError(
            f"--out {path} exists and is not a model of certgp, so it is not overwritten; choose another name"
        )

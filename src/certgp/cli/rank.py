"""certgp rank: how many features a table needs."""

from __future__ import annotations

import argparse
import math
import time
from pathlib import Path
from typing import TYPE_CHECKING

from certgp.cli.arguments import (
    DATA_HELP,
    DROP_HELP,
    WEIGHTS_HELP,
    add_command,
    add_reading_options,
    fraction,
    positive_int,
    positive_number,
    seed,
)
from certgp.cli.models import KERNELS, build_model, check_model_options
from certgp.cli.output import Console, aligned, table
from certgp.cli.table_options import add_column_options
from certgp.cli.training_data import TrainingData
from certgp.errors import InvalidInputError

if TYPE_CHECKING:
    from certgp.cli.arguments import Commands
    from certgp.guarantees import RankCurve

METHODS = ("mercer", "fourier", "sparse")
PLOT_ENDINGS = (".png", ".pdf", ".svg")
_EXAMPLES = """\
  certgp rank train.csv --target price
  certgp rank train.csv --target price --tolerance 1e-4 --max-rank 400 --plot ranks.png
"""


def add_parser(commands: Commands) -> None:
    """Declare the command and its options."""
    summary = "show what each rank gives: evidence, guarantee and held-out score, from one fit"
    parser = add_command(commands, "rank", summary, _EXAMPLES, run)
    parser.add_argument("data", nargs="+", metavar="DATA", help=DATA_HELP)
    parser.add_argument("--target", metavar="COL", help="column to predict; .npz files have a default, y")
    parser.add_argument("--weights", metavar="COL", help=WEIGHTS_HELP)
    parser.add_argument("--method", choices=METHODS, default="mercer", help="kind of model (default: mercer)")
    parser.add_argument("--kernel", choices=KERNELS, default="gaussian", help="covariance function (default: gaussian)")
    parser.add_argument("--max-rank", metavar="N", type=positive_int, default=200, help="largest rank (default: 200)")
    parser.add_argument(
        "--tolerance",
        metavar="T",
        type=positive_number,
        default=1e-3,
        help="certified KL divergence per row that counts as close to the exact GP (default: 0.001)",
    )
    parser.add_argument("--max-iter", metavar="N", type=positive_int, help="most iterations of the fit")
    parser.add_argument("--seed", metavar="S", type=seed, default=0, help="seed of all random choices (default: 0)")
    parser.add_argument("--drop", metavar="COL", action="append", default=[], help=DROP_HELP)
    parser.add_argument(
        "--test-fraction",
        metavar="F",
        type=fraction,
        default=0.1,
        help="share of the rows to score each rank on (default: 0.1)",
    )
    add_column_options(parser)
    add_reading_options(parser)
    parser.add_argument("--plot", metavar="FILE", type=Path, help=f"draw the curve ({', '.join(PLOT_ENDINGS)})")


def run(arguments: argparse.Namespace, console: Console) -> None:
    """Fit once at the largest rank, then read every smaller one off the same matrices."""
    check_model_options(arguments.method, arguments.kernel, arguments.max_rank)
    console.status("starting")
    from certgp.data.tables import check_writable

    if arguments.plot is not None:
        check_writable(arguments.plot, endings=PLOT_ENDINGS)
    data = TrainingData.open(arguments)
    if len(data.targets) > 1:
        raise InvalidInputError(f"certgp rank takes one --target, found {data.target}; name one of them")
    rows = data.read()
    for note in rows.notes:
        console.notice(f"note: {note}")
    for each in rows.left_out if rows.encoding is None else rows.encoding.left_out:
        console.notice(f"note: column {each.name!r} is left out: {each.reason}")
    model = build_model(
        arguments.method, arguments.kernel, arguments.max_rank, arguments.seed, [console.iteration], arguments.max_iter
    )
    started = time.perf_counter()
    rows.fit(model)
    held_out = () if rows.test is None else (rows.test,)
    curve = model.rank_curve(*held_out)
    if arguments.plot is not None:
        from certgp.plots import plot_rank_curve, save_figure

        save_figure(plot_rank_curve(curve), arguments.plot)
    n_rows, plot = rows.train.n_rows, None if arguments.plot is None else str(arguments.plot)
    fields = _fields(curve, arguments) | {"n_rows": n_rows, "plot": plot, "seconds": time.perf_counter() - started}
    saved = "" if plot is None else f"\n\nplot: {plot}"
    console.result(fields, _text(curve, arguments, n_rows) + saved)


def _fields(curve: RankCurve, arguments: argparse.Namespace) -> dict[str, object]:
    """The curve for machines."""
    arrays = {"elbo": curve.elbo, "kl_bound": curve.kl_bound, "nlpd": curve.nlpd}
    return {
        "command": "rank",
        "method": arguments.method,
        "tolerance": arguments.tolerance,
        "smallest_certified_rank": curve.smallest(arguments.tolerance),
        "best_nlpd_rank": None if curve.nlpd is None else int(curve.ranks[curve.nlpd.argmin()]),
        "ranks": curve.ranks.tolist(),
        "log_evidence": curve.log_evidence.tolist(),
    } | {name: None if array is None else array.tolist() for name, array in arrays.items()}


def _text(curve: RankCurve, arguments: argparse.Namespace, n_rows: int) -> str:
    """The curve at doubling ranks for people."""
    last = len(curve.ranks) - 1
    shown = sorted({min(2**k - 1, last) for k in range(last.bit_length() + 1)} | {last})
    header = ["rank", "log evidence / row"]
    header += ["proven distance", "KL bound / row"] if curve.kl_bound is not None else []
    header += ["held-out NLPD"] if curve.nlpd is not None else []
    rows = []
    for i in shown:
        cells = [str(curve.ranks[i]), f"{curve.log_evidence[i] / n_rows:.4f}"]
        cells += _distance(curve.kl_bound[i] / n_rows) if curve.kl_bound is not None else []
        rows.append([*cells, *([f"{curve.nlpd[i]:.4f}"] if curve.nlpd is not None else [])])
    smallest = curve.smallest(arguments.tolerance)
    missing = (
        "none: the features are certified through a reference only, after a fit"
        if curve.kl_bound is None
        else (f"none up to {curve.ranks[-1]}; raise --max-rank or --tolerance")
    )
    facts = [("certified", missing if smallest is None else _certified(smallest, arguments.tolerance))]
    if curve.nlpd is not None:
        facts.append(("predicts best", f"rank {curve.ranks[curve.nlpd.argmin()]} on the held-out rows"))
    return "\n".join([table(header, rows), "", aligned(facts)])


def _distance(kl_per_row: float) -> list[str]:
    """How far a typical prediction may be from the exact GP's, in percent of its standard deviation, and the divergence
    per row that says so.
    """
    from certgp.guarantees.words import percent

    shift = math.sqrt(2.0 * kl_per_row)
    return ["useless" if shift > 1.0 else percent(shift), f"{kl_per_row:.3g}"]


def _certified(rank: int, tolerance: float) -> str:
    from certgp.guarantees.words import percent

    return (
        f"at rank {rank} computing without approximation would move a typical prediction by at most "
        f"{percent(math.sqrt(2.0 * tolerance))} of its own standard deviation (KL per row at most {tolerance:g} nats)"
    )

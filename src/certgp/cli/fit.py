"""certgp fit: learn a model from a table and save it."""

from __future__ import annotations

import argparse
import time
from dataclasses import asdict
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
    rank,
    refuse_overwriting,
    seed,
)
from certgp.cli.card import card_fields, card_text, make_card
from certgp.cli.cluster import add_scheduler_option, check_method, engine_of
from certgp.cli.interrupts import INTERRUPTED, resume_words, stopping_on_interrupt
from certgp.cli.models import (
    KERNELS,
    NOISES,
    WARPS,
    build_model,
    check_model_options,
    describe_default_ranks,
    set_options,
)
from certgp.cli.output import Console, aligned, skipped_fields
from certgp.cli.proof import Proof, certify_command, prove, report_command
from certgp.cli.several_outputs import describe_outputs, split_outputs, tell_outputs
from certgp.cli.table_options import add_column_options, add_hold_out_options
from certgp.cli.told_columns import columns_fields, columns_text, hold_out_notes
from certgp.cli.training_data import TrainingData, TrainingRows
from certgp.cli.words import in_cli_words
from certgp.errors import InvalidInputError
from certgp.methods import CONTESTANTS, methods

if TYPE_CHECKING:
    from certgp.cli.arguments import Commands
    from certgp.estimators import GPRegressor
    from certgp.training import Callback

_EXAMPLES = """\
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
_ANNOUNCED_ROWS = 500_000  # of so many a fit may take minutes
_RACE_OPTIONS = ("effort", "prefer", "combine")


def add_parser(commands: Commands) -> None:
    """Declare the command and its options."""
    parser = add_command(commands, "fit", "learn a model from a table and save it", _EXAMPLES, run)
    parser.add_argument("data", nargs="+", metavar="DATA", help=DATA_HELP)
    parser.add_argument(
        "--target",
        metavar="COL",
        help="column to predict, or several with commas between them; .npz files have a default, y",
    )
    parser.add_argument("--weights", metavar="COL", help=WEIGHTS_HELP)
    parser.add_argument("--out", metavar="MODEL", type=Path, required=True, help="file to save the model in")
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
    parser.add_argument(
        "--effort",
        choices=("low", "medium", "high"),
        help="for --method auto: how many methods are tried how long (default: medium)",
    )
    parser.add_argument(
        "--time-limit",
        "--max-seconds",
        dest="max_seconds",
        metavar="SECONDS",
        type=positive_number,
        help="train for about so long at most and keep the best model so far; reading, proof and scores come on top",
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


def run(arguments: argparse.Namespace, console: Console) -> int:
    """Check, read, fit, save, score, print: in this order, so that a mistake shows before the long part. Interrupted,
    a fit saves the best model so far.
    """
    check_model_options(arguments.method, arguments.kernel, arguments.rank)
    _check_race_options(arguments)
    check_method(arguments)
    _check_rows_may_be_saved(arguments)
    console.status("starting")
    _check_model_path(arguments.out)
    data = TrainingData.open(arguments)
    refuse_overwriting(arguments.out, list(data.files.files))
    console.status("reading data")
    rows = data.read()
    for note in rows.notes:
        console.notice(f"note: {note}")

    console.status("fitting")
    from certgp.training import StopRule

    rule = StopRule()  # asked by Ctrl-C
    callbacks: list[Callback] = [console.iteration, rule]
    model = build_model(
        arguments.method, arguments.kernel, arguments.rank, arguments.seed, callbacks, arguments.max_iter
    )
    set_options(model, arguments, **_race_options(arguments))
    engine = engine_of(arguments)
    _announce(model, rows, arguments, console)
    if engine is not None:
        model.set_params(engine=engine)
    if arguments.max_seconds is not None:
        console.expect(arguments.max_seconds)
    started, worked = time.perf_counter(), time.process_time()
    with stopping_on_interrupt(rule, console):
        rows.fit(model)
    seconds, worked = time.perf_counter() - started, time.process_time() - worked
    if model.outputs_ is not None:
        fields, facts = describe_outputs(model, rows, arguments, seconds)
    else:
        fields = _fields(arguments, model, seconds, model.n_rows_) | {"columns": list(rows.data.inputs)}
        facts = _facts(arguments, model, seconds, model.n_rows_)  # rows of weight zero are not among them
    fields["target"] = data.target
    if rule.reason is not None:
        _save(model, arguments.out, console)
        further = [("saved", f"{arguments.out}, the best model so far"), ("to go on", resume_words(arguments))]
        console.result(fields | {"interrupted": True}, aligned([*facts, *further]))
        return INTERRUPTED
    try:
        console.status("proving")
        outputs = None if model.outputs_ is None else split_outputs(model, rows, worked)
        proof = Proof() if outputs is not None else prove(model, worked)
        _save(model, arguments.out, console)
        console.status("scoring beside simple models")
        if outputs is not None:
            console.result(*tell_outputs(outputs, arguments, fields, facts))
            return 0
        card = None if rows.test is None else make_card(model, rows, arguments.seed)
    except KeyboardInterrupt:
        _save(model, arguments.out, console)
        console.notice(f"interrupted before all was proven and scored; the model itself is done: {arguments.out}")
        return INTERRUPTED
    certificate = proof.certificate
    fields["certificate"] = None if certificate is None else certificate.to_dict()
    fields |= {"not_certifiable": proof.obstacle, "proof_put_off": proof.put_off}
    fields["skipped"] = skipped_fields(data.files)
    fields |= card_fields(card) | columns_fields(rows.encoding, rows.left_out)
    told = [] if proof.put_off is None else [("certified", f"not yet: {proof.put_off}")]
    if certificate is not None:
        coverage = None if card is None else card.model.coverage(0.95)
        explained = model.explain(certificate, coverage=coverage)
        meaning = [in_cli_words(each) for each in explained.meaning]
        told = [("certified", " ".join(meaning)), ("not said", " ".join(explained.limits))]
        fields["meaning"] = meaning
    steps = [
        ("to certify", f"impossible: {proof.obstacle}" if proof.obstacle else certify_command(arguments, [model])),
        ("to report", report_command(arguments, has_test=card is not None)),
        ("saved", str(arguments.out)),
    ]
    shown = [aligned(facts), *columns_text(rows.encoding, rows.left_out), card_text(card, hold_out_notes(rows))]
    console.result(fields, "\n\n".join([*shown, aligned([*told, *steps])]))
    return 0


def _announce(model: GPRegressor, rows: TrainingRows, arguments: argparse.Namespace, console: Console) -> None:
    """Before a long fit: what it will cost, from a measurement on the first rows, in this process."""
    from certgp.estimators import FourierGP, MercerGP, SparseGP, estimate_fit

    fixed_rank = model.get_params(deep=False).get("rank") != "auto"
    if isinstance(model, MercerGP | FourierGP | SparseGP) and fixed_rank and rows.train.n_rows >= _ANNOUNCED_ROWS:
        estimate = estimate_fit(model, rows.train, max_seconds=arguments.max_seconds)
        if arguments.scheduler is not None:
            console.notice(f"note: {estimate}, in one process; workers share the passes over all rows")
            return
        console.notice(f"note: {estimate}")
        console.expect(estimate.seconds)


def _check_race_options(arguments: argparse.Namespace) -> None:
    """Refuse options of the race where there is none."""
    for name in _RACE_OPTIONS:
        if vars(arguments)[name] is not None and arguments.method != "auto":
            raise InvalidInputError(
                f"--{name.replace('_', '-')} is for --method auto, found --method {arguments.method}; leave it out"
            )


def _race_options(arguments: argparse.Namespace) -> dict[str, object]:
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


def _check_model_path(path: Path) -> None:
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


def _save(model: GPRegressor, path: Path, console: Console) -> None:
    if model.needs_training_data:
        model.save(path, include_training_data=True)
        console.notice(f"note: {path} holds the training data; this model cannot predict without it")
    else:
        model.save(path)


def _fields(arguments: argparse.Namespace, model: GPRegressor, seconds: float, n_rows: int) -> dict[str, object]:
    """The outcome for machines."""
    from certgp.estimators.held_out import modelled_target

    return {
        "command": "fit",
        "model": str(arguments.out),
        "method": arguments.method,
        "choice": model.choice_,
        "trials": [asdict(trial) for trial in model.trials_],
        "n_rows": n_rows,
        "learned": modelled_target(model),
        "kernel": model.kernel_.name,
        "rank": int(model.rank_),
        "length_scale": model.kernel_.describe().get("length_scale"),
        "signal_variance": float(model.kernel_.signal_variance),
        "noise_variance": float(model.noise_variance_),
        "warp": None if model.warp_ is None else model.warp_.tolist(),
        "noise_gain": None if model.noise_gain_ is None else asdict(model.noise_gain_),
        "log_marginal_likelihood": float(model.log_marginal_likelihood_),
        "n_iter": int(model.n_iter_),
        "converged": bool(model.converged_),
        "stop_reason": in_cli_words(model.stop_reason_),
        "interrupted": False,
        "stages": [asdict(stage) for stage in model.history_.stages],
        "seconds": seconds,
    }


def _noise_gain(model: GPRegressor) -> str:
    found = model.noise_gain_
    if found is None or not found.accepted:
        return ""
    return f"; it depends on the input, which gains {found.gain:.3g} in NLPD on rows not fitted to"


def _left_out(arguments: argparse.Namespace) -> list[tuple[str, str]]:
    if arguments.method != "auto" or arguments.include_training_data:
        return []
    words = (
        "exact and local models, often the best: their files hold the training rows; --include-training-data allows it"
    )
    return [("left out", words)]


def _size(model: GPRegressor) -> str:
    return "all rows kept" if model.needs_training_data else f"rank {model.rank_}"


def _inputs(model: GPRegressor) -> str:
    if model.encoding_ is None:
        return f"{model.n_features_in_} input column(s)"
    return f"{len(model.encoding_.columns)} input column(s) as {model.n_features_in_} numbers"


def _stages(model: GPRegressor) -> list[tuple[str, str]]:
    """How many rows each stage saw, where some saw fewer than others."""
    seen = [f"{stage.rows:,} ({stage.iterations} iterations)" for stage in model.history_.stages]
    return [("rows seen", ", ".join(seen))] if len(seen) > 1 else []


def _facts(arguments: argparse.Namespace, model: GPRegressor, seconds: float, n_rows: int) -> list[tuple[str, str]]:
    """The outcome for people, as names and values."""
    from certgp.estimators.held_out import scatter_words

    per_row = model.log_marginal_likelihood_ / n_rows
    return [
        ("model", f"{type(model).__name__}, {model.kernel_.name} kernel, {_size(model)}"),
        *([("chosen", in_cli_words(model.choice_))] if model.choice_ is not None else []),
        *([("inputs", "warped, each skewed column by a power")] if model.warp_ is not None else []),
        *_left_out(arguments),
        ("data", f"{n_rows:,} rows, {_inputs(model)}"),
        ("noise", f"{scatter_words(model, 5)} (standard deviation){_noise_gain(model)}"),
        ("log evidence", f"{model.log_marginal_likelihood_:.2f} ({per_row:.4f} per row)"),
        *_stages(model),
        ("stopped", f"after {model.n_iter_} iterations and {seconds:.1f} s: {in_cli_words(model.stop_reason_)}"),
    ]

"""certgp fit: learn a model from a table and save it."""

from __future__ import annotations

import argparse
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from certgp.cli.arguments import (
    DATA_HELP,
    add_command,
    fraction,
    positive_int,
    positive_number,
    rank,
    refuse_overwriting,
    seed,
)
from certgp.cli.models import DEFAULT_RANK, DEFAULT_RANKS, KERNELS, METHODS, build_model, check_model_options
from certgp.cli.output import Console, aligned, score_rows
from certgp.errors import DataFileError, InvalidInputError, NotCertifiableError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from certgp.cli.arguments import Commands
    from certgp.data.tables import TableFiles
    from certgp.estimators import GPRegressor
    from certgp.experiments.scores import Scores
    from certgp.guarantees import Certificate

    Rows = NDArray[np.int64]

_RANK_HELP = f"{DEFAULT_RANK}, {', '.join(f'{method} {rank}' for method, rank in DEFAULT_RANKS.items())}"
_EXAMPLES = """\
  certgp fit train.csv --target price --out price.model
  certgp fit train.npz --method sparse --kernel matern52 --rank 300 --out y.model
  certgp fit train.npz --method deep-fourier --out y.model
  certgp fit 'parts/*.parquet' --target y --drop id --test-fraction 0.1 --out y.model --json
"""


def add_parser(commands: Commands) -> None:
    """Declare the command and its options."""
    parser = add_command(commands, "fit", "learn a model from a table and save it", _EXAMPLES, run)
    parser.add_argument("data", nargs="+", metavar="DATA", help=DATA_HELP)
    parser.add_argument("--target", metavar="COL", help="column to predict; .npz files have a default, y")
    parser.add_argument("--out", metavar="MODEL", type=Path, required=True, help="file to save the model in")
    parser.add_argument(
        "--method",
        choices=METHODS,
        default="auto",
        help="kind of model (default: auto, the one that predicts held-out training rows best)",
    )
    parser.add_argument(
        "--rank", metavar="N|auto", type=rank, help=f"number of features, or auto (default: {_RANK_HELP})"
    )
    parser.add_argument(
        "--tolerance",
        metavar="T",
        type=positive_number,
        default=1e-3,
        help="for --rank auto: certified KL divergence to the exact GP per row (default: 0.001)",
    )
    parser.add_argument("--kernel", choices=KERNELS, default="gaussian", help="covariance function (default: gaussian)")
    parser.add_argument(
        "--max-iter", metavar="N", type=positive_int, help="most iterations (default: the method's own)"
    )
    parser.add_argument("--seed", metavar="S", type=seed, default=0, help="seed of all random choices (default: 0)")
    parser.add_argument(
        "--drop", metavar="COL", action="append", default=[], help="column to leave out; may be repeated"
    )
    parser.add_argument(
        "--test-fraction",
        metavar="F",
        type=fraction,
        default=0.0,
        help="share of the rows to score on and not to learn from",
    )


def run(arguments: argparse.Namespace, console: Console) -> None:
    """Check, read, fit, score, save, print: in this order, so that a mistake shows before the long part."""
    check_model_options(arguments.method, arguments.kernel, arguments.rank)
    console.status("starting")
    from certgp.data.tables import check_writable, open_table
    from certgp.estimators import fit_named
    from certgp.estimators.naming import named_rows
    from certgp.experiments.scores import score

    check_writable(arguments.out, endings=())
    files = open_table(arguments.data)
    refuse_overwriting(arguments.out, list(files.files))
    target = target_column(arguments.target, files)
    columns = input_and_target_columns(arguments.drop, target, files)
    console.status("reading data")
    inputs, y = files.read(columns).split(target)
    train, test = split_rows(len(y), arguments.test_fraction, arguments.seed)

    console.status("fitting")
    model = build_model(
        arguments.method, arguments.kernel, arguments.rank, arguments.seed, [console.iteration], arguments.max_iter
    )
    if arguments.rank == "auto":
        model.set_params(tolerance=arguments.tolerance)
    started = time.perf_counter()
    fit_named(model, inputs.values[train], y[train], inputs.names, target)
    seconds = time.perf_counter() - started
    scores = score(model, named_rows(inputs.values[test], inputs.names), y[test]) if len(test) else None
    certificate = _certificate(model)
    _save(model, arguments.out, console)
    fields = _fields(arguments, model, seconds, len(train)) | {"columns": list(inputs.names), "target": target}
    fields["certificate"] = None if certificate is None else certificate.to_dict()
    fields["test"] = asdict(scores) | {"n_rows": len(test)} if scores else None
    console.result(fields, _text(arguments, model, seconds, len(train), scores, certificate))


def target_column(given: str | None, files: TableFiles) -> str:
    """The column to predict: the one named, or y of .npz files."""
    from certgp.data.tables import listed, require_columns

    if given is None and not all(file.suffix.lower() == ".npz" for file in files.files):
        raise DataFileError(f"name the column to predict with --target; the columns are: {listed(files.names)}")
    target = "y" if given is None else given
    require_columns([target], files.names)
    return target


def input_and_target_columns(dropped: list[str], target: str, files: TableFiles) -> list[str]:
    """All columns but the dropped ones."""
    from certgp.data.tables import require_columns

    require_columns(dropped, files.names)
    if target in dropped:
        raise InvalidInputError(f"{target!r} is both --target and --drop; leave one of them out")
    files.require_same_columns(except_for=dropped)
    return [name for name in files.names if name not in dropped]


def split_rows(n: int, test_fraction: float, seed: int) -> tuple[Rows, Rows]:
    """Rows to learn from and rows to score on, in their original order; a fraction above 0 means at least one."""
    import numpy as np

    n_test = max(1, round(n * test_fraction)) if test_fraction else 0
    if n - n_test < 2:
        raise InvalidInputError(
            f"{n} row(s) with --test-fraction {test_fraction:g} leave fewer than 2 to learn from; give more"
        )
    order = np.random.default_rng(seed).permutation(n) if n_test else np.arange(n)
    return np.sort(order[n_test:]), np.sort(order[:n_test])


def _certificate(model: GPRegressor) -> Certificate | None:
    """The certificate that is saved with the model; a model without an exact counterpart has none."""
    from certgp.estimators import FourierGP

    try:
        # features that do not certify themselves: one pass through a reference
        return model.certify(reference_rank=4 * model.rank_) if isinstance(model, FourierGP) else model.certify()
    except NotCertifiableError:
        return None


def _save(model: GPRegressor, path: Path, console: Console) -> None:
    from certgp.estimators import ExactGP

    if isinstance(model, ExactGP):
        model.save(path, include_training_data=True)
        console.notice(f"note: {path} holds the training data; an exact GP cannot predict without it")
    else:
        model.save(path)


def _fields(arguments: argparse.Namespace, model: GPRegressor, seconds: float, n_rows: int) -> dict[str, object]:
    """The outcome for machines."""
    return {
        "command": "fit",
        "model": str(arguments.out),
        "method": arguments.method,
        "choice": getattr(model, "choice_", None),
        "n_rows": n_rows,
        "kernel": arguments.kernel,
        "rank": int(model.rank_),
        "length_scale": model.kernel_.length_scale.tolist(),
        "signal_variance": float(model.kernel_.signal_variance),
        "noise_variance": float(model.noise_variance_),
        "log_marginal_likelihood": float(model.log_marginal_likelihood_),
        "n_iter": int(model.n_iter_),
        "converged": bool(model.converged_),
        "stop_reason": model.stop_reason_,
        "seconds": seconds,
    }


def _text(
    arguments: argparse.Namespace,
    model: GPRegressor,
    seconds: float,
    n_rows: int,
    scores: Scores | None,
    certificate: Certificate | None,
) -> str:
    """The outcome for people."""
    per_row = model.log_marginal_likelihood_ / n_rows
    rows = [
        ("model", f"{type(model).__name__}, {arguments.kernel} kernel, rank {model.rank_}"),
        *([("chosen", model.choice_)] if hasattr(model, "choice_") else []),
        ("data", f"{n_rows:,} rows, {model.n_features_in_} input column(s)"),
        ("noise", f"{model.noise_variance_**0.5:.5g} (standard deviation)"),
        ("log evidence", f"{model.log_marginal_likelihood_:.2f} ({per_row:.4f} per row)"),
        ("stopped", f"after {model.n_iter_} iterations and {seconds:.1f} s: {model.stop_reason_}"),
    ]
    held_out = [(f"test {name}", value) for name, value in score_rows(scores)] if scores else []
    proven = [("certified", certificate.sentence())] if certificate is not None else []
    return aligned([*rows, *proven, *held_out, ("saved", str(arguments.out))])

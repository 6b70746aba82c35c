"""certgp export: a saved model for programs without certgp."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from certgp.cli.arguments import add_command, refuse_overwriting
from certgp.cli.output import Console, aligned
from certgp.errors import InvalidInputError

if TYPE_CHECKING:
    from certgp.cli.arguments import Commands

_EXAMPLES = """\
  certgp export price.model --onnx price.onnx              mean and std of new observations
  certgp export price.model --onnx price.onnx --latent     std of the function behind them
  certgp export sales.model --onnx sales.onnx --encoded    of a table: takes the numbers that its columns become
"""


def add_parser(commands: Commands) -> None:
    """Declare the command and its options."""
    summary = "write mean and standard deviation of a model as an ONNX graph"
    parser = add_command(commands, "export", summary, _EXAMPLES, run)
    parser.add_argument("model", metavar="MODEL", type=Path, help="file that 'certgp fit' or save() wrote")
    parser.add_argument("--onnx", metavar="FILE", type=Path, required=True, help=".onnx file to write")
    parser.add_argument(
        "--latent", action="store_true", help="standard deviations of the function, without the noise of observations"
    )
    parser.add_argument(
        "--encoded",
        action="store_true",
        help="of a table with categories, dates or gaps export the part that takes numbers: those that the columns "
        "become, as encode() of the model gives them in Python",
    )


def run(arguments: argparse.Namespace, console: Console) -> None:
    """Check, load, write."""
    from certgp.data.tables import check_writable
    from certgp.estimators.held_out import modelled_target
    from certgp.estimators.persistence import load, load_estimator

    check_writable(arguments.onnx, endings=(".onnx",))
    refuse_overwriting(arguments.onnx, [arguments.model])
    try:
        from certgp.export import to_onnx
    except ModuleNotFoundError as error:
        if error.name is not None and error.name.startswith("certgp"):
            raise
        raise InvalidInputError(
            f"'certgp export' needs {error.name}; install it: pip install 'certgp[onnx]'"
        ) from error
    model = load_estimator(arguments.model) if arguments.encoded else load(arguments.model)
    to_onnx(model, arguments.onnx, include_noise=not arguments.latent)
    kilobytes = arguments.onnx.stat().st_size / 1e3
    fields = {"command": "export", "model": str(arguments.model), "onnx": str(arguments.onnx), "kilobytes": kilobytes}
    takes = ", ".join(model.column_names[:8]) + (", ..." if len(model.column_names) > 8 else "")
    takes = takes or f"{model.n_features_in_} columns"
    text = aligned(
        [
            ("saved", f"{arguments.onnx} ({kilobytes:.0f} KB)"),
            ("input", f"X, float64, rows x {model.n_features_in_} ({takes})"),
            (
                "outputs",
                f"mean and std of {modelled_target(model)}, float64, a number per row"
                + (", per output" if model.outputs_ else ""),
            ),
        ]
    )
    console.result(fields, text)

"""certgp demo: a large problem with a known truth, fitted, scored, certified and plotted in less than a minute."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from certgp.cli.arguments import add_command
from certgp.cli.output import Console, table
from certgp.errors import InvalidInputError

if TYPE_CHECKING:
    from certgp.cli.arguments import Commands
    from certgp.cli.demo_surface import SurfaceResult

_EXAMPLES = """\
  certgp demo
  certgp demo --out pictures --json
"""


def add_parser(commands: Commands) -> None:
    """Declare the command and its options."""
    parser = add_command(commands, "demo", "fit, score, certify and plot a problem with a known truth", _EXAMPLES, run)
    parser.add_argument(
        "--out",
        metavar="DIR",
        type=Path,
        default=Path("certgp-demo"),
        help="directory for the plots (default: certgp-demo)",
    )


def run(arguments: argparse.Namespace, console: Console) -> None:
    """Fit, print the scores and the certificate, save the plots."""
    _prepare(arguments.out)
    console.status("starting")
    from certgp.cli import demo_surface

    console.status("fitting 180,000 rows of a surface")
    surface = demo_surface.run_surface(callbacks=(console.iteration,))
    console.status("drawing")
    plots = _save_plots(surface, arguments.out, console)
    fields: dict[str, object] = {
        "command": "demo",
        "surface": _fields(surface),
        "certificate": surface.certificate.to_dict(),
        "plots": [str(plot) for plot in plots],
    }
    saved = f"\n\nplots: {', '.join(map(str, plots))}" if plots else ""
    console.result(fields, f"{_text(surface)}\n\ncertified: {surface.certificate.sentence()}{saved}")


def _prepare(out: Path) -> None:
    if out.exists() and not out.is_dir():
        raise InvalidInputError(f"--out {out} is a file; give the name of a directory")
    if not out.parent.is_dir():
        raise InvalidInputError(f"the directory {out.parent} does not exist; create it first")
    out.mkdir(exist_ok=True)


def _save_plots(surface: SurfaceResult, out: Path, console: Console) -> list[Path]:
    try:
        from certgp.plots import plot_history, plot_surface, save_figure
    except ModuleNotFoundError as error:
        if not (error.name or "").startswith("matplotlib"):
            raise
        console.notice("note: no plots without matplotlib; get it with: pip install 'certgp[plots]'")
        return []
    figures = {
        "surface.png": plot_surface(surface.axis, surface.truth, surface.mean, surface.std, surface.n_train),
        "history.png": plot_history(surface.history),
    }
    for name, figure in figures.items():
        save_figure(figure, out / name)
    return [out / name for name in figures]


def _fields(result: SurfaceResult) -> dict[str, object]:
    names = ("n_train", "n_test", "rank", "noise", "rmse_truth", "truth_coverage", "best_nlpd", "seconds")
    values = vars(result)
    return asdict(result.scores) | {name: values[name] for name in (*names, "predict_seconds")}


def _text(result: SurfaceResult) -> str:
    scores = result.scores
    rows = [
        ("RMSE of new rows", f"{scores.rmse:.4f}", f"{result.noise:.4f}"),
        ("NLPD of new rows", f"{scores.nlpd:.4f}", f"{result.best_nlpd:.4f}"),
        ("new rows in their 95% interval", f"{scores.coverage:.1%}", f"{scores.nominal_coverage:.1%}"),
        ("RMSE against the truth", f"{result.rmse_truth:.4f}", f"{0.0:.4f}"),
        ("truth in the 95% band", f"{result.truth_coverage:.1%}", f"{scores.nominal_coverage:.1%}"),
    ]
    return (
        f"A surface from {result.n_train:,} rows, noise {result.noise:g}: Mercer GP of rank {result.rank}, "
        f"fitted in {result.seconds:.1f} s;\n"
        f"{result.n_test:,} further rows predicted in {result.predict_seconds:.2f} s\n"
        + table(("score on held-out rows", "model", "ideal"), rows)
    )

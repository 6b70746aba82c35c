"""certgp demo: two problems with a known truth, scored and plotted in less than a minute."""

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
    from certgp.cli.demo_problems.curve import CurvesResult
    from certgp.cli.demo_problems.surface import SurfaceResult

_EXAMPLES = """\
  certgp demo
  certgp demo --out pictures --json
"""


def add_parser(commands: Commands) -> None:
    """Declare the command and its options."""
    summary = "fit, score and plot two problems with a known truth"
    parser = add_command(commands, "demo", summary, _EXAMPLES, run)
    parser.add_argument(
        "--out",
        metavar="DIR",
        type=Path,
        default=Path("certgp-demo"),
        help="directory for the plots (default: certgp-demo)",
    )


def run(arguments: argparse.Namespace, console: Console) -> None:
    """Run both experiments, print their scores, save their plots."""
    _prepare(arguments.out)
    console.status("starting")
    from certgp.cli.demo_problems.curve import run_curves
    from certgp.cli.demo_problems.surface import run_surface

    console.status("fitting three models to a curve")
    curves = run_curves()
    console.status("fitting 180,000 rows of a surface")
    surface = run_surface(callbacks=(console.iteration,))
    console.status("drawing")
    plots = _save_plots(curves, surface, arguments.out, console)
    fields: dict[str, object] = {
        "command": "demo",
        "curves": _curve_fields(curves),
        "surface": _surface_fields(surface),
        "plots": [str(plot) for plot in plots],
    }
    saved = f"\n\nplots: {', '.join(map(str, plots))}" if plots else ""
    console.result(fields, f"{_curve_text(curves)}\n\n{_surface_text(surface)}{saved}")


def _prepare(out: Path) -> None:
    if out.exists() and not out.is_dir():
        raise InvalidInputError(f"--out {out} is a file; give the name of a directory")
    if not out.parent.is_dir():
        raise InvalidInputError(f"the directory {out.parent} does not exist; create it first")
    out.mkdir(exist_ok=True)


def _save_plots(curves: CurvesResult, surface: SurfaceResult, out: Path, console: Console) -> list[Path]:
    try:
        from certgp.plots import plot_curves, plot_history, plot_surface, save_figure
    except ModuleNotFoundError as error:
        if not (error.name or "").startswith("matplotlib"):
            raise
        console.notice("note: no plots without matplotlib; get it with: pip install 'certgp[plots]'")
        return []
    answers = {
        f"{c.name}: RMSE {c.rmse_inputs:.3f} for x like the data": (c.mean, c.lower, c.upper) for c in curves.curves
    }
    figures = {
        "curves.png": plot_curves(curves.x, curves.y, curves.grid, curves.truth, answers),
        "surface.png": plot_surface(surface.axis, surface.truth, surface.mean, surface.std, surface.n_train),
        "history.png": plot_history(surface.history),
    }
    for name, figure in figures.items():
        save_figure(figure, out / name)
    return [out / name for name in figures]


def _curve_fields(result: CurvesResult) -> dict[str, object]:
    return {
        "n_rows": len(result.x),
        "noise": result.noise,
        "models": [
            {
                "name": c.name,
                "rmse": c.rmse,
                "rmse_inputs": c.rmse_inputs,
                "coverage": c.coverage,
                "seconds": c.seconds,
            }
            for c in result.curves
        ],
    }


def _surface_fields(result: SurfaceResult) -> dict[str, object]:
    return asdict(result.scores) | {
        "n_train": result.n_train,
        "n_test": result.n_test,
        "rank": result.rank,
        "noise": result.noise,
        "rmse_truth": result.rmse_truth,
        "truth_coverage": result.truth_coverage,
        "best_nlpd": result.best_nlpd,
        "seconds": result.seconds,
        "predict_seconds": result.predict_seconds,
    }


def _curve_text(result: CurvesResult) -> str:
    rows = [
        (c.name, f"{c.rmse_inputs:.3f}", f"{c.rmse:.3f}", f"{c.coverage:.0%}", f"{c.seconds:.1f}")
        for c in result.curves
    ]
    header = ("model", "RMSE, x like the data", "RMSE, whole grid", "truth in 95% band", "seconds")
    return (
        f"A curve from {len(result.x)} points, noise {result.noise:g}; errors of the mean against the truth\n"
        + table(header, rows)
    )


def _surface_text(result: SurfaceResult) -> str:
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

"""certgp demo: a real map of rain, fitted, judged, certified and reported in less than a minute."""

from __future__ import annotations

import argparse
import shutil
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

from certgp.cli.arguments import add_command, positive_int
from certgp.cli.card import card_fields, card_table
from certgp.cli.output import Console
from certgp.errors import InvalidInputError

if TYPE_CHECKING:
    from certgp.cli.arguments import Commands
    from certgp.cli.demo_rain import RainResult

_EXAMPLES = """\
  certgp demo
  certgp demo --out rain --json
"""
_FEWEST = 200  # rows; a tenth of them is held out


def add_parser(commands: Commands) -> None:
    """Declare the command and its options."""
    parser = add_command(commands, "demo", "a map of rain: fit, held-out scores, certificate, report", _EXAMPLES, run)
    parser.add_argument(
        "--out",
        metavar="DIR",
        type=Path,
        default=Path("certgp-demo"),
        help="directory for data, report and picture (default: certgp-demo)",
    )
    parser.add_argument(
        "--rows", metavar="N", type=positive_int, help="use the first N of the 4,000 places only, to be quicker"
    )


def run(arguments: argparse.Namespace, console: Console) -> None:
    """Fit, judge, certify, write the report and the picture, tell the story."""
    if arguments.rows is not None and arguments.rows < _FEWEST:
        raise InvalidInputError(f"--rows {arguments.rows} are too few to hold any out; give at least {_FEWEST}")
    _prepare(arguments.out)
    console.status("starting")
    from certgp.cli import demo_rain
    from certgp.data.examples import rain_file

    table = arguments.out / "rain.csv"
    shutil.copyfile(rain_file(), table)
    console.status("fitting")
    found = demo_rain.run_rain(table, arguments.rows, (console.iteration,))
    console.status("writing the report")
    report = arguments.out / "rain.html"
    page = found.model.report(found.test, path=report, rows=found.train, title="Rain of 2016")
    picture = _draw(found, arguments.out, console)
    fields: dict[str, object] = {
        "command": "demo",
        "n_train": found.train.n_rows,
        "seconds": found.seconds,
        "certify_seconds": found.certify_seconds,
        "certificate": found.certificate.to_dict(),
        "meaning": list(found.explained.meaning),
        "data": str(table),
        "report": str(report),
        "picture": None if picture is None else str(picture),
    }
    files = [f"report   {report} ({len(page.html) / 1e3:.0f} KB, open it in a browser)"]
    if picture is not None:
        files.append(f"picture  {picture}")
    console.result(fields | card_fields(found.card), _story(found, table, files))


def _wrapped(text: str) -> str:
    return textwrap.fill(text, 100, initial_indent="  ", subsequent_indent="  ")


def _prepare(out: Path) -> None:
    if out.exists() and not out.is_dir():
        raise InvalidInputError(f"--out {out} is a file; give the name of a directory")
    if not out.parent.is_dir():
        raise InvalidInputError(f"the directory {out.parent} does not exist; create it first")
    out.mkdir(exist_ok=True)


def _draw(found: RainResult, out: Path, console: Console) -> Path | None:
    try:
        import numpy as np

        from certgp.plots import plot_map, save_figure
    except ModuleNotFoundError as error:
        if not (error.name or "").startswith("matplotlib"):
            raise
        console.notice("note: no picture without matplotlib; get it with: pip install 'certgp[plots]'")
        return None
    from certgp.cli.demo_rain import predict_map

    console.status("drawing the map")
    seen = predict_map(found.model)
    places = np.asarray(found.train.take(slice(None))[0], dtype=np.float64)
    figure = plot_map(seen.longitude, seen.latitude, seen.mean, seen.std, places, "rain of 2016, log10 of mm")
    save_figure(figure, out / "rain.png")
    return out / "rain.png"


def _story(found: RainResult, table: Path, files: list[str]) -> str:
    model, n = "certgp-demo.model", found.train.n_rows
    parts = [
        "DATA\n"
        + _wrapped(
            f"The rain of 2016 at {n + found.test.n_rows:,} places on Earth: log10 of millimetres, to be predicted "
            f"from longitude and latitude (NOAA, public domain). {table}"
        ),
        f"FIT\n{_wrapped(f'LocalGP learned from {n:,} places in {found.seconds:.0f} s.')}",
        f"IS IT ANY GOOD?\n{card_table(found.card)}\n\n{_wrapped(found.card.verdict())}",
        "IS IT THE EXACT GAUSSIAN PROCESS?\n"
        + "\n".join(_wrapped(sentence) for sentence in (*found.explained.meaning, *found.explained.limits))
        + f"\n  Proven in {found.certify_seconds:.0f} s.",
        "LOOK AT IT\n" + "\n".join(f"  {line}" for line in files),
        "THE SAME BY HAND\n"
        f"  certgp fit {table} --target log10_rain --method local --include-training-data --out {model}\n"
        f"  certgp report {model} {table} --out report.html",
    ]
    return "\n\n".join(parts)

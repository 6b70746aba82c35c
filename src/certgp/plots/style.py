"""One look for all figures: colours that colour-blind readers can tell apart, sizes for a text column, whole files."""

from __future__ import annotations

from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from PIL import Image

from certgp.data.tables import replacing

# Okabe and Ito, "Color universal design" (2008)
BLACK, ORANGE, SKY, GREEN, YELLOW, BLUE, VERMILION, PURPLE = (
    "#000000",
    "#E69F00",
    "#56B4E9",
    "#009E73",
    "#F0E442",
    "#0072B2",
    "#D55E00",
    "#CC79A7",
)
COLUMN_WIDTH = 6.4  # inches
RESOLUTION = 150  # dots per inch
SMALL = 8  # points: legends and ticks


def new_figure(height: float) -> Figure:
    """A figure of its own, outside pyplot: no global state, no display needed."""
    figure = Figure(figsize=(COLUMN_WIDTH, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def tidy(axes: Axes, title: str, xlabel: str = "", ylabel: str = "") -> None:
    """Labels and a quiet frame."""
    axes.set_title(title, fontsize=SMALL + 2, loc="left")
    axes.set_xlabel(xlabel, fontsize=SMALL + 1)
    axes.set_ylabel(ylabel, fontsize=SMALL + 1)
    axes.tick_params(labelsize=SMALL)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def save_figure(figure: Figure, path: Path, colours: int | None = None) -> None:
    """Write a figure in the format of its ending; the file appears whole or not at all.

    ``colours`` limits a PNG to a palette: a third of the size for line drawings, bands in smooth images.
    """
    with replacing(path) as temporary:
        figure.savefig(temporary, dpi=RESOLUTION)
        if colours is not None and path.suffix == ".png":
            with Image.open(temporary) as image:
                small = image.convert("RGB").quantize(colours, dither=Image.Dither.NONE)
            small.save(temporary, format="png", optimize=True)

"""What one must know before reading the tables of the curve figures."""

from __future__ import annotations

from collections.abc import Sequence

from certgp_paper.experiments.experiment import Row
from certgp_paper.experiments.results import chosen_rows


def curve_note(rows: Sequence[Row]) -> str:
    """Which models, over what the figures are means, and that the band depends on the variance."""
    scores = chosen_rows(rows, kind="scores")
    if not scores:
        return ""
    sets = max(int(row["point_sets"]) for row in scores)
    draws = max(int(row["draws"]) for row in scores)
    return (
        f"Figures are means over {sets} point sets, and for the Fourier models over {draws} draws of frequencies for "
        "each; the picture shows the first of both. `paper`: the paper's models (marginal likelihood, its index order, "
        "independent frequencies, inputs as they are). `certgp`: the defaults of `MercerGP` and `FourierGP`. Paper and "
        "released code differ in the predictive variance of MGP, so it is shown with both: `lowrank`, the text's, and "
        "`dtc`, the code's, which adds the prior variance that truncation lost. What is said of bands depends on this "
        "choice: with few eigenfunctions the first is narrow where nothing is known, the second wide. Distances are "
        'from the exact GP on the same points, in standard deviations of its mean. The "RMSE where the data are" '
        "weights the grid by the density of the inputs."
    )

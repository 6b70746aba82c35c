"""What every rank would have given."""

from __future__ import annotations

from matplotlib.figure import Figure

from certgp.guarantees import RankCurve
from certgp.plots.style import BLUE, GREEN, SKY, SMALL, VERMILION, new_figure, tidy


def plot_rank_curve(curve: RankCurve) -> Figure:
    """Evidence per row against the rank and, where they exist, the bound on the KL divergence and the held-out NLPD."""
    extra = [
        ("KL bound per row", None if curve.kl_bound is None else curve.kl_bound / curve.n_rows, VERMILION),
        ("held-out NLPD", curve.nlpd, GREEN),
    ]
    shown = [(title, values, colour) for title, values, colour in extra if values is not None]
    figure = new_figure(height=0.6 + 2.0 * (1 + len(shown)))
    panels = figure.subplots(1 + len(shown), 1, sharex=True, squeeze=False)[:, 0]
    panels[0].plot(curve.ranks, curve.log_evidence / curve.n_rows, color=BLUE, lw=1.4, label="low-rank model")
    if curve.elbo is not None:
        panels[0].plot(curve.ranks, curve.elbo / curve.n_rows, color=SKY, lw=1.2, ls="--", label="ELBO")
        top = float(curve.log_evidence.max()) / curve.n_rows
        panels[0].set_ylim(top - 3.0, top + 0.2)  # the ELBO of a tiny rank would use up the scale
    panels[0].legend(fontsize=SMALL, frameon=False)
    tidy(panels[0], "log evidence per row")
    for panel, (title, values, colour) in zip(panels[1:], shown, strict=True):
        panel.plot(curve.ranks, values, color=colour, lw=1.4)
        tidy(panel, title)
    if curve.kl_bound is not None:
        panels[1].set_yscale("log")
    panels[-1].set_xlabel("rank", fontsize=SMALL + 1)
    return figure

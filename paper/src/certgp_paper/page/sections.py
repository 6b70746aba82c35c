"""The experiments as they stand on the page."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from certgp_paper.experiments.curve_problem import START_LENGTH_SCALE
from certgp_paper.experiments.experiment import Row
from certgp_paper.page import summaries, tables
from certgp_paper.page.markdown import slug
from certgp_paper.page.predictive_tables import predictive_summary, predictive_tables
from certgp_paper.page.rate_tables import figure1_tables


@dataclass(frozen=True)
class Section:
    """An experiment: what the first page says of it, and the tables of its own page."""

    name: str
    heading: str
    about: str  # what one must know to read it, and why figures differ from the paper's
    summary: Callable[[Sequence[Row]], str]
    tables: Callable[[Sequence[Row]], list[str]]

    @property
    def anchor(self) -> str:
        """Where links to its summary lead to."""
        return "#" + slug(self.heading)


_LINEAR = (
    "Elevators and protein are the paper's own files; the other sets differ or may, so their figures prove little. "
    "Variants: `certgp` is our training, `released` what the paper's released code does, `likelihood` our training "
    "with the paper's likelihood. `paper` is the paper's text, but for two choices of the released code that were "
    "made with test scores in view: the signal variance of MGP stays 1, and its predictive variance is DTC, which "
    "includes what truncation lost. Where `paper` is far from the print, two causes are known: the d of MGP's "
    "projection, which held-out rows choose here and the released code sets to 5, and a single length-scale in the "
    "released FGP ([0013](decisions/0013-the-papers-protocol.md)). The tables name the cause beside each such figure."
)

_START = (
    f"All models start from the length-scale {START_LENGTH_SCALE:g}, from which they see the cosine. From 1, or by "
    "Adam as in the paper's tables, all of them may take it for noise, the exact GP too "
    "([0031](decisions/0031-the-papers-own-variance.md)): verdicts on the curve rest on this start, but for "
    "that on the exact GP, which is judged from 1 too."
)

SECTIONS = (
    Section(
        "figure1",
        "Figure 1: rank against dimension",
        "The paper's figure prints no numbers, so there are none to compare with. Its page has the ranks that theorems "
        "and certificates promise, and the comparison with Burt et al. Random features are not tried above 2 N: an "
        "exact GP has rank N. Where they do not suffice, a second-order estimate says how many would.",
        summaries.ranks_by_dimension,
        figure1_tables,
    ),
    Section(
        "figure2",
        "Figure 2: divergence against rank",
        "The paper's figure prints no numbers. Its page has the bounds on each divergence.",
        summaries.divergences_by_rank,
        tables.run_tables,
    ),
    Section(
        "predictive",
        "Predictions against their bounds",
        "The paper proves these bounds and has no figures of them. The setting is that of its figures: 500 training "
        "and 100 test rows of one law, responses drawn from the exact GP, both predictive laws by conditioning, dense "
        "and by definition. Means take almost all of the predictive KL, so that their bound is tight and that on "
        "covariances is loose; Markov's inequality is looser still.",
        predictive_summary,
        predictive_tables,
    ),
    Section("table-nlpd", "Linear models: NLPD", _LINEAR, summaries.linear_summary, tables.linear_tables),
    Section(
        "table-rmse",
        "Linear models: RMSE",
        "The same fits as above.",
        summaries.linear_summary,
        tables.linear_tables,
    ),
    Section("seeds", "Linear models: seeds and rounding", "", summaries.seeds_summary, tables.whole_table),
    Section("scaling", "Linear models: time and memory", "", summaries.scaling_summary, tables.whole_table),
    Section(
        "row-cost",
        "Linear models: is the time linear in N?",
        "Two sizes were timed in turns, so that other load on the machine is in both.",
        summaries.row_cost_summary,
        tables.row_cost_tables,
    ),
    Section("curves", "A curve from 25 points", _START, summaries.curve_summary, tables.score_tables),
    Section("ranks", "The curve at growing rank", _START, summaries.curve_summary, tables.score_tables),
    Section("exact-gp", "The exact GP on elevators", "", summaries.exact_gp_summary, tables.whole_table),
    Section(
        "table-deep",
        "Deep models",
        "All methods were trained with budgets for one thread, the paper's on 32 cores: seconds are not compared. "
        "`certgp` is our training of DMGP and DFGP, `paper` the recipe of the paper's text "
        "([0033](decisions/0033-the-papers-deep-recipe.md)). The networks of `certgp` and of DNN+S, DNN+M and DNN+F "
        "have the same averaging of weights, choice of epoch and noise by held-out training rows, which the paper "
        "does not say of its own, and which `paper` does not have. With it, two steps come near joint training "
        "([0016](decisions/0016-joint-training-and-two-steps.md)).",
        summaries.deep_summary,
        tables.deep_tables,
    ),
    Section(
        "sensitivity",
        "Deep models over embedding dimension and rank",
        "",
        summaries.sensitivity_summary,
        tables.sensitivity_tables,
    ),
    Section(
        "electric",
        "Fewer training points",
        "The paper shows Electric, whose file was not at hand. The largest set that was stands in, on one split, and "
        "protein, the largest of the paper's own files, on five: claims are judged on these.",
        summaries.fewer_points_summary,
        tables.electric_tables,
    ),
)

"""docs/league.md: standing, pictures, losses, tables and traps, all from the cells."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import certgp
from certgp.plots.style import save_figure
from certgp_paper.experiments.store import source_hash
from certgp_paper.page.markdown import markdown_table
from league.contestants import (
    CONTESTANTS,
    GP_SECONDS,
    LEAST_SEARCH,
    MOST_SEARCH,
    OURS,
    ROWS_PER_SECOND,
    SEVERAL,
    SEVERAL_TAKE,
)
from league.data import BIKE, CLEAN_BIKE, RANKED, SPLITS
from league.losses import losses
from league.pictures import plot_cost, plot_ranks
from league.play import CPU_LIMIT
from league.races import CHAMPION, proof_costs, race_costs
from league.ranking import LEAST_P, METRICS, Ranking, full_block, rank, ranks_on, with_fewer_splits
from league.standing import mean_seconds, near_first
from league.table import Table
from league.versions import outdated

NAMES = {"nlpd": "NLPD", "crps": "CRPS", "rmse": "RMSE", "coverage95": "Coverage of 95 % intervals"}
NAMES |= {"width95": "Mean width of 95 % intervals", "cpu_seconds": "CPU seconds of fit and prediction"}
NAMES |= {"peak_megabytes": "Peak memory, MB"}
FEW_TARGETS = 1_000
GOOD_COVERAGE, ENOUGH_ROWS = (0.92, 0.98), 500


def write_page(table: Table, folder: Path) -> None:
    """``league.md`` and its pictures under ``folder``."""
    page = Page(table)
    (folder / "figures").mkdir(parents=True, exist_ok=True)
    if page.rankings:
        save_figure(plot_ranks(page.rankings[:2], page.ours), folder / "figures" / "league-ranks.png", colours=32)
        cost = plot_cost(page.rankings[0], mean_seconds(table, page.data), page.ours)
        save_figure(cost, folder / "figures" / "league-cost.png", colours=32)
    (folder / "league.md").write_text(page.text(), encoding="utf-8")


class Page:
    """The parts of the page."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self.ours = {each.name for each in OURS} & set(table.contestants)
        order = [name for name in CONTESTANTS if name in table.contestants]
        self.contestants = [*order, *(name for name in table.contestants if name not in CONTESTANTS)]
        candidates = [name for name in table.data if name in RANKED]
        self.data, self.ranked = full_block(table, candidates, self.contestants, self.cannot)
        enough = len(self.data) > 1 and len(self.ranked) > 1
        self.rankings: list[Ranking] = [rank(table, each, self.data, self.ranked) for each in METRICS] if enough else []

    def cannot(self, data: str, contestant: str) -> bool:
        """Has the data set more rows than it can take?"""
        most = CONTESTANTS[contestant].most_rows if contestant in CONTESTANTS else None
        return most is not None and self.table.about(data)["rows"] > most

    def text(self) -> str:
        parts = [INTRODUCTION, self.progress(), self.standing(), self.losses(), race_costs(self.table)]
        parts += [proof_costs(self.table), self.tables(), self.traps(), self.without_result()]
        return "\n\n".join(part for part in [*parts, SETTINGS, self.candidates()] if part is not None) + "\n"

    def progress(self) -> str:
        cells, whole = len(self.table.cells), self.planned()
        words = [f"{cells} of {whole} cells have been played.", self.versions()]
        left = [name for name in self.contestants if name not in self.ranked]
        unplayed = [name for name in CONTESTANTS if name not in self.contestants]
        if left or unplayed:
            words.append(f"Not ranked yet: {', '.join([*left, *unplayed])}.")
        missing = [name for name in RANKED if name not in self.data]
        if missing:
            words.append(f"Not all that are ranked have been played on {', '.join(missing)}, which do not count yet.")
        return " ".join(words)

    def versions(self) -> str:
        """How many cells are of the code of today."""
        old = outdated(self.table)
        of_ours = [key for key in self.table.cells if key[1] in self.ours]
        now, before = len(of_ours) - sum(key in old for key in of_ours), sum(key in old for key in of_ours)
        peers, old_peers = len(self.table.cells) - len(of_ours), len(old) - before
        return (
            f"Of {len(of_ours)} cells of certgp's estimators, {now} are of the code that wrote this page (certgp "
            f"{certgp.__version__}, source {source_hash()}) and {before} of earlier versions; of {peers} cells of "
            f"peers, {old_peers} are of runners or settings that have changed since. All are shown until they are "
            "played again (`run --renew`)."
        )

    def planned(self) -> int:
        """Cells of the whole league, without those that cannot be."""
        sizes = {name: self.table.about(name)["rows"] for name in self.table.data}
        most = {name: each.most_rows for name, each in CONTESTANTS.items()}
        data = [*RANKED, BIKE]
        return SPLITS * sum(
            not (limit is not None and name in sizes and sizes[name] > limit)
            for name in data
            for limit in most.values()
        )

    def standing(self) -> str:
        if not self.rankings:
            return "## Standing\n\nToo few cells to rank anybody."
        seconds = mean_seconds(self.table, self.data)
        averages = {ranking.measure: ranking.average for ranking in self.rankings}
        near = {each: near_first(self.table, each, self.data, self.ranked) for each in ("nlpd", "crps")}
        fewer = with_fewer_splits(self.table, self.data, self.ranked)
        splits = {name: sum(len(self.table.splits(data, name)) for data in self.data) for name in self.ranked}
        rows = [
            [
                _named(name, self.ours) + (" †" if name in fewer else ""),
                *(f"{averages[measure][name]:.1f}" for measure in METRICS),
                *(f"{near[measure][name]} of {len(self.data)}" for measure in near),
                f"{seconds[name]:.1f}" if name in seconds else "",
                str(splits[name]),
            ]
            for name in averages["nlpd"]
        ]
        heads = ["", "NLPD rank", "CRPS rank", "RMSE rank", "NLPD first*", "CRPS first*", "CPU s", "cells"]
        tests = ", ".join(f"{NAMES[each.measure]} {_p_value(each.p_value)}" for each in self.rankings)
        return "\n\n".join(
            [
                "## Standing",
                f"Average ranks over {len(self.data)} data sets ({', '.join(self.data)}); certgp in bold.\n{STANDING}",
                markdown_table(heads, rows),
                f"Friedman's test, by permutation, that all are alike: {tests}.",
                "![Average ranks and critical differences](figures/league-ranks.png)",
                "![Average NLPD rank against CPU seconds](figures/league-cost.png)",
            ]
        )

    def losses(self) -> str:
        """From cells alone: where a peer is ahead, and of whom."""
        peers = [name for name in self.contestants if name not in self.ours]
        ours = [name for name in self.contestants if name in self.ours]
        heads = ["data", "measure", "ours", "", "first peer", "", "behind by", "in standard errors", "splits"]
        parts = ["## Where we lose, and to whom", LOSSES]
        every = losses(self.table, ours, peers)
        parts.append(f"A peer is ahead of every model of certgp that was played with it, in {len(every)} places:")
        parts.append(markdown_table(heads, [loss.cells() for loss in every]) if every else "(none)")
        parts.append(self.poor_coverage(ours))
        if CHAMPION not in self.contestants:
            return "\n\n".join([*parts, f"`{CHAMPION}` has not been played yet."])
        behind = losses(self.table, [CHAMPION], peers)
        parts.append(f"`{CHAMPION}`, the default, is behind a peer in {len(behind)} places:")
        parts.append(markdown_table(heads, [loss.cells() for loss in behind]) if behind else "(none)")
        return "\n\n".join(parts)

    def candidates(self) -> str:
        """How many settings each search judged, fewest and most over its cells."""
        found: dict[str, list[int]] = {}
        for (_, name, _), cell in self.table.cells.items():
            if "candidates" in cell.get("about", {}):
                found.setdefault(name, []).append(cell["about"]["candidates"])
        words = [f"{name} {min(numbers)} to {max(numbers)}" for name, numbers in found.items()]
        return f"Candidates that a search judged in its seconds: {', '.join(words) or 'none yet'}."

    def poor_coverage(self, ours: Sequence[str]) -> str:
        """Our 95 % intervals that hold too few or too many test rows, where there are enough to tell."""
        low, high = GOOD_COVERAGE
        found = []
        for data in self.table.data:
            for name in ours if self.table.about(data)["test_rows"] >= ENOUGH_ROWS else ():
                value = self.table.value(data, name, "coverage95")
                if value is not None and not low <= value <= high:
                    found.append(f"{name} on {data} {value:.3f}")
        limits = f"{low} to {high} on sets with at least {ENOUGH_ROWS} test rows"
        return f"95 % intervals of certgp that cover less or more than {limits}: {'; '.join(found) or 'none'}."

    def tables(self) -> str:
        parts = ["## Tables", TABLES]
        for measure, title in NAMES.items():
            parts += [f"### {title}", self.table_of(measure)]
        return "\n\n".join(parts)

    def table_of(self, measure: str, contestants: Sequence[str] | None = None) -> str:
        chosen = self.contestants if contestants is None else contestants
        best: dict[str, list[str]] = {}
        for data in self.table.data if measure in METRICS else ():
            ranks = ranks_on(self.table, data, measure, chosen)
            best[data] = [name for name in chosen if ranks[name] == min(ranks.values())]
        rows = [
            [_named(name, self.ours), *(self._cell(d, name, measure, best) for d in self.table.data)] for name in chosen
        ]
        return markdown_table(["", *self.table.data], rows)

    def _cell(self, data: str, name: str, measure: str, best: dict[str, list[str]]) -> str:
        value, splits = self.table.value(data, name, measure), self.table.splits(data, name)
        if value is None:
            return "x" if splits or self.cannot(data, name) else ""
        digits = {"cpu_seconds": 1, "peak_megabytes": 0}.get(measure, 3)
        shown = f"{value:.{digits}f}"
        shown = f"**{shown}**" if name in best.get(data, ()) else shown
        return shown if len(splits) == 1 else f"{shown} ({len(splits)})"

    def traps(self) -> str:
        rows = []
        for data in self.table.data:
            about, words = self.table.about(data), []
            if data == BIKE:
                words.append("the target is the logarithm of the sum of two columns; not ranked")
            if data == CLEAN_BIKE:
                words.append("bike without these two columns")
            if about["repeated_share"] > 0.001:
                words.append(f"{100 * about['repeated_share']:.1f} % of test inputs occur in training")
            if about["distinct_targets"] <= FEW_TARGETS and about["distinct_targets"] < 0.1 * about["rows"]:
                words.append(f"{about['distinct_targets']} distinct targets: narrow densities on them pay")
            size = f"{about['rows']:,} + {about['test_rows']:,}"
            rows.append([data, size, str(about["columns"]), "; ".join(words)])
        parts = ["## Data sets and their traps", TRAPS]
        parts.append(markdown_table(["data", "training + test rows", "columns", "trap"], rows))
        parts.append("NLPD of all test rows / of those whose inputs do not occur in training:")
        return "\n\n".join([*parts, self.repeated()])

    def repeated(self) -> str:
        known = [name for name in self.table.data if self.table.about(name)["repeated_share"] > 0.001]

        def pair(data: str, name: str) -> str:
            values = [self.table.value(data, name, measure) for measure in ("nlpd", "new_nlpd")]
            return "" if None in values else " / ".join(f"{value:.3f}" for value in values)

        rows = [[_named(name, self.ours), *(pair(data, name) for data in known)] for name in self.contestants]
        return markdown_table(["", *known], rows)

    def without_result(self) -> str:
        rows = [
            [name, data, str(split), cell["status"] + ": " + str(cell.get("reason", f"{cell.get('limit')} CPU s"))]
            for (data, name, split), cell in self.table.not_finished()
        ]
        parts = ["## Without a result", WITHOUT]
        limited = [name for name in self.contestants if name in CONTESTANTS and CONTESTANTS[name].most_rows]
        parts += [f"{name}: left out above {CONTESTANTS[name].most_rows:,} training rows." for name in limited]
        return "\n\n".join(
            [*parts, markdown_table(["contestant", "data", "split", "why"], rows) if rows else "No other."]
        )


def _named(name: str, ours: set[str]) -> str:
    return f"**{name}**" if name in ours else name


INTRODUCTION = """# The league

certgp and its peers on every data set at hand, scored alike. The page is generated (`make league` plays what is
missing and writes it; `python benchmarks/league.py page` writes it alone) from `benchmarks/results/league.jsonl`; no
figure in it is typed by hand. Settings and rules are in [decision 0043](decisions/0043-rules-of-the-league.md)."""

STANDING = """A rank on a data set is one more than the number of contestants that are better there, each pair on the
splits that both have; † has fewer splits than others on one of the sets. \\* first, or behind the first by at most one
standard error of their [difference](#where-we-lose-and-to-whom). CPU seconds are geometric means over these sets."""

LOSSES = """Each pair on the splits that both have, whose number is in the last column. Standard errors are those of the
difference of the two over the same test rows, averaged over splits: sqrt(sum of squares) / splits. They say how much
other test rows would change it, not other training rows. \\*: a cell of earlier code does not keep what this takes, and
the error is that of the peer's mean."""

TABLES = """Means over the splits that were played, whose number is in parentheses where it is not one; y has standard
deviation one. In bold: first, in pairs on the splits that both have, as columns may be of different splits. x: no
result, see [below](#without-a-result). Empty: not played yet."""

TRAPS = """Splits are `train_test_split(X, y, test_size=0.1, random_state=s)`, s = 0 to 4, standardised with the
training part."""

WITHOUT = f"""A cell that has not ended after {CPU_LIMIT} CPU seconds has no result and is last in its ranks, as one
that fails or is left out."""

SETTINGS = f"""## Settings

- One thread and one process for each cell; CPU seconds count fit, search and prediction, not imports. The machine is
  shared, so seconds are rough.
- Trees (LightGBM, CatBoost, XGBoost, NGBoost, scikit-learn): defaults first, then random candidates for n /
  {ROWS_PER_SECOND} CPU seconds (at least {LEAST_SEARCH:.0f}, at most {MOST_SEARCH:.0f}; n training rows), each for an
  eighth of them at most, early stopping on held-out training rows (five folds up to 5,000 rows, one above); the best
  one, where it was still gaining, again with what is left; then a fit to all rows with the rounds found, which comes
  on top. Larger data sets have more leaves, depth and bins to draw from.
- A point prediction (LightGBM, CatBoost, XGBoost, ridge) gets Student-t errors of one scale, fitted to residuals of
  held-out rows. A learned variance (CatBoost with uncertainty, NGBoost) gets Student-t errors with a factor and a floor
  that suit them.
- Those that boost more than a mean ({", ".join(SEVERAL)}) have {SEVERAL_TAKE:.0f} times the
  seconds, up to the same limit. NGBoost and quantiles use two of the five folds; for quantiles (seven models, joined
  linearly in the normal score, Gaussian tails) half of the seconds search settings for the median.
- GP peers train for at most {GP_SECONDS:.0f} CPU seconds. GPflow: 200 inducing points; GPyTorch's SVGP: 300; its exact
  GP: the better of two kernels by evidence. GPBoost: hyper-parameters from 2,000 rows, 50 neighbours of all.
- certgp: defaults, `noise="auto"`; `rank=100` for Mercer and sparse models."""


def _p_value(p: float) -> str:
    return f"p = {p:.1g}" if p > LEAST_P else f"p at most {LEAST_P:g}"

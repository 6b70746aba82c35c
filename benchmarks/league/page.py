"""docs/league.md: standing, pictures, losses, tables and traps, all from the cells."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import certgp
from certgp.plots.style import save_figure
from certgp_paper.experiments.store import source_hash
from certgp_paper.page.markdown import markdown_table
from league.contestants import CONTESTANTS, OURS
from league.data import BIKE, CLEAN_BIKE, RANKED, SPLITS
from league.losses import Loss, compared
from league.pictures import plot_cost, plot_ranks
from league.races import CHAMPION, proof_costs, race_costs
from league.ranking import LEAST_P, METRICS, full_block, rank, ranks_on, with_fewer_splits
from league.standing import mean_seconds, near_first
from league.table import Table
from league.versions import counted, outdated, shown
from league.words import INTRODUCTION, LOSSES, SELECTION, SETTINGS, STANDING, TABLES, TRAPS, WITHOUT

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
        cost = plot_cost(page.rankings[0], mean_seconds(page.counted, page.data), page.ours)
        save_figure(cost, folder / "figures" / "league-cost.png", colours=32)
    (folder / "league.md").write_text(page.text(), encoding="utf-8")


class Page:
    """The parts of the page."""

    def __init__(self, table: Table) -> None:
        self.played, self.old = table, outdated(table)
        self.counted, self.table = counted(table, self.old), shown(table, self.old)
        self.ours = {each.name for each in OURS} & set(table.contestants)
        order = [name for name in CONTESTANTS if name in table.contestants]
        self.contestants = [*order, *(name for name in table.contestants if name not in CONTESTANTS)]
        candidates = [name for name in self.counted.data if name in RANKED]
        names = [name for name in self.contestants if name in self.counted.contestants]
        self.data, self.ranked = full_block(self.counted, candidates, names, self.cannot)
        if len(self.data) < 2 or self.ours.issuperset(self.ranked):  # ours alone are no league
            self.data, self.ranked = (), ()
        self.rankings = [rank(self.counted, each, self.data, self.ranked) for each in METRICS if self.data]

    def cannot(self, data: str, contestant: str) -> bool:
        """Has the data set more rows than it can take?"""
        most = CONTESTANTS[contestant].most_rows if contestant in CONTESTANTS else None
        return most is not None and self.table.about(data)["rows"] > most

    def mark(self, data: str, name: str) -> str:
        """Of figures that cells of earlier code have a part in."""
        old = any((data, name, split) in self.old for split in self.table.splits(data, name))
        return " ‡" if old else ""

    def text(self) -> str:
        parts = [INTRODUCTION, self.progress(), self.standing(), self.selection(), self.losses()]
        parts += [race_costs(self.counted), proof_costs(self.counted), self.tables(), self.traps()]
        parts += [self.without_result()]
        return "\n\n".join(part for part in [*parts, SETTINGS, self.candidates()] if part is not None) + "\n"

    def progress(self) -> str:
        cells, whole = len(self.played.cells), self.planned()
        words = [f"{cells} of {whole} cells have been played.", self.versions()]
        left = [name for name in self.contestants if name not in self.ranked]
        unplayed = [name for name in CONTESTANTS if name not in self.contestants]
        if left or unplayed:
            words.append(f"Not ranked yet: {', '.join([*left, *unplayed])}.")
        missing = [name for name in RANKED if name not in self.data]
        if missing and self.ranked:
            words.append(f"Not all that are ranked have been played on {', '.join(missing)}, which do not count yet.")
        return " ".join(words)

    def versions(self) -> str:
        """How many cells are of the code of today."""
        of_ours = [key for key in self.played.cells if key[1] in self.ours]
        before = sum(key in self.old for key in of_ours)
        peers, old_peers = len(self.played.cells) - len(of_ours), len(self.old) - before
        return (
            f"Of {len(of_ours)} cells of certgp's estimators, {len(of_ours) - before} are of the code that wrote this "
            f"page (certgp {certgp.__version__}, source {source_hash()}) and {before} of earlier versions, which count "
            f"and are marked ‡; of {peers} cells of peers, {old_peers} are of runners or settings that have changed "
            "since: these do not count, and are in the tables, marked ‡, where there are no others. `run --renew` "
            "plays them again."
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
            return "## Standing\n\nToo few cells that count to rank anybody."
        seconds = mean_seconds(self.counted, self.data)
        averages = {ranking.measure: ranking.average for ranking in self.rankings}
        near = {each: near_first(self.counted, each, self.data, self.ranked) for each in ("nlpd", "crps")}
        fewer = with_fewer_splits(self.counted, self.data, self.ranked)
        rows = [
            [
                _named(name, self.ours) + (" †" if name in fewer else ""),
                *(f"{averages[measure][name]:.1f}" for measure in METRICS),
                *(f"{near[measure][name]} of {len(self.data)}" for measure in near),
                f"{seconds[name]:.1f}" if name in seconds else "",
                self.number_of_cells(name),
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

    def number_of_cells(self, name: str) -> str:
        """Behind its ranks, and how many of them are of earlier code."""
        keys = [(data, name, split) for data in self.data for split in self.counted.splits(data, name)]
        old = sum(key in self.old for key in keys)
        return f"{len(keys)} ({old} ‡)" if old else str(len(keys))

    def selection(self) -> str:
        """Ranks with and without the split whose test scores had a say."""
        rest = Table({key: cell for key, cell in self.counted.cells.items() if key[2] != 0})
        data, names = full_block(rest, self.data, [n for n in self.ranked if n in rest.contestants], self.cannot)
        if not data:
            return f"{SELECTION}\nNot enough cells of other splits count to rank without it."
        every, others = (rank(table, "nlpd", data, names).average for table in (self.counted, rest))
        rows = [[_named(name, self.ours), f"{every[name]:.1f}", f"{others[name]:.1f}"] for name in every]
        what = f"Average NLPD ranks of those that have other splits, among themselves, over {', '.join(data)}:"
        return f"{SELECTION}\n{what}\n\n" + markdown_table(["", "all splits", "without split 0"], rows)

    def losses(self) -> str:
        """From cells alone: where a peer is ahead, and of whom."""
        peers = [name for name in self.contestants if name not in self.ours]
        ours = [name for name in self.contestants if name in self.ours]
        parts = ["## Where we lose, and to whom", LOSSES]
        said = "A peer is ahead of every model of certgp that was played with it"
        parts += [*self.losses_of(ours, peers, said), self.poor_coverage(ours)]
        if CHAMPION not in self.contestants:
            return "\n\n".join([*parts, f"`{CHAMPION}` has not been played yet."])
        return "\n\n".join([*parts, *self.losses_of([CHAMPION], peers, f"`{CHAMPION}`, the default, is behind a peer")])

    def losses_of(self, ours: Sequence[str], peers: Sequence[str], said: str) -> list[str]:
        """The sentence and its table."""
        heads = ["data", "measure", "ours", "", "first peer", "", "behind by", "in standard errors", "splits"]
        every = compared(self.counted, ours, peers)
        behind = [self.cells_of(loss) for loss in every if loss.gap > 0.0]
        said += f" in {len(behind)} of {len(every)} places (measures on data sets) where both have results that count:"
        return [said, markdown_table(heads, behind) if behind else "(none)"]

    def cells_of(self, loss: Loss) -> list[str]:
        data, measure, ours, value, *rest = loss.cells()
        return [data, measure, ours, value + self.mark(data, ours), *rest]

    def candidates(self) -> str:
        """How many settings each search judged, fewest and most over its cells."""
        found: dict[str, list[int]] = {}
        for (_, name, _), cell in self.counted.cells.items():
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
                    found.append(f"{name} on {data} {value:.3f}{self.mark(data, name)}")
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
            ranks = ranks_on(self.counted, data, measure, [c for c in chosen if self.counted.splits(data, c)])
            best[data] = [name for name in ranks if ranks[name] == min(ranks.values())]
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
        number = "" if len(splits) == 1 else f" ({len(splits)})"
        return shown + number + self.mark(data, name)

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
            both = "" if None in values else " / ".join(f"{value:.3f}" for value in values)
            return both and both + self.mark(data, name)

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


def _p_value(p: float) -> str:
    return f"p = {p:.1g}" if p > LEAST_P else f"p at most {LEAST_P:g}"

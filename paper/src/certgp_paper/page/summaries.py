"""What each experiment says, in a few lines for the first page."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from statistics import mean, stdev

from certgp_paper.experiments.comparison import Comparison
from certgp_paper.experiments.experiment import Row
from certgp_paper.experiments.results import chosen_rows, linear_comparison, metric_comparison, number
from certgp_paper.page.curve_notes import curve_note
from certgp_paper.page.markdown import comparison_cells, markdown_table, same_data, shown, with_sd
from certgp_paper.page.tables import distinct, largest_run, method_and_variant, recipe_rates

_CLOSE = 2.0  # standard deviations
_NETWORKS = ("DNN+S", "DNN+M", "DNN+F")
_DEEP = ("DMGP", "DFGP")
_RANKS_SHOWN = (1, 2, 4, 6, 8, 10, 14, 20, 50, 100, 200)


def linear_summary(rows: Sequence[Row]) -> str:
    """For each variant and method: how many figures can be compared, and how they compare."""
    lines = []
    for variant in distinct(rows, "variant"):
        for method in distinct(chosen_rows(rows, variant=variant), "method"):
            some = chosen_rows(rows, variant=variant, method=method)
            lines.append((f"`{shown(variant)}`", shown(method), *counted(linear_comparison, some)))
    columns = ("variant", "method", *COUNTS)
    return markdown_table(columns, [line for line in lines if any(line[2:])])


COUNTS = (
    "equal or better, of the paper's own data",
    "within two standard deviations",
    "mean difference",
    "equal or better, of other data",
)


def counted(comparison: Callable[[Row], Comparison], rows: Sequence[Row]) -> tuple[str, str, str, str]:
    """Counts of figures on the paper's own data, and on data that differ or may, which prove little."""
    own = [comparison(row) for row in rows if same_data(row)]
    own = [each for each in own if each.difference is not None]
    others = [each for row in rows if not same_data(row) and (each := comparison(row)).difference is not None]
    close = [abs(each.in_sd) <= _CLOSE for each in own if each.in_sd is not None]
    return (
        f"{sum(bool(each.equal_or_better) for each in own)} of {len(own)}" if own else "",
        f"{sum(close)} of {len(close)}" if close else "",
        f"{mean(each.difference or 0.0 for each in own):+.3f}" if own else "",
        f"{sum(bool(each.equal_or_better) for each in others)} of {len(others)}" if others else "",
    )


def deep_summary(rows: Sequence[Row]) -> str:
    """DMGP and DFGP beside the paper's figures, and the best of the other GPs and of the networks."""
    columns = ("data", "method", "NLPD: paper", "ours", "difference", "in standard deviations", "CPU seconds", "splits")
    lines = []
    for data in distinct(rows, "data"):
        some = chosen_rows(rows, data=data)
        picked = [row for row in some if row.get("method") in _DEEP]
        others = [row for row in some if row.get("method") not in (*_DEEP, *_NETWORKS)]
        for group in (others, [row for row in some if row.get("method") in _NETWORKS]):
            known = [row for row in group if number(row, "nlpd") is not None]
            picked += [min(known, key=lambda row: number(row, "nlpd") or 0.0)] if known else []
        lines += [
            (
                shown(data),
                method_and_variant(row) + ("" if row.get("method") in _DEEP else ", the best of its kind"),
                *comparison_cells(row, metric_comparison(row, "nlpd"), 3),
                with_sd(number(row, "cpu_seconds"), None, 0),
                shown(row.get("splits")),
            )
            for row in picked
        ]
    return f"{markdown_table(columns, lines)}\n\n{recipe_rates(rows)}".strip() if lines else ""


def sensitivity_summary(rows: Sequence[Row]) -> str:
    """Counts by data set and method."""
    lines = []
    for data in distinct(rows, "data"):
        for method in distinct(chosen_rows(rows, data=data), "method"):
            some = chosen_rows(rows, data=data, method=method)
            found = [value for row in some if (value := number(row, "nlpd")) is not None]
            span = f"{min(found):.3f} to {max(found):.3f}" if found else ""
            splits = {int(n) for row in some if (n := number(row, "splits")) is not None}
            counts = counted(lambda row: metric_comparison(row, "nlpd"), some)
            lines.append((shown(data), shown(method), span, *counts, " or ".join(map(str, sorted(splits)))))
    return markdown_table(("data", "method", "our NLPD over all sizes", *COUNTS, "splits"), lines) if lines else ""


def ranks_by_dimension(rows: Sequence[Row]) -> str:
    """Figure 1 as a small table: ranks at the largest N."""
    run = largest_run(rows)
    dimensions = sorted({int(d) for row in run if (d := number(row, "D")) is not None})
    if not dimensions:
        return ""
    columns = ("kernel, approximation", *(f"{d} dimension{'s' if d > 1 else ''}" for d in dimensions))
    lines = []
    for kernel, method in dict.fromkeys((row.get("kernel"), row.get("method")) for row in run):
        found = {number(row, "D"): row for row in chosen_rows(run, kernel=kernel, method=method)}
        lines.append((curve_name(kernel, method), *(_rank(found.get(d, {})) for d in dimensions)))
    return f"Lowest rank with KL at most N / 100 at N = {shown(run[0].get('N'))}:\n\n{markdown_table(columns, lines)}"


def curve_name(kernel: object, method: object) -> str:
    """gaussian and fourier in words."""
    words = {"gaussian": "Gaussian kernel", "matern12": "Matérn 1/2 kernel", "mercer": "Mercer expansion"}
    words["fourier"] = "random Fourier features"
    return f"{words.get(str(kernel), str(kernel))}, {words.get(str(method), str(method))}"


def _rank(row: Row) -> str:
    rank, more = number(row, "rank"), number(row, "more_than")
    if rank is not None:
        return f"{rank:.0f}"
    return f"more than {more:.0f}" if more is not None else ""


def divergences_by_rank(rows: Sequence[Row]) -> str:
    """Figure 2 as a small table: KL at the largest N."""
    run = largest_run(rows)
    ranks = [rank for rank in _RANKS_SHOWN if chosen_rows(run, rank=rank)]
    if not ranks:
        return ""
    lines = []
    for kernel, method in dict.fromkeys((row.get("kernel"), row.get("method")) for row in run):
        found = {row.get("rank"): number(row, "kl") for row in chosen_rows(run, kernel=kernel, method=method)}
        figures = (found.get(rank) for rank in ranks)
        lines.append((curve_name(kernel, method), *("" if kl is None else f"{kl:.3g}" for kl in figures)))
    columns = ("kernel, approximation", *(f"r = {rank}" for rank in ranks))
    return f"KL(exact, low rank) at N = {shown(run[0].get('N'))}:\n\n{markdown_table(columns, lines)}"


def curve_summary(rows: Sequence[Row]) -> str:
    """Error and band of every model, means over point sets."""
    scores = chosen_rows(rows, kind="scores")
    columns = ("model", "RMSE against f", "width of the 95 % band", "share of f in the band", "distance of the mean")
    keys = ("rmse", "width", "coverage", "distance_mean")
    lines = [(shown(row.get("model")), *(with_sd(number(row, key), None, 3) for key in keys)) for row in scores]
    return f"{curve_note(rows)}\n\n{markdown_table(columns, lines)}" if lines else ""


def exact_gp_summary(rows: Sequence[Row]) -> str:
    """NLPD and time over splits beside the paper's."""
    nlpd = [value for row in rows if (value := number(row, "nlpd")) is not None]
    seconds = [value for row in rows if (value := number(row, "cpu_seconds")) is not None]
    if not nlpd or not seconds:
        return ""
    ours = with_sd(mean(nlpd), stdev(nlpd) if len(nlpd) > 1 else None, 3)
    printed = number(rows[0], "paper_nlpd")
    paper = with_sd(printed, number(rows[0], "paper_nlpd_sd"), 3)
    gap = "" if printed is None else f", a difference of {mean(nlpd) - printed:+.3f}"
    took = f"{mean(seconds):,.0f} CPU seconds a split"
    memory = max((number(row, "peak_gb") or 0.0 for row in rows), default=0.0)
    return (
        f"NLPD {ours} over {len(nlpd)} split{'s' if len(nlpd) > 1 else ''}; in the paper {paper}{gap}. Training and "
        f"conditioning took {took} and at most {memory:.1f} GB; in the paper {number(rows[0], 'paper_seconds'):,.0f} "
        "seconds on 32 cores. Training here begins where a sparse GP on all rows ends and "
        "takes one step of Fisher scoring on the exact evidence, so the maximum itself may be a little higher; the "
        "paper does not say how it trained, or with which kernel. Here it is the Gaussian kernel with a length-scale "
        "for each column."
    )


def seeds_summary(rows: Sequence[Row]) -> str:
    """The largest spread over seeds, and how it compares with that over splits."""
    known = [row for row in rows if number(row, "sd_over_seeds") is not None]
    if not known:
        return ""
    worst = max(known, key=lambda row: number(row, "sd_over_seeds") or 0.0)
    larger = [
        row for row in known if (number(row, "sd_over_seeds") or 0.0) > (number(row, "sd_over_splits") or float("inf"))
    ]
    label = " ".join(shown(worst.get(key)) for key in ("data", "method", "rank"))
    return (
        "Starts and index sets are chosen by held-out rows. Where two are nearly equal, rounding decides, so another "
        "machine may get the figure of another seed. The largest standard deviation of NLPD over seeds on one split is "
        f"{number(worst, 'sd_over_seeds'):.3f} ({label}); in {len(larger)} of {len(known)} cells it is larger than "
        "that over splits. Differences within it say nothing."
    )


def scaling_summary(rows: Sequence[Row]) -> str:
    """The largest size of each width and method, and the paper's times in words."""
    parts = ["All rows here are simulated: they show time and memory, not accuracy."]
    lowest = min((rank for row in rows if (rank := number(row, "rank")) is not None), default=None)
    ours = [row for row in rows if number(row, "rank") == lowest]
    most = max((number(row, "N") or 0.0 for row in ours), default=0.0)
    lines = [
        (
            f"{shown(row.get('D'))} columns, as {row.get('width_of')}",
            shown(row.get("method")),
            f"{number(row, 'epoch_cpu_seconds') or 0.0:.1f}",
            f"{(number(row, 'training_seconds') or 0.0) / 3600:.1f}",
            f"{number(row, 'rows_gb') or 0.0:.2f}",
            f"{number(row, 'peak_gb') or 0.0:.2f}",
        )
        for row in ours
        if number(row, "N") == most
    ]
    columns = (
        f"{most:,.0f} simulated rows",
        "method",
        "CPU seconds an epoch",
        "CPU hours of 300 epochs",
        "the rows, GB",
        "peak memory of the process with them, GB",
    )
    parts += [markdown_table(columns, lines)] if lines else []
    parts += [text] if (text := _cost_of_a_row(ours)) else []
    compared = [row for row in rows if number(row, "paper_seconds") is not None]
    parts += [_against_papers_times(compared)] if compared else []
    return "\n\n".join(parts)


def row_cost_summary(rows: Sequence[Row]) -> str:
    """Cost of a row at both sizes and the exponent."""
    if not rows:
        return ""
    lines = [
        (
            f"{shown(row.get('D'))}, as {row.get('width_of')}",
            shown(row.get("method")),
            *(f"{number(row, key) or 0.0:.2f}" for key in ("microseconds_a_row", "microseconds_a_row_more")),
            f"{number(row, 'exponent') or 0.0:.3f} ± {number(row, 'exponent_half_width') or 0.0:.3f}",
        )
        for row in rows
    ]
    n, more = (f"{number(rows[0], key) or 0.0:,.0f}" for key in ("N", "N_more"))
    columns = (
        "columns",
        "method",
        f"microseconds a row and epoch, {n} rows",
        f"{more} rows",
        "exponent of N",
    )
    return (
        f"Medians of CPU time over {shown(rows[0].get('rounds'))} rounds, and the mean exponent with its 95 % "
        f"interval; 1 is linear.\n\n{markdown_table(columns, lines)}"
    )


def _cost_of_a_row(rows: Sequence[Row]) -> str:
    """An epoch is linear in the rows; where it was not as measured, say so."""
    sizes = sorted({int(n) for row in rows if (n := number(row, "N")) is not None})[-2:]
    growth: dict[tuple[str, str], float] = {}
    for row in rows:
        key = (shown(row.get("width_of")), shown(row.get("method")))
        same = [chosen_rows(rows, width_of=row.get("width_of"), method=row.get("method"), N=n) for n in sizes]
        costs = [(number(some[0], "epoch_cpu_seconds") or 0.0) / n for some, n in zip(same, sizes, strict=True) if some]
        if len(costs) == 2 and costs[0] > 0.0:
            growth[key] = costs[1] / costs[0]
    if not growth:
        return ""
    (width, method), most = max(growth.items(), key=lambda item: item[1])
    return (
        f"An epoch visits every row once, so its cost per row should not change. From {sizes[0]:,} to {sizes[1]:,} "
        f"rows it changed by a factor between {min(growth.values()):.2f} and {most:.2f}, the largest that of {method} "
        f"at the width of {width}. Every figure was measured once, on a machine with other load, which reached some "
        "cells and not others, so that the factors say little; [below](#linear-models-is-the-time-linear-in-n) two "
        "sizes took turns."
    )


def _against_papers_times(rows: Sequence[Row]) -> str:
    """The paper's training times of SGPR beside ours at the same size, in words."""
    lines = [
        f"as many rows as {row.get('width_of')} ({number(row, 'N') or 0.0:,.0f} of {shown(row.get('D'))} columns): "
        f"{number(row, 'training_seconds') or 0.0:,.0f} CPU seconds here, {number(row, 'paper_seconds') or 0.0:,.0f} "
        "seconds in the paper"
        for row in rows
    ]
    return (
        f"Against the paper's training times, SGPR with {shown(rows[0].get('rank'))} inducing points and "
        f"{shown(rows[0].get('epochs'))} epochs: {'; '.join(lines)}. Ours are of one thread, by the time of a few "
        "epochs on simulated rows; the paper's are of 32 cores and of another implementation. So they say how many "
        "hours such a fit takes today, not which code is faster."
    )


def fewer_points_summary(rows: Sequence[Row]) -> str:
    """Over how many splits the means are, for each data set; the picture says the rest."""
    counts: dict[str, set[int]] = {}
    for row in rows:
        if (found := number(row, "splits")) is not None:
            counts.setdefault(str(row.get("data")), set()).add(int(found))
    if not counts:
        return ""
    texts = [
        f"{data} has {'one split' if some == {1} else f'means over {in_a_row(some)} splits'}"
        for data, some in counts.items()
    ]
    bars = (
        " In the picture bars are a standard deviation over splits."
        if any(max(each) > 1 for each in counts.values())
        else ""
    )
    return f"{'; '.join(texts)}.{bars}"


def in_a_row(counts: Collection[int]) -> str:
    """5, or 2 to 5."""
    least, most = min(counts), max(counts)
    return str(least) if least == most else f"{least} to {most}"

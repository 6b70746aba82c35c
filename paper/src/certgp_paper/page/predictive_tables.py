"""Predictions beside their bounds: a line for each approximation and dimension, and a table with one for each rank."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from certgp_paper.experiments.experiment import Row
from certgp_paper.experiments.results import chosen_rows, number
from certgp_paper.page.markdown import markdown_table, shown
from certgp_paper.page.summaries import curve_name

_SUMMARY = {
    "kl_ratio": "KL of all rows, over the expected predictive KL",
    "mean_ratio": "bound on the means, over their distance",
    "covariance_ratio": "bounds on the covariances, over what they enclose",
}
_FIGURES = {
    "kl_total": "KL of all rows",
    "kl_train": "KL of training rows",
    "kl_expected": "expected predictive KL",
    "kl_median": "predictive KL, median",
    "kl_quantile": "predictive KL, quantile 1 - eta",
    "distance": "distance of the means, median",
    "eigenvalue_least": "least eigenvalue",
    "eigenvalue_largest": "largest eigenvalue",
    "b": "b",
    "t": "t",
}
_ABOVE = "draws with a KL above that of all rows / eta"


def predictive_summary(rows: Sequence[Row]) -> str:
    """How large bounds are beside what they bound: medians over ranks and point sets."""
    lines = [
        (
            curve_name(kernel, method),
            shown(D),
            *(_middle(some, key) for key in _SUMMARY),
            _share(some),
        )
        for kernel, method, D, some in _groups(rows)
    ]
    return markdown_table(("kernel, approximation", "dimension", *_SUMMARY.values(), _ABOVE), lines) if lines else ""


def predictive_tables(rows: Sequence[Row]) -> list[str]:
    """Medians over point sets."""
    lines = [
        (
            curve_name(kernel, method),
            shown(D),
            shown(rank),
            *(_middle(at_rank, key) for key in _FIGURES),
            _share(at_rank),
        )
        for kernel, method, D, some in _groups(rows)
        for rank in dict.fromkeys(row.get("rank") for row in some)
        if (at_rank := chosen_rows(some, rank=rank))
    ]
    if not lines:
        return []
    said = (
        f"Medians over {len({row.get('seed') for row in rows})} point sets; the KL of predictions, and the distance of "
        "their means, first over draws of the training responses. Eigenvalues are those of C2^-1/2 C1 C2^-1/2, C1 the "
        "exact predictive covariance and C2 the approximate one; b and t bound them by the median of the predictive KL."
    )
    return [said, markdown_table(("kernel, approximation", "dimension", "rank r", *_FIGURES.values(), _ABOVE), lines)]


def _groups(rows: Sequence[Row]) -> list[tuple[object, object, object, list[Row]]]:
    known = [row for row in rows if number(row, "kl_total") is not None]
    keys = dict.fromkeys((row.get("kernel"), row.get("method"), row.get("D")) for row in known)
    return [(*key, chosen_rows(known, kernel=key[0], method=key[1], D=key[2])) for key in keys]


def _middle(rows: Sequence[Row], key: str) -> str:
    found = [value for row in rows if (value := number(row, key)) is not None]
    return f"{median(found):.3g}" if found else ""


def _share(rows: Sequence[Row]) -> str:
    above, draws = (sum(number(row, key) or 0.0 for row in rows) for key in ("kl_above", "draws"))
    return f"{above:,.0f} of {draws:,.0f}"

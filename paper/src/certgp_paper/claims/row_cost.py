"""The claim that the linear models take a time linear in N, by rows that were timed at two sizes in turns."""

from __future__ import annotations

from dataclasses import replace

from certgp_paper.claims.finding import LINEAR, UNDECIDED, Claim, Finding, not_run
from certgp_paper.claims.sample_means import FEWEST, all_negative
from certgp_paper.experiments.experiment import Row
from certgp_paper.experiments.results import Results, number, rows_of
from certgp_paper.experiments.sample_means import sample_mean

_LARGEST = 1.1  # exponent of N that is still called linear


def exponents_of(row: Row) -> list[float]:
    """Of the number of rows in the time, one for each round."""
    columns = [key for key in row if key.startswith("exponent_round_")]
    return [value for key in columns if (value := number(row, key)) is not None]


def _is_linear(results: Results) -> Finding:
    """Every width and method: is the exponent clearly below the largest one that is called linear?"""
    found = {_name(row): values for row in rows_of(results, "row-cost") if (values := exponents_of(row))}
    if not found:
        return not_run("row-cost")
    means = {name: sample_mean(values) for name, values in found.items()}
    sizes = next(f"{row['N']:,} to {row['N_more']:,}" for row in rows_of(results, "row-cost") if exponents_of(row))
    rounds = min(map(len, found.values()))
    worst = max(means, key=lambda name: means[name].mean)
    above = [[each - _LARGEST for each in values] for values in found.values()]
    verdict, clear = all_negative(above), sum(sample_mean(each, len(above)).is_negative for each in above)
    text = "; ".join(f"{name}: {each.text().removeprefix('+')}" for name, each in means.items())
    brief = (
        f"from {sizes} rows time grows like N^{min(each.mean for each in means.values()):.2f} to "
        f"N^{means[worst].mean:.2f} (± {means[worst].half_width:.2f}, {worst}), {clear} of {len(above)} clearly below "
        f"N^{_LARGEST:g}, {rounds} rounds"
    )
    few = Finding(UNDECIDED, f"fewer than {FEWEST} rounds; {text}", brief)
    return few if rounds < FEWEST else replace(few, verdict=verdict, evidence=text)


def _name(row: Row) -> str:
    return f"{row.get('method')} with {row.get('D')} columns"


CLAIMS = (
    Claim(
        LINEAR,
        "At a fixed rank the time is linear in N",
        "Low-rank GP regression",
        "row-cost",
        f"For every method and width the mean exponent of N in the time of an epoch is below {_LARGEST:g}, by CPU "
        "times of N and 4 N simulated rows that took turns (95 % t intervals over rounds, all comparisons of the claim "
        "together, Bonferroni); a limit inside one leaves the claim undecided",
        _is_linear,
        f"An exponent of {_LARGEST:g}, by which a row costs {4 ** (_LARGEST - 1):.2f} times as much at four times the "
        "rows; set before the times were measured",
    ),
)

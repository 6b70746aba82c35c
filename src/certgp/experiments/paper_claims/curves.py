"""Claims about the one-dimensional example of the appendix."""

from __future__ import annotations

from certgp.experiments.experiment import Row
from certgp.experiments.paper_claims.finding import Claim, Finding, finding, not_run
from certgp.experiments.results import Results, chosen_rows, number, rows_of

_SIMILAR = 0.1  # relative difference of errors
_ACCURATE_FROM = 24


def _errors(results: Results) -> dict[str, float]:
    """Error on the whole grid of the exact, the Mercer and the Fourier GP, by the first word of the model's name."""
    scores = chosen_rows(rows_of(results, "curves"), kind="scores")
    values = {str(row.get("model", "")).split(" ")[0].lower(): number(row, "rmse") for row in scores}
    return {name: value for name, value in values.items() if value is not None}


def _mercer_like_exact(results: Results) -> Finding:
    errors = _errors(results)
    if not {"exact", "mercer"} <= set(errors):
        return not_run("curves")
    text = f"RMSE against the function: exact {errors['exact']:.3f}, MGP {errors['mercer']:.3f}"
    return finding(abs(errors["mercer"] - errors["exact"]) <= _SIMILAR * errors["exact"], text)


def _fourier_beats_exact(results: Results) -> Finding:
    errors = _errors(results)
    if not {"exact", "fourier"} <= set(errors):
        return not_run("curves")
    text = f"RMSE against the function: exact {errors['exact']:.3f}, FGP {errors['fourier']:.3f}"
    return finding(errors["fourier"] < errors["exact"], text)


def _accurate_from_24(results: Results) -> Finding:
    scores = chosen_rows(rows_of(results, "ranks"), kind="scores", features="Fourier")
    high = [row for row in scores if (number(row, "rank") or 0.0) >= _ACCURATE_FROM]
    exact = [row for row in chosen_rows(rows_of(results, "curves"), kind="scores") if _is_exact(row)]
    known = [(row["rank"], number(row, "rmse_inputs")) for row in high]
    limit = number(exact[0], "rmse_inputs") if exact else None
    if limit is None or not known or any(error is None for _, error in known):
        return not_run("ranks")
    shown = "; ".join(f"r = {rank}: {error:.3f}" for rank, error in known)
    holds = all(error is not None and error <= (1.0 + _SIMILAR) * limit for _, error in known)
    return finding(holds, f"RMSE where the data are: {shown}; exact {limit:.3f}")


def _is_exact(row: Row) -> bool:
    return str(row.get("model", "")).lower().startswith("exact")


CLAIMS = (
    Claim(
        "MGP leads to a posterior mean similar to that of the exact GP (r = 34)",
        "appendix, curve learning",
        f"the errors differ by at most {_SIMILAR:.0%}",
        _mercer_like_exact,
    ),
    Claim(
        "The mean of FGP (r = 68) is nearer to the function than that of the exact GP",
        "appendix, curve learning",
        "lower error on the whole grid; one draw of points and frequencies",
        _fourier_beats_exact,
    ),
    Claim(
        "FGP learns the function accurately after r = 24",
        "appendix, curve learning",
        f"at every such rank the error where the data are is at most {_SIMILAR:.0%} above that of the exact GP",
        _accurate_from_24,
    ),
)

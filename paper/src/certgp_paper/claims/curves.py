"""Claims about the one-dimensional example of the appendix, its first figure.

They are judged on the paper's own models over several point sets; what certgp's models do on the same points stands
beside it.
"""

from __future__ import annotations

from statistics import mean

from certgp_paper.claims.curve_sets import (
    OVER_DRAWS,
    SIMILAR,
    START,
    VARIANCES,
    WHERE,
    OfVariant,
    against,
    judged,
    mean_text,
    sets_of,
    values_of,
)
from certgp_paper.claims.finding import CURVE, Claim, Finding, combine, not_run
from certgp_paper.claims.sample_means import RULE, all_negative
from certgp_paper.experiments.curve_problem import (
    EXACT,
    FOURIER,
    FOURIER_RANK,
    MERCER,
    MERCER_RANK,
    START_LENGTH_SCALE,
)
from certgp_paper.experiments.curve_starts import EXACT_FROM_FAR, FAR_START
from certgp_paper.experiments.results import Results, number
from certgp_paper.experiments.sample_means import sample_mean

_FIGURE_SET = 0
_STARTS = {START_LENGTH_SCALE: EXACT, FAR_START: EXACT_FROM_FAR}  # length-scales; the second is GPflow's
_WITHOUT_COSINE = 0.5 / 2.0**0.5  # root mean square of cos(10 x) / 2, the error of whoever takes it for noise


def _recovers_from(results: Results, features: str) -> Finding:
    rows = sets_of(results, "curves", features=features)
    errors = values_of(rows, "rmse_inputs")
    if not errors:
        return not_run("curves")
    missed = sum(error > _WITHOUT_COSINE for error in errors)
    text = (
        f"RMSE where the data are {mean_text(errors)}, limit {_WITHOUT_COSINE:.3f}, above it in {missed} of "
        f"{len(errors)} point sets; RMSE on the whole grid {mean_text(values_of(rows, 'rmse'))}; the band holds the "
        f"function on {mean(values_of(rows, 'coverage')):.0%} of the grid"
    )
    brief = f"RMSE {mean_text(errors)}, limit {_WITHOUT_COSINE:.3f}, above it in {missed} of {len(errors)} sets"
    verdict = all_negative([[error - _WITHOUT_COSINE for error in errors]], len(_STARTS))
    return Finding(verdict, text, brief)


def _recovers(results: Results) -> Finding:
    """The evidence has several optima, so that the start decides: each is a reading of "easily"."""
    found = {f"start {start:g}": _recovers_from(results, features) for start, features in _STARTS.items()}
    return combine(found, "curves", "start")


def _mercer_like_exact(results: Results, variant: str) -> Finding | None:
    samples = {}
    for variance, words in VARIANCES.items():
        rows = sets_of(results, "curves", variant=variant, features=MERCER, variance=variance)
        parts = [values_of(rows, f"distance_{part}") for part in ("mean", "lower", "upper")]
        if rows:
            samples[words] = [max(each) for each in zip(*parts, strict=True)]
    if not samples:
        return None
    texts = [f"{words}: {mean_text(sample)}, {len(sample)} point sets" for words, sample in samples.items()]
    unit = "largest RMS difference of mean and band from the exact GP's, in standard deviations of the exact mean"
    worst = max(samples.values(), key=mean)
    brief = f"differs by {mean_text(worst)} standard deviations, {len(worst)} point sets"
    gaps = [[distance - SIMILAR for distance in sample] for sample in samples.values()]
    return Finding(all_negative(gaps), f"{unit}; {'; '.join(texts)}", brief)


def _fourier_is_lower(metric: str, count: str, word: str) -> OfVariant:
    """FGP below the exact GP in a metric, on average over its draws of frequencies."""

    def judge(results: Results, variant: str) -> Finding | None:
        rows = sets_of(results, "curves", variant=variant, features=FOURIER, rank=FOURIER_RANK)
        if not rows:
            return None
        exact = f"exact_{metric}"
        sample = against(rows, metric, exact)
        draws, wins = int(sum(values_of(rows, "draws"))), int(sum(values_of(rows, count)))
        text = (
            f"{word}: exact {mean(values_of(rows, exact)):.3f}, FGP {mean(values_of(rows, metric)):.3f}, difference "
            f"{sample_mean(sample).text()}, {len(rows)} point sets; lower in {wins} of {draws} fits"
        )
        own = [row for row in rows if row["seed"] == _FIGURE_SET]
        if own:
            pair = f"{number(own[0], metric):.3f} against {number(own[0], exact):.3f}"
            text += f", on the figure's points in {own[0][count]} of {own[0]['draws']} ({pair})"
        brief = f"{word} {sample_mean(sample).text()}, {len(rows)} point sets"
        return Finding(all_negative([sample]), text, brief)

    return judge


CLAIMS = (
    Claim(
        CURVE,
        "Exact GPs easily recover the curve",
        WHERE,
        "curves",
        f"The exact GP's error where the data are is below {_WITHOUT_COSINE:.3f} ({RULE}), trained from the "
        f"length-scale {START_LENGTH_SCALE:g}, as all models of the other claims are, and from {FAR_START:g}, where a "
        "length-scale of GPflow begins unless one says otherwise; the paper says that GPflow trained it, and no start",
        _recovers,
        f"{_WITHOUT_COSINE:.3f}, the error of the curve without its cosine, chosen after the figures had been seen",
    ),
    Claim(
        CURVE,
        f"Mean and intervals of MGP (r = {MERCER_RANK}) are similar to those of the exact GP",
        WHERE,
        "curves",
        f"Mean and both ends of the band differ by at most {SIMILAR:.0%} of the exact mean's standard deviation on the "
        f"grid, with the variance of the released code (DTC) and with that of the text (low-rank) ({RULE}){START}",
        judged("curves", _mercer_like_exact),
        f'{SIMILAR:.0%} of a standard deviation, for "similar"',
    ),
    Claim(
        CURVE,
        f"The mean of FGP (r = {FOURIER_RANK}) is nearer to the function than the exact GP's",
        WHERE,
        "curves",
        f"Lower error on the whole grid {OVER_DRAWS}{START}",
        judged("curves", _fourier_is_lower("rmse", "nearer", "RMSE against the function")),
    ),
    Claim(
        CURVE,
        f"FGP (r = {FOURIER_RANK}) is more confident about unseen values than the exact GP",
        WHERE,
        "curves",
        f"Narrower band {OVER_DRAWS}{START}",
        judged("curves", _fourier_is_lower("width", "narrower", "mean width of the band")),
    ),
)

"""A certificate in words: first what it means for a decision, then the numbers, then the theorems."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from certgp.guarantees.certificate import Certificate
from certgp.guarantees.rank_curve import RankCurve
from certgp.markup import tag, two_columns

Array = NDArray[np.float64]
NEGLIGIBLE, SMALL = 0.1, 0.5  # of the noise
_GOAL = 0.1  # of a predictive standard deviation: what a higher rank should prove
_NOTICED = 0.05  # a share of the variance that is worth a word
_MOST_GROWTH = 8.0  # times the rank: further than that a curve is not drawn on
_TREND = 0.5  # the last part of a curve, by rank, that is drawn on


@dataclass(frozen=True, eq=False)
class Yardstick:
    """What the numbers of a certificate are compared with, in the units of y."""

    noise: float  # standard deviation of an observation around the function
    prior: float  # standard deviation of the function before any row was seen
    target: str = "y"
    latent_variance: Array | None = None  # the model's own, at the rows of the certificate
    coverage: float | None = None  # share of held-out rows in their 95 % interval, where it was measured
    curve: RankCurve | None = None  # of the model, for advice on its rank
    rows: str = "these {} rows"  # what the rows of the certificate are called


@dataclass(frozen=True)
class Explanation:
    """A certificate for readers, from what they need to what it rests on."""

    verdict: str  # "exact", "negligible", "small", "noticeable", "far" or "useless"
    meaning: tuple[str, ...]
    limits: tuple[str, ...]  # what it does not say
    numbers: tuple[tuple[str, str], ...]
    basis: tuple[tuple[str, str], ...]  # theorems, confidence, assumptions, notes
    remedy: str  # what would bring the model closer to the exact GP, or prove that it is close

    def text(self) -> str:
        """For a terminal."""
        rows = [*self.numbers, *self.basis]
        width = max(len(name) for name, _ in rows)
        told = [*self.meaning, "", *self.limits, ""]
        return "\n".join([*told, *(f"  {name:<{width}}  {text}" for name, text in rows)])

    def _repr_html_(self) -> str:
        """In a notebook, in the same order."""
        told = [tag("p", tag("strong", self.meaning[0])), *(tag("p", text) for text in self.meaning[1:] + self.limits)]
        numbers = tag("details", tag("summary", "Numbers and theorems"), two_columns([*self.numbers, *self.basis]))
        return tag("div", *told, numbers)


def explain(certificate: Certificate, yardstick: Yardstick) -> Explanation:
    """The certificate in words, in the units of y and of the noise."""
    speaks_of_rows = certificate.mean_error is not None
    verdict, meaning = _explain_rows(certificate, yardstick) if speaks_of_rows else _explain_law(certificate, yardstick)
    told, basis = (tuple(meaning), _limits(certificate, yardstick)), tuple(certificate.basis())
    useless = speaks_of_rows and verdict == "useless"
    remedy = _sharper(certificate, yardstick) if useless else _advice(certificate, yardstick)
    return Explanation(verdict, *told, _numbers(certificate, yardstick), basis, remedy)


def percent(share: float) -> str:
    """A share with two digits, as people write it; what is smaller than a ten-thousandth is at most that."""
    value = 100.0 * share
    return f"{value:.0f} %" if value >= 10.0 else f"{value:.2g} %" if value >= 0.01 else "0.01 %"


def rank_for(curve: RankCurve | None, shift: float = _GOAL) -> int | None:
    """The rank at which the bound allows means to differ by ``shift`` predictive standard deviations: read off the
    curve, or drawn on from its last half by a power law where that is not too far.
    """
    if curve is None or curve.kl_bound is None:
        return None
    tolerance = 0.5 * shift**2
    known = curve.smallest(tolerance)
    if known is not None:
        return known
    last = curve.ranks >= _TREND * curve.ranks[-1]
    ranks, bounds = np.log(curve.ranks[last]), np.log(curve.kl_bound[last] / curve.n_rows)
    if len(ranks) < 3 or not np.isfinite(bounds).all():
        return None
    slope, level = np.polyfit(ranks, bounds, 1)
    if slope >= 0.0:
        return None
    needed = float(np.exp(min((np.log(tolerance) - level) / slope, 50.0)))
    return _rounded(needed) if needed <= _MOST_GROWTH * float(curve.ranks[-1]) else None


def _rounded(rank: float) -> int:
    """Upwards to two digits: more would pretend."""
    unit = 10 ** max(math.floor(math.log10(rank)) - 1, 0)
    return int(math.ceil(rank / unit) * unit)


# -------------------- bounds on single predictions


def _explain_rows(certificate: Certificate, yardstick: Yardstick) -> tuple[str, list[str]]:
    errors, lower = certificate.mean_error, certificate.mean_error_lower
    assert errors is not None
    worst, n = float(errors.max()), len(errors)
    if worst == 0.0:
        return "exact", ["These predictions are the exact GP's: nothing is approximated."]
    useless = errors > yardstick.prior
    if useless.any():
        return "useless", _useless_rows(certificate, yardstick, useless)
    share = worst / yardstick.noise
    where = _where(certificate)
    told = [
        f"Computing without approximation{where} would change no prediction on {yardstick.rows.format(n)} by "
        f"more than {percent(share)} of the noise: {worst:.2g} in the units of {yardstick.target}, where the noise is "
        f"{yardstick.noise:.2g}."
    ]
    verdict = "negligible" if share <= NEGLIGIBLE else "small" if share <= SMALL else "noticeable"
    if verdict == "negligible":
        told.append("For a decision that is nothing: new observations scatter far more by themselves.")
    elif verdict == "small":
        told.append("That is small beside the scatter of new observations, but may matter where many are averaged.")
    else:
        proven = 0 if lower is None else int((lower > SMALL * yardstick.noise).sum())
        told.append(
            f"That is not small beside the noise{_proven_apart(proven, n)}. {_on_the_others(errors, yardstick.noise)}"
            f"{_advice(certificate, yardstick)}"
        )
    return verdict, [*told, *_explain_uncertainty(certificate, yardstick)]


def _on_the_others(errors: Array, noise: float) -> str:
    """The bound where it is small, so that a few strange rows do not speak for all."""
    small = errors[errors <= SMALL * noise]
    if not len(small):
        return ""
    most = float(small.max())
    return f"On {len(small)} of the {len(errors)} rows it is at most {most:.2g}, {percent(most / noise)} of the noise. "


def _useless_rows(certificate: Certificate, yardstick: Yardstick, useless: NDArray[np.bool_]) -> list[str]:
    errors, n = certificate.mean_error, len(useless)
    assert errors is not None
    count = int(useless.sum())
    told = [
        f"The bound is useless on {count} of {yardstick.rows.format(n)}: it allows errors of up to "
        f"{float(errors.max()):.3g}, more than "
        f"the {yardstick.prior:.2g} by which {yardstick.target} is unknown before any row is seen. It neither "
        "shows that the predictions are close to the exact GP's nor that they are not."
    ]
    if count < n:
        most = float(errors[~useless].max())
        told.append(
            f"On the other {n - count} it is at most {most:.2g}, {percent(most / yardstick.noise)} of the noise."
        )
    law, sentences = _explain_law(certificate, yardstick)
    known = [] if law == "useless" else [f"Of the training rows more is known. {sentences[0]}"]
    return [*told, *known, _sharper(certificate, yardstick)]


def _sharper(certificate: Certificate, yardstick: Yardstick) -> str:
    """How to get a bound that says something, where this one does not."""
    tol = f"{tolerance_for(yardstick):g}"
    if "reference_rank" in certificate.evidence:
        return (
            f"No reference of this size proves more; the exact system does: exact_solve=True with tol={tol} in Python, "
            f"--exact-solve --tol {tol} on the command line, at N^2 kernel values."
        )
    return (
        f"A sharper bound reads the training rows again: certify(X, tol={tol}, rows=(X, y)) in Python, --train FILE "
        f"--tol {tol} on the command line."
    )


def tolerance_for(yardstick: Yardstick) -> float:
    """A tenth of the noise, with one digit: a tolerance for means that is worth asking for."""
    return float(f"{NEGLIGIBLE * yardstick.noise:.0e}")


def _proven_apart(count: int, n: int) -> str:
    return (
        "" if count == 0 else f", and on {count} of {n} rows it is proven that the two differ by more than half of it"
    )


def _explain_uncertainty(certificate: Certificate, yardstick: Yardstick) -> list[str]:
    """How much of the variance that a reader sees is approximation, on a typical row."""
    mine, lower, upper = yardstick.latent_variance, certificate.variance_lower, certificate.variance_upper
    if mine is None or lower is None or upper is None:
        return []
    shown = mine + yardstick.noise**2
    least, most = float(np.median((mine - upper) / shown)), float(np.median((mine - lower) / shown))
    if most < -_NOTICED:
        return [
            "The intervals are too narrow: on a typical row the variance with the exact GP is at least "
            f"{percent(-most)} larger."
        ]
    if least > _NOTICED:
        return [
            f"At least {percent(least)} of the variance you see on a typical row is approximation, not lack of data. "
            f"{_advice(certificate, yardstick)}"
        ]
    widest = f"at most {percent(max(most, 0.0))} of their variance is approximation"
    if least < -_NOTICED:
        return [
            f"Of the intervals less is proven: on a typical row {widest}, but the variance with the exact GP may be "
            f"up to {percent(-least)} larger."
        ]
    if most <= _NOTICED:
        return [f"The intervals are the exact GP's: on a typical row {widest}."]
    return [f"Of the intervals less is proven: on a typical row {widest}."]


# -------------------- the law of the training rows


def _explain_law(certificate: Certificate, yardstick: Yardstick) -> tuple[str, list[str]]:
    where, shift, likely = _where(certificate), certificate.typical_shift, _likely(certificate)
    if certificate.kl.upper == 0.0:
        return "exact", ["This is the exact GP itself: nothing is approximated."]
    if certificate.vacuous:
        return "useless", [
            f"The bound is useless: it allows predictions to differ by {shift:.2g} times their own standard "
            "deviation, so it "
            f"does not show that this model is close to the exact GP{where}. {_advice(certificate, yardstick)}"
        ]
    if certificate.far:
        least = np.exp(min(certificate.kl.lower / certificate.n_rows, 700.0))
        return "far", [
            f"This model is far from the exact GP{where}{likely}: on data from that GP it gives a typical row a "
            f"probability density at least {least:.3g} times too small. {_advice(certificate, yardstick)}"
        ]
    told = [
        f"Computing without approximation{where} would move a typical prediction by at most {percent(shift)} of its "
        "own "
        f"standard deviation{likely}: {shift * yardstick.noise:.2g} in the units of {yardstick.target} where that is "
        f"the noise, {yardstick.noise:.2g}."
    ]
    verdict = "negligible" if shift <= NEGLIGIBLE else "small" if shift <= SMALL else "noticeable"
    if verdict == "negligible":
        told.append("For a decision that is nothing.")
    else:
        told.append(_advice(certificate, yardstick))
    return verdict, told


def _advice(certificate: Certificate, yardstick: Yardstick) -> str:
    """What would bring the model closer to the exact GP."""
    rank = rank_for(yardstick.curve)
    if yardstick.curve is not None and rank is not None and rank > int(yardstick.curve.ranks[-1]):
        return f"Raise the rank to about {rank}."
    return certificate.remedy


# -------------------- what it rests on


def _numbers(certificate: Certificate, yardstick: Yardstick) -> tuple[tuple[str, str], ...]:
    rows: list[tuple[str, str]] = []
    errors = certificate.mean_error
    if errors is not None:
        at = [float(np.quantile(errors, q)) for q in (0.5, 0.9, 1.0)]
        rows.append(("bound on means", f"median {at[0]:.3g}, 90 % of rows {at[1]:.3g}, largest {at[2]:.3g}"))
    shift = certificate.typical_shift
    rows.append(
        (
            "typical shift",
            f"{shift:.3g} predictive standard deviations = sqrt(2 KL per row), {shift * yardstick.noise:.3g} in the "
            f"units of {yardstick.target} where that is the noise",
        )
    )
    return (*rows, *((name, f"{text} nats") for name, text in certificate.numbers()))


def _limits(certificate: Certificate, yardstick: Yardstick) -> tuple[str, ...]:
    told = (
        f"It does not say that the exact GP{_where(certificate)} is right for your data: only that this model stands "
        "in for it. Held-out rows judge that"
    )
    if yardstick.coverage is None:
        return (f"{told}; look at their scores and at how many lie in their intervals.",)
    return (f"{told}: {100.0 * yardstick.coverage:.1f} % of them lie in their 95 % interval.",)


def _where(certificate: Certificate) -> str:
    return "" if certificate.kernel_inputs is None else f" on {certificate.kernel_inputs}"


def _likely(certificate: Certificate) -> str:
    return "" if certificate.confidence == 1.0 else f" (with probability at least {certificate.confidence:g})"

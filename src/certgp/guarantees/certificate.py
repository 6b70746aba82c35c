"""What a guarantee says, what it rests on, and how it reads."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certgp.checks import check_fraction
from certgp.markup import tag, two_columns

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Interval:
    """A number that is known to lie between two ends."""

    lower: float
    upper: float

    def __contains__(self, value: float) -> bool:
        return self.lower <= value <= self.upper

    @property
    def half_width(self) -> float:
        """Half the distance between the ends."""
        return 0.5 * (self.upper - self.lower)


@dataclass(frozen=True)
class ExpectedPredictiveKL:
    """E_y KL(exact predictive || model predictive) at new rows, y drawn from the exact GP on the training rows."""

    interval: Interval  # nats, over all new rows together
    n_rows: int

    def with_probability(self, eta: float) -> float:
        """A bound on the predictive KL that holds with probability 1 - eta over y (Markov).  [paper, eq. 57]"""
        return self.interval.upper / check_fraction("eta", eta)


@dataclass(frozen=True, eq=False)
class Certificate:
    """A proven statement about a fitted model and the exact GP with the same kernel, noise and training rows:
    ``ExactGP(kernel=gp.kernel_, noise_variance=gp.noise_variance_, optimize=False)``.

    Behind a projection or a network it is the exact GP on their outputs, and ``kernel_inputs`` says so.
    """

    kl: Interval  # KL(exact || model) over the training rows, in nats
    log_evidence: Interval | None  # of the exact GP, in the units of y
    n_rows: int
    theorem: str  # ids in docs/theorems.md
    evidence: Mapping[str, float]  # what was computed: trace gap, reference rank, rounding slack
    assumptions: tuple[str, ...]  # what code did not check
    confidence: float = 1.0  # 1 where nothing is random
    reverse_kl: Interval | None = None  # KL(model || exact) over the training rows, in nats
    kernel_inputs: str | None = None  # what the exact GP's kernel acts on, where that is not X itself
    mean_error: Array | None = field(default=None, repr=False)  # per row of X: bound on |mean - exact mean|
    mean_error_lower: Array | None = field(default=None, repr=False)  # and from below
    variance_lower: Array | None = field(default=None, repr=False)  # per row of X: bracket of the exact latent variance
    variance_upper: Array | None = field(default=None, repr=False)
    predictive_kl: ExpectedPredictiveKL | None = None  # at the rows of X, where a reference was read
    notes: tuple[str, ...] = ()  # what a reader should know: a tolerance that was not met, and what would help

    @property
    def vacuous(self) -> bool:
        """Is the bound so weak that it says nothing? One nat per row is what a wrong scale by a factor e costs.

        A large divergence that is also bounded from below is not nothing: it says that the model is far off.
        """
        return self.kl.upper > self.n_rows and not self.far

    @property
    def typical_shift(self) -> float:
        r"""sqrt(2 KL / n), which bounds the difference of means in units of the model's predictive standard deviation,
        root mean square over the training rows, each predicted from those before it, and over y from the exact GP.

        By the chain rule KL = sum_i E KL(P(y_i | y_<i) || Q(y_i | y_<i)), and between Gaussians of means m, m' and
        variances v, v' it is 1/2 [v / v' - 1 - ln(v / v') + (m - m')^2 / v'] >= (m - m')^2 / (2 v').
        """
        return math.sqrt(2.0 * max(self.kl.upper, 0.0) / self.n_rows)

    @property
    def far(self) -> bool:
        """Is it proven that the divergence is large, to a factor of two?"""
        return self.kl.upper > self.n_rows and self.kl.lower > 0.5 * self.kl.upper

    @property
    def remedy(self) -> str:
        """What brings the model closer to the exact GP."""
        return "Raise train_neighbours (of LocalGP, in Python)." if self.theorem.startswith("V") else "Raise the rank."

    def sentence(self) -> str:
        """The certificate in words. Only the divergence may be known with a probability: bounds on rows are certain."""
        where = "" if self.kernel_inputs is None else f" on {self.kernel_inputs}"
        if self.mean_error is not None:
            return (
                f"On these {len(self.mean_error)} rows the predictions of this model differ from the exact GP's{where} "
                f"by at most {float(self.mean_error.max()):.3g} in the units of y "
                f"(median bound {float(np.median(self.mean_error)):.3g})."
            )
        if self.vacuous:
            return (
                f"The bound is vacuous: it does not show that this model is close to the exact GP{where}. {self.remedy}"
            )
        likely = "" if self.confidence == 1.0 else f", with probability at least {self.confidence:g}"
        if self.far:
            least = math.exp(min(self.kl.lower / self.n_rows, 700.0))
            return (
                f"This model is far from the exact GP{where}: on data from that GP it gives a typical training row a "
                f"density at least {least:.3g} times too small ({self.kl.lower / self.n_rows:.3g} to "
                f"{self.kl.upper / self.n_rows:.3g} nats per row){likely}. {self.remedy}"
            )
        return (
            f"The exact GP{where} and this model differ by at most {self.typical_shift:.2g} predictive standard "
            f"deviations on a typical training row ({self.kl.upper / self.n_rows:.3g} nats per row){likely}."
        )

    def __str__(self) -> str:
        rows = [*self.numbers(), *self.basis()]
        width = max(len(name) for name, _ in rows)
        return "\n".join([*(f"{name:<{width}}  {text}" for name, text in rows), self.sentence()])

    def _repr_html_(self) -> str:
        """In a notebook: the sentence, then the numbers, then what they rest on."""
        parts = [tag("p", tag("strong", self.sentence())), two_columns(self.numbers())]
        return tag("div", *parts, tag("details", tag("summary", "What it rests on"), two_columns(self.basis())))

    def numbers(self) -> list[tuple[str, str]]:
        """Every interval, by name."""
        vacuous = "  (vacuous)" if self.vacuous else ""
        rows = [("KL(exact || model)", _ends(self.kl) + vacuous), ("  per row", _ends(self.kl, self.n_rows))]
        if self.reverse_kl is not None:
            rows.append(("KL(model || exact)", _ends(self.reverse_kl)))
            rows.append(("  per row", _ends(self.reverse_kl, self.n_rows)))
        if self.log_evidence is not None:
            rows.append(("exact log evidence", _ends(self.log_evidence)))
        if self.predictive_kl is not None:
            rows.append(("expected predictive KL", _ends(self.predictive_kl.interval)))
            rows.append(("  per new row", _ends(self.predictive_kl.interval, self.predictive_kl.n_rows)))
        return rows

    def basis(self) -> list[tuple[str, str]]:
        """What the numbers rest on: theorems, confidence, assumptions, notes."""
        rows = [("theorem", self.theorem), ("confidence", f"{self.confidence:g}")]
        rows += [("assumed", text) for text in self.assumptions] or [("assumed", "nothing beyond the model itself")]
        return [*rows, *(("note", text) for text in self.notes)]

    def without_rows(self) -> Certificate:
        """The statement about the training rows alone, which is what a model file keeps."""
        theorem = ", ".join(part for part in self.theorem.split(", ") if not part.startswith(_ROW_THEOREMS))
        return replace(
            self,
            theorem=theorem,
            notes=(),
            predictive_kl=None,
            mean_error=None,
            mean_error_lower=None,
            variance_lower=None,
            variance_upper=None,
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        arrays = {name: getattr(self, name) for name in _ROW_FIELDS}
        predictive = self.predictive_kl
        return {
            "kl": _described(self.kl),
            "reverse_kl": _described(self.reverse_kl),
            "log_evidence": _described(self.log_evidence),
            "n_rows": self.n_rows,
            "theorem": self.theorem,
            "evidence": dict(self.evidence),
            "assumptions": list(self.assumptions),
            "confidence": self.confidence,
            "kernel_inputs": self.kernel_inputs,
            "vacuous": self.vacuous,
            "sentence": self.sentence(),
            "notes": list(self.notes),
            "predictive_kl": None
            if predictive is None
            else {"interval": _described(predictive.interval), "n_rows": predictive.n_rows},
        } | {name: None if array is None else array.tolist() for name, array in arrays.items()}

    @staticmethod
    def from_dict(values: Mapping[str, Any]) -> Certificate:
        """The certificate that ``to_dict`` described; before 0.2 without the reverse divergence."""
        predictive = values["predictive_kl"]
        arrays = {name: None if values[name] is None else np.array(values[name]) for name in _ROW_FIELDS}
        return Certificate(
            kl=Interval(*values["kl"]),
            reverse_kl=_interval(values.get("reverse_kl")),
            log_evidence=_interval(values["log_evidence"]),
            n_rows=values["n_rows"],
            theorem=values["theorem"],
            evidence=values["evidence"],
            assumptions=tuple(values["assumptions"]),
            confidence=values["confidence"],
            kernel_inputs=values.get("kernel_inputs"),
            notes=tuple(values["notes"]),
            predictive_kl=None
            if predictive is None
            else ExpectedPredictiveKL(Interval(*predictive["interval"]), predictive["n_rows"]),
            **arrays,
        )


_ROW_FIELDS = ("mean_error", "mean_error_lower", "variance_lower", "variance_upper")
_ROW_THEOREMS = ("P1", "P2", "P4", "C1", "V5", "V6", "V7 (means)")  # statements about single rows or new rows


def _described(interval: Interval | None) -> list[float] | None:
    return None if interval is None else [interval.lower, interval.upper]


def _interval(ends: Sequence[float] | None) -> Interval | None:
    return None if ends is None else Interval(*ends)


def _ends(interval: Interval, divisor: float = 1.0) -> str:
    return f"[{interval.lower / divisor:.6g}, {interval.upper / divisor:.6g}]"

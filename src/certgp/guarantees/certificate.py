"""What a guarantee says, what it rests on, and how it reads."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

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


@dataclass(frozen=True, eq=False)
class Certificate:
    """A proven statement about a fitted model and the exact GP with the same hyper-parameters."""

    kl: Interval  # KL(exact || model) over the training rows, in nats
    log_evidence: Interval | None  # of the exact GP, in the units of y
    n_rows: int
    theorem: str  # ids in docs/theorems.md
    evidence: Mapping[str, float]  # what was computed: trace gap, reference rank, rounding slack
    assumptions: tuple[str, ...]  # what code did not check
    confidence: float = 1.0  # 1 where nothing is random
    mean_error: Array | None = field(default=None, repr=False)  # per row of X: bound on |mean - exact mean|
    variance_lower: Array | None = field(default=None, repr=False)  # per row of X: bracket of the exact latent variance
    variance_upper: Array | None = field(default=None, repr=False)

    @property
    def vacuous(self) -> bool:
        """Is the bound so weak that it says nothing? One nat per row is what a wrong scale by a factor e costs."""
        return self.kl.upper > self.n_rows

    def sentence(self) -> str:
        """The certificate in words."""
        if self.mean_error is not None:
            return (
                f"On these {len(self.mean_error)} rows the predictions of this model differ from the exact GP's by at "
                f"most {float(self.mean_error.max()):.3g} in the units of y "
                f"(median bound {float(np.median(self.mean_error)):.3g})."
            )
        if self.vacuous:
            return "The bound is vacuous: it does not show that this model is close to the exact GP. Raise the rank."
        return f"The exact GP and this model differ by at most {self.kl.upper / self.n_rows:.3g} nats per training row."

    def __str__(self) -> str:
        rows = [("KL(exact || model)", _ends(self.kl)), ("  per row", _ends(self.kl, self.n_rows))]
        if self.log_evidence is not None:
            rows.append(("exact log evidence", _ends(self.log_evidence)))
        rows += [("theorem", self.theorem), ("confidence", f"{self.confidence:g}")]
        rows += [("assumed", text) for text in self.assumptions] or [("assumed", "nothing beyond the model itself")]
        width = max(len(name) for name, _ in rows)
        return "\n".join([*(f"{name:<{width}}  {text}" for name, text in rows), self.sentence()])

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        arrays = {name: getattr(self, name) for name in ("mean_error", "variance_lower", "variance_upper")}
        return {
            "kl": [self.kl.lower, self.kl.upper],
            "log_evidence": None if self.log_evidence is None else [self.log_evidence.lower, self.log_evidence.upper],
            "n_rows": self.n_rows,
            "theorem": self.theorem,
            "evidence": dict(self.evidence),
            "assumptions": list(self.assumptions),
            "confidence": self.confidence,
            "vacuous": self.vacuous,
            "sentence": self.sentence(),
        } | {name: None if array is None else array.tolist() for name, array in arrays.items()}


def _ends(interval: Interval, divisor: float = 1.0) -> str:
    return f"[{interval.lower / divisor:.6g}, {interval.upper / divisor:.6g}]"


def accumulation_slack(n: int, size: float) -> float:
    """Worst-case rounding of a float64 sum of n terms that is at most ``size``, summed in chunks and then over chunks.

    A chunk has at most 65,536 rows and there are at most n / 1024 chunks; each addition errs by u = 2^-53 relative to
    the running sum, and each feature by a few hundred u.
    """
    additions = min(n, 65_536) + n / 1024 + 1_000
    return additions * math.ldexp(1.0, -53) * size

"""How evidence, guarantee and predictions grow with the rank, for every rank at once."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from certgp.errors import NotCertifiableError
from certgp.features import FeatureMap
from certgp.gp import GaussianProcess, LowRankPosterior, LowRankProcess, Statistics, log_evidence
from certgp.gp.evidence import NOISE_REMEDY
from certgp.guarantees.dominated import sharpened_trace_bound
from certgp.guarantees.rounding import gap_slack
from certgp.guarantees.subject import refusal_of_mixtures
from certgp.linalg import cholesky, eye_like, solve_lower
from certgp.markup import plain_table

Array = NDArray[np.float64]
_CHUNK = 2_048
_SHOWN = 10  # ranks of the table in a notebook


@dataclass(frozen=True, eq=False)
class RankCurve:
    """At the fitted hyper-parameters, per rank: log evidence of the low-rank model, and bounds for maps dominated by
    the kernel. With validation rows also how well each rank predicts.
    """

    ranks: NDArray[np.int64]
    log_evidence: Array  # units of y
    elbo: Array | None  # lower bound on the exact log evidence
    kl_bound: Array | None  # upper bound on KL(exact || model at this rank)
    n_rows: int
    nlpd: Array | None = None  # mean negative log predictive density of the validation rows, units of y

    def smallest(self, tolerance: float) -> int | None:
        """The smallest rank whose bound on the KL divergence per row is at most ``tolerance``."""
        if self.kl_bound is None:
            return None
        enough = np.flatnonzero(self.kl_bound <= tolerance * self.n_rows)
        return int(self.ranks[enough[0]]) if len(enough) else None

    def _repr_html_(self) -> str:
        """In a notebook: some ranks at equal ratios, the last one always. ``RankCurveDisplay`` draws all of them."""
        bound = None if self.kl_bound is None else self.kl_bound / self.n_rows
        columns: dict[str, Array | None] = {
            "log evidence per row": self.log_evidence / self.n_rows,
            "proven distance, % of a predictive standard deviation": None
            if bound is None
            else 100 * np.sqrt(2 * bound),
            "KL per row at most, nats": bound,
            "held-out NLPD": self.nlpd,
        }
        shown = {name: values for name, values in columns.items() if values is not None}
        picked = np.unique(np.geomspace(1, len(self.ranks), _SHOWN).astype(int)) - 1
        rows = [[str(self.ranks[i]), *(f"{values[i]:.4g}" for values in shown.values())] for i in picked]
        return plain_table(["rank", *shown], rows)


@dataclass(frozen=True, eq=False)
class ValidationRows:
    """Rows to predict: unit-variance features (n, r), targets (n,), and what ``LowRankProcess`` says of each row (n,).
    None where no row is concerned.
    """

    features: Tensor
    y: Tensor
    boundary_correlation: Tensor | None
    restored_variance_mask: Tensor | None
    diagonal: Tensor | None = None  # of the unit kernel, where it is not one everywhere

    def chunks(self) -> Iterator[ValidationRows]:
        """At most 2,048 rows at a time, so that ranks x rows fits."""
        for start in range(0, len(self.y), _CHUNK):
            part = slice(start, start + _CHUNK)
            optional = (self.boundary_correlation, self.restored_variance_mask, self.diagonal)
            yield ValidationRows(
                self.features[part], self.y[part], *(None if each is None else each[part] for each in optional)
            )


def nested_rank_curve(
    unit_stats: Statistics,
    signal_variance: float,
    noise_variance: float,
    validation: ValidationRows | None = None,
    map_rounding: float | None = 0.0,
) -> RankCurve:
    r"""The curve of a map dominated by the kernel, whose features are nested. It has no bounds where the rounding of
    the map is not known (``map_rounding=None``).

    All leading blocks of one Cholesky factor: L[:k, :k] is the factor of the rank-k model, so one O(r^3) serves every
    rank.

    log|C_k| = 2 sum_{i<=k} log L_ii and b_k'C_k^-1 b_k = sum_{i<=k} (L^-1 b)_i^2: two cumulative sums. Predictions are
    cumulative sums too: mean_k(x) = sum_{i<=k} (L^-1 phi)_i (L^-1 b)_i, variance_k(x) = s2 sum_{i<=k} (L^-1 phi)_i^2.
    """
    stats, n, s2 = unit_stats.scaled(signal_variance), unit_stats.n, noise_variance
    L = cholesky(stats.A + s2 * eye_like(stats.A), NOISE_REMEDY)
    ranks = torch.arange(1, stats.rank + 1, dtype=torch.float64)
    half = solve_lower(L, stats.b)
    log_det = 2.0 * L.diagonal().log().cumsum(0) + (n - ranks) * math.log(s2)
    evidence = -0.5 * ((stats.yty - half.square().cumsum(0)) / s2 + log_det + n * math.log(2.0 * math.pi))
    evidence += 0.5 * stats.log_weights
    nlpd = None if validation is None else _nested_nlpd(L, half, signal_variance, s2, validation)
    curve = RankCurve(np.arange(1, stats.rank + 1), evidence.numpy(), None, None, n, nlpd)
    if map_rounding is None:
        return curve
    gap = (stats.kernel_trace - stats.A.diagonal().cumsum(0)).clamp_min(0.0)
    gap += gap_slack(n, stats.kernel_trace, map_rounding)
    bounds = np.array([sharpened_trace_bound(float(g), s2) for g in gap])
    return replace(curve, elbo=(evidence - gap / (2.0 * s2)).numpy(), kl_bound=bounds)


def _nested_nlpd(L: Tensor, half: Tensor, signal_variance: float, noise: float, rows: ValidationRows) -> Array:
    total = torch.zeros(L.shape[0], dtype=torch.float64)
    for part in rows.chunks():
        phi = math.sqrt(signal_variance) * part.features.mT  # (r, n)
        solved = solve_lower(L, phi)
        mean = (solved * half[:, None]).cumsum(0)
        variance = noise * solved.square().cumsum(0)
        if part.restored_variance_mask is not None:
            prior = signal_variance if part.diagonal is None else signal_variance * part.diagonal
            variance += part.restored_variance_mask * (prior - phi.square().cumsum(0)).clamp_min(0.0)
        rho = part.boundary_correlation
        total += _negative_log_density(mean, variance, part.y, rho, signal_variance, noise).sum(1)
    return (total / len(rows.y)).numpy()


def paired_rank_curve(
    features: FeatureMap,
    unit_stats: Statistics,
    signal_variance: float,
    noise_variance: float,
    validation: ValidationRows | None = None,
) -> RankCurve:
    """The curve of cos/sin pairs: k of m pairs carry m / k times larger weights, so each rank has its own factor."""
    ranks = np.arange(2, unit_stats.rank + 1, 2)
    evidence, nlpd = np.empty(len(ranks)), np.zeros(len(ranks))
    for i, rank in enumerate(ranks):
        columns, factor = features.leading_columns(int(rank))
        stats = unit_stats.picked(columns).scaled(factor * signal_variance)
        evidence[i] = log_evidence(stats, noise_variance)
        if validation is not None:
            posterior = LowRankPosterior.condition(stats, noise_variance)
            for part in validation.chunks():
                phi = math.sqrt(factor * signal_variance) * part.features[:, columns]
                mean, variance = posterior.mean(phi), posterior.variance(phi)
                rho = part.boundary_correlation
                density = _negative_log_density(mean, variance, part.y, rho, signal_variance, noise_variance)
                nlpd[i] += float(density.sum()) / len(validation.y)
    return RankCurve(ranks, evidence, None, None, unit_stats.n, None if validation is None else nlpd)


def _negative_log_density(
    mean: Tensor, variance: Tensor, y: Tensor, rho: Tensor | None, signal_variance: float, noise: float
) -> Tensor:
    if rho is not None:
        mean, rest = rho * mean, signal_variance * (1.0 - rho.square())
        variance = rho.square() * variance + rest
    total = variance + noise
    return 0.5 * (torch.log(2.0 * math.pi * total) + (y - mean).square() / total)


def rank_curve_of(
    process: GaussianProcess, validation: tuple[Tensor, Tensor] | None, in_float64: bool = True
) -> RankCurve:
    """The curve of a fitted process in standardised units, with validation rows X (n, D) and y (n,) if any."""
    if len(process.members) > 1:
        raise NotCertifiableError(refusal_of_mixtures("rank_curve()", process))
    if not isinstance(process, LowRankProcess):
        raise NotCertifiableError("an exact GP has full rank; rank_curve() belongs to MercerGP, FourierGP and SparseGP")
    rows = None
    if validation is not None:
        X, y = validation
        with torch.no_grad():
            features, diagonal = process.model(X), process.model.diagonal(X)
            rho, restored = process.boundary_correlation(X), process.restored_variance_mask(X)
            rows = ValidationRows(features, y, rho, restored, diagonal)
    stats, sf2, s2 = process.statistics, process.signal_variance, process.noise_variance
    if not process.model.features.dominated:
        return paired_rank_curve(process.model.features, stats, sf2, s2, rows)
    return nested_rank_curve(
        stats, sf2, s2, rows, _map_rounding(process) if in_float64 and process.model.dominated else None
    )


def _map_rounding(process: LowRankProcess) -> float | None:
    """Of the features, where it is known; without it there are no bounds."""
    try:
        return process.model.features.rounding()
    except NotCertifiableError:
        return None

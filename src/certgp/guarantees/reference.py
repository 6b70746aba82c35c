"""Certificates for any low-rank model, through a larger reference that is dominated by the kernel.  [theory 4.1]"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from certgp.data import Chunk, RowSource
from certgp.engines import Engine
from certgp.errors import NotCertifiableError
from certgp.features import FeatureMap
from certgp.gp import LowRankModel, Statistics
from certgp.gp.evidence import NOISE_REMEDY
from certgp.guarantees.certificate import Certificate, Interval
from certgp.guarantees.dominated import OWN, REVERSE, certify_dominated, reverse_bound, sharpened_trace_bound
from certgp.guarantees.reference_maps import ReferenceMaps, complete_map, outlier_share, reserved_points
from certgp.guarantees.rounding import certified_gap, divergence_rounding
from certgp.guarantees.row_losses import RowLosses
from certgp.kernels import Kernel
from certgp.linalg import cholesky, eye_like, log_det_from_cholesky, solve_lower

_SECONDS_PER_PRODUCT = 7e-10  # of a row and a pair of features
_CHOICE_ROWS, _JUDGE_ROWS = 4_000, 2_000  # sampled to choose references on, and to judge them by


def seconds_to_read(n_rows: int, rank: int) -> float:
    """About how many CPU seconds one pass through a reference of this rank takes."""
    return _SECONDS_PER_PRODUCT * n_rows * rank**2


@dataclass(frozen=True, eq=False)
class Problem:
    """What is certified: a model at fixed hyper-parameters on rows that can be read again."""

    model: LowRankModel
    signal_variance: float
    noise_variance: float
    source: RowSource
    engine: Engine
    mean_weight: float = 1.0  # of the rows

    @property
    def kernel(self) -> Kernel:
        """The exact kernel on ``LowRankModel.kernel_inputs``, at unit signal variance."""
        return self.model.features.fixed_kernel()

    def sample(self, rng: np.random.Generator) -> tuple[Tensor, Tensor]:
        """Some inputs of the kernel (n0, d) to choose references on, and others to judge them by; all of them for both
        where there are few.
        """
        inputs = self.model.kernel_inputs(self.source.sample(_CHOICE_ROWS + _JUDGE_ROWS, rng).X).detach()
        if len(inputs) == self.source.n_rows:
            return inputs, inputs
        inputs = inputs[torch.from_numpy(rng.permutation(len(inputs)))]  # a sample is in the order of the rows
        return inputs[:_CHOICE_ROWS], inputs[_CHOICE_ROWS:]


@dataclass(frozen=True, eq=False)
class Reference:
    """A map Psi with Psi Psi' <= K and its statistics together with the model's, from one pass over the rows."""

    features: FeatureMap  # unit variance
    joint: Statistics  # of [Psi, Phi] at unit variance
    problem: Problem
    map_rounding: float  # of Psi
    losses: RowLosses  # of Psi
    model_losses: RowLosses | None  # of Phi, where it is dominated by the kernel

    @property
    def statistics(self) -> Statistics:
        """Statistics of the reference's unit-variance features."""
        return self.joint.leading(self.features.rank)

    @property
    def model_statistics(self) -> Statistics:
        """The model's, as found in the rows given."""
        return self.joint.trailing(self.problem.model.rank)

    def kl_to_model(self, rank: int | None = None) -> float:
        """KL(reference || model), or of the model's leading ``rank`` features."""
        return kl_from_gram(self._gram(rank), self.features.rank, self.problem.noise_variance)

    def kl_from_model(self, rank: int | None = None) -> float:
        """KL(model || reference), likewise."""
        gram, m = self._gram(rank), self.features.rank
        order = torch.arange(len(gram)).roll(-m)
        return kl_from_gram(gram[order][:, order], len(gram) - m, self.problem.noise_variance)

    def _gram(self, rank: int | None) -> Tensor:
        """Of [Psi, Phi], or with the leading ``rank`` columns of Phi, signal variance included."""
        features, m = self.problem.model.features, self.features.rank
        gram = self.joint.scaled(self.problem.signal_variance).A
        if rank is None:
            return gram
        columns, factor = features.leading_columns(rank)
        weights = torch.ones(m + rank, dtype=torch.float64)
        weights[m:] = math.sqrt(factor)
        pick = torch.cat([torch.arange(m), m + columns])
        return weights[:, None] * gram[pick][:, pick] * weights

    @property
    def half_width(self) -> float:
        """How far KL(exact || any model) can be from KL(reference || that model), rounding aside."""
        return 0.5 * self.trace_gap / self.problem.noise_variance

    @property
    def trace_gap(self) -> float:
        """Tr(K - Psi Psi') over the rows, with its rounding slack."""
        sf2 = self.problem.signal_variance
        return certified_gap(self.statistics.scaled(sf2), self.map_rounding)


def check_certifiable(model: LowRankModel) -> None:
    """Refuse a model that approximates no kernel, or one whose diagonal varies."""
    if not model.features.approximates_kernel:
        raise NotCertifiableError(
            "a Fourier model with learned frequencies is no longer an approximation of its kernel, so there is no "
            "exact GP to compare it with; fit with learn_frequencies=False to certify (with "
            "AutoGP: leave 'fourier-learned' out of candidates)"
        )
    kernel = model.features.fixed_kernel()
    if not kernel.constant_diagonal:
        raise NotCertifiableError(
            f"the prior variance of {kernel!r} varies from row to row, and the bounds (of rounding, above all) are "
            "proven for a constant one; use a kernel whose k(x, x) is constant to certify"
        )


@torch.no_grad()
def read_reference(problem: Problem, features: FeatureMap) -> Reference:
    """One pass over the rows: the Gram matrix of [Psi, Phi], O(N (m + r)^2), and what both maps lose of each row."""
    model, m = problem.model, features.rank
    variances = problem.signal_variance, problem.noise_variance
    rounding, model_rounding = features.rounding(), model.features.rounding() if model.dominated else None

    def task(chunk: Chunk) -> _Read:
        joint = joint_features(model, features, chunk.X)
        weight, own = chunk.weight, None
        losses = RowLosses.of(joint[:, :m], *variances, rounding, weight)
        if model_rounding is not None:
            own = RowLosses.of(joint[:, m:], *variances, model_rounding, weight)
        return _Read(Statistics.of(joint, chunk.y, weight=weight), losses, own)

    read = problem.engine.fold(task, problem.source, m + model.rank)
    return Reference(features, read.joint, problem, rounding, read.losses, read.model_losses)


@dataclass(frozen=True, eq=False)
class _Read:
    """What reading some rows tells a reference."""

    joint: Statistics
    losses: RowLosses
    model_losses: RowLosses | None

    def __add__(self, other: _Read) -> _Read:
        own = None
        if self.model_losses is not None and other.model_losses is not None:
            own = self.model_losses + other.model_losses
        return _Read(self.joint + other.joint, self.losses + other.losses, own)


def joint_features(model: LowRankModel, reference: FeatureMap, X: Tensor) -> Tensor:
    """[Psi, Phi] (n, m + r) of X (n, D) at unit variance."""
    rows = X.double()
    return torch.cat([reference(model.kernel_inputs(rows)), model(rows)], dim=1)


def growing_references(
    problem: Problem,
    rank: int,
    max_rank: int,
    promising: Callable[[float], bool],
    rng: np.random.Generator,
    insist: bool = True,
) -> Iterator[Reference]:
    """References of doubling rank, each read over all rows.

    A rank whose trace gap is not ``promising`` is passed over before its Gram matrix is formed: the gap alone costs
    O(N m), and a sample of the rows shows where it is far too large. The last one, at ``max_rank``, is read in any case
    where ``insist``.
    """
    check_certifiable(problem.model)
    outliers = outlier_share(rank, problem.source.n_rows)
    maps = ReferenceMaps(problem.kernel, *problem.sample(rng), rank, outliers)
    before, read = 0, False
    while True:
        features = maps.of_rank(rank, reserved_points(rank))
        exhausted = rank >= max_rank or maps.is_largest(features, rank)
        grown, before = features.rank > before, features.rank
        last = exhausted and insist and (grown or not read)
        # a first look at the sample, generous because it is one; then the gap itself
        glance = 0.25 * problem.mean_weight * problem.source.n_rows * maps.gap(features)
        if last or (grown and promising(problem.signal_variance * glance)):
            features, gap = complete_map(features, problem.model, problem.source, problem.engine, rank)
            if last or promising(problem.signal_variance * gap):
                read = True
                yield read_reference(problem, features)
        if exhausted:
            return
        rank = min(2 * rank, max_rank)


def certify_through(reference: Reference, rank: int | None = None) -> Certificate:
    r"""KL(M || Q) - h / 2 <= KL(P || Q) <= KL(M || Q) + t / 2 and KL(Q || P) <= KL(Q || M) + h / 2, for a reference M
    with Psi Psi' <= K: t = Tr(K - Psi Psi') / s2, and h = sum_i ln(1 + d_i / s2) of its rows is at most t.

    P is the exact GP, Q the model (or its leading ``rank`` features), M = N(0, Psi Psi' + s2 I).
    """
    problem, n = reference.problem, reference.joint.n
    sf2, s2 = problem.signal_variance, problem.noise_variance
    centre = reference.kl_to_model(rank)
    rounding = divergence_rounding(n, reference.joint.rank, sf2 * reference.joint.kernel_trace, s2)
    bracket = certify_dominated(reference.statistics, sf2, s2, reference.map_rounding, reference.losses)
    below = 0.5 * bracket.evidence["lost_log_determinant"]
    upper = centre + reference.half_width + rounding
    reverse = reference.kl_from_model(rank) + below + rounding
    theorem = f"R1 (reference model), R3 (reverse divergence), {bracket.theorem.removeprefix(f'{OWN}, {REVERSE}, ')}"
    if problem.model.dominated:  # then the model's own bounds hold too, and a weak reference is above them
        own, own_reverse = _own_bounds(reference, rank)
        theorem += (f", {OWN}" if own < upper else "") + (f", {REVERSE}" if own_reverse < reverse else "")
        upper, reverse = min(upper, own), min(reverse, own_reverse)
    return Certificate(
        kl=Interval(max(0.0, centre - below - rounding), upper),
        reverse_kl=Interval(0.0, reverse),
        log_evidence=bracket.log_evidence,
        n_rows=n,
        theorem=theorem,
        evidence={
            "reference_rank": reference.features.rank,
            "half_width": reference.half_width,
            "kl_to_reference": centre,
            "rounding_slack": rounding,
            "lost_log_determinant": bracket.evidence["lost_log_determinant"],
        },
        assumptions=(),
    )


def _own_bounds(reference: Reference, rank: int | None) -> tuple[float, float]:
    """What a model dominated by the kernel (or its leading features) proves of itself: both divergences, at most."""
    model, sf2, s2 = reference.problem.model, reference.problem.signal_variance, reference.problem.noise_variance
    columns, _ = model.features.leading_columns(rank or model.rank)
    stats, losses = reference.model_statistics.picked(columns), reference.model_losses if rank is None else None
    gap = certified_gap(stats.scaled(sf2), model.features.rounding())
    return sharpened_trace_bound(gap, s2), reverse_bound(gap, s2, stats.n, losses)


def kl_from_gram(gram: Tensor, m: int, noise: float) -> float:
    r"""KL(N(0, Psi Psi' + s2 I) || N(0, Phi Phi' + s2 I)) from the Gram matrix of [Psi, Phi], Psi the first m columns.

    1/2 { [Tr G_M - |L_B^-1 G_MF'|^2] / s2 - r + s2 |L_B^-1|^2 + log|G_F / s2 + I| - log|G_M / s2 + I| }
    """
    GM, GF, GMF = gram[:m, :m], gram[m:, m:], gram[:m, m:]
    r = GF.shape[0]
    LB = cholesky(GF + noise * eye_like(GF), NOISE_REMEDY)
    LM = cholesky(GM + noise * eye_like(GM), NOISE_REMEDY)
    explained = float(solve_lower(LB, GMF.mT).square().sum())
    inverse = float(solve_lower(LB, eye_like(LB)).square().sum())
    log_dets = float(log_det_from_cholesky(LB) - log_det_from_cholesky(LM)) + (m - r) * math.log(noise)
    return 0.5 * ((float(GM.diagonal().sum()) - explained) / noise - r + noise * inverse + log_dets)

r"""Several outputs y_1 .. y_q over the same features: what they share, and what each has of its own.

Output j is a GP of its own, y_j ~ N(0, sf2_j Phi Phi' + s2_j / weight), on the rows where it was observed. Outputs
observed at the same rows share A = Phi'Phi and its eigendecomposition. All share the hyper-parameters of Phi, which
minimise the sum of the outputs' negative log evidences (or ELBOs): that of all targets, outputs being independent given
Phi. Nothing here is approximate but ``at_common_noise``, by which candidates are compared.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from operator import add
from typing import Any

import torch
from torch import Tensor

from certgp.gp.profile import BestVariances, Profile, best_variances, eigenvalues_and_vectors, profile_evidence
from certgp.gp.statistics import Cotangents, Statistics

Outputs = tuple[int, ...]
_FEWEST_ROWS = 50  # of a block: Gram matrices of fewer rows cost more to add up than to compute


def shared_blocks(Y: Tensor) -> list[tuple[Outputs, Tensor | slice]]:
    """Blocks (outputs, rows) of Y (n, q), NaN where an output is missing, that hold every observed number once.

    Rows at which the same outputs were observed, so that every row is in one block and all Gram matrices together cost
    as much as one; where such patterns are too many, outputs observed at the same rows, at the cost of one Gram matrix
    for each of these.
    """
    observed = ~Y.isnan()
    q = Y.shape[1]
    if bool(observed.all()):
        return [(tuple(range(q)), slice(None))]
    patterns, which = torch.unique(observed, dim=0, return_inverse=True)
    if len(patterns) <= max(q, len(Y) // _FEWEST_ROWS):
        found = [(patterns[i], torch.nonzero(which == i)[:, 0]) for i in range(len(patterns))]
    else:
        columns, of = torch.unique(observed, dim=1, return_inverse=True)
        found = [(of == g, torch.nonzero(columns[:, g])[:, 0]) for g in range(columns.shape[1])]
    return [
        (tuple(torch.nonzero(members)[:, 0].tolist()), rows)
        for members, rows in found
        if bool(members.any()) and len(rows)
    ]


@dataclass(frozen=True, eq=False)
class OutputStatistics:
    """Sufficient statistics of (Phi, Y); ``+`` merges disjoint data, as in ``Statistics``."""

    designs: Mapping[Outputs, Statistics]  # blocks of rows, targets left out; output j has those that name it
    b: Tensor  # column j is Phi' y_j over the rows of output j  (r, q)
    yty: Tensor  # (q,)

    @staticmethod
    def of(
        features: Tensor, Y: Tensor, diagonal: Tensor | None = None, weight: Tensor | None = None
    ) -> OutputStatistics:
        """Statistics of one chunk: features (n, r), Y (n, q) with NaN where an output is missing; the rest as in
        ``Statistics.of``.
        """
        designs: dict[Outputs, Statistics] = {}
        for outputs, rows in shared_blocks(Y):
            nothing = Y.new_zeros(len(Y[rows]))
            parts = (None if each is None else each[rows] for each in (diagonal, weight))
            designs[outputs] = Statistics.of(features[rows], nothing, *parts)
        known = Y.double().nan_to_num(0.0, posinf=math.inf, neginf=-math.inf)
        weighted = known if weight is None else known * weight[:, None]
        b = (features.mT @ weighted.to(features.dtype)).double()
        return OutputStatistics(designs, b, (known * weighted).sum(0))

    def __add__(self, other: OutputStatistics) -> OutputStatistics:
        designs = dict(self.designs)
        for outputs, design in other.designs.items():
            designs[outputs] = designs[outputs] + design if outputs in designs else design
        merged = OutputStatistics(designs, self.b + other.b, self.yty + other.yty)
        return merged if len(designs) <= self.count else merged._by_group()

    @property
    def count(self) -> int:
        """q, the number of outputs."""
        return self.b.shape[1]

    @property
    def rank(self) -> int:
        """r, the number of features."""
        return self.b.shape[0]

    @cached_property
    def groups(self) -> dict[Outputs, Statistics]:
        """Outputs that were observed at the same rows, and the statistics of these rows without targets."""
        found: dict[tuple[Outputs, ...], list[int]] = {}
        for j in range(self.count):
            found.setdefault(tuple(each for each in self.designs if j in each), []).append(j)
        empty = Statistics.zero(self.rank)
        return {tuple(js): reduce(add, (self.designs[each] for each in names), empty) for names, js in found.items()}

    def output(self, j: int) -> Statistics:
        """The statistics of one output."""
        design = next(design for outputs, design in self.groups.items() if j in outputs)
        return replace(design, b=self.b[:, j].clone(), yty=float(self.yty[j]))

    def mixed(self, mixing: Tensor | None) -> OutputStatistics:
        """Statistics of Phi M."""
        if mixing is None:
            return self
        return OutputStatistics(
            {S: each.mixed(mixing) for S, each in self.designs.items()}, mixing.mT @ self.b, self.yty
        )

    def repeated(self, times: float) -> OutputStatistics:
        """Statistics of as many copies of every row."""
        designs = {outputs: each.repeated(times) for outputs, each in self.designs.items()}
        return OutputStatistics(designs, times * self.b, times * self.yty)

    def _by_group(self) -> OutputStatistics:
        """The same with at most q designs, however many patterns of missing numbers there were."""
        return OutputStatistics(self.groups, self.b, self.yty)


AnyStatistics = Statistics | OutputStatistics


def statistics_of(features: Tensor, y: Tensor, diagonal: Tensor | None, weight: Tensor | None) -> AnyStatistics:
    """Of one output, y (n,), or of several, y (n, q)."""
    kind = Statistics if y.ndim == 1 else OutputStatistics
    return kind.of(features, y, diagonal, weight)


def merged(first: Any, second: Any) -> AnyStatistics:
    """Of disjoint rows with the same number of outputs."""
    total: AnyStatistics = first + second
    return total


def of_one_output(statistics: AnyStatistics) -> Statistics:
    """Those of a single output, where there is only one."""
    if isinstance(statistics, OutputStatistics):
        raise TypeError(f"this model is of one output, and the rows have {statistics.count}")
    return statistics


@dataclass(frozen=True, eq=False)
class OutputCotangents:
    """Derivatives of a function of ``OutputStatistics``, by its groups; the methods are those of ``Cotangents``."""

    by_gram: Mapping[Outputs, Tensor]  # dL/dA of each group (r, r)
    by_projection: Tensor  # (r, q)
    by_trace: Mapping[Outputs, float]

    def through(self, mixing: Tensor) -> OutputCotangents:
        """Those of raw statistics."""
        by_gram = {S: mixing @ G @ mixing.mT for S, G in self.by_gram.items()}
        return OutputCotangents(by_gram, mixing @ self.by_projection, self.by_trace)

    def by_mixing(self, statistics: OutputStatistics) -> Tensor:
        """M' dL/dM (r, r), from the mixed statistics."""
        total = statistics.b @ self.by_projection.mT
        for outputs, by_gram in self.by_gram.items():
            total += 2.0 * statistics.groups[outputs].A @ by_gram
        return total

    def by_features(self, features: Tensor, Y: Tensor, weight: Tensor | None) -> Tensor:
        """dL/dPhi (n, r): of row i 2 sum_j G_j phi_i + sum_j y_ij G_b,j over the outputs observed there."""
        known = Y.nan_to_num(0.0).to(features.dtype)
        cotangent = self.by_projection.to(features.dtype) @ known.mT  # (r, n)
        for outputs, rows in shared_blocks(Y):
            by_gram = torch.stack([G for S, G in self.by_gram.items() if S[0] in outputs]).sum(0)
            cotangent[:, rows] += (2.0 * by_gram).to(features.dtype) @ features[rows].mT
        if weight is not None:
            cotangent.mul_(weight.to(features.dtype))
        return cotangent.mT

    def by_diagonal(self, diagonal: Tensor, Y: Tensor, weight: Tensor | None) -> Tensor:
        """dL/dk(x_i, x_i) (n,) of some rows."""
        share = torch.zeros_like(diagonal)
        for outputs, rows in shared_blocks(Y):
            share[rows] += sum(value for S, value in self.by_trace.items() if S[0] in outputs)
        return share if weight is None else share * weight.to(diagonal.dtype)


AnyCotangents = Cotangents | OutputCotangents


@dataclass(frozen=True, eq=False)
class OutputProfile:
    """The sum of the outputs' objectives, each at its own best variances; see ``Profile``."""

    best: tuple[BestVariances, ...]  # of each output
    cotangents: OutputCotangents
    count: int  # of targets

    @property
    def value(self) -> float:
        """Sum of the negative log evidences, or ELBOs."""
        return sum(each.value for each in self.best)


AnyProfile = Profile | OutputProfile


def profile_outputs(stats: OutputStatistics, objective: str) -> OutputProfile:
    r"""Every output at its best variances: one eigendecomposition for each group, then O(r) work per output and point.

    Of a group with A = V diag(lam) V', w_j = C_j^-1 b_j, g_j = s2_j / sf2_j:

        sum_j dL_j/dA = 1/2 [ V diag(sum_j 1 / (lam + g_j)) V' + sum_j w_j w_j' / s2_j  {- sum_j I / g_j} ]
    """
    by_gram: dict[Outputs, Tensor] = {}
    by_trace: dict[Outputs, float] = {}
    by_projection = torch.empty_like(stats.b)
    found: dict[int, BestVariances] = {}
    for outputs, design in stats.groups.items():
        lam, V = eigenvalues_and_vectors(design.A)
        U = V.mT @ stats.b[:, list(outputs)]
        best = [best_variances(stats.output(j), lam, U[:, i], objective) for i, j in enumerate(outputs)]
        found |= dict(zip(outputs, best, strict=True))
        ratio = torch.tensor([each.ratio for each in best], dtype=torch.float64)
        noise = torch.tensor([each.noise_variance for each in best], dtype=torch.float64)
        shrunk = 1.0 / (lam[:, None] + ratio)  # (r, q)
        W = V @ (U * shrunk)
        by_gram[outputs] = 0.5 * ((V * shrunk.sum(1)) @ V.mT + (W / noise) @ W.mT)
        by_trace[outputs] = 0.0
        if objective == "elbo":
            by_trace[outputs] = 0.5 * float((1.0 / ratio).sum())
            by_gram[outputs].diagonal().sub_(by_trace[outputs])
        by_projection[:, list(outputs)] = -W / noise
    count = sum(len(outputs) * design.n for outputs, design in stats.groups.items())
    cotangents = OutputCotangents(by_gram, by_projection, by_trace)
    return OutputProfile(tuple(found[j] for j in range(stats.count)), cotangents, count)


def profile_any(stats: AnyStatistics, objective: str) -> AnyProfile:
    """The profiled objective of one output or of several."""
    return (
        profile_outputs(stats, objective) if isinstance(stats, OutputStatistics) else profile_evidence(stats, objective)
    )


@dataclass(frozen=True, eq=False)
class CommonNoise:
    """Statistics and variances at which features are compared."""

    statistics: Statistics  # b is (r,), or (r, q) of several outputs
    signal_variance: float
    noise_variance: float


def at_common_noise(stats: AnyStatistics, profile: AnyProfile) -> CommonNoise:
    r"""Where features are only compared, one noise ratio g and one Gram matrix do for all outputs.

    g is the geometric mean of theirs, A the mean of their Gram matrices, and output j counts by b_j / sqrt(q s2_j): the
    mean of the outputs' gains, exactly where they have the same rows and ratios. Of a single output, its own.
    """
    if isinstance(profile, Profile):
        return CommonNoise(of_one_output(stats), profile.signal_variance, profile.noise_variance)
    if not isinstance(stats, OutputStatistics):
        raise TypeError("a profile of several outputs needs their statistics")
    q = stats.count
    A = torch.stack([len(outputs) / q * design.A for outputs, design in stats.groups.items()]).sum(0)
    ratio = math.exp(sum(math.log(best.ratio) for best in profile.best) / q)
    noise = torch.tensor([best.noise_variance for best in profile.best], dtype=torch.float64)
    first = next(iter(stats.groups.values()))
    return CommonNoise(replace(first, A=A, b=stats.b * (ratio / (q * noise)).sqrt()), 1.0, ratio)

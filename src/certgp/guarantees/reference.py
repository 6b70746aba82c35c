"""Certificates for any low-rank model, through a larger reference that is below the kernel.  [theory 4.1]"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from certgp.data import Chunk, RowSource
from certgp.engines import Engine
from certgp.errors import NotCertifiableError
from certgp.features import FeatureMap, FourierMap, MercerMap, NystromMap, greedy_inducing_points
from certgp.gp import LowRankModel, Statistics
from certgp.gp.evidence import NOISE_REMEDY, trace_gap
from certgp.guarantees.certificate import Certificate, Interval, accumulation_slack
from certgp.guarantees.dominated import certify_dominated
from certgp.kernels import Gaussian, Kernel
from certgp.linalg import cholesky, eye_like, log_det_from_cholesky, solve_lower

_SAMPLE_ROWS = 4_000


@dataclass(frozen=True, eq=False)
class ReferenceResult:
    """The certificate, and the reference with its statistics, from which single predictions are bounded."""

    certificate: Certificate
    reference: FeatureMap
    statistics: Statistics  # of the reference's unit-variance features
    model_statistics: Statistics  # of the model's, as found in the rows given


def reference_features(model: LowRankModel, rows: Tensor, rank: int) -> FeatureMap:
    """A map below the model's kernel on its own inputs: Mercer for the Gaussian kernel, greedy Nystrom otherwise."""
    inputs = model.transform(rows).detach()
    kernel: Kernel = model.features.kernel_family(model.features.log_length_scale.detach().exp())
    if isinstance(kernel, Gaussian):
        spread = inputs.std(0, correction=0)
        return MercerMap(kernel, torch.where(spread > 0, spread, 1.0), rank, centre=inputs.mean(0))
    points = greedy_inducing_points(kernel, inputs, min(rank, inputs.shape[0]))
    return NystromMap(kernel, points, jitter=1e-8)


@torch.no_grad()
def certify_through_reference(
    model: LowRankModel,
    signal_variance: float,
    noise_variance: float,
    source: RowSource,
    engine: Engine,
    reference_rank: int,
    rng: np.random.Generator,
) -> ReferenceResult:
    r"""|KL(P || Q) - KL(M || Q)| <= t / 2 with t = Tr(K - Psi Psi') / s2, for a reference M with Psi Psi' <= K.

    P is the exact GP, Q the model, M = N(0, Psi Psi' + s2 I).
    """
    if isinstance(model.features, FourierMap) and model.features.learns_frequencies:
        raise NotCertifiableError(
            "a Fourier model with learned frequencies is no longer an approximation of its kernel, so there is no "
            "exact GP to compare it with; fit with learn_frequencies=False to certify"
        )
    reference = reference_features(model, source.sample(_SAMPLE_ROWS, rng).X, reference_rank)
    m = reference.rank

    def task(chunk: Chunk) -> Statistics:
        X = chunk.X.double()
        joint = torch.cat([reference(model.transform(X)), model(X)], dim=1)
        return Statistics.of(joint, chunk.y)

    joint = engine.fold(task, source, m + model.rank)
    stats = joint.leading(m)
    scaled = stats.scaled(signal_variance)
    slack = accumulation_slack(joint.n, joint.n * signal_variance)
    half = 0.5 * (trace_gap(scaled, signal_variance) + slack) / noise_variance
    centre = _kl_between(joint.scaled(signal_variance).A, m, noise_variance)
    rounding = accumulation_slack(joint.n, joint.n * (1.0 + signal_variance / noise_variance))
    evidence = certify_dominated(stats, signal_variance, noise_variance)
    certificate = Certificate(
        kl=Interval(max(0.0, centre - half - rounding), centre + half + rounding),
        log_evidence=evidence.log_evidence,
        n_rows=joint.n,
        theorem="R1 (reference model), E1 (ELBO), E2 (upper bound)",
        evidence={"reference_rank": m, "half_width": half, "kl_to_reference": centre, "rounding_slack": rounding},
        assumptions=(),
    )
    return ReferenceResult(certificate, reference, stats, joint.trailing(model.rank))


def _kl_between(gram: Tensor, m: int, noise: float) -> float:
    r"""KL(N(0, Psi Psi' + s2 I) || N(0, Phi Phi' + s2 I)) from the Gram matrix of [Psi, Phi].

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

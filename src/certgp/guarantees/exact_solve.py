"""Exact predictive means by conjugate gradients, certified by their residual.  [theory 7.5]

The second route where a reference alone is too weak (high dimension, short length-scales). Every step multiplies by the
exact kernel matrix, streamed; nothing of size N x N is held.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import torch
from torch import Tensor

from certgp.data import Chunk
from certgp.gp.conjugate_gradients import (
    AT_ROUNDING,
    DEFAULT_MAX_PRODUCTS,
    OUT_OF_PRODUCTS,
    SOLVED,
    CostEstimate,
    ExactSolution,
    KernelSystem,
    LengthBound,
    Progress,
    ResidualBound,
    solve,
)
from certgp.gp.kernel_products import KernelMatrix
from certgp.gp.vecchia import VecchiaPreconditioner
from certgp.guarantees.pointwise import PointwiseBounds, PredictionBounds, mean_error_factor
from certgp.guarantees.reference import Reference
from certgp.guarantees.rounding import accumulation_slack
from certgp.kernels import Kernel

__all__ = [
    "AT_ROUNDING",
    "OUT_OF_PRODUCTS",
    "SOLVED",
    "CostEstimate",
    "ExactSolution",
    "ExactSystem",
]
_BLOCK = 4_096  # rows of features at a time
_KEPT_BYTES = 1 << 30
_SPECTRUM_ROWS = 1_500
_NEAR_ROWS_PRODUCTS = 30  # that gradients preconditioned by near rows typically take


class ExactSystem:
    """(K + s2 I) a = y on the rows of a reference, S_M = Psi Psi' + s2 I <= K + s2 I, which bounds what a leaves and
    may precondition the way to it. Where rows have weights, K, y and Psi are Q K Q, Q y and Q Psi.
    """

    def __init__(self, reference: Reference, rows: Chunk) -> None:
        problem = reference.problem
        self.noise = problem.noise_variance
        self.signal_variance = problem.signal_variance
        self.kernel: Kernel = problem.kernel.with_signal_variance(self.signal_variance)
        self.reference = reference
        with torch.no_grad():
            self.inputs: Tensor = problem.model.kernel_inputs(rows.X)
        self.matrix = KernelMatrix(self.kernel, self.inputs, rows.weight)
        self.system = KernelSystem(self.matrix, self.noise, rows.y)
        self.y = self.system.y
        self._weight = rows.weight
        stats = reference.statistics.scaled(self.signal_variance)
        self._pointwise = PointwiseBounds(stats, self.signal_variance, self.noise, reference.map_rounding)
        fits = 8 * len(rows.y) * reference.features.rank <= _KEPT_BYTES
        self._features = self._own_features(slice(None)) if fits else None

    def estimate(self, tol: float) -> CostEstimate:
        """Products and seconds to bring the error of every mean below ``tol`` (standardised units): those of the
        reference as preconditioner, or of near rows where these take fewer.
        """
        products = min(self._reference_products(tol), _NEAR_ROWS_PRODUCTS)
        return CostEstimate(len(self.y), products, products * self.matrix.seconds_per_product())

    def _reference_products(self, tol: float) -> int:
        """The condition number 1 + lmax(S_M^-1/2 E S_M^-1/2) <= 1 + lmax(E) / s2 comes from the eigenvalues of E on a
        sample of rows, scaled by N / n0; conjugate gradients need about 1/2 sqrt(condition) ln(2 start / tol) steps.
        """
        n = self.y.shape[0]
        some = torch.linspace(0, n - 1, min(n, _SPECTRUM_ROWS)).long()
        part, Psi = self.inputs[some], self._own_features(some)
        with torch.no_grad():
            root = torch.ones(len(some), dtype=torch.float64) if self.matrix.root is None else self.matrix.root[some]
            E = root[:, None] * self.kernel(part, part) * root - Psi @ Psi.mT
        largest = max(float(torch.linalg.eigvalsh(E)[-1]), 0.0) * n / part.shape[0]
        start = math.sqrt(self.signal_variance * max(float(self.y @ self.y), 1e-300) / self.noise)
        steps = 0.5 * math.sqrt(1.0 + largest / self.noise) * math.log(max(2.0 * start / tol, math.e))
        return math.ceil(steps) + 2

    def solve(
        self, tol: float, max_products: int = DEFAULT_MAX_PRODUCTS, progress: Progress | None = None
    ) -> ExactSolution:
        """Preconditioned conjugate gradients until every mean is proven to ``tol``.

        S_M <= K + s2 I, so r'(K + s2 I)^-1 r <= r' S_M^-1 r: the norm that gradients preconditioned with the reference
        carry along anyway is the certificate (C1). Where near rows promise fewer steps they precondition, and |r|
        certifies (V7).
        """
        near = self._reference_products(tol) > _NEAR_ROWS_PRODUCTS
        return (self.solve_by_near_rows if near else self.solve_by_reference)(tol, max_products, progress)

    def solve_by_reference(
        self, tol: float, max_products: int = DEFAULT_MAX_PRODUCTS, progress: Progress | None = None
    ) -> ExactSolution:
        """Preconditioned and certified by the reference (C1)."""
        goal = tol / math.sqrt(self.signal_variance)
        return solve(self.system, self._precondition, _ReferenceBound(self), goal, max_products, progress)

    def solve_by_near_rows(
        self,
        tol: float,
        max_products: int = DEFAULT_MAX_PRODUCTS,
        progress: Progress | None = None,
        start: Tensor | None = None,
    ) -> ExactSolution:
        """Preconditioned by the local model of the rows, certified by |r| (V7)."""
        goal = 2.0 * tol / math.sqrt(self.signal_variance)
        near = VecchiaPreconditioner(self.kernel, self.inputs, self.noise, weight=self._weight)
        return solve(self.system, near, LengthBound(self.noise), goal, max_products, progress, start)

    @torch.no_grad()
    def reference_solution(self) -> ExactSolution:
        r"""a = S_M^-1 y without any product: its residual is -E a, E = K - Psi Psi', and with tau = Tr E

            a'E (K + s2 I)^-1 E a <= |a|^2 tau^2 / (tau + s2)

        so k(x)'a is within |a| sqrt(sf2 - v(x)) tau / sqrt(tau + s2) of the exact mean: P1 without its second term,
        for N kernel values a row.
        """
        weights = self._precondition(self.y)
        factor = mean_error_factor(self.reference.trace_gap, 1.0, self.noise, self._pointwise.excess)
        lost = float(weights.norm()) * factor
        # a itself is rounded: sqrt(r'(K + s2 I)^-1 r) <= |r| / s of what S_M a leaves of y
        unsolved = float((self.y - self._apply_reference(weights)).norm()) / math.sqrt(self.noise)
        return ExactSolution(weights, lost + unsolved + self._reference_rounding(weights), 0)

    @torch.no_grad()
    def bounds(self, solution: ExactSolution, X_new: Tensor) -> PredictionBounds:
        r"""|mu_exact(x) - k(x)'a| <= sqrt(sf2 - v(x)) sqrt(r'(K + s2 I)^-1 r): Cauchy-Schwarz, with
        k(x)'(K + s2 I)^-1 k(x) = sf2 - v_exact(x) <= sf2 - v(x), v the reference's latent variance. And at most
        sf |r| / (2 s) (V7).

        Variances are those of the reference (``PointwiseBounds``).
        """
        new = self.reference.problem.model.kernel_inputs(X_new)
        features = self._reference_features(new)
        through = self._pointwise(features)
        mean = self.matrix.cross(new, solution.weights[:, None])[:, 0]
        explained = (self.signal_variance - through.variance_lower).clamp_min(0.0)
        explained = (explained + accumulation_slack(1, self.signal_variance)).sqrt()
        error = (explained * solution.residual).clamp_max(solution.mean_error(self.signal_variance))
        error = torch.minimum(
            error + self.system.mean_rounding(solution.weights), through.mean_error + (mean - through.mean).abs()
        )
        return PredictionBounds(mean, error, through.variance_lower, through.variance_upper)

    def residual_bound(self, residual: Tensor, solved: Tensor) -> float:
        """A bound on sqrt(r' S_M^-1 r), ``solved`` = S_M^-1 r: what its cancelling terms may hide included, and |r| / s
        in any case.
        """
        most = float(residual @ residual) / self.noise
        found = max(float(residual @ solved), 0.0)
        relative = self._pointwise.relative
        return math.sqrt(min(most, found + relative * most) if math.isfinite(relative) else most)

    def _apply_reference(self, v: Tensor) -> Tensor:
        """S_M v = Psi Psi'v + s2 v."""
        projected, result = self._project(v), self.noise * v
        for rows, Psi in self._feature_blocks():
            result[rows] += Psi @ projected
        return result

    def _precondition(self, v: Tensor) -> Tensor:
        """S_M^-1 v = (v - Psi C^-1 Psi'v) / s2."""
        solved = torch.cholesky_solve(self._project(v)[:, None], self._pointwise.posterior.factor)[:, 0]
        result = v.clone()
        for rows, Psi in self._feature_blocks():
            result[rows] -= Psi @ solved
        return result / self.noise

    def _project(self, v: Tensor) -> Tensor:
        """Psi'v (r,)."""
        total = torch.zeros(self.reference.features.rank, dtype=v.dtype)
        for rows, Psi in self._feature_blocks():
            total += Psi.mT @ v[rows]
        return total

    def _feature_blocks(self) -> Iterable[tuple[slice, Tensor]]:
        for start in range(0, self.inputs.shape[0], _BLOCK):
            rows = slice(start, start + _BLOCK)
            yield rows, self._own_features(rows) if self._features is None else self._features[rows]

    def _own_features(self, rows: slice | Tensor) -> Tensor:
        """Q Psi of some of the rows."""
        Psi = self._reference_features(self.inputs[rows])
        return Psi if self.matrix.root is None else self.matrix.root[rows, None] * Psi

    def _reference_features(self, transformed: Tensor) -> Tensor:
        with torch.no_grad():
            features: Tensor = self.reference.features(transformed)
        return math.sqrt(self.signal_variance) * features

    def _reference_rounding(self, weights: Tensor) -> float:
        """Bound on sqrt(d'(K + s2 I)^-1 d) <= |d| / s for the rounding error d of y - S_M a."""
        n = len(self.y)
        root = torch.ones(n, dtype=torch.float64) if self.matrix.root is None else self.matrix.root
        sizes = float(root.max()) * float(root @ weights.abs())
        largest = self.signal_variance * sizes + float(self.y.abs().max())
        additions = min(n, _BLOCK) + n // _BLOCK + 1 + self.reference.features.rank
        return math.sqrt(n / self.noise) * accumulation_slack(additions, largest)


class _ReferenceBound(ResidualBound):
    """sqrt(r' S_M^-1 r), for gradients that the reference itself preconditions."""

    theorem = "C1"

    def __init__(self, system: ExactSystem) -> None:
        self._system = system

    def __call__(self, residual: Tensor, solved: Tensor) -> float:
        return self._system.residual_bound(residual, solved)

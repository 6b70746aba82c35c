"""Exact predictive means by conjugate gradients, certified by their residual.  [theory 7.5]

The second route where a reference alone is too weak (high dimension, short length-scales). Every step multiplies by the
exact kernel matrix, streamed; nothing of size N x N is held.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import torch
from torch import Tensor

from certgp.guarantees.kernel_products import (
    additions_per_entry,
    cross_product,
    entries_rounding,
    kernel_product,
    seconds_per_product,
)
from certgp.guarantees.pointwise import PointwiseBounds, PredictionBounds, mean_error_factor
from certgp.guarantees.reference import Reference
from certgp.guarantees.rounding import accumulation_slack
from certgp.kernels import Kernel

DEFAULT_MAX_PRODUCTS = 1_000
SOLVED, OUT_OF_PRODUCTS, AT_ROUNDING = "solved", "out of products", "at rounding"
_BLOCK = 4_096  # rows of features at a time
_KEPT_BYTES = 1 << 30
_SPECTRUM_ROWS = 1_500
_MARGIN = 0.8  # stop a little below the tolerance: the recomputed residual is slightly larger than the recursive one


@dataclass(frozen=True)
class CostEstimate:
    """What solving the exact system would take, judged from a sample of the rows and a timed block."""

    n_rows: int
    products: int
    seconds: float

    def __str__(self) -> str:
        return (
            f"conjugate gradients on the exact system: about {self.products} products with the {self.n_rows:,} x "
            f"{self.n_rows:,} kernel matrix ({float(self.n_rows) ** 2:.1e} values each, none stored), about "
            f"{self.seconds:.0f} s on this machine"
        )


@dataclass(frozen=True, eq=False)
class ExactSolution:
    """Weights a with (K + s2 I) a ~ y, and a bound on sqrt(r'(K + s2 I)^-1 r) of what is left, r = y - (K + s2 I) a."""

    weights: Tensor  # (N,)
    residual: float  # bound, rounding included
    products: int
    ended: str = SOLVED  # or why the tolerance was not met


class ExactSystem:
    """(K + s2 I) a = y on the rows of a reference, which serves as preconditioner S_M = Psi Psi' + s2 I <= K + s2 I."""

    def __init__(self, reference: Reference, inputs: Tensor, y: Tensor) -> None:
        problem = reference.problem
        self.noise = problem.noise_variance
        self.signal_variance = problem.signal_variance
        self.kernel: Kernel = problem.kernel.with_signal_variance(self.signal_variance)
        self.reference = reference
        self.y = y
        with torch.no_grad():
            self.inputs: Tensor = problem.model.kernel_inputs(inputs)
        stats = reference.statistics.scaled(self.signal_variance)
        self._pointwise = PointwiseBounds(stats, self.signal_variance, self.noise, reference.map_rounding)
        self._entries = entries_rounding(self.kernel, self.inputs)
        fits = 8 * inputs.shape[0] * reference.features.rank <= _KEPT_BYTES
        self._features = self._reference_features(self.inputs) if fits else None

    def estimate(self, tol: float) -> CostEstimate:
        """Products and seconds to bring the error of every mean below ``tol`` (standardised units).

        The condition number 1 + lmax(S_M^-1/2 E S_M^-1/2) <= 1 + lmax(E) / s2 comes from the eigenvalues of E on a
        sample of rows, scaled by N / n0; conjugate gradients need about 1/2 sqrt(condition) ln(2 start / tol) steps.
        """
        n = self.y.shape[0]
        part = self.inputs[torch.linspace(0, n - 1, min(n, _SPECTRUM_ROWS)).long()]
        with torch.no_grad():
            Psi = self._reference_features(part)
            E = self.kernel(part, part) - Psi @ Psi.mT
        largest = max(float(torch.linalg.eigvalsh(E)[-1]), 0.0) * n / part.shape[0]
        start = math.sqrt(self.signal_variance * max(float(self.y @ self.y), 1e-300) / self.noise)
        steps = 0.5 * math.sqrt(1.0 + largest / self.noise) * math.log(max(2.0 * start / tol, math.e))
        products = math.ceil(steps) + 2
        return CostEstimate(n, products, products * seconds_per_product(self.kernel, self.inputs))

    @torch.no_grad()
    def solve(
        self, tol: float, max_products: int = DEFAULT_MAX_PRODUCTS, progress: Callable[[int, float], None] | None = None
    ) -> ExactSolution:
        """Preconditioned conjugate gradients until sf sqrt(r' S_M^-1 r) <= tol, with r recomputed at the end.

        S_M <= K + s2 I, so r'(K + s2 I)^-1 r <= r' S_M^-1 r: the norm that preconditioned gradients carry along anyway
        is the certificate. A tolerance below the rounding of a product is not reached by more of them: then the
        gradients end at rounding, and ``ended`` says so.
        """
        goal = tol / math.sqrt(self.signal_variance)
        weights = self._precondition(self.y)
        products, before = 0, math.inf
        while True:
            residual = self.y - self._apply(weights)
            products += 1
            norm = self._norm(residual)
            rounding = self._rounding(weights)
            ended = _reason_to_end(norm, rounding, goal, before, products >= max_products - 1)
            if ended is not None:
                return ExactSolution(weights, norm + rounding, products, ended)
            # a tolerance below rounding: down to rounding, which is all that can be shown
            target = _MARGIN * (goal - rounding if rounding < goal else rounding)
            weights, used = self._iterate(weights, residual, target, max_products - products - 1, progress)
            products, before = products + used, norm

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
        return ExactSolution(weights, lost + unsolved + self._rounding(weights), 0)

    def _iterate(
        self, weights: Tensor, residual: Tensor, goal: float, budget: int, progress: Callable[[int, float], None] | None
    ) -> tuple[Tensor, int]:
        """Conjugate gradient steps from a true residual until the carried norm is below the goal."""
        z = self._precondition(residual)
        direction, energy = z, float(residual @ z)
        used = 0
        while used < budget and math.sqrt(max(energy, 0.0)) > goal:
            image = self._apply(direction)
            step = energy / float(direction @ image)
            weights = weights + step * direction
            residual = residual - step * image
            z = self._precondition(residual)
            before, energy = energy, float(residual @ z)
            direction = z + (energy / before) * direction
            used += 1
            if progress is not None:
                progress(used, math.sqrt(max(energy, 0.0) * self.signal_variance))
        return weights, used

    @torch.no_grad()
    def bounds(self, solution: ExactSolution, X_new: Tensor) -> PredictionBounds:
        r"""|mu_exact(x) - k(x)'a| <= sqrt(sf2 - v(x)) sqrt(r'(K + s2 I)^-1 r): Cauchy-Schwarz, with
        k(x)'(K + s2 I)^-1 k(x) = sf2 - v_exact(x) <= sf2 - v(x), v the reference's latent variance.

        Variances are those of the reference (``PointwiseBounds``).
        """
        new = self.reference.problem.model.kernel_inputs(X_new)
        features = self._reference_features(new)
        through = self._pointwise(features)
        mean = cross_product(self.kernel, new, self.inputs, solution.weights)
        size = float(solution.weights.abs().sum()) * self.signal_variance
        rounding = accumulation_slack(additions_per_entry(len(self.y)), size) + self._entries * size
        explained = (self.signal_variance - through.variance_lower).clamp_min(0.0)
        explained = (explained + accumulation_slack(1, self.signal_variance)).sqrt()
        error = torch.minimum(
            explained * solution.residual + rounding, through.mean_error + (mean - through.mean).abs()
        )
        return PredictionBounds(mean, error, through.variance_lower, through.variance_upper)

    def _apply(self, v: Tensor) -> Tensor:
        return kernel_product(self.kernel, self.inputs, v[:, None])[:, 0] + self.noise * v

    def _norm(self, residual: Tensor) -> float:
        """A bound on sqrt(r' S_M^-1 r): what its cancelling terms may hide included, and |r| / s in any case."""
        most = float(residual @ residual) / self.noise
        found = max(float(residual @ self._precondition(residual)), 0.0)
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
            yield rows, self._reference_features(self.inputs[rows]) if self._features is None else self._features[rows]

    def _reference_features(self, transformed: Tensor) -> Tensor:
        with torch.no_grad():
            features: Tensor = self.reference.features(transformed)
        return math.sqrt(self.signal_variance) * features

    def _rounding(self, weights: Tensor) -> float:
        """Bound on sqrt(d'(K + s2 I)^-1 d) <= |d| / s for the rounding error d of a streamed residual, with K or with
        Psi Psi'.
        """
        n = len(self.y)
        kernel = self.signal_variance * float(weights.abs().sum())
        largest = kernel + float(self.y.abs().max())
        additions = accumulation_slack(additions_per_entry(n, _BLOCK) + self.reference.features.rank, largest)
        return math.sqrt(n / self.noise) * (additions + self._entries * kernel)


def _reason_to_end(norm: float, rounding: float, goal: float, before: float, out_of_products: bool) -> str | None:
    """Why no more steps should be taken after a recomputed residual of this norm, or None where they should."""
    if norm + rounding <= goal:
        return SOLVED
    if norm <= rounding and goal <= rounding:
        return AT_ROUNDING
    if out_of_products:
        return OUT_OF_PRODUCTS
    # steps shrink the carried residual by construction; where the recomputed one does not follow, it is rounding
    return AT_ROUNDING if norm > 0.5 * before else None

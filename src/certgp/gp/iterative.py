"""The exact GP beyond dense memory: exact means by an iterative solve, variances from near rows."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from certgp.data import Chunk
from certgp.errors import ConvergenceWarning, warn_user
from certgp.gp.conditionals import Indices
from certgp.gp.conjugate_gradients import SOLVED, CostEstimate, ExactSolution, KernelSystem, LengthBound, solve
from certgp.gp.kernel_products import KernelMatrix
from certgp.gp.local import LocalProcess
from certgp.gp.noise import NoiseInputs
from certgp.gp.process import GaussianProcess, check_dense, sample_centred
from certgp.gp.vecchia import NEIGHBOURS, RANK, VecchiaPreconditioner
from certgp.kernels import Kernel
from certgp.transforms import Transform

_TYPICAL_PRODUCTS = 30
_BYTES_PER_NEIGHBOUR = 64  # both sparse factors, and what building them holds


class IterativeProcess(GaussianProcess):
    r"""The exact GP with weights a ~ (K + s2 I)^-1 y of proven accuracy (V7); N kernel values a mean. Where rows have
    weights, K is Q K Q, y is Q y and k(x) is Q k(x), Q = diag(sqrt(weight)).

    The mean at x is k(x)'a, within sqrt(k(x, x)) |y - (K + s2 I) a| / (2 s) of the exact one. Variances, covariances
    and the log-determinant are the local GP's: never below the exact variance, never below the exact log-determinant.
    """

    holds_rows: bool = True

    def __init__(self, local: LocalProcess, solution: ExactSolution, tolerance: float, log_determinant: float) -> None:
        self.local, self.solution, self.tolerance = local, solution, tolerance
        self.log_determinant = log_determinant  # of the local model: at least log det (K + s2 I)
        self.signal_variance, self.noise_variance = local.signal_variance, local.noise_variance

    @property
    def kernel(self) -> Kernel:
        return self.local.kernel

    @property
    def transform(self) -> Transform:
        return self.local.transform

    @property
    def rows(self) -> Chunk:
        """The training rows."""
        return self.local.rows

    @property
    def X(self) -> Tensor:
        """The training inputs (N, D)."""
        return self.local.X

    @property
    def y(self) -> Tensor:
        """Their targets (N,)."""
        return self.local.y

    @property
    def returns_to_prior(self) -> bool:
        return self.local.returns_to_prior

    @property
    def rank(self) -> int:
        return self.n_rows

    @property
    def n_rows(self) -> int:
        return self.local.n_rows

    @cached_property
    def matrix(self) -> KernelMatrix:
        """k(X, X) and k(x, X), with the weights of the rows."""
        return KernelMatrix(self.kernel, self.local.inputs, self.rows.weight)

    def log_evidence(self) -> float:
        """The exact quadratic term with the local log-determinant, which is at least the exact one."""
        return -0.5 * (self.solution.quadratic + self.log_determinant + self.n_rows * math.log(2.0 * math.pi))

    @torch.no_grad()
    def means(self, X: Tensor) -> Tensor:
        """k(x)'a at rows X (n, D): (n,)."""
        return self.matrix.cross(self.transform(X), self.solution.weights[:, None])[:, 0]

    def moments(self, X: Tensor) -> tuple[Tensor, Tensor]:
        return self.means(X), self.local.moments(X)[1]

    def noise_inputs(self, X: Tensor) -> NoiseInputs:
        return replace(self.local.noise_inputs(X), mean=self.means(X))

    def leave_one_out(self, rows: Indices) -> NoiseInputs:
        """These training rows (n,), each predicted from near rows without itself."""
        return self.local.leave_one_out(rows)

    def covariance(self, X: Tensor) -> Tensor:
        return self.local.covariance(X)

    @torch.no_grad()
    def sample(self, X: Tensor, count: int, generator: torch.Generator) -> Tensor:
        check_dense(X.shape[0], "Draw at fewer rows.")
        return self.means(X)[:, None] + sample_centred(self.covariance(X), count, generator)

    def with_variances(self, signal_variance: float, noise_variance: float) -> IterativeProcess:
        """The same kernel and rows with other variances: another solve."""
        local = self.local.with_variances(signal_variance, noise_variance)
        return solve_exactly(local, self.tolerance).with_settings_of(self)

    def updated(self, X: Tensor, y: Tensor, weight: Tensor | None = None) -> IterativeProcess:
        """Conditioned on further rows: solved again, from the weights so far."""
        local = self.local.updated(X, y, weight)
        start = torch.cat([self.solution.weights, torch.zeros(len(y), dtype=torch.float64)])
        extended = solve_exactly(local, self.tolerance, start)
        return extended.with_settings_of(self)


def estimate_cost(kernel: Kernel, inputs: Tensor) -> CostEstimate:
    """What ``solve_exactly`` takes on these rows: a typical number of products, half of them in float32, timed."""
    matrix, n = KernelMatrix(kernel, inputs), len(inputs)
    each = 0.5 * (matrix.seconds_per_product() + matrix.seconds_per_product(dtype=torch.float32))
    memory = float(n) * (NEIGHBOURS * _BYTES_PER_NEIGHBOUR + 3 * 8 * RANK)
    return CostEstimate(n, _TYPICAL_PRODUCTS, _TYPICAL_PRODUCTS * each, memory)


@torch.no_grad()
def solve_exactly(local: LocalProcess, tolerance: float, start: Tensor | None = None) -> IterativeProcess:
    """The exact GP of a local one, with means to ``tolerance`` wherever k(x, x) is at most what it is at some training
    row; ``start`` (N,) are weights to go on from.
    """
    kernel, inputs, s2 = local.kernel, local.inputs.double(), local.noise_variance
    weight = local.rows.weight
    system = KernelSystem(KernelMatrix(kernel, inputs, weight), s2, local.y.double())
    precondition = VecchiaPreconditioner(kernel, inputs, s2, weight=weight)
    goal = 2.0 * tolerance / math.sqrt(system.largest)
    solution = solve(system, precondition, LengthBound(s2), goal, start=start)
    if solution.ended != SOLVED:
        reached = 0.5 * math.sqrt(system.largest) * solution.length
        warn_user(
            f"conjugate gradients ended ({solution.ended}, {solution.products} products) with means proven to "
            f"{reached:.2g} instead of {tolerance:.2g} (standardised units); raise tolerance or noise_variance",
            ConvergenceWarning,
        )
    return IterativeProcess(local, solution, tolerance, _log_determinant(local, precondition))


def _log_determinant(local: LocalProcess, precondition: VecchiaPreconditioner) -> float:
    """sum_i log d_i of rows given near rows before them: at least log det (K + s2 I). Where the preconditioner has a
    low-rank part its own determinant is not of this kind.
    """
    if not precondition.rank:
        return precondition.log_determinant
    return float(np.log(local.ordered_conditionals().variance + local.row_noise).sum())

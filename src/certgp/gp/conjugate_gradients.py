"""(K + s2 I) a = y by conjugate gradients; what preconditions them and what bounds their error comes from outside."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from certgp.errors import NotCertifiableError
from certgp.gp.kernel_products import KernelMatrix
from certgp.linalg import UNIT_ROUNDOFF

DEFAULT_MAX_PRODUCTS = 1_000
SOLVED, OUT_OF_PRODUCTS, AT_ROUNDING = "solved", "out of products", "at rounding"
_MARGIN = 0.8  # stop a little below the goal: the recomputed residual is slightly larger than the recursive one
_CYCLE = 1e-3  # what one run of steps with float32 products may gain before the residual is recomputed
_PATIENCE = 30  # float32 steps without a better residual, after which float64 takes over
_DRIFT = 2.0  # float32 goes on where the recomputed residual is at most so many times the recursive one
Precondition = Callable[[Tensor], Tensor]
Progress = Callable[[int, float], None]


@dataclass(frozen=True)
class CostEstimate:
    """What solving the exact system would take, judged from a sample of the rows and a timed block."""

    n_rows: int
    products: int
    seconds: float
    memory: float | None = None  # bytes beside the rows, where it is known

    def __str__(self) -> str:
        memory = "" if self.memory is None else f" and {self.memory / 2**30:.2g} GiB of memory"
        return (
            f"conjugate gradients on the exact system: about {self.products} products with the {self.n_rows:,} x "
            f"{self.n_rows:,} kernel matrix ({float(self.n_rows) ** 2:.1e} values each, none stored), about "
            f"{self.seconds:.0f} s on this machine{memory}"
        )


@dataclass(frozen=True, eq=False)
class ExactSolution:
    """Weights a with S a ~ y, S = K + s2 I, and how far they are off: r = y - S a."""

    weights: Tensor  # (N,)
    residual: float  # bound on sqrt(r'S^-1 r), rounding included
    products: int
    ended: str = SOLVED  # or why the goal was not met
    theorem: str = ""  # that bounds the residual
    length: float = math.inf  # bound on |r| / s, rounding included
    rounding: float = 0.0  # the part of both that is rounding
    quadratic: float = math.nan  # y'a + a'r; y'S^-1 y = quadratic + r'S^-1 r

    def mean_error(self, prior_variance: float) -> float:
        r"""A bound on |k(x)'S^-1 y - k(x)'a| where k(x, x) is at most this, rounding of k(x)'a apart (V7).

        k(x) = F f with F F' = K in a feature space and |f|^2 = k(x, x). So |S^-1 k(x)| is at most sqrt(k(x, x)) times
        the largest t / (t^2 + s2) over t, 1 / (2 s).
        """
        return 0.5 * math.sqrt(prior_variance) * self.length


class KernelSystem:
    """S = K + s2 I on rows and its right-hand side y; products in float64 or float32. Where the rows have weights, K is
    Q K Q and y is Q y, Q = diag(sqrt(weight)), and the weights a of a solution belong to k(x)'Q.
    """

    def __init__(self, matrix: KernelMatrix, noise_variance: float, y: Tensor) -> None:
        self.matrix, self.noise, self.y = matrix, noise_variance, y if matrix.root is None else matrix.root * y
        self.largest = float(matrix.kernel.diagonal(matrix.inputs).max())  # of all entries of K, weights apart
        try:
            self._columns = matrix.column_rounding()
        except NotCertifiableError:  # a family without such a bound: means are then estimated, not proven
            self._columns = torch.full((len(y),), 32.0 * UNIT_ROUNDOFF, dtype=torch.float64)

    def apply(self, v: Tensor, dtype: torch.dtype = torch.float64) -> Tensor:
        """S v (N,)."""
        return self.matrix.multiply(v[:, None], dtype)[:, 0] + self.noise * v

    def rounding(self, weights: Tensor) -> float:
        """A bound on |d| / s >= sqrt(d'S^-1 d) for the rounding error d of a streamed residual y - S a."""
        root = 1.0 if self.matrix.root is None else float(self.matrix.root.max())
        kernel = root * self.mean_rounding(weights)
        own = 8.0 * UNIT_ROUNDOFF * (self.noise * float(weights.abs().max()) + float(self.y.abs().max()))
        return math.sqrt(len(self.y) / self.noise) * (kernel + own)

    def mean_rounding(self, weights: Tensor, largest: float | None = None) -> float:
        """A bound on the rounding of k(x)'a, for entries of k(x) of at most ``largest``."""
        root = self.matrix.root
        additions = (self.matrix.additions_per_entry() + (8 if root is None else 12)) * UNIT_ROUNDOFF
        sizes = weights.abs() if root is None else root * weights.abs()
        return (self.largest if largest is None else largest) * float(sizes @ (self._columns + additions))


class ResidualBound(ABC):
    """An upper bound on sqrt(r'S^-1 r), the distance of weights to the exact ones in the norm of S."""

    theorem: ClassVar[str]

    @abstractmethod
    def __call__(self, residual: Tensor, solved: Tensor) -> float:
        """The bound for r (N,), of which ``solved`` is the preconditioned M^-1 r; rounding of r itself apart."""


class LengthBound(ResidualBound):
    """|r| / s, because S >= s2 I: it holds whatever the preconditioner."""

    theorem = "V7"

    def __init__(self, noise_variance: float) -> None:
        self._noise = noise_variance

    def __call__(self, residual: Tensor, solved: Tensor) -> float:
        return float(residual.norm()) / math.sqrt(self._noise)


@torch.no_grad()
def solve(
    system: KernelSystem,
    precondition: Precondition,
    bound: ResidualBound,
    goal: float,
    max_products: int = DEFAULT_MAX_PRODUCTS,
    progress: Progress | None = None,
    start: Tensor | None = None,
) -> ExactSolution:
    """Weights whose residual, recomputed in float64, has a bound of at most ``goal``, or why there are none.

    Steps use float32 products as long as the recomputed residual follows the recursive one. A goal below the rounding
    of a float64 product is not reached by more of them: then the gradients end at rounding, and ``ended`` says so.
    """
    weights = precondition(system.y) if start is None else start
    products, dtype = 0, torch.float32
    before, carried, last = math.inf, math.inf, weights
    while True:
        residual = system.y - system.apply(weights)
        products += 1
        solved = precondition(residual)
        found, rounding = bound(residual, solved), system.rounding(weights)
        if dtype is torch.float32 and found > goal and (found > _DRIFT * carried or found > 0.5 * before):
            dtype = torch.float64  # what was lost is float32's rounding
            if found > before and products < max_products - 1:
                weights, before = last, math.inf
                continue
            before = math.inf
        ended = _reason_to_end(found, rounding, goal, before, products >= max_products - 1)
        if ended is not None:
            length = float(residual.norm()) / math.sqrt(system.noise) + rounding
            quadratic = float(weights @ system.y + weights @ residual)
            residual_bound = min(found + rounding, length)
            return ExactSolution(weights, residual_bound, products, ended, bound.theorem, length, rounding, quadratic)
        # a goal below rounding: down to rounding, which is all that can be shown
        target = _MARGIN * (goal - rounding if rounding < goal else rounding)
        if dtype is torch.float32:
            target = max(target, _CYCLE * found)
        budget, last = max_products - products - 1, weights
        weights, carried, used = _iterate(
            system, precondition, bound, weights, residual, target, budget, dtype, progress
        )
        products, before = products + used, found


def _iterate(
    system: KernelSystem, precondition: Precondition, bound: ResidualBound, weights: Tensor, residual: Tensor,
    target: float, budget: int, dtype: torch.dtype, progress: Progress | None,
) -> tuple[Tensor, float, int]:  # fmt: skip
    """Conjugate gradient steps from a true residual until the bound of the recursive one is below the target."""
    solved = precondition(residual)
    direction, energy, used = solved, float(residual @ solved), 0
    found = least = bound(residual, solved)
    patience = _PATIENCE if dtype is torch.float32 else budget
    while used < budget and found > target and patience > 0:
        image = system.apply(direction, dtype)
        curvature = float(direction @ image)
        if not curvature > 0.0:  # rounding: no more can be gained in this arithmetic
            break
        step = energy / curvature
        weights = weights + step * direction
        residual = residual - step * image
        solved = precondition(residual)
        before, energy = energy, float(residual @ solved)
        direction = solved + (energy / before) * direction
        found, used = bound(residual, solved), used + 1
        if dtype is torch.float32:
            patience, least = (patience - 1, least) if found > 0.9 * least else (_PATIENCE, found)
        if progress is not None:
            progress(used, found)
    return weights, found, used


def _reason_to_end(found: float, rounding: float, goal: float, before: float, out_of_products: bool) -> str | None:
    """Why no more steps should be taken after a recomputed residual of this bound, or None where they should."""
    if found + rounding <= goal:
        return SOLVED
    if found <= rounding and goal <= rounding:
        return AT_ROUNDING
    if out_of_products:
        return OUT_OF_PRODUCTS
    # steps shrink the recursive residual by construction; where the recomputed one does not follow, it is rounding
    return AT_ROUNDING if found > 0.5 * before else None

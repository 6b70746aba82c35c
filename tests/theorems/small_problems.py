"""Random small problems, their dense truth, and the check of every statement that certgp makes about them.

``draw_problem(seed)`` draws one: N <= 120 rows, D <= 6, length-scales .05 to 20, noise 1e-4 to 10, rank 1 to N,
six input laws, all kernels, all maps, rows to predict inside and outside the range of X, every third problem with
weighted rows. ``draw_outputs(seed)`` makes every twentieth one of two outputs over the same features, each missing at
some rows. Each statement is compared with dense linear algebra that shares no code with it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
import scipy.linalg
import torch

import certgp.guarantees as g
import helpers
from certgp.data import Chunk, ChunkSource
from certgp.engines import LocalEngine
from certgp.errors import NotCertifiableError, NotPositiveDefiniteError
from certgp.features import (
    FeatureMap,
    FourierMap,
    MercerMap,
    NystromMap,
    ResidualMap,
    data_mercer_map,
    greedy_inducing_points,
    residual_points,
)
from certgp.features.data_mercer import principal_directions_of
from certgp.features.spectral import SpectralDesign, iid_design, sobol_design, widened_design
from certgp.gp import LowRankModel, LowRankPosterior, Statistics, elbo
from certgp.gp.conjugate_gradients import ExactSolution, KernelSystem, LengthBound, solve
from certgp.gp.kernel_products import KernelMatrix
from certgp.gp.outputs import OutputStatistics
from certgp.gp.vecchia import VecchiaPreconditioner
from certgp.guarantees.rounding import certified_gap
from certgp.kernels import Gaussian, Kernel, Matern12, Matern32, Matern52
from certgp.transforms import Identity

INPUT_LAWS: dict[str, Callable[[np.random.Generator, int, int], np.ndarray]] = {
    "gaussian": lambda rng, n, d: rng.standard_normal((n, d)),
    "uniform": lambda rng, n, d: rng.uniform(-2, 2, (n, d)),
    "heavy": lambda rng, n, d: rng.standard_t(2, (n, d)).clip(-15, 15),
    "clustered": lambda rng, n, d: 0.1 * rng.standard_normal((n, d)) + rng.integers(-1, 2, (n, 1)),
    "duplicated": lambda rng, n, d: rng.standard_normal((n, d))[rng.integers(0, n // 2 + 1, n)],
    "off-centre": lambda rng, n, d: rng.standard_normal((n, d)) + 4.0,
}
MAPS = ("mercer", "nystrom", "fourier")
_DESIGNS = (iid_design, sobol_design, widened_design)


@dataclass(frozen=True, eq=False)
class SmallProblem:
    """A model at fixed hyper-parameters on a few rows, with rows to predict."""

    X: torch.Tensor
    y: torch.Tensor
    X_new: torch.Tensor
    kernel: Kernel  # unit signal variance
    features: FeatureMap
    signal_variance: float
    noise_variance: float
    reference: FeatureMap
    rng: np.random.Generator
    weight: torch.Tensor | None = None  # of the rows: the noise variance of row i is noise_variance / weight_i
    shared: Statistics | None = None  # where this is one of several outputs: its part of their statistics

    @property
    def rows(self) -> Chunk:
        return Chunk(self.X, self.y, self.weight)

    def certificate_problem(self) -> g.Problem:
        model = LowRankModel(Identity(self.X.shape[1]), self.features)
        source = ChunkSource(self.rows)
        return g.Problem(model, self.signal_variance, self.noise_variance, source, LocalEngine(chunk_rows=37))

    def statistics(self) -> Statistics:
        if self.shared is not None:
            return self.shared
        return Statistics.of(self.features(self.X), self.y, weight=self.weight)


def draw_problem(seed: int) -> SmallProblem:
    """The problem of a seed."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(2, 121)), int(rng.integers(1, 7))
    draw = INPUT_LAWS[str(rng.choice(list(INPUT_LAWS)))]
    both = torch.from_numpy(draw(rng, n + 5, d))
    X, X_new = both[:n], both[n:]
    X_new[-2:] += torch.tensor([[0.6], [3.0]], dtype=torch.float64) * (X.amax(0) - X.amin(0))  # beside X, and far out
    kind = str(rng.choice(MAPS))
    family = Gaussian if kind == "mercer" else rng.choice([Gaussian, Matern12, Matern32, Matern52])
    kernel = family(np.exp(rng.uniform(np.log(0.05), np.log(20.0), d if rng.random() < 0.5 else 1)).repeat(1))
    if kernel.length_scale.numel() == 1:
        kernel = family(np.full(d, float(kernel.length_scale[0])))
    signal, noise = float(np.exp(rng.uniform(-1.5, 1.5))), float(np.exp(rng.uniform(np.log(1e-4), np.log(10.0))))
    size = float(np.exp(rng.uniform(np.log(1e-3), np.log(10.0))))
    y = torch.from_numpy(size * (np.sin(2.0 * X.numpy().sum(1)) + 0.3 * rng.standard_normal(n)))
    rank = int(rng.integers(1, n + 1))
    features = _features(kind, kernel, X, rank, rng)
    reference = _reference(kernel, X, int(rng.integers(1, n + 20)), rng)
    weight = torch.from_numpy(_draw_weights(seed, n)) if seed % 3 == 0 else None
    return SmallProblem(X, y, X_new, kernel, features, signal, noise, reference, rng, weight)


def draw_outputs(seed: int) -> list[SmallProblem]:
    """The problem of a seed, or two outputs of it: certificates of both come from the statistics that they share."""
    p = draw_problem(seed)
    if seed % 20 != 1 or len(p.X) < 4:
        return [p]
    rng = np.random.default_rng([seed, 2])
    n = len(p.X)
    second = torch.from_numpy(np.exp(rng.uniform(-3.0, 3.0)) * np.cos(p.X.numpy().sum(1) + rng.standard_normal(n)))
    Y = torch.stack([p.y, second], 1)
    Y[torch.from_numpy(rng.permutation(n)[: n // 3]), 0] = np.nan
    Y[torch.from_numpy(rng.permutation(n)[: n // 4]), 1] = np.nan
    with torch.no_grad():
        joint = OutputStatistics.of(p.features(p.X), Y, weight=p.weight)
    found = []
    for j in range(2):
        rows = torch.nonzero(~Y[:, j].isnan())[:, 0]
        own = replace(p, X=p.X[rows], y=Y[rows, j], shared=joint.output(j))
        signal, noise = np.exp(rng.uniform(-1.5, 1.5)), np.exp(rng.uniform(np.log(1e-4), np.log(10.0)))
        own = replace(own, signal_variance=float(signal), noise_variance=float(noise))
        found.append(own if p.weight is None else replace(own, weight=p.weight[rows]))
    return found


def _draw_weights(seed: int, n: int) -> np.ndarray:
    """Weights over one to four orders of magnitude; from a stream of their own: problems stay what they were."""
    rng = np.random.default_rng([seed, 1])
    return np.exp(rng.choice([0.5, 1.5]) * rng.standard_normal(n) + rng.uniform(-1.0, 1.0))


def _features(kind: str, kernel: Kernel, X: torch.Tensor, rank: int, rng: np.random.Generator) -> FeatureMap:
    n, d = X.shape
    if kind == "mercer":
        index_set = str(rng.choice(["optimal", "total_degree", "box"]))
        return MercerMap(kernel, np.exp(rng.uniform(-1, 1, d)), rank, index_set)
    if kind == "nystrom":
        jitter = float(rng.choice([1e-6, 1e-4]))
        return NystromMap(kernel, X[np.sort(rng.permutation(n)[:rank])], jitter=jitter)
    design = _DESIGNS[int(rng.integers(3))](kernel, max(1, rank // 2), d, rng)
    return FourierMap(kernel, design)


def _reference(kernel: Kernel, X: torch.Tensor, rank: int, rng: np.random.Generator) -> FeatureMap:
    if not isinstance(kernel, Gaussian) or rng.random() < 0.3:
        return NystromMap(kernel, greedy_inducing_points(kernel, X, min(rank, len(X))), jitter=1e-8)
    if rng.random() < 0.02:
        return data_mercer_map(kernel, X, rank)
    if rng.random() < 0.3:
        return ResidualMap(base := MercerMap(kernel, [0.5] * X.shape[1], rank), residual_points(base, X, 6, 0.0))
    spread = X.std(0, correction=0)
    return MercerMap(kernel, torch.where(spread > 1e-3, spread, 1.0), rank, centre=X.mean(0))


def tight_problems() -> list[SmallProblem]:
    """Hand-made problems at which bounds are (nearly) attained, so that a weakened one fails."""
    far = MercerMap(Gaussian(1.0), [0.1], 1)  # its one feature vanishes at x = 30: nothing is captured
    at_zero = [[0.0]]
    beside = [[float(np.sqrt(np.log(2.0)))]]  # correlation 1 / sqrt(2) with zero
    above, far_above = _constant_wave(4.0), _constant_wave(1e6)
    seen = NystromMap(Gaussian(1.0), torch.zeros((1, 1), dtype=torch.float64), jitter=0.0)
    return [
        _by_hand(far, [[30.0]], [[30.0]], noise=10.0),  # the mean's second term is all there is
        _by_hand(far, [[30.0]], [[30.0]], noise=1.0),  # Cauchy-Schwarz within a factor of two
        _by_hand(far, [[30.0]], [[30.0]], noise=1e-3),
        _by_hand(ResidualMap(far, torch.tensor([[30.0]], dtype=torch.float64)), [[30.0]], [[30.0]], noise=0.1),
        _by_hand(far, [[30.0], [60.0]], [[30.0]], noise=0.5),  # two lost directions, each twice the noise
        _by_hand(far_above, [[30.0]], [[30.0]], noise=0.1, reference=far),  # only the log determinant is left of E
        _by_hand(above, at_zero, beside, noise=0.1),
        _by_hand(above, at_zero, beside, noise=100.0),
        _by_hand(seen, beside, at_zero, noise=1e-3),  # the new row is captured, the training row is not
        _by_hand(seen, beside, at_zero, noise=0.1),
    ]


def _constant_wave(weight: float) -> FourierMap:
    one_wave = torch.zeros((1, 1), dtype=torch.float64)
    return FourierMap(Gaussian(1.0), SpectralDesign(one_wave, torch.full((1,), weight, dtype=torch.float64)))


def _by_hand(
    features: FeatureMap, rows: list, new: list, noise: float, reference: FeatureMap | None = None
) -> SmallProblem:
    X, X_new = torch.tensor(rows, dtype=torch.float64), torch.tensor(new, dtype=torch.float64)
    y = torch.ones(len(rows), dtype=torch.float64)
    if reference is None:
        reference = features if features.dominated else MercerMap(Gaussian(1.0), [1.0], 3)
    return SmallProblem(X, y, X_new, Gaussian(1.0), features, 1.0, noise, reference, np.random.default_rng(0))


def dense_kernel(kernel: Kernel, X: np.ndarray) -> np.ndarray:
    """k(X, X) / sf2 by differences of the inputs as they are given: not the library's own arithmetic."""
    return helpers.dense_kernel(kernel, X, X) / float(kernel.signal_variance)


def far_problems() -> Iterator[SmallProblem]:
    """Two clusters that are many length-scales apart, where distances lose digits and Nystrom features amplify that."""
    for rank, family, distance, jitter in product((20, 40), helpers.ALL_KERNELS, (95.0, 3e3, 3e5, 1e7), (1e-8, 1e-6)):
        rng = np.random.default_rng(rank)
        X = torch.from_numpy(rng.standard_normal((40, 1)) + distance * np.repeat([[-1.0], [1.0]], 20, axis=0))
        kernel, y = family([1.0]), torch.from_numpy(rng.standard_normal(40))
        features = NystromMap(kernel, X[torch.from_numpy(np.sort(rng.permutation(40)[:rank]))], jitter=jitter)
        reference = NystromMap(kernel, greedy_inducing_points(kernel, X, 30), jitter=1e-8)
        yield SmallProblem(X, y, X[:3] + 0.3, kernel, features, 1.0, 1e-4, reference, rng)


def composed_problems(law: str) -> Iterator[SmallProblem]:
    """Sums, products, kernels on some columns and families without a Mercer expansion."""
    for seed, (kernel, noise, jitter) in enumerate(product(helpers.CONSTANT.values(), (1e-4, 0.3), (1e-8, 1e-4))):
        rng = np.random.default_rng(seed)
        both = torch.from_numpy(INPUT_LAWS[law](rng, 65, 2))
        X, rank = both[:60], int(rng.integers(2, 40))
        y = torch.from_numpy(np.sin(2.0 * X.numpy().sum(1)) + 0.3 * rng.standard_normal(60))
        features = NystromMap(kernel, X[torch.from_numpy(np.sort(rng.permutation(60)[:rank]))], jitter=jitter)
        reference = NystromMap(kernel, greedy_inducing_points(kernel, X, 45, tolerance=1e-8), jitter=1e-8)
        unit = kernel.with_signal_variance(1.0)
        yield SmallProblem(X, y, both[60:], unit, features, float(kernel.signal_variance), noise, reference, rng)


class Truth:
    """The exact GP and the model by dense factorisations."""

    def __init__(self, p: SmallProblem) -> None:
        sf2, s2, n = p.signal_variance, p.noise_variance, len(p.X)
        every = torch.cat([p.X, p.X_new])
        self.K_all = sf2 * dense_kernel(p.kernel, every.numpy())
        with torch.no_grad():
            phi = np.sqrt(sf2) * p.features(every).numpy()
        self.Sigma_all = phi @ phi.T
        self.K, self.Sigma, self.n = self.K_all[:n, :n], self.Sigma_all[:n, :n], n
        weight = np.ones(n) if p.weight is None else p.weight.numpy()
        self.noise = s2 / np.concatenate([weight, np.ones(len(p.X_new))])  # of all rows; new ones have weight one
        S1 = self.K + np.diag(self.noise[:n])
        factor = scipy.linalg.cho_factor(S1, lower=True)
        y = p.y.numpy()
        solved = scipy.linalg.cho_solve(factor, y)
        log_det = 2.0 * np.log(np.diag(factor[0])).sum()
        self.log_det, self.quadratic = float(log_det), float(y @ solved)
        self.log_evidence = -0.5 * (y @ solved + log_det + n * np.log(2 * np.pi))
        cross = self.K_all[n:, :n]
        self.mean = cross @ solved
        self.variance = np.diag(self.K_all)[n:] - np.sum(cross * scipy.linalg.cho_solve(factor, cross.T).T, axis=1)
        self.e = self._relative(self.K, self.Sigma)
        self.kl = self._divergence(self.e)
        self.reverse_kl = self._divergence(self._relative(self.Sigma, self.K))
        self.lost_log_determinant = log_det - np.linalg.slogdet(self.Sigma + np.diag(self.noise[:n]))[1]
        # relative rounding of a solve with S1, whose condition number is at most (Tr K + the largest noise) / the least
        condition = (np.trace(self.K) + self.noise[:n].max()) / self.noise[:n].min()
        self.rounding = 1e-14 * condition * max(1.0, (weight * y**2).max(), np.abs(y).max() ** 2, sf2) * n
        self.whitener = np.sqrt(weight)  # Q K Q + s2 I is the covariance of Q y

    def _relative(self, K: np.ndarray, Sigma: np.ndarray) -> np.ndarray:
        return scipy.linalg.eigh(K - Sigma, Sigma + np.diag(self.noise[: len(K)]), eigvals_only=True)

    @staticmethod
    def _divergence(e: np.ndarray) -> float:
        small = np.abs(e) < 1e-3  # a different evaluation from the library's: exact series of three terms
        safe = np.where(small, 0.0, e)
        series = e**2 / 2 - e**3 / 3 + e**4 / 4 - e**5 / 5
        return float(0.5 * np.where(small, series, safe - np.log1p(np.maximum(safe, -1 + 1e-15))).sum())

    def predictive_kl(self) -> float:
        """KL of all rows minus KL of the training rows."""
        return self._divergence(self._relative(self.K_all, self.Sigma_all)) - self.kl


@dataclass(frozen=True)
class Statement:
    """lower <= truth <= upper, by theorem id; ``rounding`` is the oracle's own."""

    theorem: str
    lower: float
    truth: float
    upper: float
    rounding: float

    @property
    def slack(self) -> float:
        """Distance of the truth to the nearer end, relative to its size; negative where the statement is false."""
        distance = min(self.truth - self.lower, self.upper - self.truth) + self.rounding
        return distance / max(abs(self.truth), self.rounding, 1e-300)


def statements(p: SmallProblem) -> Iterator[Statement]:
    """Everything that is claimed about a problem."""
    with torch.no_grad():
        truth = Truth(p)
        yield from _dense_statements(p, truth)
        if p.features.dominated:
            yield from _own_statements(p, truth)
        yield from _reference_statements(p, truth)


def violations(problem: SmallProblem) -> list[str]:
    """Theorem ids that a problem contradicts, and "refused" where the library declined to say more."""
    found: list[str] = []
    try:
        found.extend(statement.theorem for statement in statements(problem) if not statement.slack >= 0.0)
    except (NotCertifiableError, NotPositiveDefiniteError):
        found.append("refused")
    return found


def _dense_statements(p: SmallProblem, truth: Truth) -> Iterator[Statement]:
    K, Sigma = (truth.whitener[:, None] * matrix * truth.whitener for matrix in (truth.K, truth.Sigma))
    result = g.proposition1(K, Sigma, p.noise_variance)
    r = truth.rounding
    yield Statement("B0", result.kl * (1 - 1e-6) - r, truth.kl, result.kl * (1 + 1e-6) + r, 0.0)
    bounds = {"B1": result.bound1, "B2": result.bound2, "B3": result.bound3}
    bounds |= {"B1+": result.bound1_log, "B2+": result.bound2_quadratic}
    yield from (Statement(name, 0.0, truth.kl, bound, r) for name, bound in bounds.items())
    b, t = g.covariance_sandwich(result.kl)
    yield Statement("S1", b, float(1.0 + truth.e.min()), t, r)
    yield Statement("S1", b, float(1.0 + truth.e.max()), t, r)


def _own_statements(p: SmallProblem, truth: Truth) -> Iterator[Statement]:
    stats, sf2, s2 = p.statistics(), p.signal_variance, p.noise_variance
    r, map_rounding = truth.rounding, p.features.rounding()
    lowest = float(np.linalg.eigvalsh(truth.K - truth.Sigma).min())
    name = {MercerMap: "D1", NystromMap: "D2", ResidualMap: "D4"}[type(p.features)]
    yield Statement(name, 0.0, lowest, np.inf, 1e-10 * sf2 * truth.n)
    own = g.certify_dominated(stats, sf2, s2, map_rounding)
    yield Statement("K1", own.kl.lower, truth.kl, own.evidence["paper_bound"], r)
    yield Statement("K2", own.kl.lower, truth.kl, own.kl.upper, r)
    scaled = stats.scaled(sf2)
    plain = elbo(scaled, certified_gap(scaled, map_rounding), s2) - own.evidence["log_evidence_slack"]
    yield Statement("E1", plain, truth.log_evidence, np.inf, r)
    yield Statement("E2", -np.inf, truth.log_evidence, own.log_evidence.upper, r)
    losses = g.RowLosses.of(p.features(p.X), sf2, s2, map_rounding, p.weight)
    read = g.certify_dominated(stats, sf2, s2, map_rounding, losses)
    for name, found in {"E4": own, "E3": read}.items():
        yield Statement(name, plain, found.log_evidence.lower, truth.log_evidence, r)  # and never below the ELBO
        yield Statement(name, 0.0, truth.lost_log_determinant, found.evidence["lost_log_determinant"], r)
        yield Statement("K3", found.reverse_kl.lower, truth.reverse_kl, found.reverse_kl.upper, r)
        yield Statement("K3", 0.0, found.reverse_kl.upper, 0.5 * found.evidence["lost_log_determinant"], 1e-12)
    bounds = g.pointwise_bounds(stats.scaled(sf2), np.sqrt(sf2) * p.features(p.X_new), sf2, s2, map_rounding)
    yield from _row_statements("P1", bounds, truth)
    V = principal_directions_of(stats.A, max(1, stats.rank // 2))
    yield Statement("D3", 0.0, _lowest_after_mixing(p, truth, V), np.inf, 1e-10 * sf2 * truth.n)


def _lowest_after_mixing(p: SmallProblem, truth: Truth, V: torch.Tensor) -> float:
    phi = (np.sqrt(p.signal_variance) * p.features(p.X) @ V).numpy()
    return float(np.linalg.eigvalsh(truth.K - phi @ phi.T).min())


def _row_statements(theorem: str, bounds: g.PredictionBounds, truth: Truth) -> Iterator[Statement]:
    r = truth.rounding
    error = np.abs(truth.mean - bounds.mean.numpy())
    for i in range(len(error)):
        yield Statement(theorem, 0.0, float(error[i]), float(bounds.mean_error[i]), r)
        ends = float(bounds.variance_lower[i]), float(bounds.variance_upper[i])
        yield Statement(f"{theorem} variance", ends[0], float(truth.variance[i]), ends[1], r)


def _reference_statements(p: SmallProblem, truth: Truth) -> Iterator[Statement]:
    r, problem = truth.rounding, p.certificate_problem()
    reference = g.read_reference(problem, p.reference)
    certificate = g.certify_through(reference)
    psi = (np.sqrt(p.signal_variance) * p.reference(p.X)).numpy()
    lowest = float(np.linalg.eigvalsh(truth.K - psi @ psi.T).min())
    name = {MercerMap: "D1", NystromMap: "D2", ResidualMap: "D4"}[type(p.reference)]
    yield Statement(name, 0.0, lowest, np.inf, 1e-10 * p.signal_variance * truth.n)
    yield Statement("R1", certificate.kl.lower, truth.kl, certificate.kl.upper, r)
    yield Statement("R3", certificate.reverse_kl.lower, truth.reverse_kl, certificate.reverse_kl.upper, r)
    yield Statement("E3", certificate.log_evidence.lower, truth.log_evidence, certificate.log_evidence.upper, r)
    predictive = g.expected_predictive_kl(reference, p.X_new).interval
    yield Statement("P2", predictive.lower, truth.predictive_kl(), predictive.upper, 2.0 * r)
    system = g.ExactSystem(reference, p.rows)
    solution = system.solve_by_reference(1e-3, max_products=int(p.rng.integers(1, 6)))
    yield from _row_statements("C1", system.bounds(solution, p.X_new), truth)
    yield from _solution_statements(p, truth, solution)
    yield from _row_statements("P4", system.bounds(system.reference_solution(), p.X_new), truth)
    yield from _kl_statements(p, truth)


def _solution_statements(p: SmallProblem, truth: Truth, solution: ExactSolution) -> Iterator[Statement]:
    """V7: of gradients that near rows precondition, of those of the reference, and of no steps at all."""
    sf2, s2 = p.signal_variance, p.noise_variance
    kernel = p.kernel.with_signal_variance(sf2)
    matrix = KernelMatrix(kernel, p.X, p.weight)
    system = KernelSystem(matrix, s2, p.y)
    near = VecchiaPreconditioner(kernel, p.X, s2, neighbours=5, weight=p.weight)
    nothing = torch.zeros_like(p.y)
    others = (
        solve(system, near, LengthBound(s2), 1e-3, max_products=truth.n % 5 + 1),
        solve(system, near, LengthBound(s2), 1e-3, max_products=1, start=nothing),
    )
    for found in (solution, *others):
        mean = matrix.cross(p.X_new, found.weights[:, None])[:, 0].numpy()
        bound = found.mean_error(sf2) + system.mean_rounding(found.weights)
        for error in np.abs(truth.mean - mean):
            yield Statement("V7", 0.0, float(error), bound, truth.rounding)
        low, high = g.quadratic_interval(found, system.y, s2)
        yield Statement("V7 quadratic", low, truth.quadratic, high, truth.rounding * (1.0 + abs(truth.quadratic)))
    yield Statement("V7 log-determinant", truth.log_det, near.log_determinant, np.inf, truth.rounding)


def _kl_statements(p: SmallProblem, truth: Truth) -> Iterator[Statement]:
    """P3: the divergence of the two predictive laws given the actual y bounds every mean and variance."""
    s2, n = p.noise_variance, truth.n
    phi, new = (np.sqrt(p.signal_variance) * p.features(rows) for rows in (p.X, p.X_new))
    posterior = LowRankPosterior.condition(Statistics.of(phi, p.y, weight=p.weight), s2)
    eye = s2 * np.eye(len(p.X_new))
    model_mean, model_cov = posterior.mean(new).numpy(), posterior.covariance(new).numpy() + eye
    cross = truth.K_all[n:, :n]
    S1 = truth.K + np.diag(truth.noise[:n])
    exact_cov = truth.K_all[n:, n:] - cross @ scipy.linalg.solve(S1, cross.T, assume_a="pos") + eye
    gamma = g.gaussian_kl(0.5 * (exact_cov + exact_cov.T), 0.5 * (model_cov + model_cov.T), truth.mean, model_mean)
    error, low, high = g.moments_within(gamma, np.diag(model_cov))
    for i in range(len(error)):
        yield Statement("P3", 0.0, abs(truth.mean[i] - model_mean[i]), error[i], truth.rounding)
        yield Statement("P3", low[i], exact_cov[i, i], high[i], truth.rounding)

"""Joint training of a network and a low-rank GP on its outputs, chunk by chunk.  [theory sec. 9]

The evidence does not split into a sum over rows, but its gradient does once the r x r cotangents are known:

    dL = sum_chunks < 2 Phi_c G_A + y_c G_b', dPhi_c >,    G_A = dL/dA,  G_b = dL/db at the statistics of all rows

So a step needs the rows of one chunk, and (A, b) of all rows. These are kept *running*: a chunk's step first replaces
the chunk's old contribution by its new one, and a full pass without gradients now and then makes all of them exact.
For fixed (A, b) the step descends a bound: with q(w) = N(C^-1 b, s2 C^-1) it is the gradient of E_q[-log p(y | w)], so
stale statistics mean a posterior q that lags behind, not a wrong objective.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from certgp.data import Chunk, ChunkSource, RowSource
from certgp.engines import LocalEngine
from certgp.engines.folds import fold_feature_statistics
from certgp.errors import InvalidInputError
from certgp.features import FeatureMap
from certgp.gp import (
    GaussianProcess,
    GramSpectrum,
    LowRankModel,
    LowRankProcess,
    SpectralGradient,
    Statistics,
    evidence_gradient,
    noise_scale,
)
from certgp.gp.calibration import gaussian_nlpd
from certgp.gp.evidence import EvidenceGradient
from certgp.gp.profile import NOISE_RATIO_BOUNDS
from certgp.training.mini_batch.descent import Descent, Running
from certgp.training.mini_batch.embedding import fit_head, head_model, raw_outputs
from certgp.training.mini_batch.steps import MinibatchTask, TrainedModule
from certgp.training.noise import Unseen
from certgp.transforms import Network

_START_ITERATIONS = 12
_START_ROWS = 20_000
_POLISH_ITERATIONS = 15
_POLISH_ROWS = 100_000
_CONTRIBUTION_BYTES = 1 << 28


class JointModel(TrainedModule):
    """A low-rank model with its two variances: everything the evidence depends on."""

    def __init__(self, model: LowRankModel, signal_variance: float, noise_variance: float) -> None:
        super().__init__()
        if not isinstance(model.transform, Network):
            raise TypeError("joint training is for models with a network in front")
        if not model.features.fixed_kernel().constant_diagonal:
            raise InvalidInputError("a network takes a kernel whose k(x, x) is constant; leave out linear parts")
        self.model = model
        self.log_signal_variance = nn.Parameter(torch.tensor(math.log(signal_variance), dtype=torch.float64))
        self.log_noise_variance = nn.Parameter(torch.tensor(math.log(noise_variance), dtype=torch.float64))

    @property
    def network(self) -> Network:
        """The transform, known to be a network."""
        assert isinstance(self.model.transform, Network)  # for type checkers; __init__ refuses others
        return self.model.transform

    @property
    def features(self) -> FeatureMap:
        """The feature map on the network's outputs."""
        return self.model.features

    @property
    def variances(self) -> tuple[float, float]:
        """Signal variance and noise variance."""
        return float(self.log_signal_variance.detach().exp()), float(self.log_noise_variance.detach().exp())

    @torch.no_grad()
    def set_variances(self, signal_variance: float, noise_variance: float) -> None:
        """Start the variances anew."""
        self.log_signal_variance.fill_(math.log(signal_variance))
        self.log_noise_variance.fill_(math.log(noise_variance))

    def choose_indices(self) -> None:
        """The index set of Mercer features follows their length-scales, between steps and never within one."""
        self.features.choose_indices(self.features.rank)


class RunningStatistics:
    """Statistics of all rows as a sum over ``number`` chunks of which each can be replaced.

    Where ``follows`` is False, or the contributions of all chunks together would be large, they are not kept: the total
    then stays as the last refresh left it, and the steps' gradients are unbiased for it.
    """

    def __init__(self, chunks: Iterable[Statistics], number: int, follows: bool = True) -> None:
        rest = iter(chunks)
        first = next(rest)
        keep = follows and 8 * number * first.rank * (first.rank + 1) <= _CONTRIBUTION_BYTES
        self._chunks: list[Statistics] | None = [first, *rest] if keep else None
        self.total = sum(rest if self._chunks is None else self._chunks[1:], first)

    @property
    def follows(self) -> bool:
        """Do the statistics of all rows follow those of the chunks?"""
        return self._chunks is not None

    def replace(self, index: int, new: Statistics) -> Statistics:
        """The total after chunk ``index`` has changed to ``new``, where it follows."""
        assert self._chunks is not None  # for type checkers; callers ask first
        old, self._chunks[index] = self._chunks[index], new
        total = self.total
        self.total = replace(total, A=total.A - old.A + new.A, b=total.b - old.b + new.b)
        return self.total

    @cached_property
    def spectrum(self) -> GramSpectrum:
        """Of a total that stays: variances may move with every step at little cost."""
        assert not self.follows  # it would be that of an earlier total
        return GramSpectrum.of(self.total)


class EvidenceTask(MinibatchTask):
    """Minimise the negative log evidence (or ELBO) of a network and its GP, by the method above or another descent."""

    module: JointModel

    def __init__(
        self,
        module: JointModel,
        rows: RowSource,
        validation: RowSource | None,
        *,
        objective: str,
        variance: str,
        descent: Descent | None = None,
    ) -> None:
        self.module = module
        self.rows, self.validation = rows, validation
        self.objective, self.variance = objective, variance
        self.descent = Running() if descent is None else descent
        self.n_rows, self.rank = rows.n_rows, module.model.rank
        self._chunks: Sequence[NDArray[np.int64]] = ()
        self._embedded: RowSource = rows  # from the first refresh on, rows as the kernel sees them
        self._statistics: RunningStatistics | None = None
        bounds = module.features.parameter_bounds()
        self._bounded = [(p, bounds[name]) for name, p in module.features.named_parameters() if name in bounds]

    def network_parameters(self) -> list[nn.Parameter]:
        return [p for p in self.module.network.parameters() if p.requires_grad]

    def head_parameters(self) -> list[nn.Parameter]:
        variances = [self.module.log_signal_variance, self.module.log_noise_variance]
        return [*(p for p in self.module.features.parameters() if p.requires_grad), *variances]

    def start(self) -> None:
        """Length-scales and variances that suit the untrained network's outputs, on some of the rows."""
        spread = np.linspace(0, self.n_rows - 1, min(self.n_rows, _START_ROWS)).astype(np.int64)
        some = ChunkSource(self.rows.take(spread))
        raw = raw_outputs(self.module.network, some)
        embedded = raw.with_inputs(self.module.network.measure(raw.X))
        best = fit_head(self.module.features, embedded, self.objective, _START_ITERATIONS)
        self.module.choose_indices()
        self.module.set_variances(best.signal_variance, best.noise_variance)

    @torch.no_grad()
    def constrain(self) -> None:
        for parameter, bound in self._bounded:
            parameter.clamp_(*bound)
        signal, noise = self.module.log_signal_variance, self.module.log_noise_variance
        self.descent.bound_noise_ratio(signal, noise, *map(math.log, NOISE_RATIO_BOUNDS))

    def validate(self, module: TrainedModule) -> float | None:
        """NLPD of the held-out rows with the noise scaled to suit them."""
        if self.validation is None or not isinstance(module, JointModel):
            return None
        module.choose_indices()
        raw = raw_outputs(module.network, self.rows)
        embedded = raw.with_inputs(module.network.measure(raw.X)).to(torch.float64)
        process = condition_head(module.features, embedded, *module.variances, self.variance)
        held_out = raw_outputs(module.network, self.validation)
        standardised = module.network.standardise(held_out.X)
        return calibrated_nlpd(process, held_out.with_inputs(standardised).to(torch.float64))[0]

    def refresh(self, chunks: Sequence[NDArray[np.int64]]) -> None:
        self._chunks = [np.sort(chunk) for chunk in chunks]
        self.module.choose_indices()
        raw = raw_outputs(self.module.network, self.rows)
        self._embedded = ChunkSource(raw.with_inputs(self.module.network.measure(raw.X)))
        self._statistics = None

    @torch.no_grad()
    def statistics(self) -> RunningStatistics:
        """Of all rows, as the steps since the last refresh have left them."""
        if self._statistics is None:
            embedded = map(self._embedded.take, self._chunks)
            parts = (_statistics(self.module.features.basis(chunk.X), chunk) for chunk in embedded)
            self._statistics = RunningStatistics(parts, len(self._chunks), self.descent.follows)
        return self._statistics

    def step(self, index: int) -> float:
        chunk = self.rows.take(self._chunks[index])
        phi = self.module.model.basis(chunk.X)
        known = self.statistics()
        g: EvidenceGradient | SpectralGradient
        if known.follows:
            stats = known.replace(index, _statistics(phi.detach(), chunk))
            g = evidence_gradient(stats, *self.module.variances, self.objective)
        else:
            g = known.spectrum.gradient(*self.module.variances, self.objective)
        _pull_back(phi, chunk, g, len(chunk.y))  # the chunk stands for n / n_chunk chunks like it
        self._pull_variances(g)
        if not self.descent.moves_head:
            for parameter in self.head_parameters():
                parameter.grad = None
        return g.value / self.n_rows

    def step_of_head(self) -> None:
        stats = self.statistics().total
        g = evidence_gradient(stats, *self.module.variances, self.objective)
        for chunk in map(self._embedded.take, self._chunks):
            _pull_back(self.module.features.basis(chunk.X), chunk, g, stats.n)
        self._pull_variances(g)
        self._statistics = None  # those of the head as it will be

    def _pull_variances(self, g: EvidenceGradient | SpectralGradient) -> None:
        self.module.log_signal_variance.grad = _scalar(g.by_log_signal / self.n_rows)
        self.module.log_noise_variance.grad = _scalar(g.by_log_noise / self.n_rows)


def _pull_back(phi: Tensor, rows: Chunk, g: EvidenceGradient | SpectralGradient, count: int) -> None:
    """Add < dL/dPhi, dPhi > / count of some rows' features (n, r) to the gradients of all they depend on."""
    by_features = g.by_features if isinstance(g, SpectralGradient) else g.cotangents.by_features
    torch.autograd.backward(phi, by_features(phi.detach(), rows.y, rows.weight) / count)


def _statistics(phi: Tensor, rows: Chunk) -> Statistics:
    return Statistics.of(
        phi.double(), rows.y, weight=rows.weight
    )  # sums of float32 products would drown the small eigenvalues of A


def _scalar(value: float) -> Tensor:
    return torch.tensor(value, dtype=torch.float64)


def condition_head(
    features: FeatureMap, embedded: Chunk, signal_variance: float, noise_variance: float, variance: str
) -> LowRankProcess:
    """The head as a process on embedded rows."""
    head = head_model(features)
    stats = fold_feature_statistics(head, ChunkSource(embedded), LocalEngine())
    return LowRankProcess(head, stats, signal_variance, noise_variance, variance)


def calibrated_nlpd(process: LowRankProcess, held_out: Chunk) -> tuple[float, float]:
    """NLPD on held-out embedded rows at the noise scale that suits them best, and that scale."""
    mean, variance = (moment.numpy() for moment in process.moments(held_out.X))
    y, noise = held_out.y.numpy(), np.asarray(held_out.noise(process.noise_variance))
    scale = noise_scale(y, mean, variance, noise)
    return gaussian_nlpd(y, mean, variance + scale * noise), scale


def finish(
    module: JointModel,
    source: RowSource,
    train: NDArray[np.int64],
    held_out: NDArray[np.int64],
    *,
    objective: str,
    variance: str,
    calibrate: bool,
    polish: bool = True,
    learn_noise: Callable[[GaussianProcess, Unseen], None] | None = None,
) -> LowRankProcess:
    """The trained model as a process: head polished on the rows it learned from, noise calibrated on those it did not,
    and conditioned on all of them. ``polish=False`` leaves the head as the steps have; ``learn_noise`` sees the process
    and what it said of the held-out rows before it was given them.

    Held-out rows chose the epoch, so they look better than new rows will: they may raise the noise, not lower it.
    """
    network, features = module.network, module.features
    raw = raw_outputs(network, source)
    picked = torch.from_numpy(train)
    learned = raw.pick(picked)
    learned = learned.with_inputs(network.measure(learned.X)).to(torch.float64)
    if polish:
        spread = torch.from_numpy(np.linspace(0, len(train) - 1, min(len(train), _POLISH_ROWS)).astype(np.int64))
        fit_head(features, learned.pick(spread), objective, _POLISH_ITERATIONS)
    module.choose_indices()
    variances = module.variances
    if polish:
        best = fit_head(features, learned, objective, 0)
        variances = best.signal_variance, best.noise_variance
    everything = raw.with_inputs(network.standardise(raw.X)).to(torch.float64)
    head = condition_head(features, everything, *variances, variance)
    model = module.model.requires_grad_(False)
    fitted = LowRankProcess(model, head.statistics, *variances, variance)
    if not len(held_out):
        return fitted
    rest = torch.from_numpy(held_out)
    aside = everything.pick(rest)
    before = condition_head(features, learned, *variances, variance)
    if calibrate:
        fitted.noise_scale = max(1.0, calibrated_nlpd(before, aside)[1])
    if learn_noise is not None:
        known = before.noise_inputs(aside.X)
        learn_noise(fitted, Unseen(replace(known, X=source.take(held_out).X.double()), aside.y, aside.weight))
    return fitted

"""The gradient of a function of the statistics of all rows, in two folds over the data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import torch
from torch import Tensor

from certgp.data import Chunk, RowSource
from certgp.engines import Engine, one_thread_below, sum_over
from certgp.engines.folds import fold_any_features, fold_any_statistics
from certgp.gp import LowRankModel
from certgp.gp.outputs import AnyCotangents, AnyStatistics, merged, statistics_of
from certgp.training.parameters import Array, ParameterVector

_KEPT_BYTES = 1 << 29
_KEPT_ROWS = 1 << 18  # of more rows, memory belongs to the rows themselves
_KEPT_COPIES = 3  # arrays of the size of the features that a graph holds


@dataclass(frozen=True, eq=False)
class _GradientSum:
    """Parameter gradients of some chunks; they merge by +."""

    tensors: tuple[Tensor, ...]

    def __add__(self, other: _GradientSum) -> _GradientSum:
        return _GradientSum(tuple(a + b for a, b in zip(self.tensors, other.tensors, strict=True)))


@dataclass(frozen=True, eq=False)
class _Evaluated:
    """Raw features and the kernel's diagonal of some rows, with their graph, and the rows' targets and weights."""

    basis: Tensor
    diagonal: Tensor | None
    y: Tensor
    weight: Tensor | None


@dataclass(frozen=True, eq=False)
class _KeptFeatures:
    """Statistics of some chunks together with what they were computed from."""

    statistics: AnyStatistics
    chunks: tuple[_Evaluated, ...]

    def __add__(self, other: _KeptFeatures) -> _KeptFeatures:
        return _KeptFeatures(merged(self.statistics, other.statistics), self.chunks + other.chunks)


class Criterion(Protocol):
    """A function of the statistics at one point: its value, and its derivatives by them."""

    @property
    def value(self) -> float: ...
    @property
    def cotangents(self) -> AnyCotangents: ...


C = TypeVar("C", bound=Criterion)


def kept_bytes(n_rows: int, width: int) -> int:
    """Size of the features that are kept between two folds; zero where that would be too much."""
    needed = _KEPT_COPIES * 8 * n_rows * width
    return needed if n_rows <= _KEPT_ROWS and needed <= _KEPT_BYTES else 0


class TwoFolds:
    r"""Statistics of all rows, and the gradient of a function of them in the parameters of a low-rank model.

    Rows may have one target or several; the latter have ``OutputStatistics``, and all that follows is the same.

    Fold 1 sums the statistics of the raw basis, and the r x r matrix M of the map mixes them. The r x r algebra gives
    the value and the cotangents G_A = dL/dA, G_b = dL/db. Fold 2 pulls dL/dPhi = 2 Phi G_A + y G_b' back through the
    map, chunk by chunk: only the map itself is differentiated automatically, and memory is one chunk. Where the
    kernel's diagonal varies, dL/d Tr K is pulled back through it in the same fold.

    Mixing the statistics (A = M' A_raw M, at r x r) is cheap, but the rounding of A_raw, about 1e-16 N, comes out
    multiplied by |M|^2, up to 1 / jitter: with a signal variance of 250 the value then jumps by 1e-5 per row between
    points 1e-11 apart, and line searches fail. Once ``sharpen``\ ed, fold 1 mixes the features of each row instead
    (A = sum of (Phi M)' (Phi M), one more product per evaluation), and A_raw is not needed at all.
    """

    def __init__(self, model: LowRankModel, source: RowSource, engine: Engine) -> None:
        self.model = model
        self.source = source
        self.engine = engine
        self.parameters = ParameterVector(model)
        self._mix_rows = False
        # where the features of all rows fit, the second fold need not compute them again
        self.keeps_features = engine.in_process and kept_bytes(source.n_rows, model.width) > 0

    def sharpen(self) -> bool:
        """Mix the features of each row from now on; False where that makes no difference."""
        if self._mix_rows or self.model.features.mixing() is None:
            return False
        self._mix_rows = True
        return True

    def raw_statistics(self) -> AnyStatistics:
        """Statistics of the raw basis at the current parameters."""
        return fold_any_statistics(self.model, self.source, self.engine)

    def statistics(self) -> AnyStatistics:
        """Statistics of the features at the current parameters."""
        if self._mix_rows:
            return fold_any_features(self.model, self.source, self.engine)
        return self._mix(self.raw_statistics())

    def differentiate(self, criterion: Callable[[Any], C]) -> tuple[C, Array]:
        """A function of the statistics at the current parameters, and its gradient (P,) in those of the model."""
        kept = self._fold_and_keep() if self.keeps_features else _KeptFeatures(self.statistics(), ())
        with one_thread_below(self.model.rank):
            found = criterion(kept.statistics)
            cotangents, direct = self._pull_through_mixing(kept.statistics, found.cotangents)
        pulled = self._pull_back(cotangents, kept.chunks)
        return found, ParameterVector.flatten([a + b for a, b in zip(direct, pulled.tensors, strict=True)])

    def _pull_through_mixing(self, statistics: Any, cotangents: AnyCotangents) -> tuple[AnyCotangents, list[Tensor]]:
        """Cotangents of the raw statistics, and the gradient that flows through the mixing matrix alone."""
        zeros = [torch.zeros_like(p) for p in self.parameters.tensors]
        mixing = self.model.features.mixing()
        if mixing is None:
            return cotangents, zeros
        with torch.no_grad():
            M = mixing.detach()
            # A = M' A_raw M and b = M' b_raw, so dL/dM = 2 A_raw M G_A + b_raw G_b' = M'^-1 (2 A G_A + b G_b')
            by_mixing = torch.linalg.solve(M.mT, cotangents.by_mixing(statistics))
            of_raw = cotangents.through(M)
        grads = torch.autograd.grad(mixing, self.parameters.tensors, by_mixing, allow_unused=True)
        direct = [z if g is None else g for z, g in zip(zeros, grads, strict=True)]
        return of_raw, direct

    def _fold_and_keep(self) -> _KeptFeatures:
        """Fold 1 that keeps each chunk's raw features, with their graph, and targets."""
        features = self.model.features

        def task(chunk: Chunk) -> _KeptFeatures:
            found = _evaluate(self.model, chunk)
            with torch.no_grad():
                folded = features.mix(found.basis.detach()) if self._mix_rows else found.basis.detach()
                statistics = statistics_of(folded, found.y, found.diagonal, found.weight)
            return _KeptFeatures(statistics, (found,))

        kept = self.engine.fold(task, self.source, self.model.width)
        return kept if self._mix_rows else _KeptFeatures(self._mix(kept.statistics), kept.chunks)

    def _mix(self, raw: AnyStatistics) -> AnyStatistics:
        with torch.no_grad(), one_thread_below(self.model.rank):
            return raw.mixed(self.model.features.mixing())

    def _pull_back(self, cotangents: AnyCotangents, kept: tuple[_Evaluated, ...]) -> _GradientSum:
        """Fold 2: sum over chunks of (d basis / d parameters)' (2 Phi G_A + y G_b'), and of the diagonal's share."""
        # the task may travel to another process, so it holds the model and never this object, which has all rows
        model, parameters = self.model, self.parameters.tensors

        def pull(found: _Evaluated) -> _GradientSum:
            basis, diagonal, weight = found.basis, found.diagonal, found.weight
            values, slopes = [basis], [cotangents.by_features(basis.detach(), found.y, weight)]
            if diagonal is not None and diagonal.requires_grad:
                slopes.append(cotangents.by_diagonal(diagonal.detach(), found.y, weight))
                values.append(diagonal)
            grads = torch.autograd.grad(values, parameters, slopes, allow_unused=True)
            pairs = zip(grads, parameters, strict=True)
            return _GradientSum(tuple(torch.zeros_like(p) if g is None else g for g, p in pairs))

        def recompute(chunk: Chunk) -> _GradientSum:
            return pull(_evaluate(model, chunk))

        if kept:
            return sum_over(pull, kept)
        return self.engine.fold(recompute, self.source, self.model.width)


def _evaluate(model: LowRankModel, chunk: Chunk) -> _Evaluated:
    with torch.enable_grad():
        return _Evaluated(model.basis(chunk.X), model.diagonal(chunk.X), chunk.y, chunk.weight)

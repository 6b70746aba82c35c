"""Predictions of several outputs over the same features, which are evaluated once."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from certgp.gp.noise import Noise
from certgp.gp.process import GaussianProcess, LowRankProcess
from certgp.gp.profile import eigenvalues_and_vectors


@dataclass(frozen=True, eq=False)
class _Group:
    """Outputs conditioned on the same rows: with A = V diag(lam) V' of unit features and z = V'phi,

    Var f_j = s2_j sum_k z_k^2 / (lam_k + g_j): one product of features by V for all of them.
    """

    outputs: list[int]
    vectors: Tensor  # V (r, r)
    factors: Tensor  # s2_j / (lam_k + g_j)  (r, outputs)


class SharedFeatures:
    """Low-rank processes of several outputs with one model phi(g(x)) between them."""

    def __init__(self, processes: Sequence[LowRankProcess]) -> None:
        self._processes = tuple(processes)
        self._weights = torch.stack(
            [math.sqrt(p.signal_variance) * p.posterior.weights for p in processes], 1
        )  # (r, q)
        self._groups = self._find_groups()

    @staticmethod
    def of(processes: Sequence[GaussianProcess]) -> SharedFeatures | None:
        """Those of processes that share a model; None of others."""
        found = [process for process in processes if isinstance(process, LowRankProcess)]
        if len(found) < len(processes) or any(process.model is not found[0].model for process in found):
            return None
        return SharedFeatures(found)

    def _find_groups(self) -> list[_Group]:
        members: list[list[int]] = []
        for j, process in enumerate(self._processes):
            A = process.statistics.A
            same = [each for each in members if torch.equal(self._processes[each[0]].statistics.A, A)]
            if same:
                same[0].append(j)
            else:
                members.append([j])
        groups = []
        for outputs in members:
            lam, V = eigenvalues_and_vectors(self._processes[outputs[0]].statistics.A)
            own = [self._processes[j] for j in outputs]
            columns = [p.noise_variance / (lam + p.noise_variance / p.signal_variance) for p in own]
            groups.append(_Group(outputs, V, torch.stack(columns, 1)))
        return groups

    @torch.no_grad()
    def moments(self, X: Tensor) -> list[tuple[Tensor, Tensor]]:
        """Latent means and variances (n,), (n,) of each output at the rows of X (n, D)."""
        return [(mean, variance) for _, _, mean, variance in self._evaluate(X)]

    @torch.no_grad()
    def observations(self, X: Tensor) -> list[tuple[Tensor, Tensor, Noise]]:
        """The same with the noise of new observations."""
        return [
            process.observe(process.noise_inputs_at(X, phi, mean, variance, mean))
            for process, phi, mean, variance in self._evaluate(X)
        ]

    def _evaluate(self, X: Tensor) -> Iterator[tuple[LowRankProcess, Tensor, Tensor, Tensor]]:
        """Of each output: process, features sf phi (n, r), mean and variance."""
        unit = self._processes[0].model(X).double()
        means, variances = unit @ self._weights, torch.empty((len(X), len(self._processes)), dtype=torch.float64)
        for group in self._groups:
            variances[:, group.outputs] = (unit @ group.vectors).square() @ group.factors
        for j, process in enumerate(self._processes):
            phi = math.sqrt(process.signal_variance) * unit
            yield process, phi, *process.restored(X, phi, means[:, j], variances[:, j])

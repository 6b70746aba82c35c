"""Whether inputs should be warped: the same quick GP with and without, on rows held out from the training rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray

from certgp.data import Chunk, target_is_constant
from certgp.data.sources import ChunkSource
from certgp.data.warp import Warp
from certgp.training.recipes.exact import ExactTrainer
from certgp.training.recipes.race.standing import held_out_losses
from certgp.training.recipes.settings import Settings
from certgp.training.stopping import StopRule

Array = NDArray[np.float64]
COMPARED_ROWS = 1_000
_LEARNED_ROWS = 400  # of a quick fit: its cost grows with their cube
_FEWEST_ROWS = 50  # below, held-out rows say nothing
_STEPS = 20
_STANDARD_ERRORS = 2.0  # as for noise that depends on the input


@dataclass(frozen=True)
class WarpGain:
    """What a warp gains in log predictive density per held-out row, and how sure that is."""

    gain: float
    standard_error: float
    rows: int  # held out

    @property
    def pays(self) -> bool:
        """Is it more than chance would give?"""
        return self.gain > _STANDARD_ERRORS * self.standard_error

    @staticmethod
    def of(plain: Array, warped: Array) -> WarpGain:
        """From the losses (n,) of the same rows without and with the warp."""
        gains = plain - warped
        return WarpGain(float(gains.mean()), float(gains.std() / np.sqrt(len(gains))), len(gains))

    @staticmethod
    def join(parts: Sequence[WarpGain]) -> WarpGain:
        """The mean over several outputs."""
        q = len(parts)
        error = float(np.sqrt(sum(each.standard_error**2 for each in parts))) / q
        return WarpGain(sum(each.gain for each in parts) / q, error, sum(each.rows for each in parts))


def compare_warp(settings: Settings, rows: Chunk, warp: Warp, limit: StopRule | None) -> WarpGain | None:
    """Gain of a warp on these standardised rows; None where they say nothing or time is up. Nobody is told of the fits,
    which end early where a stop rule of the user's, or ``limit``, asks for it.
    """
    if len(rows.y) < _FEWEST_ROWS:
        return None
    quick = replace(
        settings.quiet(_STEPS),
        kernel="matern32",
        length_scale=None,
        signal_variance=None,
        noise_variance=None,
        stop=limit,
        dtype="float64",
    )
    both = rows, rows.with_inputs(warp(rows.X))
    losses: list[list[Array]] = [[], []]
    for learned, held_out in _folds(len(rows.y), settings.new_generator()):
        if target_is_constant(ChunkSource(rows.pick(learned))):
            return None
        for chunk, found in zip(both, losses, strict=True):
            fit = ExactTrainer(quick, "dense").train(chunk.pick(learned))
            if fit.outcome.stopped:
                return None
            found.append(held_out_losses(fit.process, chunk.pick(held_out)))
    plain, warped = (np.concatenate(each) for each in losses)
    return WarpGain.of(plain, warped)


def _folds(n: int, rng: np.random.Generator) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Rows to learn from and rows held out: two halves in turn where rows are few, else as many as may be learned and
    the rest.
    """
    order = torch.from_numpy(rng.permutation(n))
    cut = min(_LEARNED_ROWS, n // 2)
    yield order[:cut].sort().values, order[cut:].sort().values
    if n <= 2 * _LEARNED_ROWS:
        yield order[cut:].sort().values, order[:cut].sort().values

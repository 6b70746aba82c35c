"""FourierGP: regression on random Fourier features."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
from torch import Tensor

from certgp.data import Chunk, RowSource
from certgp.estimators.planned import Plan, PlannedRegressor, TrialRows
from certgp.estimators.validation import (
    OBJECTIVES,
    VARIANCES,
    capped_rank,
    check_choice,
    check_minorising,
    starting_values,
)
from certgp.features import FourierMap
from certgp.features.spectral import SAMPLINGS, DataSummary, spectral_design
from certgp.gp import LowRankModel
from certgp.kernels import Kernel
from certgp.training import Callback, Candidate, Stage
from certgp.transforms import Clip, Identity, linear_slopes

_DESIGN_ROWS = 300
_CLIP_ROWS = 100_000
_CLIP_TAIL = 0.001
_TRIAL_SHARE = 0.15  # of max_iter: trial of a start, and again of learned frequencies
_RELEVANCE = (0.2, 5.0)  # how far a length-scale may start from the common one


class FourierGP(PlannedRegressor):
    """Fourier GP (the paper's FGP): rank-r regression on cos/sin pairs at frequencies of the kernel's spectral law.

    Parameters
    ----------
    rank : number of features, two per frequency; an odd rank is rounded down; or "auto"
    tolerance, max_rank : for ``rank="auto"``, as in ``MercerGP``
    sampling : "auto" (orthogonal), "iid", "orthogonal", "sobol", "widened", "leverage" or "modified" (see the docs)
    learn_frequencies : also learn the frequencies (sparse spectrum GP): more accurate, but no longer an approximation
        of the kernel, so outside the paper's Theorem 2
    winsorize : pull inputs beyond the .1 and 99.9 % points of each column to these, in fit and predict: waves do not
        decay, so a single far-out row would ruin the predictions around it
    kernel : "gaussian", "matern12", "matern32", "matern52" or a kernel object with starting values
    objective : "marginal"; the ELBO needs features below the kernel
    variance : "lowrank"; random features lose no prior variance on average
    length_scale, signal_variance, noise_variance : starting values in the units of the data, kept when
        ``optimize=False``. Signal variance and noise are optimised in closed form, so with ``optimize=True`` their
        starting values do not matter.
    max_iter, standardize, calibrate, dtype, engine, checkpoint, cap_rank, random_state, verbose, callbacks :
        as in ``MercerGP``
    """

    def __init__(
        self,
        rank: int | Literal["auto"] = 100,
        *,
        tolerance: float = 1e-3,
        max_rank: int = 1_000,
        sampling: str = "auto",
        learn_frequencies: bool = False,
        winsorize: bool = True,
        kernel: str | Kernel = "gaussian",
        objective: str = "marginal",
        variance: str = "lowrank",
        length_scale: float | Sequence[float] | None = None,
        signal_variance: float | None = None,
        noise_variance: float | None = None,
        optimize: bool = True,
        max_iter: int = 200,
        standardize: bool = True,
        calibrate: bool = False,
        dtype: str = "float64",
        engine: Any = "local",
        checkpoint: str | Path | None = None,
        cap_rank: bool = True,
        random_state: Any = None,
        verbose: int = 0,
        callbacks: Sequence[Callback] | None = None,
    ) -> None:
        self.rank = rank
        self.tolerance = tolerance
        self.max_rank = max_rank
        self.sampling = sampling
        self.learn_frequencies = learn_frequencies
        self.winsorize = winsorize
        self.kernel = kernel
        self.objective = objective
        self.variance = variance
        self.length_scale = length_scale
        self.signal_variance = signal_variance
        self.noise_variance = noise_variance
        self.optimize = optimize
        self.max_iter = max_iter
        self.standardize = standardize
        self.calibrate = calibrate
        self.dtype = dtype
        self.engine = engine
        self.checkpoint = checkpoint
        self.cap_rank = cap_rank
        self.random_state = random_state
        self.verbose = verbose
        self.callbacks = callbacks

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_minorising("objective", self.objective, "elbo", OBJECTIVES, "FourierGP")
        check_minorising("variance", self.variance, "dtc", VARIANCES, "FourierGP")
        check_choice("sampling", self.sampling, ("auto", *SAMPLINGS))

    def _usable_rank(self, rank: object) -> int:
        return capped_rank(rank, self._summary.distinct_rows, self.cap_rank, multiple=2)

    def _plan(self, source: RowSource, rows: TrialRows, rank: int, max_iter: int, rng: np.random.Generator) -> Plan:
        D = source.n_columns
        row_rng, design_rng = rng.spawn(2)  # so that frequencies do not depend on the number of rows
        start = starting_values(self, self._standardiser, float(np.sqrt(D)))
        near = source.sample(_DESIGN_ROWS, row_rng).X / start.kernel.length_scale
        data = DataSummary(near, source.n_rows, start.noise_variance / float(start.kernel.signal_variance))
        sampling = "orthogonal" if self.sampling == "auto" else self.sampling
        design = spectral_design(sampling, start.kernel, rank // 2, D, design_rng, data)
        sample = source.sample(_CLIP_ROWS, row_rng)
        transform = Clip.at_quantiles(sample.X, _CLIP_TAIL) if self.winsorize else Identity(D)
        candidates = []
        for name, scales in self._starting_scales(start.kernel, sample).items():
            kernel = type(start.kernel)(scales)
            features = FourierMap(kernel, design, learn_frequencies=self.learn_frequencies)
            model = LowRankModel(transform, features)
            candidates.append(Candidate(name, model, *self._stages(model, source, rows, max_iter, row_rng)))
        return Plan.of(candidates, start)

    def _stages(
        self,
        model: LowRankModel,
        source: RowSource,
        rows: TrialRows,
        max_iter: int,
        rng: np.random.Generator,
    ) -> tuple[list[list[Stage]], list[Stage]]:
        """Stages of a trial on the subsample, and those of the fit itself. Frequencies are learned from a model that
        already fits; from a bad one they go astray.
        """

        frequencies = model.features.get_parameter("frequencies")

        def begin() -> None:
            frequencies.requires_grad_(False)
            self._starting_scale(model, source, rng)

        def free() -> None:
            frequencies.requires_grad_(True)

        share = round(_TRIAL_SHARE * max_iter)
        trial = [Stage(rows.learn, share, begin)]
        if self.learn_frequencies:
            trial.append(Stage(rows.learn, share, free))
        left = max_iter - sum(stage.max_iter for stage in trial)
        rounds = [[stage for stage in trial if stage.max_iter]] if share else []
        return rounds, [Stage(source, left, None if share else begin)]

    def _starting_scales(self, kernel: Kernel, sample: Chunk) -> dict[str, Tensor]:
        """By name, the length-scales from which a fit may start: as given, or alike in all columns, or shorter in
        columns that a linear fit finds relevant.
        """
        if self.length_scale is not None or isinstance(self.kernel, Kernel) or not self.optimize:
            return {"as given": kernel.length_scale}
        alike = {"alike": kernel.length_scale}
        if kernel.length_scale.numel() == 1:
            return alike
        slopes = linear_slopes(sample.X, sample.y).abs()
        relevance = (slopes / slopes.square().mean().sqrt().clamp_min(1e-300)).clamp(*_RELEVANCE)
        return alike | {"by linear relevance": kernel.length_scale / relevance}

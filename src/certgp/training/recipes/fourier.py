"""How a Fourier GP is trained: frequencies drawn once, length-scales learned, starts compared on a subsample."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from certgp.checks import check_choice
from certgp.data import Chunk
from certgp.features import FourierMap
from certgp.features.spectral import SAMPLINGS, DataSummary, spectral_design
from certgp.gp import LowRankModel
from certgp.kernels import Kernel
from certgp.training.full_batch.stages import Stage
from certgp.training.full_batch.trials import Candidate
from certgp.training.recipes.settings import AUTOMATIC, Settings, check_needs_domination
from certgp.training.recipes.staged import Job, Plan, Recipe
from certgp.transforms import Clip, Identity, linear_slopes

_DESIGN_ROWS = 300
_CLIP_ROWS = 100_000
_CLIP_TAIL = 0.001  # of each column's rows, on either side (docs/decisions/0003)
_TRIAL_SHARE = 0.15  # of max_iter: trial of a start, and again of learned frequencies
_RELEVANCE = (0.2, 5.0)  # how far a length-scale may start from the common one


@dataclass(frozen=True, eq=False)
class FourierRecipe(Recipe):
    """cos/sin pairs; the parameters are those of ``FourierGP``."""

    sampling: str
    learn_frequencies: bool
    winsorize: bool
    group: ClassVar[int] = 2

    def check(self, settings: Settings) -> None:
        check_needs_domination(settings, "FourierGP")
        check_choice("sampling", self.sampling, ("auto", *SAMPLINGS))

    def plan(self, job: Job) -> Plan:
        settings, source, D = job.settings, job.source, job.source.n_columns
        row_rng, design_rng = job.rng.spawn(2)  # so that frequencies do not depend on the number of rows
        job = replace(job, rng=row_rng)
        start = settings.start(float(np.sqrt(D)))
        start.kernel.check_spectral_law()
        near = source.sample(_DESIGN_ROWS, row_rng).X / start.kernel.values["length_scale"]
        data = DataSummary(near, job.n_rows, start.noise_variance / float(start.kernel.signal_variance))
        sampling = "orthogonal" if self.sampling == "auto" else self.sampling
        design = spectral_design(sampling, start.kernel, job.rank // 2, D, design_rng, data)
        sample = source.sample(_CLIP_ROWS, row_rng)
        # rank="auto" is judged by the exact GP on the rows as they are, and every row that is moved counts against it
        tail = 0.0 if settings.rank == AUTOMATIC else _CLIP_TAIL
        transform = Clip.at_quantiles(sample.X, tail) if self.winsorize else Identity(D)
        candidates = []
        for name, scales in self._starting_scales(settings, start.kernel, sample).items():
            kernel = start.kernel.replace(length_scale=scales)
            features = FourierMap(kernel, design, learn_frequencies=self.learn_frequencies)
            model = LowRankModel(transform, features)
            candidates.append(Candidate(name, model, *self._stages(job, model, features)))
        return Plan.of(candidates, start)

    def _stages(self, job: Job, model: LowRankModel, features: FourierMap) -> tuple[list[list[Stage]], list[Stage]]:
        """Stages of a trial on the subsample, and those of the fit itself. Frequencies are learned from a model that
        already fits; from a bad one they go astray.
        """

        def begin() -> None:
            features.frequencies.requires_grad_(False)
            job.choose_length_scales(model)

        def free() -> None:
            features.frequencies.requires_grad_(True)

        learn, max_iter = job.rows.learn, job.settings.max_iter
        share = round(_TRIAL_SHARE * max_iter)
        trial = [Stage(learn, share, begin)]
        if self.learn_frequencies:
            trial.append(Stage(learn, share, free))
        left = max_iter - sum(stage.max_iter for stage in trial)
        rounds = [[stage for stage in trial if stage.max_iter]] if share else []
        return rounds, [Stage(job.source, left, None if share else begin)]

    def _starting_scales(self, settings: Settings, kernel: Kernel, sample: Chunk) -> dict[str, Tensor]:
        """By name, the length-scales from which a fit may start: as given, or alike in all columns, or shorter in
        columns that a linear fit finds relevant.
        """
        if settings.lengths_are_given or not settings.optimize:
            return {"as given": kernel.values["length_scale"]}
        alike = {"alike": kernel.values["length_scale"]}
        if alike["alike"].numel() == 1:
            return alike
        slopes = torch.stack([linear_slopes(rows.X, rows.y).abs() for rows in sample.outputs() if len(rows.y)]).mean(0)
        relevance = (slopes / slopes.square().mean().sqrt().clamp_min(1e-300)).clamp(*_RELEVANCE)
        return alike | {"by linear relevance": alike["alike"] / relevance}

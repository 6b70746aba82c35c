"""What every recipe is told: where to start, how long to train, in which arithmetic, on which machine."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray

from certgp.checks import check_choice, check_count, check_positive, check_positives
from certgp.data import Chunk, ChunkSource, Standardiser
from certgp.data.summary import DISTINCT_LIMIT
from certgp.engines import Engine, LocalEngine
from certgp.errors import InvalidInputError
from certgp.gp import NOISES
from certgp.kernels import Kernel, named_kernel
from certgp.training.evaluation_log import FitCheckpoint
from certgp.training.history import Callback
from certgp.training.progress import ProgressLine
from certgp.training.stopping import StopRule, stop_rules

AUTOMATIC: Literal["auto"] = "auto"
OBJECTIVES = ("marginal", "elbo")
LIKELIHOODS = ("gaussian", "student")
VARIANCES = ("dtc", "lowrank", "paper")
DTYPES = {"float64": torch.float64, "float32": torch.float32, "mixed": torch.float64}  # of passes over all rows
_DEFAULT_NOISE_RATIO = 0.1


@dataclass(frozen=True, eq=False)
class Start:
    """Kernel and noise at which a fit starts, in standardised units."""

    kernel: Kernel
    noise_variance: float


@dataclass(frozen=True, eq=False, kw_only=True)
class Settings:
    """The parameters that recipes share, by the names that users type; making one refuses what cannot work.

    Kernel, length-scales and variances are as the user gave them; ``start`` brings them to standardised units.
    """

    standardiser: Standardiser
    new_generator: Callable[[], np.random.Generator]  # from its beginning at every call
    checkpoint: FitCheckpoint | None = None
    distinct_rows: int = DISTINCT_LIMIT  # of the rows to fit, counted up to that limit
    rank: int | Literal["auto"] = 0
    tolerance: float = 1e-3
    max_rank: int = 1_000
    kernel: str | Kernel = "gaussian"
    length_scale: float | Sequence[float] | None = None
    signal_variance: float | None = None
    noise_variance: float | None = None
    noise: str = "auto"
    likelihood: str = "gaussian"
    confirm: bool = True
    optimize: bool = True
    objective: str = "marginal"
    variance: str = "lowrank"
    max_iter: int = 100
    dtype: str = "float64"
    engine: Engine = LocalEngine()  # noqa: RUF009 (frozen)
    cap_rank: bool = True
    growing: bool = True
    verbose: int = 0
    callbacks: Sequence[Callback] | None = None
    stop: StopRule | None = None  # of the time limit
    line: ProgressLine | None = None  # behind ``verbose``

    def __post_init__(self) -> None:
        check_choice("objective", self.objective, OBJECTIVES)
        check_choice("variance", self.variance, VARIANCES)
        check_choice("dtype", self.dtype, tuple(DTYPES))
        check_choice("noise", self.noise, NOISES)
        check_choice("likelihood", self.likelihood, LIKELIHOODS)
        self._check_student()
        check_count("max_iter", self.max_iter)
        if self.rank == AUTOMATIC:
            check_positive("tolerance", self.tolerance)
            check_count("max_rank", self.max_rank)
            if self.dtype == "float32":
                raise InvalidInputError(
                    "rank='auto' chooses the rank by a certificate, and float32 features leave rounding errors that no "
                    "certificate covers; use dtype='float64' or give a number as rank"
                )

    def _check_student(self) -> None:
        if not self.is_student:
            return
        if self.wants_input_noise:
            raise InvalidInputError(
                "likelihood='student' has a noise distribution of its own; use noise='auto' or 'constant' with it, or "
                "likelihood='gaussian'"
            )
        if self.checkpoint is not None:
            raise InvalidInputError(
                "likelihood='student' fits several times, which a checkpoint cannot tell apart; leave checkpoint out"
            )

    def with_parameters(self, parameters: Mapping[str, Any]) -> Settings:
        """With those of an estimator's parameters that recipes share."""
        shared = {field.name for field in fields(self)} - {
            "standardiser",
            "new_generator",
            "checkpoint",
            "distinct_rows",
            "engine",
            "stop",
            "line",
        }
        return replace(self, **{name: value for name, value in parameters.items() if name in shared})

    @property
    def tries_input_noise(self) -> bool:
        """Is noise(x) to be learned? With hyper-parameters held as given only where it was asked for."""
        return self.noise == "input" or (self.noise == AUTOMATIC and self.optimize and not self.is_student)

    @property
    def is_student(self) -> bool:
        """Is the noise Student's t, so that rows far from what the others say count less?"""
        return self.likelihood == "student"

    @property
    def wants_input_noise(self) -> bool:
        """Is noise(x) to be kept whether or not it pays?"""
        return self.noise == "input"

    @property
    def confirms(self) -> bool:
        """Do rows left out have a say in how far a fit is believed? Student-t noise has weighed the rows already."""
        return self.confirm and self.optimize and not self.is_student

    @property
    def lengths_are_given(self) -> bool:
        """Did the user say at which length-scales to start?"""
        return self.length_scale is not None or (isinstance(self.kernel, Kernel) and self.kernel.lengths_given)

    @property
    def observers(self) -> list[Callback]:
        """The user's callbacks, the time limit, and a printing one where ``verbose`` asks for it."""
        limit = [] if self.stop is None else [self.stop]
        return [*(self.callbacks or ()), *limit, *([self.line or ProgressLine()] if self.verbose else [])]

    @property
    def stop_rules(self) -> list[StopRule]:
        """What may put a fit off until later."""
        return stop_rules(self.observers)

    def is_up(self) -> bool:
        """Must the fit end now, within an iteration?"""
        return any([rule.is_up() for rule in self.stop_rules])  # noqa: C419 (all of them are to know it)

    def seconds_left(self) -> float:
        """Until the time limit; infinite without one."""
        return min((rule.seconds_left() for rule in self.stop_rules), default=math.inf)

    def has_time_for(self, seconds: float) -> bool:
        """Would so many more seconds of training leave time for what follows it?"""
        return all(rule.has_time_for(seconds) for rule in self.stop_rules)

    def tell_cut(self, what: str, words: str) -> None:
        """Remember what was shortened to keep to the time limit."""
        for rule in self.stop_rules:
            rule.cuts[what] = words

    @property
    def put_off(self) -> str | None:
        """Why the fit was ended before it was done, where it can go on later."""
        return next((rule.reason for rule in self.stop_rules if rule.reason is not None), None)

    def quiet(self, max_iter: int) -> Settings:
        """For a fit within a fit, that nobody is told of; the time limit is the same."""
        rules = stop_rules(self.callbacks)
        return replace(self, callbacks=rules or None, verbose=0, checkpoint=None, max_iter=max_iter)

    def kernel_object(self) -> Kernel:
        """The kernel as the user gave it, by name or as an object."""
        if not isinstance(self.kernel, (str, Kernel)):
            raise InvalidInputError(f"kernel must be a name or a kernel object, found {self.kernel!r}")
        return named_kernel(self.kernel) if isinstance(self.kernel, str) else self.kernel

    def start(self, default_length_scale: float, projected_dimension: int | None = None) -> Start:
        """Translate what the user gave, in the units of the data, into standardised units; fill in what is missing.

        With a projection or a warp the kernel works on standardised coordinates of its own, so length-scales are taken
        as they are.
        """
        start, standardiser = self.kernel_object(), self.standardiser
        d = len(standardiser.x_scale) if projected_dimension is None else projected_dimension
        mean, units = standardiser.kernel_units
        if projected_dimension is not None:
            mean, units = np.zeros(d), np.ones(d)
        if self.length_scale is not None:
            start = start.replace(length_scale=check_per_dimension("length_scale", self.length_scale, d))
        if self.signal_variance is not None:
            start = start.with_signal_variance(check_positive("signal_variance", self.signal_variance))
        noise = (
            _DEFAULT_NOISE_RATIO
            if self.noise_variance is None
            else check_positive("noise_variance", self.noise_variance) / standardiser.y_scale**2
        )
        return Start(start.to_standardised(mean, units, standardiser.y_scale, default_length_scale), noise)

    def convert_trial_rows(self, rows: Chunk) -> ChunkSource:
        """A subsample in the precision of trials: rounding does not matter where only a basin is sought."""
        dtype = torch.float64 if self.dtype == "float64" else torch.float32
        return ChunkSource(rows.to(dtype))


def check_per_dimension(name: str, value: Any, dimension: int) -> NDArray[np.float64]:
    """Positive numbers, one per kernel dimension; a single one serves all."""
    return check_positives(name, value, dimension, f"the kernel works in {dimension} dimension(s)")


def check_needs_domination(settings: Settings, model: str) -> None:
    """Refuse choices that need Phi Phi' <= K, for a model whose features do not give it."""
    for name, found, refused, other in (
        ("objective", settings.objective, "elbo", "marginal"),
        ("variance", settings.variance, "dtc", "lowrank"),
    ):
        if found == refused:
            raise InvalidInputError(
                f"{name}={refused!r} needs features that are dominated by the kernel (Phi Phi' <= K), which {model} "
                f"does not have; use {name}={other!r}"
            )

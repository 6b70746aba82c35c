r"""A curve from 25 points: f(x) = (3 sin 2x + cos 10x + x / 4) / 2 with x ~ N(0, 1).

[paper, appendix, "Curve learning via low-rank kernel approximations"]

As in the paper: 25 points without noise, 34 eigenfunctions (MGP, r = 34) and 34 frequencies (FGP, r = 68). The ranks
exceed the number of points, which is meant: ``cap_rank=False`` keeps them. Nor do rows left out have to confirm
the exact GP and the paper's models (``confirm=False``): they are as their likelihood has them. Two variants of each
model:

    paper    marginal likelihood; MGP: degrees 0, 1, .., r - 1 under the input measure of the standardised x, alpha =
             1 / sqrt 2 held; FGP: independent frequencies, inputs as they are
    certgp   the defaults of ``MercerGP`` (ELBO, greedy indices, input scale learned) and ``FourierGP`` (orthogonal
             frequencies, winsorised inputs)

The paper's text and its released code differ in the predictive variance of MGP, so the paper's MGP has both: "lowrank"
(the text, ``variance="paper"``) and "dtc" (the code, which adds the prior variance that truncation lost).

All models are trained by L-BFGS from the length-scale 0.2. The paper says only that its exact GP was trained by GPflow.
The evidence has several optima here, among them a smooth one that takes the cosine for noise; from 1, or by 300 steps
of Adam as in the paper's tables, all models end there. The value 0.2 was chosen by evidence on 100 points.

The grid reaches beyond the points.
"""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certgp.errors import CertgpWarning, InvalidInputError
from certgp.estimators import ExactGP, FourierGP, GPRegressor, MercerGP
from certgp.estimators.scores import Z95, rmse

Array = NDArray[np.float64]
PAPER, OWN = "paper", "certgp"
VARIANTS = (PAPER, OWN)
EXACT, MERCER, FOURIER = "exact", "Mercer", "Fourier"
LOW_RANK, DTC = "lowrank", "dtc"
POINTS = 25
MERCER_RANK = 34
FOURIER_RANK = 68
START_LENGTH_SCALE = 0.2
GRID = np.linspace(-2.5, 2.5, 501)
_NAMES = {(PAPER, MERCER): "MGP", (PAPER, FOURIER): "FGP", (OWN, MERCER): "MercerGP", (OWN, FOURIER): "FourierGP"}
_VARIANCE_NAMES = {LOW_RANK: "low-rank variance", DTC: "DTC variance"}


@dataclass(frozen=True)
class CurveModel:
    """One of the models of the figures, before it has seen points."""

    variant: str
    features: str
    rank: int
    variance: str

    @property
    def name(self) -> str:
        """MGP, r = 34, DTC variance."""
        if self.features == EXACT:
            return "exact GP"
        variance = f", {_VARIANCE_NAMES[self.variance]}" if (self.variant, self.features) == (PAPER, MERCER) else ""
        return f"{_NAMES[self.variant, self.features]}, r = {self.rank}{variance}"

    def build(self, x: Array, random_state: int) -> GPRegressor:
        """The estimator, unfitted; the inputs x (n,) set the input measure of the paper's MGP."""
        common: dict[str, Any] = {
            "length_scale": START_LENGTH_SCALE,
            "noise": "constant",
            "random_state": random_state,
            "confirm": self.variant == OWN and self.features != EXACT,
        }
        if self.features == EXACT:
            return ExactGP(**common)
        common |= {"rank": self.rank, "cap_rank": False}
        variance = "paper" if self.variance == LOW_RANK else self.variance
        if (self.variant, self.features) == (PAPER, MERCER):
            return MercerGP(
                projection=None,
                objective="marginal",
                index_set="total_degree",
                input_scale=float(x.std()),
                variance=variance,
                **common,
            )
        if (self.variant, self.features) == (PAPER, FOURIER):
            return FourierGP(sampling="iid", winsorize=False, variance=variance, **common)
        return MercerGP(projection=None, **common) if self.features == MERCER else FourierGP(**common)


def curve_models(variant: str, features: str, rank: int) -> list[CurveModel]:
    """The models of a variant: one for each variance that the paper's text or code has."""
    if variant not in VARIANTS or features not in (EXACT, MERCER, FOURIER):
        raise InvalidInputError(f"there is no model {features!r} of the variant {variant!r}; see curve_problem")
    if features == MERCER:
        return [CurveModel(variant, features, rank, kind) for kind in ((DTC, LOW_RANK) if variant == PAPER else (DTC,))]
    return [CurveModel(variant, features, rank, LOW_RANK)]  # random features lose no prior variance


@dataclass(frozen=True, eq=False)
class Curve:
    """One model's answer on the grid; the band holds f, not new observations, with probability 0.95."""

    name: str
    mean: Array
    lower: Array
    upper: Array
    rmse: float  # against the truth, over the grid, which reaches beyond the points
    rmse_inputs: (
        float  # the same for new inputs x ~ N(0, 1): grid points weighted by the density of the training inputs
    )
    coverage: float  # share of the grid at which the band holds the truth
    seconds: float  # fit and prediction

    @property
    def width(self) -> float:
        """Mean width of the band over the grid: how uncertain the model is."""
        return float(np.mean(self.upper - self.lower))

    def distances(self, other: Curve) -> dict[str, float]:
        """Root mean squared difference of mean and both ends of the band, in standard deviations of the other's mean
        over the grid."""
        spread = float(other.mean.std())
        return {
            "distance_mean": rmse(self.mean, other.mean) / spread,
            "distance_lower": rmse(self.lower, other.lower) / spread,
            "distance_upper": rmse(self.upper, other.upper) / spread,
        }


def true_curve(x: Array) -> Array:
    """f(x) = (3 sin 2x + cos 10x + x / 4) / 2."""
    return 0.5 * (3.0 * np.sin(2.0 * x) + np.cos(10.0 * x) + 0.25 * x)


def draw_points(n: int, seed: int, noise: float = 0.0) -> tuple[Array, Array]:
    """x (n,) and y (n,) of a point set."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(n)
    return x, true_curve(x) + noise * rng.standard_normal(n)


def fit_curve(model: CurveModel, x: Array, y: Array, random_state: int = 0) -> Curve:
    """Fit a model to points and ask it along the grid."""
    estimator = model.build(x, random_state)
    started = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CertgpWarning)  # of the grid beyond the points, and of slow convergence
        mean, std = estimator.fit(x[:, None], y).predict(GRID[:, None], return_std=True, include_noise=False)
    seconds = time.perf_counter() - started
    truth, half = true_curve(GRID), Z95 * std
    density = np.exp(-0.5 * np.square(GRID))
    return Curve(
        model.name,
        mean,
        lower=mean - half,
        upper=mean + half,
        rmse=rmse(mean, truth),
        rmse_inputs=float(np.sqrt(np.average(np.square(mean - truth), weights=density))),
        coverage=float(np.mean(np.abs(mean - truth) <= half)),
        seconds=seconds,
    )

"""All that a report says of a model, as plain values; nothing here is a row of the data."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from certgp.guarantees import Explanation
from certgp.report.card import Card

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Curve:
    """The average prediction along an input, or along a part of it such as the weekday of a date."""

    name: str
    grid: Array  # values (g,)
    mean: Array  # (g,) prediction averaged over held-out rows with the input set to the value
    lower: Array  # (g,) 95 % band of that average
    upper: Array
    labels: tuple[str, ...] = ()  # of the values, where they are no numbers


@dataclass(frozen=True, eq=False)
class Effect:
    """What one input does to the prediction."""

    name: str
    relevance: float  # by how much the RMSE of held-out rows grows when this column is shuffled, in the units of y
    relevance_error: float  # its standard error
    curves: tuple[Curve, ...] = ()  # where its effect is drawn


@dataclass(frozen=True)
class RankChoice:
    """What a rank gives and costs."""

    rank: int
    shift: float | None  # proven: typical distance to the exact GP, in predictive standard deviations
    nlpd: float | None  # of held-out rows
    megabytes: float  # of the model
    milliseconds: float  # to predict 1,000 rows


@dataclass(frozen=True)
class Advice:
    """Something to know, and what to do about it."""

    what: str
    remedy: str


@dataclass(frozen=True, eq=False)
class Facts:
    """The content of a report."""

    title: str
    target: str
    modelled: str  # what the model has learned: the target, or the logarithm of it
    columns: tuple[tuple[str, str], ...]  # what was done to each column of the table; none where they were numbers
    summary: tuple[str, ...]  # what was fitted, in sentences
    settings: tuple[tuple[str, str], ...]  # the same as names and values
    card: Card
    noise: float  # standard deviation, in the units of what the model has learned
    certificate: Explanation | None
    obstacle: str  # why there is no certificate, where there is none
    effects: tuple[Effect, ...]  # the most relevant input first
    ranks: tuple[RankChoice, ...]
    rank_obstacle: str  # why there is no choice of ranks, where there is none
    advice: tuple[Advice, ...]
    made: str  # version and date
    anchor: str = ""  # with which its ids begin, on a page about several outputs

    def id_of(self, part: str) -> str:
        """The id of a part of the page."""
        return f"{self.anchor}{part}"

"""Stacking: weights maximise the density of rows held out, and a mixture must pay on rows that they have not seen."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from certgp.errors import InvalidInputError
from certgp.training.recipes import Terms
from certgp.training.recipes.race.stacking import stack, stacking_weights


@dataclass(frozen=True)
class Finalist:
    """What stacking looks at."""

    name: str
    losses: np.ndarray


def finalists(n: int, shift: float) -> list[Finalist]:
    """Two models, each ``shift`` better on a half of the rows."""
    rng = np.random.default_rng(0)
    first = rng.random(n) < 0.5
    common = rng.standard_normal(n)
    return [Finalist("a", common + shift * first), Finalist("b", common + shift * ~first)]


def test_weights_are_those_that_maximise_the_density_of_the_mixture():
    densities = np.random.default_rng(1).standard_normal((2, 400)) + np.array([[0.3], [0.0]])
    found = minimize_scalar(
        lambda w: -np.log(w * np.exp(densities[0]) + (1 - w) * np.exp(densities[1])).mean(), bounds=(0, 1)
    )
    weights = stacking_weights(densities)
    assert weights.sum() == pytest.approx(1.0)
    assert weights[0] == pytest.approx(found.x, abs=1e-3)


def test_a_mixture_pays_where_each_is_better_on_some_rows():
    each = finalists(200, 3.0)
    found = stack(each, each[0], np.random.default_rng(0))
    assert found.pays
    assert found.weights == pytest.approx([0.5, 0.5], abs=0.1)
    assert found.gain == pytest.approx(1.5 - np.log(2.0), abs=0.3)  # half of the rows gain 3, all pay log 2


def test_a_mixture_with_a_copy_or_with_a_worse_model_does_not_pay():
    best = Finalist("best", np.random.default_rng(0).standard_normal(200))
    for other in (Finalist("copy", best.losses), Finalist("worse", best.losses + 2.0)):
        found = stack([best, other], best, np.random.default_rng(0))
        assert not found.pays
        assert found.gain <= 1e-3


def test_a_member_that_hardly_counts_is_left_out():
    each = [*finalists(300, 3.0), Finalist("worst", np.full(300, 50.0))]
    assert {member.name for member in stack(each, each[0], np.random.default_rng(0)).standings} == {"a", "b"}


def test_a_mixture_and_a_proof_cannot_both_be_asked_for():
    with pytest.raises(InvalidInputError, match="combine=True may end with a mixture"):
        Terms(combine=True, prefer="proof")

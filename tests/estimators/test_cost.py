"""What a fit will cost, before it begins."""

from __future__ import annotations

import numpy as np
import pytest

from certgp import ExactGP, FourierGP, InvalidInputError, MercerGP, estimate_fit


def rows(n: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, 2))
    return X, X[:, 0] + 0.1 * rng.standard_normal(n)


def test_an_estimate_says_rows_passes_memory_and_seconds():
    X, y = rows(300_000)
    model = MercerGP(10, random_state=0)
    found = estimate_fit(model, X, y)
    assert (found.n_rows, found.rank, found.rank_in_time) == (300_000, 10, None)
    assert found.seconds == pytest.approx(found.passes * found.seconds_per_evaluation)
    assert 0.0 < found.seconds_per_pass < found.seconds_per_evaluation
    assert found.memory >= 8 * 65_536 * 3
    assert "300,000 rows at rank 10" in str(found)
    assert "_model" not in vars(model) or model._model is None
    few = estimate_fit(MercerGP(10, random_state=0, growing=False), X, y)
    assert few.passes > 2 * found.passes  # subsets that grow are what saves them


def test_a_longer_time_allows_a_larger_rank():
    X, y = rows(20_000)
    ranks = [estimate_fit(FourierGP(20, random_state=0), X, y, max_seconds=limit).rank_in_time for limit in (1e-6, 1e6)]
    assert ranks[0] == 2
    assert ranks[1] == 4_000


def test_other_models_are_refused():
    with pytest.raises(InvalidInputError, match="estimate_fit is for MercerGP, FourierGP and SparseGP, found ExactGP"):
        estimate_fit(ExactGP(), *rows(50))
    with pytest.raises(InvalidInputError, match="max_seconds must be"):
        estimate_fit(MercerGP(5), *rows(50), max_seconds=-1.0)

"""The local engine: a fold whose result does not depend on how the rows are cut."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from certgp.data import Chunk, ChunkSource
from certgp.engines import LocalEngine
from certgp.engines.folds import fold_feature_statistics, fold_statistics
from certgp.engines.local import default_chunk_rows
from certgp.errors import InvalidInputError
from certgp.features import MercerMap, NystromMap
from certgp.gp import Statistics, log_evidence
from certgp.kernels import Gaussian
from helpers import identity_model, random_inputs, random_target, relative_error


def source_of(X, y) -> ChunkSource:
    return ChunkSource(Chunk(X, y))


class Rows(list):
    """Lists as a monoid: concatenation shows which rows were seen, and in which order."""

    def __add__(self, other):
        return Rows([*self, *other])


@given(rows=st.integers(1, 50), chunk_rows=st.integers(1, 60))
@settings(deadline=None, derandomize=True, max_examples=40)
def test_every_row_is_seen_once_and_in_order(rows, chunk_rows):
    X = random_inputs(0, rows, 2)
    source = source_of(X, X[:, 0])
    seen = LocalEngine(chunk_rows).fold(lambda chunk: Rows([chunk.X.tolist()]), source, 5)
    assert all(len(part) <= chunk_rows for part in seen)
    assert [row for part in seen for row in part] == X.tolist()


@pytest.mark.parametrize("chunk_rows", [1, 7, 64, 200, 500, None])
@pytest.mark.parametrize("kind", ["mercer", "nystrom"])
def test_chunks_and_row_order_do_not_change_statistics_or_evidence(chunk_rows, kind):
    X = random_inputs(1, 200, 2)
    y = random_target(X, 1)
    features = {
        "mercer": MercerMap(Gaussian(0.9), [1.0, 1.0], 15),
        "nystrom": NystromMap(Gaussian(0.9), X[:15], jitter=1e-4),
    }[kind]
    model, order = identity_model(features), np.random.default_rng(2).permutation(200)
    whole = fold_feature_statistics(model, source_of(X, y), LocalEngine(200))
    for rows in (source_of(X, y), source_of(X[order], y[order])):
        found = fold_feature_statistics(model, rows, LocalEngine(chunk_rows))
        assert found.n == 200
        assert relative_error(found.A, whole.A) < 1e-9
        assert relative_error(found.b, whole.b) < 1e-9
        assert relative_error(found.yty, whole.yty) < 1e-9
        assert relative_error(log_evidence(found, 0.1), log_evidence(whole, 0.1)) < 1e-9


def test_mixing_the_raw_statistics_gives_those_of_the_features():
    X = random_inputs(3, 100, 2)
    model = identity_model(NystromMap(Gaussian(0.5), X[:12], jitter=1e-4, learn_inducing=False))
    source, engine = source_of(X, random_target(X, 3)), LocalEngine(30)
    mixed = fold_statistics(model, source, engine).mixed(model.features.mixing().detach())
    direct = fold_feature_statistics(model, source, engine)
    assert relative_error(mixed.A, direct.A) < 1e-9
    assert relative_error(mixed.b, direct.b) < 1e-9


def test_folding_carries_no_gradient():
    X = random_inputs(4, 10, 1)
    model = identity_model(MercerMap(Gaussian([1.0]), [1.0], 4))
    stats: Statistics = fold_statistics(model, source_of(X, X[:, 0]), LocalEngine())
    assert not stats.A.requires_grad
    assert not stats.b.requires_grad


@pytest.mark.parametrize("rank", [0, 1, 16, 100, 300, 1024, 5000, 10**7])
def test_default_chunk_is_bounded(rank):
    rows = default_chunk_rows(rank)
    assert 1024 <= rows <= 65_536
    assert rows == 1024 or rows * rank <= 2**22


@pytest.mark.parametrize("bad", [0, -5, 2.5, True, "10"])
def test_chunk_rows_must_be_a_positive_whole_number(bad):
    with pytest.raises(InvalidInputError, match="chunk_rows must be a positive whole number or None, found"):
        LocalEngine(bad)


def test_default_chunk_shrinks_with_the_rank():
    sizes = [default_chunk_rows(rank) for rank in range(1, 3000, 50)]
    assert sizes == sorted(sizes, reverse=True)

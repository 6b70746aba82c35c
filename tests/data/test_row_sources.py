"""Sources of chunks: arrays, standardised on the way, and tensors already in memory."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from certgp.data import Chunk, ChunkSource, StandardisedRows, Standardiser, as_rows, sources


def example(rows: int = 23, columns: int = 3, dtype=np.float64) -> tuple[np.ndarray, np.ndarray, Standardiser]:
    rng = np.random.default_rng(0)
    X, y = (5.0 + 2.0 * rng.standard_normal((rows, columns))).astype(dtype), rng.standard_normal(rows).astype(dtype)
    return X, y, Standardiser.fit(X, y)


@pytest.fixture(params=["cached", "streamed"])
def caching(request, monkeypatch):
    """Both ways through the source: the copy made once, and the conversion at every pass."""
    if request.param == "streamed":
        monkeypatch.setattr(sources, "KEPT_BYTES", -1)


@pytest.mark.usefixtures("caching")
@pytest.mark.parametrize("rows", [1, 5, 22, 23, 24, 1000])
def test_chunks_hold_all_rows_in_order_standardised(rows):
    X, y, standardiser = example()
    source = StandardisedRows(as_rows(X, y), standardiser)
    for _ in range(2):  # a source can be read again
        chunks = list(source.chunks(rows))
        assert all(chunk.X.shape[0] == chunk.y.shape[0] <= rows for chunk in chunks)
        np.testing.assert_array_equal(torch.cat([c.X for c in chunks]).numpy(), standardiser.inputs(X))
        np.testing.assert_array_equal(torch.cat([c.y for c in chunks]).numpy(), standardiser.target(y))
    assert (source.n_rows, source.n_columns) == X.shape


@pytest.mark.usefixtures("caching")
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_chunks_have_the_type_asked_for_and_samples_are_float64(dtype):
    X, y, standardiser = example()
    source = StandardisedRows(as_rows(X, y), standardiser, dtype)
    chunk = next(source.chunks(4))
    assert chunk.X.dtype == chunk.y.dtype == dtype
    sample = source.sample(4, np.random.default_rng(0))
    assert sample.X.dtype == sample.y.dtype == torch.float64


@pytest.mark.usefixtures("caching")
def test_the_array_itself_is_not_changed():
    X, y, _ = example()
    before = X.copy(), y.copy()
    for chunk in StandardisedRows(as_rows(X, y), Standardiser.identity(3)).chunks(7):
        chunk.X.zero_()
        chunk.y.zero_()
    np.testing.assert_array_equal(X, before[0])
    np.testing.assert_array_equal(y, before[1])


@given(rows=st.integers(1, 40), seed=st.integers(0, 100))
@settings(deadline=None, derandomize=True, max_examples=40)
def test_sample_is_without_replacement_and_in_order(rows, seed):
    X, y, standardiser = example()
    sample = StandardisedRows(as_rows(X, y), standardiser).sample(rows, np.random.default_rng(seed))
    whole = standardiser.inputs(X)
    positions = [int(np.flatnonzero((whole == row).all(axis=1))[0]) for row in sample.X.numpy()]
    assert len(positions) == min(rows, 23)
    assert positions == sorted(set(positions))
    np.testing.assert_array_equal(sample.y.numpy(), standardiser.target(y)[positions])


def test_every_row_is_equally_likely_in_a_sample():
    X, y, standardiser = example(rows=10, columns=1)
    source = StandardisedRows(as_rows(X, y), standardiser)
    draws = 2000
    counts = np.zeros(10)
    whole = standardiser.inputs(X)[:, 0]
    for seed in range(draws):
        counts += np.isin(whole, source.sample(3, np.random.default_rng(seed)).X[:, 0].numpy())
    z = (counts - 0.3 * draws) / np.sqrt(draws * 0.3 * 0.7)
    assert np.abs(z).max() < 4.5


def test_memory_maps_are_read_in_chunks(tmp_path, monkeypatch):
    monkeypatch.setattr(sources, "KEPT_BYTES", -1)
    X, y, _ = example(rows=50)
    np.save(tmp_path / "X.npy", X.astype(np.float32))
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    standardiser = Standardiser.fit(mapped, y)
    chunks = list(StandardisedRows(as_rows(mapped, y), standardiser).chunks(8))
    assert len(chunks) == 7
    np.testing.assert_allclose(
        torch.cat([c.X for c in chunks]).numpy(), standardiser.inputs(np.asarray(mapped)), rtol=1e-15
    )
    assert chunks[0].X.dtype == torch.float64


# -------------------- rows already in memory


def in_memory(dtype: torch.dtype = torch.float64) -> tuple[torch.Tensor, torch.Tensor, ChunkSource]:
    X, y, _ = example()
    rows = Chunk(torch.from_numpy(X).to(dtype), torch.from_numpy(y).to(dtype))
    return rows.X, rows.y, ChunkSource(rows)


@pytest.mark.parametrize("rows", [1, 5, 23, 100])
def test_tensors_are_handed_out_unchanged_and_in_order(rows):
    X, y, source = in_memory(torch.float32)
    chunks = list(source.chunks(rows))
    assert all(chunk.X.shape[0] == chunk.y.shape[0] <= rows for chunk in chunks)
    assert torch.equal(torch.cat([c.X for c in chunks]), X)
    assert torch.equal(torch.cat([c.y for c in chunks]), y)
    assert (source.n_rows, source.n_columns) == X.shape


@given(rows=st.integers(1, 40), seed=st.integers(0, 100))
@settings(deadline=None, derandomize=True, max_examples=30)
def test_sample_of_tensors_is_without_replacement_in_order_and_float64(rows, seed):
    X, y, source = in_memory(torch.float32)
    sample = source.sample(rows, np.random.default_rng(seed))
    positions = [int((X.double() == row).all(1).nonzero()[0, 0]) for row in sample.X]
    assert sample.X.dtype == sample.y.dtype == torch.float64
    assert len(positions) == min(rows, 23)
    assert positions == sorted(set(positions))
    assert torch.equal(sample.y, y[positions].double())

"""Data sets are found where CERTGP_DATA says, and a missing one says what to do."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from certgp.data import data_directory, dataset_names, dataset_path, load_dataset
from certgp.data.registry import DATA_VARIABLE
from certgp.errors import DataFileError


def test_the_variable_names_the_directory(monkeypatch, tmp_path):
    monkeypatch.setenv(DATA_VARIABLE, str(tmp_path))
    assert data_directory() == tmp_path
    assert dataset_path("yacht") == tmp_path / "yacht.npz"


@pytest.mark.parametrize("value", [None, ""])
def test_the_default_is_the_users_cache(monkeypatch, tmp_path, value):
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv(DATA_VARIABLE, raising=False)
    if value is not None:
        monkeypatch.setenv(DATA_VARIABLE, value)
    assert data_directory() == tmp_path / "certgp"


def test_the_default_on_macos_and_without_xdg(monkeypatch):
    monkeypatch.delenv(DATA_VARIABLE, raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr("sys.platform", "linux")
    assert data_directory() == Path.home() / ".cache" / "certgp"
    monkeypatch.setattr("sys.platform", "darwin")
    assert data_directory() == Path.home() / "Library" / "Caches" / "certgp"


def test_unknown_names_list_the_known_ones():
    with pytest.raises(DataFileError, match="unknown data set 'iris'; known ones: elevators, protein"):
        load_dataset("iris")


def test_a_missing_file_says_where_to_put_it(monkeypatch, tmp_path):
    monkeypatch.setenv(DATA_VARIABLE, str(tmp_path))
    with pytest.raises(DataFileError, match=r"yacht\.npz is missing; put it there or set CERTGP_DATA"):
        load_dataset("yacht")


def test_arrays_come_back_as_stored(monkeypatch, tmp_path):
    monkeypatch.setenv(DATA_VARIABLE, str(tmp_path))
    X, y = np.arange(6.0).reshape(3, 2), np.arange(3.0)
    np.savez(tmp_path / "yacht.npz", X=X, y=y)
    loaded_X, loaded_y = load_dataset("yacht")
    np.testing.assert_array_equal(loaded_X, X)
    np.testing.assert_array_equal(loaded_y, y)


@pytest.mark.parametrize("name", dataset_names())
def test_stored_data_sets_are_what_the_registry_says(name):
    from certgp.data.registry import _DATASETS

    path = dataset_path(name)
    if not path.exists():
        pytest.skip(f"{path} is not on this machine; set {DATA_VARIABLE} to the directory that holds it")
    X, y = load_dataset(name)
    info = _DATASETS[name]
    assert X.shape == (info.n_rows, info.n_columns)
    assert y.shape == (info.n_rows,)
    assert np.isfinite(X).all()
    assert np.isfinite(y).all()

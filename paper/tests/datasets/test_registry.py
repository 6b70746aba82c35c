"""Data sets are found where CERTGP_DATA says, and a missing one says what to do."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

from certgp.errors import DataFileError
from certgp_paper.datasets import data_directory, dataset_info, dataset_names, dataset_path, load_dataset
from certgp_paper.datasets.registry import DATA_VARIABLE, local_dataset


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
    with pytest.raises(
        DataFileError, match=r"yacht\.npz is missing; get it with 'certgp datasets fetch yacht', or set CERTGP_DATA"
    ):
        load_dataset("yacht")


def test_arrays_come_back_as_stored(monkeypatch, tmp_path):
    monkeypatch.setenv(DATA_VARIABLE, str(tmp_path))
    X, y = np.arange(6.0).reshape(3, 2), np.arange(3.0)
    np.savez(tmp_path / "yacht.npz", X=X, y=y)
    loaded_X, loaded_y = load_dataset("yacht")
    np.testing.assert_array_equal(loaded_X, X)
    np.testing.assert_array_equal(loaded_y, y)


def test_a_damaged_file_says_what_to_do(monkeypatch, tmp_path):
    monkeypatch.setenv(DATA_VARIABLE, str(tmp_path))
    (tmp_path / "yacht.npz").write_bytes(b"not an archive")
    for read in (load_dataset, local_dataset):
        with pytest.raises(DataFileError, match=r"yacht\.npz is damaged .*certgp datasets fetch yacht"):
            read("yacht")


def test_shapes_come_from_headers_alone(monkeypatch, tmp_path):
    monkeypatch.setenv(DATA_VARIABLE, str(tmp_path))
    np.savez_compressed(tmp_path / "yacht.npz", X=np.zeros((308, 6)), y=np.zeros(308))
    monkeypatch.setattr(np, "load", None)  # would fail
    assert local_dataset("yacht").shape == (308, 6)
    assert local_dataset("yacht").difference == ""
    assert local_dataset("bike").shape is None
    assert local_dataset("bike").difference == ""


def test_files_that_differ_are_labelled(monkeypatch, tmp_path):
    monkeypatch.setenv(DATA_VARIABLE, str(tmp_path))
    np.savez(tmp_path / "bike.npz", X=np.zeros((17_379, 17)), y=np.zeros(17_379))
    np.savez(tmp_path / "yacht.npz", X=np.zeros((3, 2)), y=np.zeros(3))
    assert local_dataset("bike").difference.startswith("not one-hot encoded")
    assert local_dataset("yacht").difference == "3 x 2 instead of 308 x 6"


@pytest.mark.parametrize("name", dataset_names())
def test_entries_are_complete(name):
    info = dataset_info(name)
    assert info.files
    for file in info.files:
        assert re.fullmatch(r"https?://[\w.]+/\S+", file.url)
        assert file.sha256 is None or re.fullmatch("[0-9a-f]{64}", file.sha256)
        assert file.sha256 is not None or any("checksum" in note for note in info.unverified)
    module, function = info.parser.split(":")
    assert callable(getattr(import_module(f"certgp_paper.datasets.preparation.{module}"), function))


def test_the_paper_has_ten_of_them():
    assert {name for name in dataset_names() if dataset_info(name).in_paper} == {
        "bike", "elevators", "superconduct", "protein", "sarcos", "keggdirected", "3droad", "song", "buzz", "electric",
    }  # fmt: skip


@pytest.mark.parametrize("name", dataset_names())
def test_stored_data_sets_are_what_the_registry_says(name):
    local = local_dataset(name)
    if local.shape is None:
        pytest.skip(f"{local.path} is not on this machine; set {DATA_VARIABLE} to the directory that holds it")
    X, y = load_dataset(name)
    assert X.shape == local.shape
    known = {(local.info.n_rows, local.info.n_columns), *((v.n_rows, v.n_columns) for v in local.info.variants)}
    assert X.shape in known
    assert y.shape == (len(X),)
    assert np.isfinite(X).all()
    assert np.isfinite(y).all()

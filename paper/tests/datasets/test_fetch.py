"""From an address to NAME.npz, against a real server."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from local_server import serving
from original_files import lines, numbers, zip_named

from certgp.errors import DataFileError
from certgp_paper.datasets import fetch_dataset, load_dataset
from certgp_paper.datasets.catalogue import DATASETS, RemoteFile
from certgp_paper.datasets.download import DownloadError
from certgp_paper.datasets.registry import DATA_VARIABLE

VALUES = numbers(308, 7)


@pytest.fixture
def server(monkeypatch, tmp_path):
    """A server that has the yacht data, which the registry now expects there."""
    monkeypatch.setenv(DATA_VARIABLE, str(tmp_path / "data"))
    archive = zip_named(tmp_path / "a.zip", {"yacht_hydrodynamics.data": lines(VALUES, " ")})
    with serving({"yacht.zip": archive.read_bytes()}) as state:
        file = RemoteFile("yacht.zip", f"{state.url}/yacht.zip")
        monkeypatch.setitem(DATASETS, "yacht", dataclasses.replace(DATASETS["yacht"], files=(file,)))
        yield state


def test_a_data_set_is_downloaded_and_prepared(server, tmp_path):
    fetched = fetch_dataset("yacht")
    assert (fetched.n_rows, fetched.n_columns, fetched.was_there, fetched.difference) == (308, 6, False, "")
    X, y = load_dataset("yacht")
    np.testing.assert_array_equal(np.column_stack([X, y]), VALUES)
    assert sorted(p.name for p in (tmp_path / "data").iterdir()) == ["downloads", "yacht.npz"]
    assert fetch_dataset("yacht").was_there
    assert len(server.requests) == 1


def test_what_is_there_takes_precedence_and_is_labelled(server, tmp_path):
    (tmp_path / "data").mkdir()
    np.savez(tmp_path / "data" / "yacht.npz", X=np.ones((2, 3)), y=np.ones(2))
    fetched = fetch_dataset("yacht")
    assert fetched.was_there
    assert fetched.difference == "2 x 3 instead of 308 x 6"
    assert load_dataset("yacht")[0].shape == (2, 3)
    assert server.requests == []


def test_a_download_is_prepared_again_without_the_network(server, tmp_path):
    fetch_dataset("yacht")
    (tmp_path / "data" / "yacht.npz").unlink()
    server.files.clear()
    assert fetch_dataset("yacht").n_rows == 308


def test_an_unusable_download_leaves_no_data_set(server, tmp_path):
    server.files["yacht.zip"] = b"<html>sorry</html>"
    with pytest.raises(DataFileError, match=r"yacht\.zip is not a whole archive"):
        fetch_dataset("yacht")
    assert not (tmp_path / "data" / "yacht.npz").exists()
    (tmp_path / "data" / "downloads" / "yacht" / "yacht.zip").unlink()  # as the message says
    server.files["yacht.zip"] = (tmp_path / "a.zip").read_bytes()
    assert fetch_dataset("yacht").n_rows == 308


def test_fewer_rows_than_expected_are_labelled(server, tmp_path):
    archive = zip_named(tmp_path / "b.zip", {"yacht_hydrodynamics.data": lines(VALUES[:300], " ")})
    server.files["yacht.zip"] = archive.read_bytes()
    assert fetch_dataset("yacht").difference == "300 x 6 instead of 308 x 6"


def test_a_missing_source_is_reported(server):
    server.files.clear()
    with pytest.raises(DownloadError, match="404"):
        fetch_dataset("yacht")


def test_a_data_directory_that_cannot_be_made(server, monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv(DATA_VARIABLE, str(tmp_path / "file"))
    with pytest.raises(DataFileError, match="set CERTGP_DATA to a directory that you may write to"):
        fetch_dataset("yacht")

"""certgp datasets: what is listed, where it is said to be, and what fetching shows."""

from __future__ import annotations

import dataclasses
import io
import json
import zipfile
from contextlib import redirect_stderr
from pathlib import Path

import numpy as np
import pytest

from certgp.cli.main import main
from certgp_paper.datasets.catalogue import DATASETS, RemoteFile
from certgp_paper.datasets.download import sha256

LINES = "\n".join(" ".join(str(i + j) for j in range(7)) for i in range(308))


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def data(monkeypatch, tmp_path) -> Path:
    """A data directory with two files, one of them a known variant."""
    folder = tmp_path / "data"
    folder.mkdir()
    monkeypatch.setenv("CERTGP_DATA", str(folder))
    np.savez(folder / "bike.npz", X=np.zeros((17_379, 17)), y=np.zeros(17_379))
    np.savez(folder / "concrete.npz", X=np.zeros((1_030, 8)), y=np.zeros(1_030))
    return folder


@pytest.fixture
def source(monkeypatch, tmp_path) -> RemoteFile:
    """The yacht data at an address that needs no network."""
    with zipfile.ZipFile(tmp_path / "yacht.zip", "w") as archive:
        archive.writestr("yacht_hydrodynamics.data", LINES)
    file = RemoteFile("yacht.zip", (tmp_path / "yacht.zip").as_uri(), sha256(tmp_path / "yacht.zip"))
    monkeypatch.setitem(DATASETS, "yacht", dataclasses.replace(DATASETS["yacht"], files=(file,)))
    return file


def test_list_shows_every_set_and_labels_variants(certgp, data):
    outcome = certgp("datasets", "list")
    assert (outcome.code, outcome.err) == (0, "")
    lines = {line.split()[0]: line for line in outcome.out.splitlines() if line.startswith("  ")}
    assert set(DATASETS) <= set(lines)
    assert f"{data}: 2 of {len(DATASETS)} data sets" in outcome.out
    assert lines["bike"].split()[1:6] == ["yes", "17,379", "17", "17,379", "x"]
    assert "not one-hot encoded" in lines["bike"]
    assert lines["electric"].split()[1:4] == ["no", "2,049,280", "19"]
    assert "not in it" in lines["concrete"]
    assert "CC BY 4.0" in lines["song"]


def test_list_survives_a_damaged_file(certgp, data):
    (data / "yacht.npz").write_bytes(b"not an archive")
    outcome = certgp("datasets", "list")
    assert outcome.code == 0
    assert "damaged: delete it" in outcome.out
    assert "is damaged" in certgp("datasets", "fetch", "yacht").error()


def test_list_as_json(certgp, data):
    fields = json.loads(certgp("datasets", "list", "--json").out)
    assert fields["directory"] == str(data)
    sets = {entry["name"]: entry for entry in fields["datasets"]}
    assert list(sets) == list(DATASETS)
    assert (sets["bike"]["present"], sets["bike"]["n_columns"], sets["bike"]["source_columns"]) == (True, 17, 57)
    assert (sets["song"]["present"], sets["song"]["n_rows"], sets["song"]["source_rows"]) == (False, None, 515_345)
    assert sets["concrete"]["in_paper"] is False
    assert sets["keggdirected"]["unverified"]


def test_where(certgp, data):
    assert certgp("datasets", "where").out == f"{data}\n"
    assert certgp("datasets", "where", "bike").out == f"{data / 'bike.npz'}\n"
    missing = certgp("datasets", "where", "song")
    assert missing.out == f"{data / 'song.npz'}\n"
    assert missing.err == "note: it is not there; get it with: certgp datasets fetch song\n"
    assert json.loads(certgp("datasets", "where", "song", "--json").out)["present"] is False
    assert "unknown data set 'iris'; known ones: elevators" in certgp("datasets", "where", "iris").error()


def test_fetch_is_quiet_in_a_pipe_and_keeps_what_is_there(certgp, data, source):
    outcome = certgp("datasets", "fetch", "yacht", "bike")
    assert (outcome.code, outcome.err) == (0, "")
    assert "fetched" in outcome.out
    assert "was here" in outcome.out
    assert "move one away" in outcome.out
    assert (data / "yacht.npz").exists()
    fields = json.loads(certgp("datasets", "fetch", "yacht", "--json").out)
    assert fields["datasets"][0] == {
        "name": "yacht",
        "path": str(data / "yacht.npz"),
        "n_rows": 308,
        "n_columns": 6,
        "was_there": True,
        "difference": "",
    }


def test_fetch_shows_progress_on_a_terminal(data, source, capsys):
    terminal = Terminal()
    with redirect_stderr(terminal):
        assert main(["datasets", "fetch", "yacht"]) == 0
    assert "fetching yacht" in terminal.getvalue()
    assert "preparing yacht" in terminal.getvalue()
    assert terminal.getvalue().endswith("\x1b[2K")  # the last line is taken back
    capsys.readouterr()


def test_one_failure_does_not_stop_the_others(certgp, data, source, monkeypatch):
    gone = RemoteFile("airfoil.zip", (data / "gone.zip").as_uri())
    monkeypatch.setitem(DATASETS, "airfoil", dataclasses.replace(DATASETS["airfoil"], files=(gone,)))
    outcome = certgp("datasets", "fetch", "airfoil", "yacht")
    assert outcome.code == 2
    assert (data / "yacht.npz").exists()
    assert "308" in outcome.out
    assert outcome.err.count("\n") == 1
    assert outcome.err.startswith("error: 1 of 2 could not be fetched: airfoil: ")
    assert "put it at" in certgp("datasets", "fetch", "airfoil").error()


def test_a_changed_source_needs_consent(certgp, data, source, monkeypatch):
    other = dataclasses.replace(source, sha256="0" * 64)
    monkeypatch.setitem(DATASETS, "yacht", dataclasses.replace(DATASETS["yacht"], files=(other,)))
    assert "--accept-changed" in certgp("datasets", "fetch", "yacht").error()
    assert certgp("datasets", "fetch", "yacht", "--accept-changed").code == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["fetch"], "name the data sets to fetch, or all of them with --all"),
        (["fetch", "bike", "--all"], "not both"),
        (["fetch", "bike", "iris"], "unknown data set 'iris'"),
        ([], "required: ACTION"),
        (["list", "bike"], "unrecognized arguments: bike"),
    ],
)
def test_bad_commands(certgp, data, arguments, message):
    assert message in certgp("datasets", *arguments).error()

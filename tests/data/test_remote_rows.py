"""Rows that lie elsewhere in parts: the same rows, sums and subsets as those of one array."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pa_parquet
import pytest

from certgp.data import summarise
from certgp.data.files import Layout, read
from certgp.data.pieces import Piece, Reading, cut
from certgp.data.remote import PartsLayout, RemoteRows, join_stored
from certgp.data.rows import weigh_rows
from certgp.data.tables import open_table
from certgp.errors import DataFileError, InvalidInputError

N = 1_000
LAYOUT = Layout(("a", "b"), "y", "w")


class PartsInThisProcess:
    """Parts in a list; those of at most ten rows come to whoever asks."""

    def __init__(self, parts):
        self.parts = parts
        self.counts = tuple(part.n_rows for part in parts)

    def run(self, task, chosen):
        return (task(self.parts[i], argument) for i, argument in chosen)

    def picked(self, task, groups, counts):
        joined = [join_stored([task(self.parts[i], argument) for i, argument in group]) for group in groups]
        assert [part.n_rows for part in joined] == list(counts)
        return PartsInThisProcess(joined)

    def rows_per_part(self, n_rows):
        return None if n_rows <= 10 else 150


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    columns = {"a": rng.standard_normal(N), "b": rng.integers(0, 5, N) / 1.0, "y": rng.standard_normal(N)}
    return pa.table(columns | {"w": rng.integers(0, 3, N) / 1.0})


@pytest.fixture(scope="module", params=[".parquet", ".csv", ".arrow"])
def files(request, table, tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    for i in range(3):
        part, path = table.slice(i * 400, 400), folder / f"{i}{request.param}"
        if request.param == ".parquet":
            pa_parquet.write_table(part, path, row_group_size=70)
        elif request.param == ".csv":
            pa_csv.write_csv(part, path)
        else:
            with pa.ipc.new_file(path, part.schema) as writer:
                writer.write_table(part, max_chunksize=90)
    return open_table(sorted(folder.iterdir()))


@pytest.fixture(scope="module")
def remote(files):
    reading = Reading.of(files, LAYOUT)
    counts = [(file, reading.count(file)[0]) for file in files.files]
    parts = [reading.decode(pieces) for pieces in cut(counts, 130)]
    assert [part.n_rows for part in parts] == [130] * 7 + [90]
    return RemoteRows(PartsInThisProcess(parts), PartsLayout(2, ("a", "b"), has_weights=True))


@pytest.fixture(scope="module")
def here(table):
    return read(table, target="y", weights="w")


def equal(a, b, positions=slice(None)):
    pairs = zip((*a.take(positions), a.weights(positions)), (*b.take(positions), b.weights(positions)), strict=True)
    return all(np.array_equal(x, y) for x, y in pairs)


def test_rows_come_from_any_part_in_any_order(remote, here):
    for positions in (slice(None), slice(120, 140), slice(7, 900, 31), np.array([999, 0, 130, 129, 0]), slice(5, 5)):
        assert equal(remote, here, positions)


def test_summaries_are_those_of_the_same_rows_here(remote, here):
    there, local = summarise(remote), summarise(here)
    assert there.digest == local.digest
    assert there.distinct_rows == local.distinct_rows
    np.testing.assert_allclose(there.inputs.mean, local.inputs.mean, rtol=1e-12)
    np.testing.assert_allclose(there.target.scale, local.target.scale, rtol=1e-12)


def test_subsets_stay_there_unless_they_are_few(remote, here):
    some = np.arange(0, N, 3)
    picked = remote.pick(some)
    assert isinstance(picked, RemoteRows)
    assert picked.parts.counts == (130, 130, 74)  # three, three and two parts: a fourth would make more than 150 rows
    assert equal(picked, here.pick(some))
    assert not isinstance(remote.pick(some[:10]), RemoteRows)
    assert equal(remote.pick(some[:10]), here.pick(some[:10]))
    assert equal(remote.pick(some[::-1]), here.pick(some[::-1]))


def test_rows_of_weight_zero_are_left_out_there(remote, here):
    assert equal(weigh_rows(remote), weigh_rows(here))
    assert isinstance(weigh_rows(remote), RemoteRows)
    with pytest.raises(InvalidInputError, match="weights="):
        weigh_rows(RemoteRows(remote.parts, PartsLayout(2, None, has_weights=False)), np.ones(N))


def test_a_piece_is_read_without_what_is_before(files, table):
    reading = Reading.of(files, LAYOUT)
    X, y = reading.decode([Piece(files.files[1], 200, 260), Piece(files.files[0], 0, 1)]).take(slice(None))
    rows = [*range(600, 660), 0]
    np.testing.assert_array_equal(X[:, 0], table["a"].to_numpy()[rows])
    np.testing.assert_array_equal(y, table["y"].to_numpy()[rows])


def test_a_bad_number_in_a_piece_is_named_by_its_place_in_the_file(tmp_path):
    values = np.where(np.arange(100) == 57, np.nan, 1.0)
    path = tmp_path / "bad.parquet"
    pa_parquet.write_table(pa.table({"a": values}), path, row_group_size=25)
    reading = Reading.of(open_table([path]), Layout(("a",)))
    with pytest.raises(DataFileError, match=r"row 58 \(row group 2"):
        reading.decode([Piece(path, 50, 100)])
    assert reading.decode([Piece(path, 75, 100)]).n_rows == 25
    with pytest.raises(DataFileError, match="does not see"):
        reading.decode([Piece(Path("elsewhere.parquet"), 0, 1)])

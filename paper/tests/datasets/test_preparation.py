"""Every parser on a small file in the original format, and on files with something wrong in them."""

from __future__ import annotations

import numpy as np
import pytest
from original_files import (
    BIKE_HEADER,
    BIKE_LINES,
    POWER_HEADER,
    POWER_LINES,
    as_text,
    lines,
    numbers,
    tar_bytes,
    zip_named,
)
from scipy.io import savemat

from certgp.errors import DataFileError
from certgp_paper.datasets.catalogue import DATASETS
from certgp_paper.datasets.preparation import prepare
from certgp_paper.datasets.preparation.archives import plain
from certgp_paper.datasets.preparation.kegg import NAMES as KEGG_NAMES
from certgp_paper.datasets.preparation.text import Layout, read_numbers

KEGG = "Relation Network (Directed).data"
SUPER_HEADER = ",".join(["number_of_elements", *(f"c{i}" for i in range(80)), "critical_temp"])
CONCRETE_HEADER = (
    "Cement,Blast Furnace Slag,Fly Ash,Water,Superplasticizer,Coarse Aggregate,Fine Aggregate,Age,"
    "Concrete compressive strength"
)


def parse(name, *paths):
    X, y = prepare(DATASETS[name], paths)
    assert X.dtype == y.dtype == np.float64
    assert X.shape[1] == DATASETS[name].n_columns
    assert y.shape == (len(X),)
    return X, y


@pytest.mark.parametrize(
    ("name", "member", "width", "delimiter", "header", "target"),
    [
        ("protein", "CASP.csv", 10, ",", "RMSD,F1,F2,F3,F4,F5,F6,F7,F8,F9", 0),
        ("superconduct", "train.csv", 82, ",", SUPER_HEADER, 81),
        ("3droad", "3D_spatial_network.txt", 4, ",", None, 3),
        ("song", "YearPredictionMSD.txt", 91, ",", None, 0),
        ("airfoil", "airfoil_self_noise.dat", 6, "\t", None, 5),
        ("yacht", "yacht_hydrodynamics.data", 7, "  ", None, 6),
    ],
)
def test_zipped_tables(tmp_path, name, member, width, delimiter, header, target):
    values = numbers(5, width)
    text = lines(values, delimiter, header)
    for folder in ("", "some folder/"):  # archives are repacked now and then
        archive = zip_named(tmp_path / "a.zip", {"Readme.txt": "read me", folder + member: text})
        X, y = parse(name, archive)
        np.testing.assert_array_equal(X, np.delete(values, target, axis=1))
        np.testing.assert_array_equal(y, values[:, target])


def test_windows_line_ends_and_a_blank_last_line(tmp_path):
    values = numbers(3, 4)
    archive = zip_named(tmp_path / "a.zip", {"3D_spatial_network.txt": lines(values).replace("\n", "\r\n") + "\r\n"})
    np.testing.assert_array_equal(parse("3droad", archive)[1], values[:, 3])


@pytest.mark.parametrize(
    ("name", "header", "width", "target"),
    [("concrete", CONCRETE_HEADER, 9, 8), ("energy", "X1,X2,X3,X4,X5,X6,X7,X8,Y1,Y2", 10, 8)],
)
def test_tables_of_the_repository(tmp_path, name, header, width, target):
    values = numbers(4, width)
    (tmp_path / "data.csv").write_text(lines(values, header=header))
    X, y = parse(name, tmp_path / "data.csv")
    np.testing.assert_array_equal(X, values[:, :8])
    np.testing.assert_array_equal(y, values[:, target])


def test_buzz_is_a_tar_in_a_zip(tmp_path):
    values = numbers(4, 78)
    tar = tar_bytes(
        {"regression/TomsHardware/TomsHardware.data": "1,2\n", "regression/Twitter/Twitter.data": lines(values)}
    )
    X, y = parse("buzz", zip_named(tmp_path / "a.zip", {"regression.tar.gz": tar}))
    np.testing.assert_array_equal(np.column_stack([X, y]), values)


def test_elevators_are_two_files(tmp_path):
    first, second = numbers(3, 19), numbers(2, 19, seed=1)
    path = tmp_path / "elevators.tgz"
    path.write_bytes(
        tar_bytes(
            {
                "Elevators/elevators.domain": "climbRate: continuous.\n",
                "Elevators/elevators.test": lines(second, ", "),
                "Elevators/elevators.data": lines(first),
            }
        )
    )
    X, y = parse("elevators", path)
    np.testing.assert_array_equal(np.column_stack([X, y]), np.concatenate([first, second]))


def test_sarcos_pools_both_files_and_takes_the_first_torque(tmp_path):
    train, test = numbers(6, 28), numbers(2, 28, seed=1)
    paths = [tmp_path / "sarcos_inv.mat", tmp_path / "sarcos_inv_test.mat"]
    for path, values in zip(paths, (train, test), strict=True):
        savemat(path, {path.stem: values})
    X, y = parse("sarcos", *paths)
    both = np.concatenate([train, test])
    np.testing.assert_array_equal(X, both[:, :21])
    np.testing.assert_array_equal(y, both[:, 21])


def test_bike_is_one_hot(tmp_path):
    X, y = parse("bike", zip_named(tmp_path / "a.zip", {"hour.csv": as_text(BIKE_HEADER, *BIKE_LINES), "day.csv": ""}))
    np.testing.assert_array_equal(y, [16, 40])
    # season 4, month 12, hour 24, holiday 2, weekday 7, working day 2
    np.testing.assert_array_equal(np.flatnonzero(X[0, :51]), [0, 4, 16, 40, 48, 49])
    np.testing.assert_array_equal(np.flatnonzero(X[1, :51]), [3, 15, 39, 41, 42, 50])
    np.testing.assert_array_equal(X[:, 51:], [[0, 1, 0.24, 0.2879, 0.81, 0], [1, 4, 0.22, 0.2727, 0.8, 0.1]])


def test_bike_with_an_unknown_category(tmp_path):
    wrong = BIKE_LINES[1].replace(",12,23,", ",13,23,")
    archive = zip_named(tmp_path / "a.zip", {"hour.csv": as_text(BIKE_HEADER, BIKE_LINES[0], wrong)})
    with pytest.raises(DataFileError, match=r"hour\.csv, line 3: mnth is 13; .* from 1 to 12"):
        parse("bike", archive)


def test_kegg_drops_copies_and_constants_and_incomplete_lines(tmp_path):
    values = numbers(3, 23)
    text = "".join(f"aac{i:05d},{line}\n" for i, line in enumerate(lines(values).splitlines()))
    text += "aac00009," + ",".join(["1"] * 22) + ",?\n"
    X, y = parse("keggdirected", zip_named(tmp_path / "a.zip", {KEGG: text}))
    kept = [KEGG_NAMES.index(name) for name in ("Nodes", "Edges", "Outdegree", "AverageShortestPathLength")]
    np.testing.assert_array_equal(X[:, [0, 1, 11, 18]], values[:, kept])
    np.testing.assert_array_equal(y, values[:, -1])


def test_electric_has_thirteen_indicators_and_six_numbers(tmp_path):
    text = as_text(POWER_HEADER, *POWER_LINES)
    X, y = parse("electric", zip_named(tmp_path / "a.zip", {"household_power_consumption.txt": text}))
    np.testing.assert_array_equal(y, [4.216, 2.58])  # the line without measurements is left out
    # 16 December 2006 was a Saturday, 1 January 2007 a Monday
    np.testing.assert_array_equal(np.flatnonzero(X[0, :13]), [11, 12])
    np.testing.assert_array_equal(np.flatnonzero(X[1, :13]), [0])
    np.testing.assert_allclose(X[:, 13:], [[17.4, 0.418, 234.84, 0, 1, 17], [23.5, 0.136, 241.97, 3, 0, 0]])


@pytest.mark.parametrize("wrong", ["16.12.2006", "32/12/2006"])
def test_electric_with_a_wrong_date(tmp_path, wrong):
    text = as_text(POWER_HEADER, POWER_LINES[0].replace("16/12/2006", wrong))
    archive = zip_named(tmp_path / "a.zip", {"household_power_consumption.txt": text})
    with pytest.raises(DataFileError, match=f"{wrong!r} is not of the form %d/%m/%Y"):
        parse("electric", archive)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1,2,3\n4,5,6\n7,8\n", r"file\.csv, line 3: expected 3 fields, found 2; is the file whole\?"),
        ("1,2,3\n4,five,6\n", r"file\.csv, line 2, field 2: 'five' is not a finite number"),
        ("1,2,3\n4,5,nan\n", r"file\.csv, line 2, field 3: 'nan' is not a finite number"),
        ("1,2,3\n4,,6\n", r"file\.csv, line 2, field 2: '' is not a finite number"),
        ("", r"file\.csv has no complete line"),
        ("<!DOCTYPE html>\n<p>sorry</p>\n", r"file\.csv, line 1: expected 3 fields, found 1"),
    ],
)
def test_faults_name_file_line_and_cause(tmp_path, text, message):
    (tmp_path / "file.csv").write_text(text)
    with pytest.raises(DataFileError, match=message):
        read_numbers(plain(tmp_path / "file.csv"), Layout(3))


def test_a_wrong_header_is_noticed(tmp_path):
    text = lines(numbers(2, 10), header="F1,RMSD,F2,F3,F4,F5,F6,F7,F8,F9")
    with pytest.raises(DataFileError, match=r"CASP\.csv, line 1, field 1: expected the column 'RMSD', found 'F1'"):
        parse("protein", zip_named(tmp_path / "a.zip", {"CASP.csv": text}))


def test_archives_that_are_damaged_or_hold_something_else(tmp_path):
    archive = zip_named(tmp_path / "a.zip", {"other.csv": "1,2\n"})
    with pytest.raises(DataFileError, match=r"a\.zip has no file CASP\.csv; it holds: other\.csv"):
        parse("protein", archive)
    twice = zip_named(tmp_path / "b.zip", {"x/CASP.csv": "", "y/CASP.csv": ""})
    with pytest.raises(DataFileError, match=r"2 files named CASP\.csv"):
        parse("protein", twice)
    archive.write_bytes(b"<html>sorry</html>")
    with pytest.raises(DataFileError, match=r"a\.zip is not a whole archive"):
        parse("protein", archive)
    whole = zip_named(archive, {"3D_spatial_network.txt": lines(numbers(2000, 4))}).read_bytes()
    archive.write_bytes(whole[:9000] + b"99" + whole[9002:])  # still numbers, and another checksum in the archive
    with pytest.raises(DataFileError, match=r"a\.zip is not a whole archive \(Bad CRC-32"):
        parse("3droad", archive)
    (tmp_path / "elevators.tgz").write_bytes(tar_bytes({"Elevators/elevators.data": lines(numbers(9, 19))})[:80])
    with pytest.raises(DataFileError, match=r"elevators\.tgz is not a whole archive"):
        parse("elevators", tmp_path / "elevators.tgz")
    (tmp_path / "elevators.tgz").write_bytes(tar_bytes({"Elevators/elevators.data": lines(numbers(2, 19))}))
    with pytest.raises(DataFileError, match=r"has no file elevators\.test; it holds: Elevators/elevators\.data"):
        parse("elevators", tmp_path / "elevators.tgz")


def test_matlab_files_with_something_else(tmp_path):
    path = tmp_path / "sarcos_inv.mat"
    path.write_bytes(b"not a matlab file at all" * 20)
    with pytest.raises(DataFileError, match=r"sarcos_inv\.mat cannot be read as a MATLAB file"):
        parse("sarcos", path)
    savemat(path, {"other": numbers(2, 28)})
    with pytest.raises(DataFileError, match="has no array 'sarcos_inv'"):
        parse("sarcos", path)
    savemat(path, {"sarcos_inv": numbers(2, 27)})
    with pytest.raises(DataFileError, match=r"has the shape \(2, 27\); expected \(N, 28\)"):
        parse("sarcos", path)
    values = numbers(3, 28)
    values[1, 3] = np.nan
    savemat(path, {"sarcos_inv": values})
    with pytest.raises(DataFileError, match="row 2 of 'sarcos_inv' has a missing or infinite value"):
        parse("sarcos", path)

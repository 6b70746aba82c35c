"""The paper's Bike and KeggDir come back out of the versions in circulation."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.model_selection import train_test_split

from certgp_paper.datasets import dataset_info, dataset_path, load_dataset, load_paper_version
from certgp_paper.datasets.preparation.bike import CATEGORIES
from certgp_paper.datasets.preparation.kegg import NAMES
from certgp_paper.datasets.registry import DATA_VARIABLE


@pytest.fixture
def folder(monkeypatch, tmp_path):
    monkeypatch.setenv(DATA_VARIABLE, str(tmp_path))
    return tmp_path


def test_bike(folder):
    rng = np.random.default_rng(0)
    n = 400
    raw = {name: first + rng.permutation(np.arange(n) % count) for name, (first, count) in CATEGORIES.items()}
    counts = 1 + rng.permutation(n)
    columns = np.zeros((n, 17))
    for position, name in zip((3, 5, 6, 7, 8, 9), CATEGORIES, strict=True):
        columns[:, position] = raw[name]
    columns[:, 4], columns[:, 11] = rng.integers(0, 2, n), rng.random(n)
    np.savez(folder / "bike.npz", X=columns - columns.mean(0), y=np.log(counts) - np.log(counts).mean())
    X, y, difference = load_paper_version("bike")
    np.testing.assert_array_equal(y, counts)
    np.testing.assert_array_equal(X[:, :4].argmax(1) + 1, raw["season"])
    np.testing.assert_array_equal(X[:, 16:40].argmax(1), raw["hr"])
    np.testing.assert_array_equal(X[:, :51].sum(1), 6)
    np.testing.assert_allclose(X[:, 53], columns[:, 11] - columns[:, 11].mean())
    assert X.shape == (n, 57)
    assert difference.startswith("400 x 57 instead of 17,379 x 57; ")
    assert "inferred" in difference


def test_kegg(folder):
    raw = np.random.default_rng(0).random((9, 23))
    raw[:, 1] = [5, 1, 606, 7, 8, 9, 10, 11, 12]  # edges
    held = np.delete(raw, [1, NAMES.index("NumberOfSelfLoops"), NAMES.index("SelfLoops")], axis=1)
    np.savez(folder / "keggdirected.npz", X=held, y=np.log(raw[:, 1]) - 2.0)
    X, y, _ = load_paper_version("keggdirected")
    kept = [j for j, name in enumerate(NAMES[:-1]) if name not in ("NumberOfSelfLoops", "SelfLoops", "Indegree")]
    np.testing.assert_allclose(X, raw[:, kept], rtol=1e-12)
    np.testing.assert_array_equal(y, raw[:, -1])


@pytest.mark.parametrize(
    ("name", "shape", "parts"),
    [
        ("bike", (17_379, 57), ("one-hot", "target", "inferred")),
        ("keggdirected", (53_413, 19), ("target", "inferred")),
        ("keggdirected", (48_827, 19), ("target", "inferred", "74 % of the test inputs")),
        ("elevators", (16_599, 18), ()),
        ("protein", (45_730, 9), ()),
    ],
)
def test_a_shape_alone_does_not_make_a_set_the_papers(name, shape, parts):
    label = dataset_info(name).label(*shape)
    assert bool(label) == bool(parts)
    assert all(part in label for part in parts)


def test_the_stored_kegg_shares_inputs_between_training_and_test():
    if not dataset_path("keggdirected").exists() or load_dataset("keggdirected")[0].shape != (48_827, 20):
        pytest.skip("the version of KeggDir with 48,827 rows is not on this machine")
    X, _, difference = load_paper_version("keggdirected")
    train, test = train_test_split(X, test_size=0.1, random_state=0)
    known = {row.tobytes() for row in train}
    assert f"{np.mean([row.tobytes() in known for row in test]) * 100:.0f} % of the test inputs" in difference


def test_other_sets_come_as_they_are(folder):
    np.savez(folder / "yacht.npz", X=np.ones((308, 6)), y=np.ones(308))
    X, y, difference = load_paper_version("yacht")
    assert (X.shape, y.shape, difference) == ((308, 6), (308,), "")


def test_the_stored_bike_has_the_papers_shape_and_says_what_was_inferred():
    if not dataset_path("bike").exists() or load_dataset("bike")[0].shape[1] != 17:
        pytest.skip("the version of Bike with 17 columns is not on this machine")
    X, y, difference = load_paper_version("bike")
    assert X.shape == (17_379, 57)
    assert "one-hot" in difference
    assert "inferred" in difference
    users = load_dataset("bike")[0][:, -2:].sum(1)  # casual and registered, centred: they add up to the count
    np.testing.assert_allclose(users - users.mean(), y - y.mean(), atol=0.1)

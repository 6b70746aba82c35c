"""The paper's numbers ship with the package, whole."""

from __future__ import annotations

from certgp_paper.published import Figure, published, published_sensitivity, published_tables


def test_all_cells_of_the_papers_tables_are_there():
    linear = [key for key in published_tables() if key[0] == "linear"]
    assert len(linear) == 2 * 3 * 6 * 7
    assert len(published_tables()) - len(linear) == 3 * 12 * 7
    assert len(published_sensitivity()) == 210


def test_figures_are_found_by_our_names_of_the_data():
    assert published("linear", "nlpd", "SGPR", 100, "elevators") == Figure(0.44, 0.01)
    assert (
        published("linear", "nlpd", "SGPR", 6, "superconduct")
        == published_tables()["linear", "nlpd", "SGPR", 6, "super"]
    )
    assert published("linear", "rmse", "MGP", 300, "keggdirected") is not None
    assert published("deep", "nlpd", "SVIGP", None, "elevators") == Figure(0.444, 0.021)
    assert published("linear", "nlpd", "SGPR", 6, "yacht") is None
    assert published_sensitivity()["DMGP", "nlpd", "protein", 1, 2] == Figure(0.883, 0.014)

"""The page says what the rows say, and "not run yet" where there are none."""

from __future__ import annotations

import json
import re
from pathlib import Path

import made_up_rows as made_up
import pytest
from made_up_rows import results

from certgp.errors import DataFileError
from certgp.experiments.catalogue import experiment_names
from certgp.experiments.page_tables import SECTIONS
from certgp.experiments.reproduction_page import main, page, write_page
from certgp.experiments.results import Result, linear_comparison, metric_comparison


def test_every_experiment_has_a_section():
    assert {section.name for section in SECTIONS} == set(experiment_names())


def test_a_page_without_results_says_so():
    text = page({}, {})
    assert text.count("Not run yet: `certgp reproduce ") == len(SECTIONS)
    assert "0 hold, 0 do not hold here" in text
    assert "| electric | 2,049,280 x 19 | no |  |" in text


def test_a_full_page():
    text = page(results(), {"figure1": "results/figure1.png"})
    assert "Not run yet" not in text
    assert "0 do not hold here, 0 are not run yet" in text
    assert "![Figure 1: rank against dimension](results/figure1.png)" in text
    # paper, ours, difference, in standard deviations
    assert "| MGP | 100 | 0.430 (0.010) | **0.430 (0.012)** ✓ | +0.000 | +0.0 | 5 |" in text
    assert "| SGPR | 100 | 0.440 (0.010) | **0.441 (0.012)** ✓ | +0.001 | +0.1 | 5 |" in text
    assert "| DMGP | 0.360 (0.030) | 0.370 (0.020) | +0.010 | +0.3 | 0.290 | 0.300 | 121 | **10** ✓ | 5 |" in text
    assert "6 of the 6 figures that have one in the paper are equal or better." in text
    assert "| elevators | 16,599 x 18 | yes | as in the paper |" in text
    assert "song, buzz, electric" in text


def test_figures_on_other_data_get_no_tick_and_are_counted_apart():
    other = [row | {"note": "half of the rows"} for row in made_up.linear() if row["variant"] == "certgp"]
    text = page(results(table_nlpd=other), {})
    assert "| MGP | 100 | 0.430 (0.010) | **0.430 (0.012)** | +0.000 | +0.0 | 5 |" in text
    assert "On data that differ from the paper's, 3 of 3 are, which proves little." in text


def test_a_failed_claim_and_a_worse_cell_show():
    text = page(results(table_nlpd=made_up.linear(mgp=0.60)), {})
    assert "2 do not hold here" in text
    assert re.search(r"\| FGP is slightly inferior .* ✗ does not hold here \| certgp: MGP lower in 0 of 1", text)
    assert "| MGP | 100 | 0.430 (0.010) | 0.600 (0.012) | +0.170 | +10.7 | 5 |" in text


def test_tables_are_well_formed():
    lines = page(results(), {}).splitlines()
    tables = [i for i, line in enumerate(lines) if set(line) <= set("| -") and "---" in line]
    assert len(tables) > 10
    for i in tables:
        width, j = lines[i].count("|"), i - 1
        while j < len(lines) and lines[j].startswith("|"):
            assert len(re.findall(r"(?<!\\)\|", lines[j])) == width, lines[j]
            j += 1


def test_versions_of_data_sets_and_bars_in_notes():
    rows = [row | {"data": "keggdir", "note": "48,827 rows | other target"} for row in made_up.linear()]
    text = page(results(table_nlpd=rows), {})
    assert "| keggdirected | 53,413 x 19 | yes | 48,827 rows \\| other target |" in text


def test_columns_may_be_missing():
    rows = [{"method": "MGP"}, {"data": "elevators", "rank": 6, "mean": 0.5}, {}]
    names = (section.name for section in SECTIONS)
    text = page({name: Result("bare", rows) for name in names}, {})
    assert "| MGP |" in text


def test_equal_or_better_follows_from_the_print():
    row = {"mean": 0.4349, "paper_mean": 0.43, "paper_sd": 0.0}
    assert linear_comparison(row).equal_or_better is True
    assert linear_comparison(row).in_sd == pytest.approx(0.0049 / (0.005 / 3**0.5))
    assert linear_comparison(row | {"mean": 0.4351}).equal_or_better is False
    assert linear_comparison({"mean": 0.4}).equal_or_better is None
    assert linear_comparison({"mean": 0.4}).in_sd is None
    deep = {"nlpd": 0.3704, "paper_nlpd": 0.37}
    assert metric_comparison(deep, "nlpd").equal_or_better is True
    assert metric_comparison(deep | {"nlpd": 0.3706}, "nlpd").equal_or_better is False


def test_results_are_read_and_the_page_written(tmp_path):
    folder = tmp_path / "docs" / "results"
    folder.mkdir(parents=True)
    for name, result in results().items():
        (folder / f"{name}.json").write_text(json.dumps({"title": result.title, "rows": result.rows}))
    (folder / "figure2.png").write_bytes(b"")
    write_page(folder, tmp_path / "docs" / "reproduction.md")
    text = (tmp_path / "docs" / "reproduction.md").read_text()
    assert "title of table-deep." in text
    assert "](results/figure2.png)" in text
    assert "figure1.png" not in text
    main([str(tmp_path / "nowhere"), str(tmp_path / "empty.md")])
    assert (tmp_path / "empty.md").read_text() == page({}, {})
    (folder / "figure1.json").write_text('{"title": "x"}')
    with pytest.raises(DataFileError, match=r"figure1\.json holds no results"):
        write_page(folder, tmp_path / "docs" / "reproduction.md")
    assert (tmp_path / "docs" / "reproduction.md").read_text() == text
    with pytest.raises(SystemExit, match="usage"):
        main([])


def test_the_page_in_the_docs_is_that_of_the_results_in_the_docs(tmp_path):
    docs = Path(__file__).resolve().parents[2] / "docs"
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "results").symlink_to(docs / "results")
    write_page(tmp_path / "docs" / "results", tmp_path / "docs" / "page.md")
    assert (tmp_path / "docs" / "page.md").read_text() == (docs / "reproduction.md").read_text(), (
        "run make reproduction"
    )

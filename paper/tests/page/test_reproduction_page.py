"""The page says what the rows say, and "not run yet" where there are none."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from markdown.extensions import toc

import made_up_rows as made_up
from certgp.errors import DataFileError
from certgp_paper.claims import CLAIMS
from certgp_paper.experiments.catalogue import experiment_names
from certgp_paper.experiments.linear_rows import VARIANTS
from certgp_paper.experiments.results import Result, linear_comparison, metric_comparison, read_results
from certgp_paper.page.reproduction import page, write_page
from certgp_paper.page.tables import SECTIONS
from made_up_rows import results

ROOT = Path(__file__).resolve().parents[3]


def test_every_experiment_has_a_section():
    assert {section.name for section in SECTIONS} == set(experiment_names())


def test_a_page_without_results_says_so():
    text = page({}, {})
    assert text.count("Not run yet: `certgp reproduce ") == len(SECTIONS)
    assert "0 hold, 0 do not hold here" in text
    assert "| electric | 2,049,280 x 19 | no |  |" in text


def test_a_full_page():
    text = page(results(), {"figure1": "results/figure1.png"})
    assert "Not run yet: `" not in text
    assert "0 do not hold here, 0 are undecided here, 0 are not run yet" in text
    assert "![Figure 1: rank against dimension](results/figure1.png)" in text
    # paper, ours, difference, in standard deviations
    assert "| MGP | 100 | 0.430 (0.010) | **0.430 (0.012)** ✓ | +0.000 | +0.0 | 5 |" in text
    assert "| SGPR | 100 | 0.440 (0.010) | **0.441 (0.012)** ✓ | +0.001 | +0.1 | 5 |" in text
    assert "| DMGP | 0.360 (0.030) | **0.360 (0.020)** ✓ | +0.000 | +0.0 | 0.290 | 0.300 | 121 | 10 | 9 | 5 |" in text
    for variant in ("certgp", "paper"):
        assert f"`{variant}`: 3 of the 3 figures that have one in the paper are equal or better." in text
        assert f"- `{variant}`: {VARIANTS[variant]}." in text
    assert "- `released`" not in text
    assert "| elevators | 16,599 x 18 | yes | as in the paper |" in text
    assert "Not run yet: keggdirected, bike," in text  # made-up rows have three sets
    assert "In none of the tables: song, buzz, electric." in text


def test_the_deep_section_prints_budgets():
    text = page(results(), {})
    assert "| trained | elevators, 14,939 rows |" in text
    assert "at most 500 and 214 iterations of L-BFGS" in text


def test_what_is_left_out_is_named():
    text = page({}, {})
    assert "Either" not in text
    assert "DMGP above rank 512" in text
    assert "3droad has two splits, and rank 200 and 300 in our own variant only" in text
    assert "all data sets but elevators and protein" in text
    assert "Not run yet: elevators, protein," in text
    assert "`certgp datasets fetch song buzz electric`" in text


def test_claims_link_to_sections_of_the_page():
    text = page(results(), {})
    headings = re.findall("^## (.*)$", text, flags=re.MULTILINE)
    anchors = {"#" + toc.slugify(heading, "-") for heading in headings}
    links = re.findall(r"\]\((#[^)]+)\)", text)
    assert len(links) == len(CLAIMS)
    assert set(links) <= anchors


def test_an_undecided_claim_shows_and_counts():
    noisy = {"nlpd_split_0": 0.42, "nlpd_split_1": 0.37} | {f"nlpd_split_{split}": None for split in (2, 3, 4)}
    rows = [row | (noisy if row["method"] == "DMGP" else {}) for row in made_up.deep()]
    text = page(results(table_deep=rows), {})
    assert re.search(r"[1-9] are undecided here", text)
    assert "? undecided here | elevators: DMGP 0.395, DNN+M 0.400" in text


def test_the_page_says_which_run_of_figure_1_the_table_shows():
    rows = [row | {"seed": seed, "N": n} for row in made_up.figure1() for n in (100, 500) for seed in (0, 1)]
    assert "The table shows seed 0 at N = 500; the figure medians over the seeds" in page(results(figure1=rows), {})


def test_figures_on_other_data_get_no_tick_and_are_counted_apart():
    other = [row | {"note": "half of the rows"} for row in made_up.linear() if row["variant"] == "certgp"]
    text = page(results(table_nlpd=other), {})
    assert "| MGP | 100 | 0.430 (0.010) | **0.430 (0.012)** | +0.000 | +0.0 | 5 |" in text
    assert "On data that differ from the paper's, or may, 3 of 3 are, which proves little." in text


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


def test_results_are_read_drawn_and_the_page_written(tmp_path):
    folder, docs = tmp_path / "results", tmp_path / "docs"
    folder.mkdir()
    shutil.copy(ROOT / "paper" / "results" / "electric.json", folder)
    (folder / "figure2.json").write_text(json.dumps({"title": "nothing yet", "rows": []}))
    write_page(folder, docs / "reproduction.md", docs / "pictures")
    text = (docs / "reproduction.md").read_text()
    assert "NLPD and training time against the number of training points." in text
    assert "](pictures/electric.png)" in text
    assert "figure2.png" not in text
    assert (docs / "pictures" / "electric.png").read_bytes().startswith(b"\x89PNG")
    (folder / "figure1.json").write_text('{"title": "x"}')
    with pytest.raises(DataFileError, match=r"figure1\.json holds no results"):
        write_page(folder, docs / "reproduction.md", docs / "pictures")
    assert (docs / "reproduction.md").read_text() == text
    write_page(tmp_path / "nowhere", docs / "empty.md", docs / "pictures")
    assert (docs / "empty.md").read_text() == page({}, {})


def test_the_module_asks_for_three_arguments():
    done = subprocess.run([sys.executable, "-m", "certgp_paper.page"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert done.stderr == "usage: python -m certgp_paper.page RESULTS PAGE PICTURES\n"


def test_the_page_in_the_docs_is_that_of_the_results():
    kept = read_results(ROOT / "paper" / "results")
    assert set(kept) == set(experiment_names())
    links = {name: f"results/{name}.png" for name in kept}
    assert all((ROOT / "docs" / link).exists() for link in links.values())
    assert page(kept, links) == (ROOT / "docs" / "reproduction.md").read_text(), "run make reproduction"

"""The pages say what the rows say, and "not run yet" where there are none."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from mdit_py_plugins.anchors.index import slugify

import made_up_rows as made_up
from certgp.errors import DataFileError
from certgp_paper.claims import CLAIMS, TOPICS
from certgp_paper.experiments.catalogue import experiment_names
from certgp_paper.experiments.deep_effort import FULL
from certgp_paper.experiments.linear_rows import VARIANTS
from certgp_paper.experiments.results import Result, linear_comparison, metric_comparison, read_results
from certgp_paper.page.markdown import slug
from certgp_paper.page.reproduction import FRONT, pages, write_page
from certgp_paper.page.sections import SECTIONS
from certgp_paper.page.summaries import scaling_summary
from made_up_rows import results

OF_PAPER = [claim for claim in CLAIMS if claim.is_of_paper]
ROOT = Path(__file__).resolve().parents[3]


def front(found, pictures=None):
    return pages(found, pictures or {})[FRONT]


def behind(name, found, pictures=None):
    return pages(found, pictures or {})[f"reproduction/{name}.md"]


def test_every_experiment_has_a_section():
    assert {section.name for section in SECTIONS} == set(experiment_names())


def test_a_page_without_results_says_so():
    text = front({})
    assert text.count("Not run yet: `certgp reproduce ") == len(SECTIONS)
    assert f"{len(OF_PAPER)} claims of the paper's text. Not run: {len(OF_PAPER)}." in text
    assert "| electric | 2,049,280 x 19 | no |  |" in behind("data-sets", {})
    for section in SECTIONS:
        assert "Not run yet" in behind(section.name, {})


def test_the_first_page_has_verdicts_summaries_and_pictures():
    text = front(results(), {"figure1": "results/figure1.png"})
    assert text.count("Not run yet: `") == 2  # made-up rows have no seeds and no simulated rows
    ours = sum(bool(claim.our_limit) for claim in OF_PAPER) - 1
    told = f"Hold: {len(OF_PAPER) - 2}; hold in one reading, do not in another: 1; not testable here: 1. "
    told += f"Of those that hold, {ours} rest on a limit of ours."
    assert told in text  # this library's certificates are not counted
    assert "| ✓ holds (our limit) | [MGP behaves like SGPR]" in text
    assert "| ✓ holds | [MGP outperforms FGP]" in text
    assert "| ✓ holds (our limit) | [At a fixed rank the time" in text
    assert "| 90, as song | SGPR | 6.80 | 6.90 | 1.000 ± 0.010 |" in text
    assert "| ✓ holds | [A small KL bounds the error" in text
    assert "| Gaussian kernel, Mercer expansion | 1 | 5 | 1.03 | 12 | 15 of 1,000 |" in text
    assert "![Figure 1: rank against dimension](results/figure1.png)" in text
    # equal or better, within two standard deviations, mean difference
    for variant in ("certgp", "paper"):
        assert f"| `{variant}` | MGP | 1 of 1 | 1 of 1 | +0.000 |  |" in text
    assert "| elevators | DMGP | 0.360 (0.030) | **0.360 (0.020)** ✓ | +0.000 | +0.0 | 9 | 5 |" in text
    assert "NLPD 0.379 (0.002) over 5 splits; in the paper 0.377 (0.024), a difference of +0.002." in text
    assert "900 CPU seconds a split and at most 7.5 GB; in the paper 53,550 seconds" in text
    assert len(text.splitlines()) < 250


def test_claims_come_first_and_fit_a_screen():
    lines = front(results()).splitlines()
    start = lines.index("## Does it hold?")
    assert start < 15
    table = [line for line in lines[start:] if "](reproduction/claims.md#" in line]
    assert len(table) == len(CLAIMS)
    for line in table:
        _, verdict, claim, sure, _ = re.split(r"(?<!\\) \| |^\| | \|$", line)
        assert len(re.sub(r"\(.*\)", "", claim)) <= 130
        assert verdict
        assert len(sure) <= 170
    topics = [line for line in lines[start:] if line.startswith(tuple(f"**{topic}**" for topic in TOPICS))]
    assert len(topics) == len(TOPICS)


def test_the_first_screen_says_what_clear_and_lean_mean_and_the_rules_which_limits_are_ours():
    text = front(results())
    assert "*clear* where noise does not explain it" in text
    assert "where it *leans*,\nonly its sign is known" in text
    own = behind("claims", results())
    assert own.count("*Limit of ours:* ") == sum(bool(claim.our_limit) for claim in CLAIMS)
    assert own.count("*Here:* [") == len(CLAIMS)
    assert '*Limit of ours:* Twice, for "severely".' in own


def test_the_pages_behind_have_all_figures():
    linear, deep = behind("table-nlpd", results()), behind("table-deep", results())
    assert "| MGP | 100 | 0.430 (0.010) | **0.430 (0.012)** ✓ | +0.000 | +0.0 | 5 |  |" in linear
    assert "| SGPR | 100 | 0.440 (0.010) | **0.436 (0.012)** ✓ | -0.004 | -0.3 | 5 |  |" in linear
    for variant in ("certgp", "paper"):
        assert f"- `{variant}`: {VARIANTS[variant]}." in linear
    assert "- `released`" not in linear
    assert "| DMGP | 0.360 (0.030) | **0.360 (0.020)** ✓ | +0.000 | +0.0 | 0.290 | 0.300 | 121 | 10 | 9 | 5 |" in deep
    assert "| trained | elevators, 14,939 rows |" in deep
    assert "at most 500 and 214 iterations of L-BFGS" in deep
    data = behind("data-sets", results())
    assert "| elevators | 16,599 x 18 | yes | as in the paper |" in data
    assert "Not run yet: keggdirected, bike," in data  # made-up rows have three sets
    assert "In none of the tables: song, buzz, electric." in data


def test_reasons_stand_beside_figures_that_are_far_from_the_papers():
    rows = [row | {"rank": 6} for row in made_up.linear(mgp=0.30)]
    text = behind("table-nlpd", results(table_nlpd=rows))
    assert re.search(r"\| MGP \| 6 \| .* \| our own training, which the paper does not have \|", text)
    assert re.search(r"\| MGP \| 6 \| .* \| held-out rows choose d = 3 .* \|", text)
    worse = [row | {"data": "bike", "note": "other columns", "rank": 6} for row in made_up.linear(mgp=0.60)]
    text = behind("table-nlpd", results(table_nlpd=worse))
    assert "| the data differ; our own training" in text


def test_columns_are_named_in_words():
    text = "".join(pages(results(), {}).values())
    for raw in ("a_priori", "rmse_inputs", "kl_first", "cpu_seconds", "more_than", "peak_gb", "nlpd_"):
        assert raw not in text


def test_versions_of_the_code_are_shown():
    made_by = [
        {"what": "certgp MGP", "made_by": "version abc", "cells": 3},
        {"what": "x", "made_by": "commit 1", "cells": 2},
    ]
    moved = {"cells": 3, "mean": 0.001, "largest": 0.0123}
    found = results() | {"table-nlpd": Result("title", made_up.linear(), made_by, moved)}
    assert "Made by: 3 of 5 cells by recorded versions of their code; 2 cells by earlier code (commit 1)." in front(
        found
    )
    own = behind("table-nlpd", found)
    assert "| certgp MGP | version abc | 3 |" in own
    assert "`certgp reproduce table-nlpd --outdated --out paper/results`" in own
    assert "3 cells were computed again with later code: NLPD moved by 0.0010 on average and by 0.0123 at most." in own


def test_confirmed_groups_are_named_with_how_far_they_moved():
    line = {"what": "paper MGP", "confirmed": 40, "version": "abc", "score": "nlpd", "cells": 5, "of": 45}
    changes = {"mean_change": 0.001, "largest_change": 0.0034}
    made_by = [{"what": "paper MGP", "made_by": "commit 1", "cells": 45}]
    table = Result("title", made_up.linear(), made_by, None, [line | changes])
    found = results() | {"table-nlpd": table}
    told = (
        "40 cells were confirmed for later code than their own by 5 like them that it computed again, whose NLPD moved "
        "by 0.0034 at most"
    )
    assert told in front(found)
    assert "has been changed since" not in front(found)  # files from before it was recorded do not say
    of_today = results() | {"table-nlpd": replace(table, up_to_date=12)}
    assert "For 28 of these or more, that code has been changed since, too. 12 of the 45 cells are" in front(of_today)
    assert "| paper MGP | abc | 40 | 5 of 45 | +0.0010 | 0.0034 |" in behind("table-nlpd", found)


def test_what_is_left_out_is_named():
    text = behind("data-sets", {})
    assert "Either" not in text
    assert "DMGP above rank 1,024" in text
    assert "3droad has two splits, and rank 200 and 300 in our own variant only" in text
    assert "all data sets but elevators and protein" in text
    assert "Not run yet: elevators, protein," in text
    assert "`certgp datasets fetch song buzz electric`" in text


def test_links_lead_somewhere():
    """Anchors as MyST makes them, files that are written."""
    written = pages(results(), {})
    anchors = {
        path: {slugify(heading) for heading in re.findall("^#+ (.*)$", text, flags=re.MULTILINE)}
        for path, text in written.items()
    }
    for path, text in written.items():
        for target, anchor in re.findall(r"\]\(([^)#]*\.md)?#?([^)]*)\)", text):
            place = path if not target else str((Path("/") / Path(path).parent / target).resolve())[1:]
            if place in written:
                assert not anchor or anchor in anchors[place], (path, target, anchor)
            elif target and target.endswith(".md"):
                assert (ROOT / "docs" / place).exists(), (path, target)
    assert all(slug(claim.statement) in anchors["reproduction/claims.md"] for claim in CLAIMS)


def test_an_undecided_claim_shows_and_counts():
    noisy = {f"nlpd_split_{split}": 0.42 if split % 2 else 0.37 for split in range(5)}
    rows = [row | (noisy if row["method"] == "DMGP" else {}) for row in made_up.deep()]
    found = results(table_deep=rows)
    assert re.search("undecided: [3-9];", front(found))
    assert "- `certgp`: elevators: DMGP 0.390, DNN+M 0.400" in behind("claims", found)


def test_readings_that_differ_are_visible_on_the_first_screen():
    found = results(ranks=made_up.ranks(low_rank=0.3))
    assert "| ✓ DTC variance, ✗ low-rank variance | [As r increases, the uncertainty of MGP decreases]" in front(found)
    assert "hold in one reading, do not in another: 2;" in front(found)
    own = behind("claims", found)
    assert "**✓ holds for DTC variance, ✗ does not hold for low-rank variance: depends on the variance**" in own
    worse = [row | {"variant": "paper"} for row in made_up.deep(DMGP=0.41) if row["method"] in ("DMGP", "DFGP")]
    noisy = [row | {f"nlpd_split_{s}": (0.2, 0.6)[s % 2] for s in range(5)} for row in worse]
    found = results(table_deep=made_up.deep() + noisy)
    assert "| ✓ certgp, ? paper | [Joint training beats two steps]" in front(found)
    assert "**✓ holds for certgp, ? undecided for paper**" in behind("claims", found)


def test_the_start_of_the_curves_and_the_choices_of_the_paper_variant_are_named():
    text = front(results())
    assert text.count("All models start from the length-scale 0.2, from which they see the cosine.") == 2
    assert "made with test scores in view: the signal variance of MGP stays 1" in text


def test_rates_of_the_networks_are_those_of_the_recipe():
    recipe = [row | {"variant": "paper", "data": data} for data in ("elevators", "sarcos") for row in made_up.deep()]
    text = front(results(table_deep=made_up.deep() + recipe))
    assert f"{FULL.recipe_rate('elevators'):g} on elevators, chosen by held-out training rows of split 0" in text
    assert f"{FULL.recipe_rate('sarcos'):g} on sarcos, which was not tried there" in text
    assert "learning rate" not in front(results())


def test_how_many_cells_are_up_to_date():
    made_by = [{"what": "x", "made_by": "version abc", "cells": 5}]
    found = results() | {"table-nlpd": Result("title", made_up.linear(), made_by, up_to_date=2)}
    told = "2 of the 5 cells are of the code as it was when these results were written, or confirmed for it"
    assert f"{told}; whether it would give the figures of the other 3 again is not known." in front(found)
    found["table-nlpd"] = replace(found["table-nlpd"], up_to_date=5)
    assert "All 5 cells are of the code as it was when these results were written, or confirmed for it." in front(found)


def test_electric_shows_one_split_or_five():
    assert "3droad has means over 5 splits. In the picture bars are a standard deviation" in front(results())
    alone = front(results(electric=made_up.electric(splits=1)))
    assert "3droad has one split." in alone
    both = [row | {"data": "protein"} for row in made_up.electric()] + made_up.electric(splits=1)
    assert "protein has means over 5 splits; 3droad has one split." in front(results(electric=both))
    assert "| 3droad | DFGP | 0.1 |  | 0.200 |" in behind("electric", results())


def test_the_page_says_which_run_of_figure_1_the_table_shows():
    rows = [row | {"seed": seed, "N": n} for row in made_up.figure1() for n in (100, 500) for seed in (0, 1)]
    text = behind("figure1", results(figure1=rows))
    assert "The table shows seed 0 at N = 500; the figure medians over the seeds" in text


def test_figures_on_other_data_get_no_tick_and_are_counted_apart():
    other = [row | {"note": "half of the rows"} for row in made_up.linear() if row["variant"] == "certgp"]
    found = results(table_nlpd=other)
    assert "| MGP | 100 | 0.430 (0.010) | **0.430 (0.012)** | +0.000 | +0.0 | 5 |  |" in behind("table-nlpd", found)
    assert "| `certgp` | MGP |  |  |  | 1 of 1 |" in front(found)


def test_a_failed_claim_and_a_worse_cell_show():
    found = results(table_nlpd=made_up.linear(mgp=0.60))
    assert "do not hold: 4;" in front(found)
    row = r"\| ✗ does not hold \| \[MGP outperforms FGP\].* \| certgp: FGP higher by -0.080 ± 0.000"
    assert re.search(row, front(found))
    assert "| MGP | 100 | 0.430 (0.010) | 0.600 (0.012) | +0.170 | +10.7 | 5 |" in behind("table-nlpd", found)


def test_tables_are_well_formed():
    count = 0
    for text in pages(results(), {}).values():
        lines = text.splitlines()
        for i in [i for i, line in enumerate(lines) if set(line) <= set("| -") and "---" in line]:
            width, j, count = lines[i].count("|"), i - 1, count + 1
            while j < len(lines) and lines[j].startswith("|"):
                assert len(re.findall(r"(?<!\\)\|", lines[j])) == width, lines[j]
                j += 1
    assert count > 15


def test_versions_of_data_sets_and_bars_in_notes():
    rows = [row | {"data": "keggdir", "note": "48,827 rows | other target"} for row in made_up.linear()]
    text = behind("data-sets", results(table_nlpd=rows))
    assert "| keggdirected | 53,413 x 19 | yes | 48,827 rows \\| other target |" in text


def test_columns_may_be_missing():
    rows = [{"method": "MGP"}, {"data": "elevators", "rank": 6, "mean": 0.5}, {}]
    names = (section.name for section in SECTIONS)
    text = "".join(pages({name: Result("bare", rows) for name in names}, {}).values())
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
    assert "](../pictures/electric.png)" in (docs / "reproduction" / "electric.md").read_text()
    assert "figure2.png" not in text
    assert (docs / "pictures" / "electric.png").read_bytes().startswith(b"\x89PNG")
    (folder / "figure1.json").write_text('{"title": "x"}')
    with pytest.raises(DataFileError, match=r"figure1\.json holds no results"):
        write_page(folder, docs / "reproduction.md", docs / "pictures")
    assert (docs / "reproduction.md").read_text() == text
    write_page(tmp_path / "nowhere", docs / "empty.md", docs / "pictures")
    assert (docs / "empty.md").read_text() == front({})


def test_the_module_asks_for_three_arguments():
    done = subprocess.run([sys.executable, "-m", "certgp_paper.page"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert done.stderr == "usage: python -m certgp_paper.page RESULTS PAGE PICTURES\n"


def test_the_pages_in_the_docs_are_those_of_the_results():
    kept = read_results(ROOT / "paper" / "results")
    assert set(kept) <= set(experiment_names())
    links = {name: f"results/{name}.png" for name in kept if kept[name].rows}
    assert all((ROOT / "docs" / link).exists() for link in links.values())
    written = pages(kept, links)
    for path, text in written.items():
        assert text == (ROOT / "docs" / path).read_text(), "run make reproduction"
    assert {path.name for path in (ROOT / "docs" / "reproduction").glob("*")} == {
        Path(path).name for path in written if path != FRONT
    }


def test_all_pages_are_in_the_navigation():
    written = pages({}, {})
    listed = written[FRONT].partition("```{toctree}")[2].split()
    assert [f"{name}.md" for name in listed if name.startswith("reproduction/")] == [
        "reproduction/claims.md",
        *(f"reproduction/{section.name}.md" for section in SECTIONS),
        "reproduction/data-sets.md",
    ]
    assert {f"{name}.md" for name in listed if "/" in name} == set(written) - {FRONT}


def test_the_page_of_figure_1_has_the_comparison_with_burt():
    text = behind("figure1", results())
    assert "| kernel | dimensions | rows N | theorem 3, paper | theorem 3, sharpened | Burt et al., k-DPP |" in text
    assert "| matern32 | 1 | 1600 | 40 | 40 | 100 |" in text
    assert "| rates |" not in text  # one table for each kind of row


def test_the_page_of_predictions_has_medians_by_rank():
    text = behind("predictive", results())
    assert "Medians over 5 point sets" in text
    figures = "0.5 | 0.4 | 0.1 | 0.08 | 0.2 | 0.39 | 0.99 | 1.1 | 0.5 | 1.7"
    assert f"| Gaussian kernel, random Fourier features | 1 | 4 | {figures} | 15 of 1,000 |" in text


def test_the_curves_say_that_bands_depend_on_the_variance():
    scores = {"kind": "scores", "model": "MGP, r = 34, DTC variance", "point_sets": 10, "draws": 20, "rmse": 0.4}
    text = front(results(curves=[scores | {"width": 1.0, "coverage": 0.9, "distance_mean": 0.01}]))
    assert "Figures are means over 10 point sets" in text
    assert "What is said of bands depends on this choice" in text
    assert "| MGP, r = 34, DTC variance | 0.400 | 1.000 | 0.900 | 0.010 |" in text


def test_times_of_the_paper_stand_beside_ours_in_words():
    row = {"width_of": "song", "D": 90, "method": "SGPR", "rank": 250, "N": 463_810, "epoch_cpu_seconds": 10.0}
    row |= {"epochs": 100, "training_seconds": 1_234.0, "rows_gb": 0.3, "peak_gb": 1.0, "threads": 1}
    own = row | {"rank": 100, "N": 10_000, "paper_seconds": None}
    assert "Against the paper's training times" not in scaling_summary([own])
    text = scaling_summary([own, row | {"paper_seconds": 5_678.0}])
    assert "SGPR with 250 inducing points and 100 epochs" in text
    growing = [
        row | {"rank": 100, "N": n, "epoch_cpu_seconds": c, "paper_seconds": None} for n, c in ((10, 1.0), (40, 8.0))
    ]
    assert "From 10 to 40 rows it changed by a factor between 2.00 and 2.00" in scaling_summary(growing)
    assert "as song (463,810 of 90 columns): 1,234 CPU seconds here, 5,678 seconds in the paper" in text

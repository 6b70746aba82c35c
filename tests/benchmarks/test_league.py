"""The league: distributions and scores against closed forms, the search, a cell from end to end, ranks and the page."""

from __future__ import annotations

import argparse
import ast
import importlib.util
import json
import os
import subprocess
import sys
import threading
from dataclasses import replace
from itertools import combinations, count, permutations, product
from pathlib import Path

import numpy as np
import pytest
from matplotlib.text import Text
from scipy.integrate import quad
from scipy.stats import friedmanchisquare, norm, t
from sklearn.linear_model import Ridge
from sklearn.model_selection import train_test_split

import certgp
from certgp_paper.datasets.splits import standardised_split
from certgp_paper.experiments.cells import Finished
from league import play as playing
from league import ridge, sklearn_trees
from league.certgp_model import Observations, build, run
from league.contestants import CONTESTANTS, SEVERAL, allowed_seconds, search_seconds
from league.data import CLEAN_BIKE, CLEANED, LEAKING, RANKED, SPLITS, Rows, load_rows
from league.differences import difference_error, part_sizes
from league.distributions import (
    LEAST_DEGREES,
    LEAST_SCALE,
    MIDPOINTS,
    FewQuantiles,
    Normal,
    StudentNoise,
    constant_noise,
    least_slope,
    likeliest_guard,
)
from league.losses import losses
from league.page import write_page
from league.pictures import best_for_cost, plot_cost
from league.protocol import Job, own_cpu_seconds
from league.ranking import Ranking, full_block, groups_alike, rank, ranks_on, with_fewer_splits
from league.scores import (
    LOWER,
    PARTS,
    UPPER,
    crps_of_quantiles,
    part_sums,
    score,
    score_all_and_new,
)
from league.search import (
    Deadline,
    Trained,
    few_and_many_bins,
    few_and_many_leaves,
    folds,
    judge,
    more_depth,
    refit,
    search,
)
from league.search import Rows as Parts
from league.standing import mean_seconds, near_first
from league.table import Table, read_table
from league.tree_runs import QUANTILES, gaussian_loss, run_gaussian
from league.versions import outdated
from peers.contestants import BENCHMARKS

ROOT = Path(__file__).resolve().parents[2]


# ---------------------------------------------------------------------------------------- distributions and scores


def normal_rows(n: int = 400) -> tuple[Normal, np.ndarray]:
    rng = np.random.default_rng(0)
    found = Normal(rng.standard_normal(n), rng.uniform(0.5, 2.0, n))
    return found, found.mean + found.sd * rng.standard_normal(n)


def test_scores_of_a_gaussian_are_those_of_its_closed_forms():
    found, y = normal_rows()
    z = (y - found.mean) / found.sd
    crps = found.sd * (z * (2 * norm.cdf(z) - 1) + 2 * norm.pdf(z) - 1 / np.sqrt(np.pi))
    scores = score(y, found.mean, found.log_density(y), found.quantiles(MIDPOINTS))
    assert scores["crps"] == pytest.approx(np.mean(crps), rel=2e-3)
    assert scores["nlpd"] == pytest.approx(np.mean(0.5 * np.log(2 * np.pi * found.sd**2) + 0.5 * z**2))
    assert scores["nlpd_se"] == pytest.approx(np.std(norm.logpdf(z) - np.log(found.sd), ddof=1) / 20.0)
    assert scores["rmse"] == pytest.approx(np.sqrt(np.mean((y - found.mean) ** 2)))
    assert scores["coverage95"] == np.mean(np.abs(z) <= norm.ppf(0.975))
    assert scores["width95"] == pytest.approx(2 * norm.ppf(0.975) * np.mean(found.sd))
    assert (MIDPOINTS[LOWER], MIDPOINTS[UPPER]) == pytest.approx((0.025, 0.975))


def test_the_crps_of_a_sure_prediction_is_the_absolute_error():
    y = np.array([0.5, -2.0])
    assert crps_of_quantiles(y, np.zeros((2, len(MIDPOINTS)))) == pytest.approx([0.5, 2.0])


def test_errors_of_differences_are_paired_over_test_rows():
    found, y = normal_rows(PARTS)  # one row in each part
    other = Normal(found.mean + 0.05, 1.1 * found.sd)
    sums = [part_sums(y, each.mean, each.log_density(y), each.quantiles(MIDPOINTS)) for each in (found, other)]
    difference = other.log_density(y) - found.log_density(y)
    error = difference_error("nlpd", sums[0]["nlpd"], sums[1]["nlpd"], PARTS)
    assert error == pytest.approx(np.std(difference, ddof=1) / np.sqrt(PARTS), rel=1e-3)
    assert error < 0.2 * score(y, found.mean, found.log_density(y), found.quantiles(MIDPOINTS))["nlpd_se"]
    squares = [(y - each.mean) ** 2 for each in (found, other)]
    rows = [each / (2.0 * np.sqrt(np.mean(each))) for each in squares]
    linear = np.std(rows[0] - rows[1], ddof=1) / np.sqrt(PARTS)
    assert difference_error("rmse", sums[0]["rmse"], sums[1]["rmse"], PARTS) == pytest.approx(linear, rel=1e-3)
    cells = {
        ("yacht", name, split): cell(0.0, test_rows=PARTS, parts=each)
        for split in (0, 1)
        for name, each in zip("ab", sums, strict=True)
    }
    assert Table(cells).difference_error("yacht", "a", "b", "nlpd", [0, 1]) == pytest.approx(error / np.sqrt(2.0))
    assert Table(cells | {("yacht", "a", 1): cell(0.0)}).difference_error("yacht", "a", "b", "nlpd", [0, 1]) is None


def test_parts_of_unequal_size_estimate_the_same_error():
    rng, n = np.random.default_rng(0), 1_000
    sums = [[np.sum(part) for part in np.array_split(rng.standard_normal(n), PARTS)] for _ in range(2)]
    assert part_sizes(n).sum() == n
    assert difference_error("nlpd", *sums, n) == pytest.approx(np.sqrt(2.0 / n), rel=0.3)
    shifted = sums[0] + 5.0 * part_sizes(n)  # the same for all rows: no error
    assert difference_error("nlpd", sums[0], shifted, n) == pytest.approx(0.0, abs=1e-12)


def test_rows_whose_inputs_were_seen_are_scored_apart():
    found, y = normal_rows(10)
    arrays = (y, found.mean, found.log_density(y), found.quantiles(MIDPOINTS))
    repeated = np.arange(10) < 4
    both = score_all_and_new(*arrays, repeated)
    assert both["new_nlpd"] == score(*(array[4:] for array in arrays))["nlpd"]
    assert both["nlpd"] == score(*arrays)["nlpd"]
    assert "new_nlpd" not in score_all_and_new(*arrays, np.zeros(10, bool))


def test_a_few_quantiles_of_a_gaussian_give_its_density_and_its_other_quantiles():
    found, y = normal_rows()
    few = FewQuantiles(QUANTILES, found.quantiles(np.array(QUANTILES)), 1e-3)
    assert few.log_density(y) == pytest.approx(found.log_density(y))
    assert few.quantiles(MIDPOINTS) == pytest.approx(found.quantiles(MIDPOINTS))
    assert few.mean == pytest.approx(found.mean)


def test_a_density_from_quantiles_that_cross_or_coincide_has_integral_one():
    values = np.array([[0.0, 0.3, 0.3, 1.0, 0.9, 2.0, 2.0]])
    few = FewQuantiles(QUANTILES, values, 0.05)
    grid = np.linspace(-6.0, 8.0, 200_001)  # fine enough for the jumps between pieces
    density = np.exp(FewQuantiles(QUANTILES, np.repeat(values, len(grid), 0), 0.05).log_density(grid))
    assert np.trapezoid(density, grid) == pytest.approx(1.0, abs=1e-3)
    levels = few.quantiles(MIDPOINTS)[0]
    assert np.all(np.diff(levels) > 0)
    below = np.array(
        [np.trapezoid(density[grid <= level], grid[grid <= level]) for level in levels[[LOWER, 50, UPPER]]]
    )
    assert below == pytest.approx(MIDPOINTS[[LOWER, 50, UPPER]], abs=5e-3)


def test_the_least_slope_is_the_one_under_which_held_out_rows_are_likeliest():
    y = np.random.default_rng(0).standard_normal(500)
    values = np.zeros((500, len(QUANTILES)))  # all quantiles coincide: the slope is then the standard deviation
    assert least_slope(QUANTILES, values, y) == pytest.approx(np.std(y))


@pytest.mark.parametrize(("degrees", "about"), [(1.4, (1.2, 1.6)), (3.0, (2.3, 4.2)), (200.0, (20.0, 201.0))])
def test_constant_noise_finds_heavy_and_light_tails(degrees, about):
    residuals = 0.3 * t.rvs(degrees, size=3_000, random_state=0)
    scale, found = constant_noise(residuals)
    assert about[0] < found < about[1]
    assert scale == pytest.approx(0.3, rel=0.06)
    assert constant_noise(np.zeros(10))[0] == pytest.approx(LEAST_SCALE)


@pytest.mark.parametrize("y", [0.0, 1.0, 30.0])
def test_the_crps_of_the_heaviest_tails_is_that_of_their_distribution(y):
    found = StudentNoise(np.zeros(1), 1.0, LEAST_DEGREES)
    below = quad(lambda x: t.cdf(x, LEAST_DEGREES) ** 2, -np.inf, y)[0]
    above = quad(lambda x: t.sf(x, LEAST_DEGREES) ** 2, y, np.inf)[0]
    assert crps_of_quantiles(np.array([y]), found.quantiles(MIDPOINTS)) == pytest.approx([below + above], rel=2e-3)


def test_a_guard_widens_a_variance_that_is_too_sure_of_some_rows_and_leaves_a_good_one():
    found, y = normal_rows(2_000)
    honest = likeliest_guard(found, y)
    assert honest.factor == pytest.approx(1.0, abs=0.05)
    assert np.mean(honest(found).log_density(y)) == pytest.approx(np.mean(found.log_density(y)), abs=0.01)
    sure = Normal(found.mean, np.where(np.arange(2_000) % 500 == 0, 1e-3, 0.5 * found.sd))
    guard = likeliest_guard(sure, y)
    assert np.mean(guard(sure).log_density(y)) > np.mean(found.log_density(y)) - 0.05
    assert np.mean(sure.log_density(y)) < -100.0
    assert gaussian_loss(y, np.column_stack([sure.mean, sure.sd**2])) == -np.mean(guard(sure).log_density(y))


def test_student_errors_may_have_a_scale_at_each_row():
    found = StudentNoise(np.array([0.0, 1.0]), np.array([1.0, 2.0]), 3.0)
    upper = t.ppf(0.975, 3.0)
    assert found.quantiles(np.array([0.975]))[:, 0] == pytest.approx([upper, 1.0 + 2.0 * upper])
    assert found.log_density(np.array([0.0, 1.0])) == pytest.approx(t.logpdf(0.0, 3.0) - np.log([1.0, 2.0]))


def test_constant_noise_has_the_quantiles_of_its_density():
    found = StudentNoise(np.array([1.0]), 0.5, 3.0)
    lower, upper = found.quantiles(np.array([0.025, 0.975]))[0]
    grid = np.linspace(lower, upper, 2_001)
    density = np.exp(StudentNoise(np.ones(len(grid)), 0.5, 3.0).log_density(grid))
    assert np.trapezoid(density, grid) == pytest.approx(0.95, abs=1e-4)


# ---------------------------------------------------------------------------------------- fits


class Shrunken:
    """Ridge regression as a learner: its rounds are ignored, its penalty is searched."""

    defaults = {"penalty": 1e6}  # noqa: RUF012 (a protocol's plain attribute)

    def __init__(self) -> None:
        self.fits: list[tuple[int, int]] = []
        self.most_rounds = 0

    def draw(self, rng, n):
        return {"penalty": float(rng.uniform(0.0, 1.0))}

    def loss(self, y, prediction):
        return float(np.mean((y - prediction) ** 2))

    def train(self, settings, rows, held, rounds, deadline):
        if held is not None:
            assert not {row.tobytes() for row in held.X} & {row.tobytes() for row in rows.X}
        self.most_rounds = max(self.most_rounds, rounds)
        self.fits.append((len(rows.y), 0 if held is None else len(held.y)))
        model = Ridge(settings["penalty"]).fit(rows.X, rows.y)
        return Trained(model.predict, 7)


def linear_job(n: int = 100) -> Job:
    rng = np.random.default_rng(1)
    X = rng.standard_normal((n, 3))
    return Job(X, X @ [1.0, -2.0, 0.5] + 0.1 * rng.standard_normal(n), X[:9] + 0.1, 0, 1.0, "")


def test_folds_hold_out_every_row_once_or_one_fifth_of_many():
    parts = folds(23, 0)
    assert sorted(np.concatenate([held for _, held in parts]).tolist()) == list(range(23))
    assert all(sorted([*fit, *held]) == list(range(23)) for fit, held in parts)
    ((fit, held),) = folds(5_001, 0)
    assert (len(fit), len(held)) == (4_000, 1_001)


def test_a_search_prefers_what_held_out_rows_prefer_and_refits_to_all_rows():
    learner, job = Shrunken(), linear_job()
    best, number = search(learner, job, 0.05)
    assert number >= 2
    assert best.settings["penalty"] < 1.0
    assert best.loss == pytest.approx(0.01, rel=0.5)
    assert len(best.held.y) == len(job.y)
    assert refit(learner, best, job).predict(job.X_test) == pytest.approx(job.X_test @ [1.0, -2.0, 0.5], abs=0.1)
    assert learner.fits[-1] == (100, 0)
    assert learner.most_rounds > 20_000  # the seconds end a training, not a number of rounds
    assert judge(learner, best.settings, job, 1.0).loss == best.loss


class Slow(Shrunken):
    """Takes all seconds that it gets; with more of them it is better."""

    def __init__(self) -> None:
        super().__init__()
        self.seconds: list[float] = []

    def train(self, settings, rows, held, rounds, deadline):
        if held is not None:
            self.seconds.append(deadline.left)
            while not deadline.is_over:
                pass
        error = 1.0 / self.seconds[-1]
        return Trained(lambda X: np.full(len(X), error), 7)


def test_no_candidate_takes_more_than_its_part_and_the_best_is_tried_again_with_the_rest():
    learner = Slow()
    best, number = search(learner, linear_job(), 2.0, most_folds=1)
    assert 5 <= number <= 7
    assert learner.seconds[:-1] == pytest.approx([0.25] * number, abs=0.05)
    assert learner.seconds[-1] > 0.35
    assert best.was_cut
    assert len(best.held.y) == 20


def test_a_slow_learner_looks_at_its_deadline_after_a_few_rounds():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((20_000, 4))
    rows, held = Parts(X[:15_000], X[:15_000, 0]), Parts(X[15_000:], X[15_000:, 0])
    settings = {"learning_rate": 0.02, "max_leaf_nodes": 500}
    before = own_cpu_seconds()
    model = sklearn_trees.Boosting(0, 0.5).train(settings, rows, held, 10_000, Deadline(1.0))
    assert own_cpu_seconds() - before < 2.5
    assert model.predict(held.X).shape == (5_000,)


def test_trees_may_grow_with_the_rows():
    assert few_and_many_leaves(500) == few_and_many_leaves(10_000) == (6, 255)
    assert few_and_many_leaves(200_000) == (100, 4_000)
    assert few_and_many_bins(500) == (255, 1_023)
    assert few_and_many_bins(200_000) == (255, 4_000)
    assert [more_depth(n) for n in (100, 5_000, 40_000, 200_000)] == [0, 0, 3, 5]


def test_a_gaussian_peer_is_guarded_by_held_out_rows(monkeypatch):
    looks = count()
    monkeypatch.setattr("league.search.own_cpu_seconds", lambda: 0.005 * next(looks))  # the same on any machine

    class TooSure(Shrunken):
        loss = staticmethod(gaussian_loss)

        def train(self, settings, rows, held, rounds, deadline):
            point = super().train(settings, rows, held, rounds, deadline).predict
            return Trained(lambda X: np.column_stack([point(X), np.full(len(X), 1e-6)]), 7)

    found, about = run_gaussian(TooSure(), replace(linear_job(), seconds=0.5))
    assert found.scale == pytest.approx(0.1, rel=0.6)
    assert about["factor"] * max(1e-3, about["least_sd"]) == pytest.approx(found.scale[0])


def test_a_search_without_seconds_judges_the_defaults_alone():
    best, number = search(Shrunken(), linear_job(), 0.0)
    assert (number, best.settings) == (1, Shrunken.defaults)
    assert Deadline(0.0).is_over
    assert not Deadline(None).is_over


TREES = ROOT / ".peers" / "trees" / "bin" / "python"
TREE_PROGRAM = """
import numpy as np
from league.{module} import {learner}
from league.search import Deadline, Rows

rng, learner = np.random.default_rng(0), {learner}(0)
X = rng.standard_normal((2_000, 12))
binary = (X > 0.0).astype(float)  # many splits are equally good: a tree without a seed chooses among them by chance
y = X[:, 0] * X[:, 1] + X[:, 2] + 0.5 * rng.standard_normal(2_000)

def trained(settings, X=X):
    return learner.train(settings, Rows(X, y), None, 10, Deadline(None)).predict(X[:99])

one, *others = [learner.draw(rng, 2_000) for _ in range(12)]
first = trained(one)
for name in sorted(set(one) - {{"eval_metric", "stopped_by"}}):  # these matter in a search alone
    assert any(not np.array_equal(first, trained(one | {{name: other[name]}})) for other in others), name
assert np.array_equal(trained(one, binary), trained(one, binary))
"""


@pytest.mark.skipif(not TREES.exists(), reason="needs the peers: make peers")
@pytest.mark.parametrize(
    ("module", "learner"),
    [
        ("lightgbm_trees", "Boosting"),
        ("xgboost_trees", "Boosting"),
        ("ngboost_trees", "Boosting"),
        ("catboost_trees", "Boosting"),
        ("catboost_uncertainty", "Guarded"),
    ],
)
def test_every_setting_that_trees_draw_matters_and_they_repeat_themselves(module, learner):
    program = TREE_PROGRAM.format(module=module, learner=learner)
    subprocess.run([TREES, "-c", program], env=CONTESTANTS["LightGBM"].variables(threads=1), check=True)


OVERFLOW_PROGRAM = """
import numpy as np
from league.catboost_uncertainty import LOSS, Guarded
from league.search import Deadline, Rows

X = np.random.default_rng(0).standard_normal((200, 3))
rows, far = Rows(X, X[:, 0]), Rows(X[:20], np.full(20, 1e200))  # whose squares have no double
learner = Guarded(0)
found = learner.train({"eval_metric": LOSS}, rows, far, 10, Deadline(None)).predict(X[:5])
assert learner.overflown == 1
assert np.allclose(found, [[X[:, 0].mean(), X[:, 0].var()]])
learner.train({"eval_metric": LOSS}, rows, rows, 10, Deadline(None))
assert learner.overflown == 1
"""


@pytest.mark.skipif(not TREES.exists(), reason="needs the peers: make peers")
def test_a_likelihood_that_overflows_loses_a_candidate_and_not_the_search():
    variables = CONTESTANTS["LightGBM"].variables(threads=1)
    subprocess.run([TREES, "-c", OVERFLOW_PROGRAM], env=variables, check=True)


def test_ridge_is_ridge_with_errors_of_rows_left_out():
    job = linear_job(40)
    found, about = ridge.run(job)
    model = Ridge(about["penalty"]).fit(job.X, job.y)
    assert found.mean == pytest.approx(model.predict(job.X_test))
    rows = range(40)
    left_out = np.array(
        [
            job.y[i] - Ridge(about["penalty"]).fit(np.delete(job.X, i, 0), np.delete(job.y, i)).predict(job.X[[i]])[0]
            for i in rows
        ]
    )
    scale, degrees = constant_noise(left_out)
    assert (found.scale, found.degrees) == (pytest.approx(scale, rel=1e-2), pytest.approx(degrees, rel=0.05))


def test_our_models_are_scored_by_their_own_density():
    job = linear_job()
    gp = certgp.FourierGP(10, optimize=False, random_state=0).fit(job.X, job.y)
    found, y = Observations(gp, job.X_test), np.linspace(-1.0, 1.0, 9)
    assert -np.mean(found.log_density(y)) == pytest.approx(gp.nlpd(job.X_test, y))
    lower, upper = gp.predict_interval(job.X_test, 0.95)
    assert found.quantiles(np.array([0.025, 0.975])) == pytest.approx(np.column_stack([lower, upper]))
    assert build("AutoGP effort=low", 3).get_params()["effort"] == "low"
    assert build("DeepFourierGP members=3", 3).get_params()["members"] == 3


def test_a_race_tells_what_it_tried():
    _, about = run(replace(linear_job(), variant="AutoGP effort=low", is_practice=True))
    assert about["choice"].startswith(about["method"])
    assert about["method"] in [each["method"] for each in about["trials"]]
    assert all(each["cpu_seconds"] > 0.0 and each["rows"] < 100 for each in about["trials"])


# ---------------------------------------------------------------------------------------- cells


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    rng = np.random.default_rng(0)
    path = tmp_path_factory.mktemp("league")
    X = rng.standard_normal((200, 17))
    X[100:] = X[:100]  # most test inputs occur in training
    np.savez(path / "bike.npz", X=X, y=X[:, 0] + 0.1 * rng.standard_normal(200))
    return path


@pytest.fixture
def rows(folder, monkeypatch) -> Rows:
    monkeypatch.setenv("CERTGP_DATA", str(folder))
    return load_rows("bike", 0)


def test_clean_bike_lacks_the_leaking_columns_and_repeated_inputs_are_found(rows):
    clean = load_rows("bike-clean", 0)
    assert np.array_equal(clean.X, rows.X[:, :15])
    assert np.array_equal(clean.y_test, rows.y_test)
    expected = [any(np.array_equal(row, other) for other in rows.X) for row in rows.X_test]
    assert rows.repeated.tolist() == expected
    assert 0.5 < rows.describe()["repeated_share"] < 1.0


def test_a_column_that_only_rounding_moves_is_zero_and_no_other_changes(tmp_path, monkeypatch):
    X = np.random.default_rng(0).standard_normal((300, 3))
    part = train_test_split(np.arange(300), test_size=0.1, random_state=0)
    X[part[0], 1] = 2.048e-05  # its mean over 270 rows is another number
    np.savez(tmp_path / "yacht.npz", X=X, y=X[:, 0])
    monkeypatch.setenv("CERTGP_DATA", str(tmp_path))
    plain, found = standardised_split("yacht", 0), load_rows("yacht", 0)
    assert np.abs(plain.X_test[:, 1]).max() > 1e10
    assert not found.X[:, 1].any()
    assert not found.X_test[:, 1].any()
    assert np.array_equal(found.X[:, [0, 2]], plain.X[:, [0, 2]])
    assert np.array_equal(found.X_test[:, [0, 2]], plain.X_test[:, [0, 2]])


@pytest.mark.skipif("CERTGP_DATA" not in os.environ, reason="needs the data sets: set CERTGP_DATA")
@pytest.mark.parametrize("name", RANKED)
def test_splits_with_constant_columns_are_known(name):
    """Also that nothing else in a split is touched."""
    for split in range(SPLITS):
        found, plain = load_rows(name, split), standardised_split(name.removesuffix("-clean"), split)
        kept = np.delete(plain.X_test, LEAKING, axis=1) if name == CLEAN_BIKE else plain.X_test
        changed = np.any(found.X_test != kept, axis=0)
        assert changed.any() == ((name, split) in CLEANED)
        assert not found.X[:, changed].any()


def command():
    """The command itself, whose file has the same name as the package."""
    spec = importlib.util.spec_from_file_location("league_command", ROOT / "benchmarks" / "league.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def options(results: Path, **changes) -> argparse.Namespace:
    given = {"data": ["bike"], "contestants": ["ridge"], "splits": [0], "jobs": 1, "renew": False, "retry": False}
    return argparse.Namespace(**given | {"results": results, "environments": results} | changes)


def test_a_run_goes_on_where_it_was_and_a_cell_repeats_itself(rows, tmp_path, capsys):
    league, path = command(), tmp_path / "league.jsonl"
    league.run(options(tmp_path))
    first = path.read_text()
    league.run(options(tmp_path))  # nothing is missing
    assert path.read_text() == first
    path.write_text(first + first[:50])  # as a crash leaves it
    league.run(options(tmp_path, splits=[0, 1]))
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [line["settings"]["split"] for line in lines] == [0, 1]
    lines[0]["made_by"]["version"] = "another"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    league.run(options(tmp_path, renew=True, splits=[0, 1]))  # split 0 again, by the same code
    again = {line["settings"]["split"]: line for line in map(json.loads, path.read_text().splitlines())}
    before = json.loads(first)
    assert again[0]["made_by"] == before["made_by"]
    measures = ("nlpd", "crps", "rmse", "coverage95", "width95", "new_nlpd", "new_rmse")
    assert [again[0]["result"][each] for each in measures] == [before["result"][each] for each in measures]
    assert "nlpd" in capsys.readouterr().out


def test_a_cell_that_takes_too_long_is_a_result(rows, tmp_path, monkeypatch):
    monkeypatch.setattr(playing, "CPU_LIMIT", 1)
    slow = CONTESTANTS["sklearn HGB quantiles"]
    found = playing.play(slow, rows, 0, tmp_path, tmp_path)
    assert (found["status"], found["limit"], found["rows"]) == ("not finished", 1, 180)


def test_the_limit_of_a_cell_counts_neither_imports_nor_practice_nor_densities(rows, tmp_path):
    rows.save(tmp_path / "rows.npz")
    words = [f"--rows={tmp_path / 'rows.npz'}", f"--out={tmp_path / 'found.npz'}", "--seed=0", "--seconds=1"]
    program = """
import time
from league import ridge
from league.distributions import StudentNoise
from league.protocol import serve

def burn(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass

class Slow(StudentNoise):
    def log_density(self, y):
        burn(2.1)
        return super().log_density(y)

def run(job):
    burn(2.1 if job.is_practice else 0.0)
    found, about = ridge.run(job)
    return Slow(found.mean, found.scale, found.degrees), about

burn(2.1)
serve(run)
"""
    environment = CONTESTANTS["ridge"].variables(threads=1)
    subprocess.run([sys.executable, "-c", program, *words, "--cpu-limit=1"], env=environment, check=True)
    assert json.loads((tmp_path / "found.json").read_text())["cost"]["cpu_seconds"] < 1.0


def test_a_cell_that_fails_says_why(rows, tmp_path):
    broken = Rows(rows.X, rows.X_test, np.full_like(rows.y, np.nan), rows.y_test)
    found = playing.play(CONTESTANTS["ridge"], broken, 0, tmp_path, tmp_path)
    assert found["status"] == "failed"
    assert found["reason"]


def test_versions_follow_the_code_of_a_contestant_and_its_rows():
    def version(name: str, data: str = "yacht", split: int = 0) -> object:
        return playing.made_by(CONTESTANTS[name], data, split)["version"]

    assert len({version(name) for name in ("LocalGP", "SparseGP", "LightGBM", "ridge")}) == 4
    assert len({version(name) for name in ("AutoGP low", "AutoGP high", "DeepFourierGP", "DeepFourierGP x 3")}) == 4
    assert version("ridge", "keggdirected", 0) != version("ridge", "keggdirected", 1) == version("ridge")


def test_the_version_of_a_peer_has_all_that_its_runner_imports():
    trees = playing._imported({"league.lightgbm_trees"})
    assert {"league.search", "league.tree_runs", "league.distributions"} <= trees
    assert playing._imported({"league.ridge"}) == {"league.ridge", "league.distributions", "league.protocol"}


@pytest.mark.parametrize("name", ["LightGBM", "AutoGP low"])
def test_versions_follow_runner_and_scoring_but_neither_ranking_nor_page_nor_docstrings(name, monkeypatch):
    def version_with(changed: str, more: str) -> str:
        def tree(module: str):
            text = (BENCHMARKS / f"{module.replace('.', '/')}.py").read_text()
            return playing.essential(ast.parse(text + more if module == changed else text))

        monkeypatch.setattr(playing, "_tree", tree)
        return playing._version.__wrapped__(CONTESTANTS[name])

    before = version_with("", "")
    for module in (CONTESTANTS[name].module, "league.protocol", "league.distributions", "league.scores"):
        assert version_with(module, "X = 1") != before
        assert version_with(module, "# nothing") == before
    for path in (BENCHMARKS / "league").glob("*.py"):
        if path.stem in ("page", "ranking", "standing", "differences", "losses", "pictures", "races", "table", "play"):
            assert version_with(f"league.{path.stem}", "X = 1") == before


def test_docstrings_are_not_essential():
    one, other = ('"""A."""\ndef f():\n    """B."""\n    return 1', "def f():\n    return 1")
    assert ast.dump(playing.essential(ast.parse(one))) == ast.dump(playing.essential(ast.parse(other)))


def test_a_search_with_other_seconds_is_another_version(monkeypatch):
    before = playing._version.__wrapped__(CONTESTANTS["LightGBM"])
    monkeypatch.setattr(playing, "allowed_seconds", lambda contestant, n: 1.0)
    assert playing._version.__wrapped__(CONTESTANTS["LightGBM"]) != before


def test_the_seconds_of_a_search_grow_with_the_rows():
    assert [search_seconds(n) for n in (100, 15_000, 200_000)] == [20.0, 60.0, 100.0]
    seconds = [allowed_seconds(CONTESTANTS["sklearn HGB quantiles"], n) for n in (100, 15_000, 200_000)]
    assert seconds == [40.0, 100.0, 100.0]
    assert [allowed_seconds(CONTESTANTS[name], 100) for name in ("NGBoost", "CatBoost uncertainty")] == [40.0, 40.0]
    assert set(SEVERAL) < set(CONTESTANTS)


def test_an_unfinished_run_has_what_says_most():
    names, data = ["AutoGP proof", "NGBoost", "ridge", "XGBoost", "AutoGP medium"], ["yacht", "3droad"]
    chosen = argparse.Namespace(data=data, contestants=names, splits=[0, 1])
    order = [(name, contestant.name, split) for name, contestant, split in command().wanted(chosen)]
    assert order[:3] == [("yacht", "AutoGP medium", 0), ("3droad", "AutoGP medium", 0), ("yacht", "XGBoost", 0)]
    assert [name for _, name, _ in order[::2]] == 2 * ["AutoGP medium", "XGBoost", "ridge", "NGBoost", "AutoGP proof"]
    assert [split for _, _, split in order] == [0] * 10 + [1] * 10
    assert len(set(order)) == 20


def test_two_runs_side_by_side_keep_each_others_cells(rows, tmp_path, monkeypatch):
    league = command()

    def play_beside_another(contestant, rows, split, *places):
        league.CellStore(tmp_path).save(Finished(playing.cell_of("yacht", "ridge", split), {"nlpd": 0.0}, 1.0))
        if split == 1:
            league.CellStore(tmp_path).compact(playing.FAMILY)
        return cell(0.0)

    monkeypatch.setattr(league, "play", play_beside_another)
    league.run(options(tmp_path, splits=[0, 1, 2]))
    assert set(read_table(tmp_path).cells) == {(data, "ridge", i) for data in ("yacht", "bike") for i in range(3)}


def test_two_cells_are_played_at_a_time(rows, tmp_path, monkeypatch):
    league, both_are_there, folders = command(), threading.Barrier(2, timeout=60), []

    def play(contestant, rows, split, folder, environments):
        folders.append(folder)
        both_are_there.wait()
        return cell(0.0)

    monkeypatch.setattr(league, "play", play)
    league.run(options(tmp_path, splits=[0, 1, 2, 3], jobs=2))
    assert set(read_table(tmp_path).cells) == {("bike", "ridge", i) for i in range(4)}
    assert len(set(folders)) == 4


# ---------------------------------------------------------------------------------------- ranks and page


def cell(nlpd: float | None, seconds: float = 1.0, rows: int = 100, **more) -> dict[str, object]:
    about = {"rows": rows, "columns": 2, "test_rows": 10, "distinct_targets": 5, "repeated_share": 0.0}
    if nlpd is None:
        return about | {"status": "not finished", "limit": 900} | more
    scores = {"nlpd": nlpd, "nlpd_se": 0.1, "crps": nlpd + 2, "crps_se": 0.1, "rmse": nlpd + 2, "coverage95": 0.9}
    costs = {"width95": 1.0, "cpu_seconds": seconds, "peak_megabytes": 100.0}
    return about | {"status": "finished"} | scores | costs | more


def of_today(cells: dict) -> Table:
    """Cells of the code of today, unless they say otherwise."""
    return Table(
        {
            (data, name, split): {"version": playing.cell_version(CONTESTANTS[name], data, split)} | found
            for (data, name, split), found in cells.items()
        }
    )


@pytest.fixture
def table() -> Table:
    """LocalGP first on yacht, LightGBM on energy; ridge did not finish there; XGBoost was played on yacht alone."""
    return of_today(
        {
            ("yacht", "ridge", 0): cell(1.0, 0.1),
            ("yacht", "LightGBM", 0): cell(0.05, 20.0, about={"candidates": 9}),
            ("yacht", "LocalGP", 0): cell(0.0, 5.0),
            ("yacht", "LocalGP", 1): cell(9.0, 5.0),
            ("yacht", "XGBoost", 0): cell(0.5),
            ("energy", "ridge", 0): cell(None, repeated_share=0.5),
            ("energy", "LightGBM", 0): cell(-1.0, 20.0, repeated_share=0.5, new_nlpd=-0.5),
            ("energy", "LocalGP", 0): cell(-0.5, 5.0, repeated_share=0.5, new_nlpd=-0.4),
        }
    )


def test_ranks_take_common_splits_and_put_missing_results_last(table):
    found = rank(table, "nlpd", ["yacht", "energy"], ["ridge", "LightGBM", "LocalGP"])
    assert found.ranks.tolist() == [[3.0, 2.0, 1.0], [3.0, 1.0, 2.0]]
    assert found.average == {"LightGBM": 1.5, "LocalGP": 1.5, "ridge": 3.0}


def test_a_contestant_with_one_split_leaves_the_others_theirs():
    values = {"a": [0.0, 4.0, 4.0], "b": [1.0, 2.0, 2.0], "c": [0.5]}
    table = Table({("yacht", name, i): cell(value) for name, each in values.items() for i, value in enumerate(each)})
    assert ranks_on(table, "yacht", "nlpd", "abc") == {"a": 2.0, "b": 2.0, "c": 2.0}  # b < a on three splits, not on 0
    assert with_fewer_splits(table, ["yacht"], list("abc")) == ["c"]
    (loss,) = [each for each in losses(table, ["a"], ["b", "c"]) if each.measure == "nlpd"]
    assert (loss.peer, loss.splits, loss.gap) == ("b", 3, pytest.approx(1.0))


def test_ranks_where_a_pair_shares_no_split_or_one_was_never_played():
    table = Table({("yacht", "a", 0): cell(0.0), ("yacht", "b", 1): cell(1.0), ("yacht", "d", 0): cell(None)})
    assert ranks_on(table, "yacht", "nlpd", "abcd") == {"a": 1.5, "b": 1.5, "c": 3.5, "d": 3.5}


def test_equal_values_and_two_without_a_result_share_ranks():
    cells = {("yacht", name, 0): cell(value) for name, value in zip("abcd", (1.0, 1.0, None, None), strict=True)}
    assert rank(Table(cells), "nlpd", ["yacht"], list("abcd")).ranks.tolist() == [[1.5, 1.5, 3.5, 3.5]]


def test_only_contestants_that_were_played_everywhere_are_ranked(table):
    names = ["ridge", "LightGBM", "LocalGP", "XGBoost"]
    data, complete = full_block(table, ["yacht", "energy"], names, lambda data, name: False)
    assert (data, complete) == (("yacht", "energy"), ("ridge", "LightGBM", "LocalGP"))
    _, with_reason = full_block(table, ["yacht", "energy"], names, lambda data, name: name == "XGBoost")
    assert with_reason == tuple(names)
    assert full_block(Table({}), ["yacht"], names, lambda data, name: False) == ((), ())


def test_critical_differences_are_those_of_the_literature():
    ranks = np.array([np.random.default_rng(i).permutation(4) + 1.0 for i in range(14)])
    found = Ranking("nlpd", tuple("abcd"), tuple(map(str, range(14))), ranks)
    assert found.critical_difference == pytest.approx(2.569 * np.sqrt(4 * 5 / (6 * 14)), rel=1e-3)  # Demsar (2006)
    assert found.p_value == pytest.approx(friedmanchisquare(*ranks.T).pvalue, abs=0.03)


def p_value(ranks: list[list[float]]) -> float:
    data, contestants = (tuple(map(str, range(size))) for size in np.shape(ranks))
    return Ranking("nlpd", contestants, data, np.array(ranks)).p_value


def test_p_values_are_those_of_all_permutations():
    assert p_value([[1.0, 2.0]] * 2) == pytest.approx(1 / 2, abs=0.02)
    assert p_value([[1.0, 2.0, 3.0]] * 3) == pytest.approx(1 / 36, abs=0.006)  # agreement proves little on three sets
    assert p_value([[1.0, 2.0, 3.0]] * 11) == pytest.approx(1e-4)  # 6^-10 cannot be told from 9,999 deals
    assert p_value([[2.0, 2.0, 2.0]] * 4) == 1.0
    ranks = [[1.0, 2.5, 2.5], [3.0, 1.0, 2.0], [1.0, 2.0, 3.0], [1.0, 3.0, 2.0]]
    spreads = [np.sum(np.sum(deal, axis=0) ** 2) for deal in product(*(list(permutations(row)) for row in ranks))]
    exact = np.mean(np.array(spreads) >= np.sum(np.sum(ranks, axis=0) ** 2))
    assert p_value(ranks) == pytest.approx(exact, abs=0.02)


def test_groups_are_maximal_and_none_lies_in_another():
    average = {"a": 1.0, "b": 1.5, "c": 2.8, "d": 3.0, "e": 6.0}
    assert groups_alike(average, 1.6) == [("a", "b"), ("b", "c", "d")]
    assert groups_alike(average, 10.0) == [tuple("abcde")]
    assert groups_alike(average, 0.1) == []


def test_who_is_near_the_first_and_what_it_costs(table):
    near = near_first(table, "nlpd", ["yacht", "energy"], ["ridge", "LightGBM", "LocalGP"])
    assert near == {"ridge": 0, "LightGBM": 2, "LocalGP": 1}  # .05 behind on yacht, where one standard error is .1
    assert mean_seconds(table, ["yacht", "energy"]) == pytest.approx({"LightGBM": 20.0, "LocalGP": 5.0})
    assert best_for_cost({"a": 1.0, "b": 2.0, "c": 3.0}, {"a": 9.0, "b": 1.0, "c": 5.0}) == ["b", "a"]


def test_losses_name_the_first_peer_and_the_distance(table):
    found = losses(table, ["LocalGP"], ["ridge", "LightGBM"])
    assert [(loss.data, loss.measure, loss.peer) for loss in found] == [
        ("energy", measure, "LightGBM") for measure in ("nlpd", "crps", "rmse")
    ]
    assert found[0].cells() == ["energy", "NLPD", "LocalGP", "-0.500", "LightGBM", "-1.000", "0.5000", "5.0\\*", "1"]
    assert found[2].cells()[-2] == ""  # no standard error of an RMSE
    assert losses(table, ["LightGBM"], ["ridge"]) == []


def test_the_page_says_what_the_cells_say(table, tmp_path):
    write_page(table, tmp_path)
    text = (tmp_path / "league.md").read_text()
    assert "Average ranks over 2 data sets (yacht, energy)" in text
    assert "| energy | NLPD | LocalGP | -0.500 | LightGBM | -1.000 | 0.5000 | 5.0\\* | 1 |" in text
    assert "| ridge | energy | 0 | not finished: 900 CPU s |" in text
    assert "50.0 % of test inputs occur in training" in text
    assert "-1.000 / -0.500" in text
    assert "| **LocalGP** | **4.500** (2) | -0.500 |" in text  # first in pairs: the others have split 0 alone
    assert "Not ranked yet: XGBoost" in text
    assert "`AutoGP medium` has not been played yet." in text
    assert "at least 500 test rows: none." in text
    assert "judged in its seconds: LightGBM 9 to 9." in text
    assert "Of 3 cells of certgp's estimators, 3 are of the code that wrote this page" in text
    assert "and 0 of earlier versions, which count and are marked ‡; of 5 cells of peers, 0 are of runners" in text
    assert "is ahead of every model of certgp that was played with it in 3 of 6 places" in text
    assert "had a say in certgp's defaults" in text
    assert "Not enough cells of other splits count" in text
    assert "| LightGBM † |" in text
    assert "| **LocalGP** |" in text


def test_outdated_cells_of_peers_do_not_count_and_all_outdated_ones_are_marked(table, tmp_path):
    def with_versions(changed: dict) -> Table:
        return Table(
            {key: found | ({"version": "old"} if key in changed else {}) for key, found in table.cells.items()}
        )

    held_back = with_versions({("yacht", "LocalGP", 1), ("yacht", "LightGBM", 0), ("energy", "LightGBM", 0)})
    write_page(held_back, tmp_path)
    text = (tmp_path / "league.md").read_text()
    standing, losing = text.split("## Standing")[1].split("## Where we lose")[:2]
    assert "LightGBM" not in standing + losing.split("## What a race costs")[0]
    assert "| **LocalGP** | 1.0 | 1.0 | 1.0 | 2 of 2 | 2 of 2 | 5.0 | 3 (1 ‡) |" in standing
    assert "played with it in 0 of 3 places" in losing
    assert "| LightGBM | 0.050 ‡ | -1.000 ‡ |" in text
    assert "| **LocalGP** | **4.500** (2) ‡ | **-0.500** |" in text
    assert "Not ranked yet: LightGBM, XGBoost" in text
    write_page(with_versions({key for key in table.cells if key[1] != "LocalGP"}), tmp_path)
    assert "Too few cells that count to rank anybody." in (tmp_path / "league.md").read_text()
    again = with_versions({("energy", "LocalGP", 0)})
    again = Table(dict(again.cells) | {("energy", "LightGBM", 1): cell(7.0) | {"version": "old"}})
    write_page(again, tmp_path)
    text = (tmp_path / "league.md").read_text()
    assert "| LightGBM | 0.050 | **-1.000** |" in text  # not the mean with 7
    assert "| energy | NLPD | LocalGP | -0.500 ‡ | LightGBM | -1.000 |" in text


def test_ranks_without_the_split_that_had_a_say(tmp_path):
    values = {"LightGBM": [9.0, 0.0, 0.0], "LocalGP": [0.0, 1.0, 1.0], "ridge": [1.0]}
    cells = {
        (data, name, split): cell(value)
        for data in ("yacht", "energy")
        for name, each in values.items()
        for split, value in enumerate(each)
    }
    write_page(of_today(cells), tmp_path)
    text = (tmp_path / "league.md").read_text()
    assert "among themselves, over yacht, energy:" in text
    assert "| **LocalGP** | 1.0 | 2.0 |\n| LightGBM | 2.0 | 1.0 |\n" in text


def test_cells_of_other_code_are_counted(tmp_path, capsys):
    lines = []
    for split, version in enumerate([playing.cell_version(CONTESTANTS["LocalGP"], "yacht", 0), "another"]):
        settings = {"data": "yacht", "contestant": "LocalGP", "split": split}
        lines.append({"settings": settings, "result": cell(0.0), "seconds": 1.0, "made_by": {"version": version}})
    (tmp_path / "league.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert outdated(read_table(tmp_path)) == {("yacht", "LocalGP", 1)}
    command().status(options(tmp_path))
    said = capsys.readouterr().out
    assert "2 -1" in said
    assert "2 cells; -n: n of them are outdated, 1 in all" in said
    write_page(read_table(tmp_path), tmp_path)
    assert "estimators, 1 are of the code that wrote this page" in (tmp_path / "league.md").read_text()


def test_the_page_names_intervals_of_ours_that_cover_too_little(tmp_path):
    many = {("yacht", name, 0): cell(0.0, test_rows=900) for name in ("LocalGP", "ridge")}
    write_page(of_today(many), tmp_path)
    assert "at least 500 test rows: LocalGP on yacht 0.900." in (tmp_path / "league.md").read_text()


def test_the_page_says_what_races_cost(tmp_path):
    def race(seconds: float, fits: dict[str, float], winner: str, again: float | None = None) -> dict[str, object]:
        trials = [{"method": name, "nlpd": 0.0, "cpu_seconds": s, "rows": 90} for name, s in fits.items()]
        for trial in trials if again is not None else ():  # earlier cells do not say it
            trial["cpu_seconds_again"] = again if trial["method"] == winner else 0.0
        return cell(0.0, seconds, about={"method": winner, "trials": trials})

    cells = {
        ("yacht", "AutoGP low", 0): race(6.0, {"local": 2.0, "exact": 3.0}, "exact", again=4.0),
        ("yacht", "AutoGP medium", 0): race(8.0, {"local": 2.0, "exact": 3.0}, "local"),
        ("yacht", "AutoGP medium", 1): race(10.0, {"local": 4.0}, "local"),
        ("yacht", "AutoGP medium", 2): cell(0.0),  # played before cells said so
        ("yacht", "LightGBM", 0): cell(0.0, 20.0),
    }
    write_page(of_today(cells), tmp_path)
    text = (tmp_path / "league.md").read_text()
    assert "| yacht | 6 s, 1.5 times: exact | 9 s, 3.0 times: local | -14 s |" in text
    assert "1 of 4 cells of races do not say what was tried" in text
    assert "What a proof costs" not in text


def test_the_page_says_what_proofs_cost(tmp_path):
    cells = {("yacht", "AutoGP medium", split): cell(split) for split in range(3)}
    cells |= {("yacht", "AutoGP proof", split): cell(split + 0.25) for split in (0, 2)}
    write_page(of_today(cells), tmp_path)
    text = (tmp_path / "league.md").read_text()
    assert "| yacht | 1.000 | 1.250 | 0.250 | 0.071\\* | 2 |" in text
    assert "5 of 5 cells of races do not say what was tried" in text
    assert "**AutoGP proof**" in text
    assert build("AutoGP effort=medium prefer=proof", 0).get_params()["prefer"] == "proof"


def test_the_page_has_its_pictures(table, tmp_path):
    write_page(table, tmp_path)
    for name in ("league-ranks.png", "league-cost.png"):
        assert (tmp_path / "figures" / name).read_bytes().startswith(b"\x89PNG")


def test_no_name_in_the_picture_of_costs_covers_another_or_a_foreign_point():
    places = {"LightGBM": (44.0, 4.5), "CatBoost": (47.0, 4.8), "NGBoost": (74.0, 5.0), "XGBoost": (44.0, 5.3)}
    places |= {"sklearn HGB quantiles": (65.0, 5.7), "ridge": (0.03, 8.9), "AutoGP medium": (21.0, 1.8)}
    ranks = np.array([[rank for _, rank in places.values()]])
    seconds = {name: spent for name, (spent, _) in places.items()}
    figure = plot_cost(Ranking("nlpd", tuple(places), ("yacht",), ranks), seconds, ["AutoGP medium"])
    figure.draw_without_rendering()
    (panel,) = figure.axes
    boxes = {each.get_text(): Text.get_window_extent(each) for each in panel.texts}
    assert set(boxes) == set(places)
    for (_, one), (_, other) in combinations(boxes.items(), 2):
        assert not one.overlaps(other)
    for name, place in places.items():
        x, y = panel.transData.transform(place)
        assert not any(box.contains(x, y) for other, box in boxes.items() if other != name)


def test_a_page_without_cells_is_no_error(tmp_path):
    write_page(read_table(tmp_path), tmp_path)
    text = (tmp_path / "league.md").read_text()
    assert "Too few cells that count to rank anybody." in text
    assert "No race has been played yet." in text

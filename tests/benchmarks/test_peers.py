"""The comparison with peers: what is read from traces, how contestants are named, and the command from end to end."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from peers import picture
from peers.comparison import Run, median_or_none, plain, race, races, summarise_races, summarise_runs, time_to_target
from peers.contestants import MODELS, PEERS, interleave, missing_environments, parse_contestant
from peers.protocol import Job, Point, Recorder

ROOT = Path(__file__).resolve().parents[2]


def points(*pairs: tuple[float, float]) -> tuple[Point, ...]:
    """Points at (seconds, NLPD) on two busy threads."""
    return tuple(Point(seconds, 2.0 * seconds, nlpd, 0.5, None) for seconds, nlpd in pairs)


PEER = Run("rows", 50, 0, 0, "gpflow-sgpr", True, points((1.0, 0.9), (2.0, 0.5), (8.0, 0.4), (10.0, 0.4)), {})
MODEL = replace(PEER, contestant="mercer", is_peer=False, trace=points((0.5, 0.6), (1.0, 0.41), (2.0, 0.3)))


def test_time_to_target_is_the_first_point_that_is_no_worse():
    assert time_to_target(PEER.trace, 0.5) == PEER.trace[1]
    assert time_to_target(PEER.trace, 0.45) == PEER.trace[2]
    assert time_to_target(PEER.trace, 0.39) is None
    assert time_to_target((), 1.0) is None


def test_a_trace_without_numbers_reaches_nothing():
    assert time_to_target(points((1.0, math.nan)), 1e9) is None


def test_a_race_is_to_the_final_score_of_the_peer():
    result = race(PEER, MODEL)
    assert (result.target, result.seconds, result.peer_seconds) == (0.4, 2.0, 10.0)
    assert result.fraction == result.cpu_fraction == pytest.approx(0.2)
    assert result.peer_first_seconds == 8.0
    assert result.fraction_of_first == pytest.approx(0.25)


def test_a_race_that_is_never_won_says_none():
    result = race(MODEL, PEER)
    assert (result.seconds, result.fraction, result.cpu_fraction) == (None, None, None)


def test_races_pair_runs_of_the_same_rows_and_round():
    later = [replace(run, round=1) for run in (PEER, MODEL)]
    other = [replace(MODEL, split=1)]
    pairs = [(each.peer, each.model, each.round) for each in races([PEER, MODEL, *later, *other])]
    assert pairs == [("gpflow-sgpr", "mercer", 0), ("gpflow-sgpr", "mercer", 1)]


def test_summaries_are_medians_in_which_a_lost_race_is_the_slowest():
    won, lost = race(PEER, MODEL), race(PEER, replace(MODEL, trace=points((1.0, 0.9))))
    (both,) = summarise_races([won, lost, won])
    assert (both["races"], both["reached"], both["fraction"]) == (3, 2, pytest.approx(0.2))
    (mostly_lost,) = summarise_races([won, lost, lost])
    assert mostly_lost["fraction"] is None
    (ends,) = summarise_runs([PEER, replace(PEER, trace=points((20.0, 0.8)))])
    assert (ends["runs"], ends["seconds"], ends["nlpd"]) == (2, 15.0, pytest.approx(0.6))
    assert ends["objective_per_row"] is None


@pytest.mark.parametrize(
    ("values", "expected"), [([1.0, 3.0], 2.0), ([1.0, None, 2.0], 2.0), ([None], None), ([math.nan, 1.0, 1.0], 1.0)]
)
def test_median_or_none(values, expected):
    assert median_or_none(values) == expected


def test_plain_values_are_json():
    text = json.dumps(plain({"run": PEER, "numbers": [math.inf, math.nan, 1.0]}), allow_nan=False)
    assert json.loads(text)["numbers"] == [None, None, 1.0]
    assert json.loads(text)["run"]["trace"][0]["nlpd"] == 0.9


def test_a_contestant_may_carry_its_budget():
    assert parse_contestant("gpflow-sgpr", PEERS) is PEERS["gpflow-sgpr"]
    short = parse_contestant("gpflow-sgpr:100", PEERS)
    assert (short.name, short.budget, short.module) == ("gpflow-sgpr:100", 100, PEERS["gpflow-sgpr"].module)
    assert parse_contestant("mercer", MODELS).budget is None


@pytest.mark.parametrize("text", ["gpflow", "gpflow-sgpr:", "gpflow-sgpr:0", "gpflow-sgpr:-1", "gpflow-sgpr:many", ""])
def test_other_contestants_are_refused(text):
    with pytest.raises(ValueError, match=r"is not one of|positive whole number"):
        parse_contestant(text, PEERS)


def test_peers_and_models_take_turns():
    peers, models = list(PEERS.values())[:3], list(MODELS.values())[:2]
    assert [each.is_peer for each in interleave(peers, models)] == [True, False, True, False, True]
    assert interleave([], models) == models


def test_only_environments_that_are_needed_are_missed(tmp_path):
    assert missing_environments(list(PEERS.values()), tmp_path) == ["gpboost", "gpflow", "gpytorch"]
    assert missing_environments([PEERS["sklearn-nystroem"], *MODELS.values()], tmp_path) == []


@pytest.fixture
def job() -> Job:
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((300, 3)), rng.standard_normal(300)
    return Job(X, y, X[:20], y[:20], 7, 0, 1, 5, math.inf, "")


def test_the_clock_stands_still_while_paused(job, monkeypatch):
    now = [np.zeros(2)]
    monkeypatch.setattr("peers.protocol._now", lambda: now[0])
    recorder = Recorder(job)
    recorder.start()
    now[0] = np.array([2.0, 3.0])
    with recorder.paused():
        now[0] = np.array([50.0, 60.0])
        assert recorder.elapsed().tolist() == [2.0, 3.0]
        recorder.add(job.y_test, np.ones(20), 1.5, charge=np.array([0.5, 0.25]))
    now[0] = np.array([51.0, 61.0])
    assert recorder.elapsed().tolist() == [3.0, 4.0]
    assert recorder.trace == [Point(2.5, 3.25, pytest.approx(0.5 * np.log(2 * np.pi)), 0.0, 1.5)]


def test_a_large_charge_does_not_overtake_the_next_point(job, monkeypatch):
    now = [np.zeros(2)]
    monkeypatch.setattr("peers.protocol._now", lambda: now[0])
    recorder = Recorder(job)
    recorder.start()
    now[0] = np.full(2, 2.0)
    recorder.add(job.y_test, np.ones(20), None, charge=np.array([0.5, 0.6]))
    now[0] = np.full(2, 2.2)
    recorder.add(job.y_test, np.ones(20), None, charge=np.array([0.1, 0.1]))
    assert [(point.seconds, point.cpu_seconds) for point in recorder.trace] == [(2.5, 2.6), (2.5, 2.6)]


def test_points_come_as_training_time_grows(job, monkeypatch):
    now = [np.zeros(2)]
    monkeypatch.setattr("peers.protocol._now", lambda: now[0])
    recorder = Recorder(replace(job, time_limit=11.0))
    recorder.start()
    assert recorder.due
    now[0] = np.full(2, 10.0)
    recorder.add(job.y_test, np.ones(20), None)
    assert not recorder.due
    now[0] = np.full(2, 10.6)
    assert recorder.due
    assert not recorder.time_is_up
    now[0] = np.full(2, 11.0)
    assert recorder.time_is_up


def test_inducing_points_depend_on_the_seed_alone(job):
    assert job.inducing_points().shape == (7, 3)
    assert np.array_equal(job.inducing_points(), job.inducing_points())


def command(data: Path, *words: str) -> subprocess.CompletedProcess[str]:
    variables = os.environ | {"CERTGP_DATA": str(data)}
    line = [sys.executable, str(ROOT / "benchmarks" / "peers.py"), *words]
    return subprocess.run(line, env=variables, capture_output=True, text=True)


def test_missing_environments_are_told_before_any_work(tmp_path):
    done = command(tmp_path, "--environments", str(tmp_path), "--data", "yacht")
    assert done.returncode == 1
    assert "make peers" in done.stderr
    assert done.stdout == ""


def test_missing_data_are_told_before_any_work(tmp_path):
    done = command(tmp_path, "--peers", "--models", "fourier", "--data", "yacht")
    assert done.returncode == 1
    assert "yacht.npz is missing" in done.stderr
    assert "Traceback" not in done.stderr


def test_from_end_to_end(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 2))
    np.savez(tmp_path / "yacht.npz", X=X, y=np.sin(X[:, 0]) + 0.1 * rng.standard_normal(300))
    contestants = ("--peers", "sklearn-nystroem:2", "--models", "fourier:20", "deep-mercer:4")
    output = ("--json", "--plot", str(tmp_path / "picture.png"))
    done = command(tmp_path, "--data", "yacht", "--rank", "20", "--threads", "1", *contestants, *output)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    runs = {run["contestant"]: run for run in result["runs"]}
    peer, model, deep = (runs[name] for name in ("sklearn-nystroem:2", "fourier:20", "deep-mercer:4"))
    assert len(model["trace"]) > 2  # not only its end
    seconds = [point["seconds"] for point in model["trace"]]
    assert seconds == sorted(seconds)
    assert model["trace"][-1]["nlpd"] < model["trace"][0]["nlpd"]
    assert result["races"][0]["target"] == peer["trace"][-1]["nlpd"]
    assert {race["model"] for race in result["races"]} == {"fourier:20", "deep-mercer:4"}
    assert (deep["about"]["rank"], deep["about"]["iterations"]) == (15, 4)  # a rank of its own
    assert len(deep["trace"]) > 1
    assert MODELS["deep-mercer"].unit == "epochs"
    assert result["failures"] == []
    assert (tmp_path / "picture.png").read_bytes().startswith(b"\x89PNG")
    assert "of its time" in done.stderr


def test_every_contestant_has_a_colour_and_a_marker():
    assert set(MODELS) <= set(picture.MODEL_COLOURS)
    assert set(PEERS) <= set(picture.PEER_COLOURS)
    assert set(MODELS) | set(PEERS) <= set(picture.MARKERS)

"""A fit in stages: each continues where the last one ended."""

from __future__ import annotations

import numpy as np

from certgp.data import Chunk, ChunkSource
from certgp.engines import LocalEngine
from certgp.features import MercerMap
from certgp.gp import LowRankModel
from certgp.kernels import Gaussian
from certgp.training import LowRankObjective, Stage, even_parts, run_stages
from certgp.transforms import Identity
from helpers import random_inputs, random_target


def model_and_sources(rows: int = 80) -> tuple[LowRankModel, ChunkSource, ChunkSource]:
    X = random_inputs(0, rows, 2)
    y = random_target(X, 0)
    small, large = (ChunkSource(Chunk(X[:k], y[:k])) for k in (rows // 2, rows))
    return LowRankModel(Identity(2), MercerMap(Gaussian([3.0, 3.0]), [1.0, 1.0], 12)), small, large


def test_history_runs_on_through_the_stages_and_the_value_is_the_last_one():
    model, small, large = model_and_sources()
    result = run_stages(model, [Stage(small, 3), Stage(large, 4)], LocalEngine(), "elbo")
    assert [i.iteration for i in result.history.iterations] == list(range(1, len(result.history) + 1))
    assert (np.diff(result.history.seconds) >= 0.0).all()
    assert 4 < len(result.history) <= 7
    objective = LowRankObjective(model, large, LocalEngine(), "elbo")
    value, _ = objective.evaluate(objective.start())
    assert value == result.value


def test_preparation_happens_before_its_stage():
    model, small, large = model_and_sources()
    ranks: list[int] = []
    stages = [
        Stage(small, 2, lambda: model.features.choose_indices(5)),
        Stage(large, 2, lambda: model.features.choose_indices(9)),
    ]
    run_stages(model, stages, LocalEngine(), "elbo", [lambda i: ranks.append(i.rank)])
    assert set(ranks) == {5, 9}
    assert ranks == sorted(ranks)
    assert model.rank == 9


def test_a_callback_stops_all_stages():
    model, small, large = model_and_sources()
    seen: list[int] = []

    def stop_at_two(record) -> bool:
        seen.append(record.iteration)
        return record.iteration >= 2

    result = run_stages(model, [Stage(small, 10), Stage(large, 10)], LocalEngine(), "elbo", [stop_at_two])
    assert seen == [1, 2]
    assert result.stopped
    assert not result.converged
    assert len(result.history) == 2


def test_staged_and_direct_fits_agree_on_the_same_rows():
    """Two stages on the same rows are one fit that is started twice: they reach an objective at least as good."""
    direct_model, _, rows = model_and_sources()
    staged_model, _, _ = model_and_sources()
    direct = run_stages(direct_model, [Stage(rows, 60)], LocalEngine(), "elbo")
    staged = run_stages(staged_model, [Stage(rows, 60), Stage(rows, 60)], LocalEngine(), "elbo")
    assert staged.value <= direct.value + 1e-9


def test_where_there_was_nothing_to_prepare_the_rest_is_one_run():
    model, small, large = model_and_sources()
    asked: list[str] = []

    def answer(name: str, changed: bool | None) -> bool | None:
        asked.append(name)
        return changed

    stages = [
        Stage(small, 2, lambda: answer("first", False)),
        Stage(large, 2, lambda: answer("second", None)),
        Stage(large, 3, lambda: answer("third", False)),
        Stage(large, 4, lambda: answer("fourth", True)),
    ]
    result = run_stages(model, stages, LocalEngine(), "elbo")
    assert asked == ["first", "second", "third"]
    other, small, large = model_and_sources()
    joined = [Stage(small, 2), Stage(large, 2), Stage(large, 7)]
    assert run_stages(other, joined, LocalEngine(), "elbo").value == result.value


def test_iterations_are_divided_evenly_and_none_is_lost():
    assert even_parts(168, 2) == [84, 84]
    assert even_parts(9, 2) == [4, 5]
    assert even_parts(11, 4) == [2, 3, 3, 3]
    assert even_parts(1, 2) == [0, 1]

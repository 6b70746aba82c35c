"""The log of evaluations: what was written comes back in order, and nothing else does."""

from __future__ import annotations

from contextlib import closing

import numpy as np
import pytest
from test_lbfgs import Bowl

from certgp.errors import CheckpointError
from certgp.training import EvaluationLog, minimise


def test_records_come_back_in_order_and_then_no_more(tmp_path):
    log = EvaluationLog(tmp_path / "fit.log", "one")
    points = [np.array([1.0, 2.0]), np.array([3.0])]
    for i, at in enumerate(points):
        log.record(at, float(i), -at)
    log.close()
    with closing(EvaluationLog(tmp_path / "fit.log", "one")) as again:
        assert len(again) == 2
        for i, at in enumerate(points):
            value, gradient = again.recall(at)
            assert value == i
            np.testing.assert_array_equal(gradient, -at)
        assert again.recall(np.zeros(2)) is None


def test_a_record_cut_off_by_a_crash_is_ignored_and_overwritten(tmp_path):
    path = tmp_path / "fit.log"
    log = EvaluationLog(path, "one")
    log.record(np.ones(3), 1.0, np.ones(3))
    log.record(np.zeros(3), 2.0, np.zeros(3))
    log.close()
    whole = path.read_bytes()
    path.write_bytes(whole[:-5])
    resumed = EvaluationLog(path, "one")
    assert len(resumed) == 1
    resumed.recall(np.ones(3))
    resumed.record(np.zeros(3), 2.0, np.zeros(3))
    resumed.close()
    assert path.read_bytes() == whole


@pytest.mark.parametrize(
    ("content", "words"), [(b"something else\n", "not a checkpoint"), (None, "other data or with other parameters")]
)
def test_other_files_are_refused_and_left_alone(tmp_path, content, words):
    path = tmp_path / "fit.log"
    if content is None:
        EvaluationLog(path, "another fit").close()
    else:
        path.write_bytes(content)
    before = path.read_bytes()
    with pytest.raises(CheckpointError, match=words):
        EvaluationLog(path, "this fit")
    assert path.read_bytes() == before


def test_a_missing_directory_is_named(tmp_path):
    with pytest.raises(CheckpointError, match=r"no directory .*nowhere"):
        EvaluationLog(tmp_path / "nowhere" / "fit.log", "one")


def test_a_fit_that_takes_another_path_is_refused(tmp_path):
    log = EvaluationLog(tmp_path / "fit.log", "one")
    log.record(np.ones(3), 1.0, np.ones(3))
    log.close()
    with (
        closing(EvaluationLog(tmp_path / "fit.log", "one")) as again,
        pytest.raises(CheckpointError, match="does not lead to the same fit"),
    ):
        again.recall(np.zeros(3))


@pytest.mark.parametrize("interrupted_after", [1, 3, 5])
def test_a_replayed_optimisation_ends_with_the_same_numbers_and_evaluates_only_what_is_new(tmp_path, interrupted_after):
    whole = Bowl()
    expected = minimise(whole, max_iter=100, rank=1)
    broken = Bowl()
    log = EvaluationLog(tmp_path / "fit.log", "bowl")

    def crash(record):
        if record.iteration == interrupted_after:
            raise KeyboardInterrupt

    with closing(log), pytest.raises(KeyboardInterrupt):
        minimise(broken, max_iter=100, rank=1, callbacks=[crash], log=log)
    resumed = Bowl()
    with closing(EvaluationLog(tmp_path / "fit.log", "bowl")) as again:
        found = minimise(resumed, max_iter=100, rank=1, log=again)
    np.testing.assert_array_equal(found.parameters, expected.parameters)
    assert found.value == expected.value
    assert found.n_iter == expected.n_iter
    assert resumed.calls == whole.calls - broken.calls
    np.testing.assert_array_equal(resumed.current, expected.parameters)

"""What a fit tells while it goes on."""

from __future__ import annotations

import io
import sys

import pytest

from certgp.training import Iteration
from certgp.training.progress import Meter, ProgressLine


class Terminal(io.StringIO):
    def isatty(self):
        return True


def record(i: int, **other: object) -> Iteration:
    return Iteration(i, 0.5, 1.0, 2.0 * i, 3, **{"rows": 1_000, "stage": "training", "most": 10} | other)


def test_pace_and_time_left_follow_the_records():
    meter = Meter()
    first = meter.read(record(1))
    assert (first.rows_per_second, first.stage_seconds_left, first.share) == (None, None, 0.1)
    second = meter.read(record(2, validation=0.25))
    assert second.rows_per_second == pytest.approx(500.0)
    assert second.stage_seconds_left == pytest.approx(16.0)
    third = meter.read(record(3))
    assert third.validation == 0.25  # the last one that is known
    limited = meter.read(record(4, seconds_left=30.0))  # another stage may follow this one
    assert limited.figures().endswith("at most 30 s left")
    other = meter.read(record(5, stage="step on all rows", rows=10**6))  # another pace
    assert (other.rows_per_second, other.validation) == (None, None)
    assert third.text() == (
        "training: iteration 3/10, objective/row 0.50000, gradient 1.0e+00, held-out score 0.2500, rank 3, 1,000 rows, "
        "500 rows/s, 6.0 s, at most 14 s left of this step"
    )


def test_one_line_that_moves_where_it_can_be_taken_back(monkeypatch, capsys):
    line = ProgressLine()
    for i in range(1, 4):
        assert line(record(i)) is None  # a true value would stop the fit
    line.close()
    assert len(capsys.readouterr().out.splitlines()) == 3
    monkeypatch.setattr(sys, "stdout", Terminal())
    for i in range(1, 4):
        line(record(i))
    line.close()
    line.close()
    assert (sys.stdout.getvalue().count("\r"), sys.stdout.getvalue().count("\n")) == (3, 1)
    monkeypatch.setattr(sys, "stdout", Terminal())
    ProgressLine(every_line=True)(record(1))
    assert (sys.stdout.getvalue().count("\r"), sys.stdout.getvalue().count("\n")) == (0, 1)


def test_a_notebook_has_a_moving_line_too(monkeypatch):
    stream = type("OutStream", (io.StringIO,), {"__module__": "ipykernel.iostream"})()
    monkeypatch.setattr(sys, "stdout", stream)
    line = ProgressLine()
    line(record(1))
    line(record(2))
    assert (stream.getvalue().count("\r"), stream.getvalue().count("\n")) == (2, 0)

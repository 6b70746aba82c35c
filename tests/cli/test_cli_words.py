"""Messages of the library as the command line says them."""

from __future__ import annotations

import pytest

from certgp.cli.words import in_cli_words


@pytest.mark.parametrize(
    ("python", "command_line"),
    [
        ("max_iter=100 iterations were used up; raise max_iter for a better fit",
         "--max-iter 100 iterations were used up; raise --max-iter for a better fit"),
        ("max_seconds is used up; a longer limit", "--time-limit is used up; a longer limit"),
        ("rank=50 is more than the 12 distinct row(s) of X; rank 12 is used",
         "--rank 50 is more than the 12 distinct row(s) of X; rank 12 is used"),
        ("rank='auto' chooses the rank by a certificate", "--rank auto chooses the rank by a certificate"),
        ("give the original ones: certify(rows=(X, y)) in Python, --train FILE on the command line",
         "give the original ones: --train FILE"),
        ("reads the training rows again: certify(X, tol=0.05, rows=(X, y)) in Python, --train FILE --tol 0.05 on the "
         "command line.", "reads the training rows again: --train FILE --tol 0.05."),
        ("the exact system does: exact_solve=True with tol=0.1 in Python, --exact-solve --tol 0.1 on the command line, "
         "at N^2 kernel values.", "the exact system does: --exact-solve --tol 0.1, at N^2 kernel values."),
        ("a better one reads the training rows again: tol in Python, --train FILE --tol E on the command line",
         "a better one reads the training rows again: --train FILE --tol E"),
        ("not to tol=0.1: ran out of products (5); raise max_reference_rank or tol",
         "not to --tol 0.1: ran out of products (5); raise --reference-rank or --tol"),
        ("likelihood='student' has noise of its own; use noise='auto' with it",
         "--likelihood student has noise of its own; use --noise auto with it"),
        ("no exact GP; fit with learn_frequencies=False to certify (with AutoGP: leave 'fourier-learned' out)",
         "no exact GP; fit with --prefer proof to certify"),
        ("or leave them out (on_bad_rows='skip', --on-bad-rows skip)", "or leave them out (--on-bad-rows skip)"),
        ("the noise of the kernel has a rank", "the noise of the kernel has a rank"),  # words, not parameters
        ("--rank 5 and --max-iter=3 are options", "--rank 5 and --max-iter=3 are options"),
    ],
)  # fmt: skip
def test_options_instead_of_parameters(python, command_line):
    assert in_cli_words(python) == command_line

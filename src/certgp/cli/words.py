"""Messages of the library in the words of the command line: options instead of Python's parameters."""

from __future__ import annotations

import re

# parameter -> option, where there is one; all others keep their names
OPTIONS = {
    "rank": "--rank",
    "tolerance": "--tolerance",
    "max_rank": "--max-rank",
    "kernel": "--kernel",
    "noise": "--noise",
    "likelihood": "--likelihood",
    "effort": "--effort",
    "prefer": "--prefer",
    "max_seconds": "--time-limit",
    "max_iter": "--max-iter",
    "checkpoint": "--checkpoint",
    "random_state": "--seed",
    "sample_weight": "--weights",
    "reference_rank": "--reference-rank",
    "max_reference_rank": "--reference-rank",
    "tol": "--tol",
    "delta": "--delta",
    "on_bad_rows": "--on-bad-rows",
}
FLAGS = {
    "exact_solve": "--exact-solve",
    "combine": "--combine",
    "include_training_data": "--include-training-data",
}
_PLAIN_WORDS = {"rank", "tolerance", "kernel", "noise", "likelihood", "effort", "prefer", "checkpoint", "delta"}

_BOTH = re.compile(r"[\w.]+(?:\([^;:]*?\)|=\S+|)(?: with [\w.=]+)? in Python, (--.*?)(?: on the command line|$)")
_GIVEN = re.compile(rf"(?<![-\w])({'|'.join(OPTIONS)})=(?:'([^']*)'|\"([^\"]*)\"|([\w.+-]*\w))")
_FLAG = re.compile(rf"(?<![-\w])({'|'.join(FLAGS)})(?:=True)?(?![\w=(])")
_NAME = re.compile(rf"(?<![-\w])({'|'.join(set(OPTIONS) - _PLAIN_WORDS)})(?![\w=(])")
_TWICE = re.compile(r"(--[\w-]+ \w+), \1")
_LEARNED = re.compile(r"fit with learn_frequencies=False to certify \(.*?\)")
_SAVE = re.compile(r"call save\(path, include_training_data=True\)")


def in_cli_words(text: str) -> str:
    """A message with the options of the command line: "raise max_iter" becomes "raise --max-iter", "rank='auto'"
    becomes "--rank auto", and of advice for Python and for the command line only the latter stays.
    """
    text = _LEARNED.sub("fit with --prefer proof to certify", text)
    text = _SAVE.sub("add --include-training-data", text)
    text = _BOTH.sub(lambda found: found[1], text)
    text = _GIVEN.sub(lambda found: f"{OPTIONS[found[1]]} {found[2] or found[3] or found[4]}", text)
    text = _TWICE.sub(lambda found: found[1], text)
    text = _FLAG.sub(lambda found: FLAGS[found[1]], text)
    return _NAME.sub(lambda found: OPTIONS[found[1]], text)

"""How compiled loops over rows are made and run; imported at first use, because the compiler takes long to load."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import torch
from numba import njit

BLOCK = 256  # rows; every range that a thread gets begins at a multiple of it
_ROWS_PER_THREAD = 512  # below this a thread costs more than it saves


def compile_loop(function: Callable[..., Any], reorder_sums: bool = False) -> Callable[..., Any]:
    """Machine code without Python's lock; kept on disk where some directory can be written to. ``reorder_sums`` lets
    the compiler add the terms of a sum in any order, so that sums become vector instructions too.

    The compiler's cache notices a change of the file of a function, not of the files of the functions it calls:
    compiled functions that call each other belong into one file.
    """
    options: dict[str, Any] = {
        "nogil": True,
        "error_model": "numpy",
        "fastmath": {"contract", "reassoc"} if reorder_sums else {"contract"},
    }
    try:
        compiled: Callable[..., Any] = njit(cache=True, **options)(function)
    except RuntimeError:  # no directory for the cache: compile anew in every process
        compiled = njit(**options)(function)
    return compiled


def run_over_rows(
    kernel: Callable[..., None], n: int, *arguments: object, rows_per_thread: int = _ROWS_PER_THREAD
) -> None:
    """kernel(*arguments, start, stop) for ranges that cover n rows, on as many threads as torch uses."""
    threads = max(1, min(torch.get_num_threads(), n // rows_per_thread))
    if threads == 1:
        kernel(*arguments, 0, n)
        return
    block = min(BLOCK, rows_per_thread)
    cuts = [n * i // (threads * block) * block for i in range(threads)] + [n]
    with ThreadPoolExecutor(threads - 1) as pool:
        others = [pool.submit(kernel, *arguments, cuts[i], cuts[i + 1]) for i in range(1, threads)]
        kernel(*arguments, cuts[0], cuts[1])
        for other in others:
            other.result()

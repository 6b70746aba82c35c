"""Ctrl-C during a fit: the first ends it with the best model so far, the second ends the program."""

from __future__ import annotations

import argparse
import shlex
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from certgp.cli.output import Console
    from certgp.training import StopRule

INTERRUPTED = 130  # exit code: 128 + SIGINT, as shells have it


def resume_words(arguments: argparse.Namespace) -> str:
    """What to type to go on with a fit that was interrupted; only a checkpoint remembers where it was."""
    command = shlex.join(["certgp", *arguments.argv])
    if arguments.checkpoint is not None:
        return f"{command}  (the same command goes on from {arguments.checkpoint})"
    file = shlex.quote(f"{arguments.out}.checkpoint")
    return f"{command} --checkpoint {file}  (begins anew; with a checkpoint it could have gone on from here)"


@contextmanager
def stopping_on_interrupt(rule: StopRule, console: Console) -> Iterator[None]:
    """Within this block Ctrl-C asks ``rule`` to end the fit; another one raises SystemExit, which nothing takes for an
    interrupted fit. Only the main thread gets signals.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def handle(number: int, frame: object) -> None:
        if rule.reason is not None:
            raise SystemExit(INTERRUPTED)
        rule.ask()
        console.stopping()

    before = signal.signal(signal.SIGINT, handle)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)

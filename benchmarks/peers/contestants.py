"""Who takes part, where it runs and how much it may do."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, replace
from itertools import chain, zip_longest
from pathlib import Path

BENCHMARKS = Path(__file__).resolve().parents[1]
THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


@dataclass(frozen=True)
class Contestant:
    """A runner with its settings."""

    name: str
    module: str
    budget: int | None  # in ``unit``; None: the library's own default
    unit: str
    environment: str | None = None  # under .peers/; None: the one this command runs in
    variant: str = ""
    most_rows: int | None = None  # training rows that it can take in sensible time and memory

    @property
    def is_peer(self) -> bool:
        return not self.module.endswith(".certgp_model")

    def python(self, environments: Path) -> Path:
        """The interpreter of its environment."""
        return Path(sys.executable) if self.environment is None else environments / self.environment / "bin" / "python"

    def variables(self, threads: int) -> dict[str, str]:
        """Of its process: benchmarks/ on its path, and this process's path where it shares the interpreter."""
        inherited = os.environ.get("PYTHONPATH", "") if self.environment is None else ""
        path = os.pathsep.join(filter(None, [str(BENCHMARKS), inherited]))
        limits = dict.fromkeys(THREAD_VARIABLES, str(threads))
        return os.environ | limits | {"PYTHONPATH": path, "TF_CPP_MIN_LOG_LEVEL": "3"}


PEERS = {
    peer.name: peer
    for peer in (
        Contestant("gpflow-sgpr", "peers.gpflow_sgpr", 500, "L-BFGS iterations", "gpflow"),
        Contestant("gpytorch-sgpr", "peers.gpytorch_sgpr", 300, "Adam iterations", "gpytorch"),
        Contestant("gpytorch-svgp", "peers.gpytorch_svgp", 100, "epochs", "gpytorch", "adam"),
        Contestant("gpytorch-svgp-natural", "peers.gpytorch_svgp", 100, "epochs", "gpytorch", "natural"),
        Contestant("gpboost-vecchia", "peers.gpboost_vecchia", 1000, "iterations", "gpboost", "vecchia"),
        Contestant("gpboost-vif", "peers.gpboost_vecchia", 1000, "iterations", "gpboost", "full_scale_vecchia"),
        Contestant("sklearn-nystroem", "peers.sklearn_nystroem", 3, "folds"),
    )
}
LOCAL = {"local": "LocalGP"}  # the rank is the number of neighbours of a prediction
LINEAR = {"mercer": "MercerGP", "sparse": "SparseGP", "fourier": "FourierGP", "auto": "AutoGP"}
DEEP = {"deep-mercer": "DeepMercerGP", "deep-fourier": "DeepFourierGP"}  # at ranks of their own
MODELS = {
    name: Contestant(name, "peers.certgp_model", None, "epochs" if name in DEEP else "L-BFGS iterations", None, family)
    for name, family in (LINEAR | LOCAL | DEEP).items()
}


def parse_contestant(text: str, known: dict[str, Contestant]) -> Contestant:
    """``name`` or ``name:budget``, for instance ``gpflow-sgpr:100``; with a budget that becomes part of the name."""
    name, colon, budget = text.partition(":")
    if name not in known:
        raise ValueError(f"{name!r} is not one of {', '.join(known)}")
    if not colon:
        return known[name]
    if not budget.isdecimal() or int(budget) == 0:
        raise ValueError(f"the budget in {text!r} must be a positive whole number of {known[name].unit}")
    return replace(known[name], name=text, budget=int(budget))


def interleave(peers: list[Contestant], models: list[Contestant]) -> list[Contestant]:
    """One round: peer, model, peer, model, ..., so that a change of the machine's mood hits both sides."""
    pairs = chain.from_iterable(zip_longest(peers, models))
    return [contestant for contestant in pairs if contestant is not None]


def missing_environments(contestants: list[Contestant], environments: Path) -> list[str]:
    """Names of environments that are needed and not there."""
    needed = {c.environment: c.python(environments) for c in contestants if c.environment is not None}
    return sorted(name for name, python in needed.items() if not python.exists())

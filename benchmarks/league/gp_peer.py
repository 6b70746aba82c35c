"""The GP runners of ``peers/`` in the league: the module that the variant names, at ``rank`` and for ``budget``.

``peers.gpflow_sgpr rank=200 budget=500``. Training ends with the job's CPU seconds at the latest, as it is then.
"""

from __future__ import annotations

from importlib import import_module

import numpy as np

import peers.protocol
from league.distributions import Normal
from league.protocol import Job, serve
from peers.protocol import Recorder


def run(job: Job):
    module, *words = job.variant.split()
    given = dict(word.split("=") for word in words)
    peer = peers.protocol.Job(
        job.X,
        job.y,
        job.X_test,
        np.zeros(len(job.X_test)),  # a runner has no test targets
        rank=min(int(given["rank"]), len(job.y) // 4),
        seed=job.seed,
        threads=1,
        budget=2 if job.is_practice else int(given["budget"]),
        time_limit=job.seconds,
        variant=given.get("variant", ""),
    )
    recorder = Recorder(peer, end_only=True)
    about = dict(import_module(module).run(peer, recorder))
    mean, variance = recorder.last
    return Normal(mean, np.sqrt(variance)), about | {"rank": peer.rank}


if __name__ == "__main__":
    serve(run)

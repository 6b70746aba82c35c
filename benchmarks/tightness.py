"""How tight each bound is, as a ratio to the true KL divergence over rank, dimension and noise; what a reference costs.

python benchmarks/tightness.py            table for docs/guarantees.md
python benchmarks/tightness.py --large    half-width and time at N = 1e5, r = 200, D = 1, 2, 3
python benchmarks/tightness.py --curve    cost of rank_curve() against one evaluation at rank 300
"""

from __future__ import annotations

import argparse
import time

import numpy as np
import torch

import certgp
from certgp.data import Chunk, ChunkSource
from certgp.engines import LocalEngine
from certgp.features import FourierMap, MercerMap
from certgp.features.spectral import sobol_design
from certgp.gp import LowRankModel, Statistics
from certgp.guarantees import (
    Problem,
    certify_dominated,
    certify_through,
    gaussian_kl,
    growing_references,
    nested_rank_curve,
    proposition1,
)
from certgp.kernels import Gaussian
from certgp.training import LowRankObjective
from certgp.transforms import Identity
from fitted import process_of, standardised_rows


def table(n: int) -> None:
    print(
        "| D | l | s2 | rank | KL / N | paper t/2 | sharpened K2 | Prop. 1 (1) | reference R1 (4 r) half-width / KL |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    for d, scale in ((1, 0.5), (2, 1.0), (4, 2.0), (6, 3.0)):
        X = torch.from_numpy(np.random.default_rng(0).standard_normal((n, d)))
        kernel = Gaussian(np.full(d, scale))
        K = kernel(X, X).numpy()
        for noise in (0.01, 0.1, 1.0):
            for rank in (10, 40, 160):
                features = MercerMap(kernel, np.ones(d), rank)
                problem = _problem(features, X, noise)
                with torch.no_grad():
                    phi = features(X)
                Sigma, eye = (phi @ phi.mT).numpy(), noise * np.eye(n)
                kl = gaussian_kl(K + eye, Sigma + eye)
                own = certify_dominated(Statistics.of(phi, torch.zeros(n).double()), 1.0, noise)
                first = proposition1(K, Sigma, noise).bound1
                reference = next(growing_references(problem, 4 * rank, 4 * rank, lambda gap: True, _rng()))
                ratios = [own.evidence["paper_bound"] / kl, own.kl.upper / kl, first / kl]
                half = certify_through(reference).kl.half_width / kl
                cells = " | ".join(f"{ratio:.3g}" for ratio in ratios)
                print(f"| {d} | {scale} | {noise} | {rank} | {kl / n:.3g} | {cells} | {half:.2g} |", flush=True)


def large(n: int) -> None:
    for d, scale in ((1, 0.1), (2, 0.5), (3, 1.0)):
        rng = np.random.default_rng(0)
        X = torch.from_numpy(rng.standard_normal((n, d)))
        kernel = Gaussian(np.full(d, scale))
        features = FourierMap(kernel, sobol_design(kernel, 100, d, rng))
        problem = _problem(features, X, 0.1)
        begun = time.perf_counter()
        for reference in growing_references(problem, 400, 1600, lambda gap: True, _rng()):
            certificate = certify_through(reference)
            if certificate.kl.half_width <= 0.01 * certificate.kl.lower:
                break
        spent = time.perf_counter() - begun
        floor = _floor(problem, reference.features)
        print(
            f"D={d} l={scale}: reference {reference.features.rank}, KL in [{certificate.kl.lower:.6g}, "
            f"{certificate.kl.upper:.6g}], half-width {certificate.kl.half_width / certificate.kl.lower:.2g} of it, "
            f"{spent:.1f} s = {spent / floor:.2f} x (two feature passes + Gram product)",
            flush=True,
        )


def _floor(problem: Problem, reference: MercerMap) -> float:
    """Two passes through the features of [reference, model] and one Gram product of their size."""
    seconds = 0.0
    with torch.no_grad():
        for chunk in problem.source.chunks(2048):
            begun = time.perf_counter()
            for _ in range(2):
                both = torch.cat([reference(chunk.X), problem.model(chunk.X)], dim=1)
            Statistics.of(both, chunk.y)
            seconds += time.perf_counter() - begun
    return seconds


def curve(n: int, repeat: int = 5) -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, 3))
    y = np.sin(2 * X[:, 0]) + 0.1 * rng.standard_normal(n)
    gp = certgp.MercerGP(300, projection=None, length_scale=1.0, noise_variance=0.05, optimize=False).fit(X, y)
    process = process_of(gp)
    model = process.model.requires_grad_(True)
    target = LowRankObjective(model, standardised_rows(gp, X, y), LocalEngine(), "elbo")
    start = target.start()
    target.evaluate(start)
    ratios = []
    for _ in range(repeat):
        begun = time.perf_counter()
        target.evaluate(start)
        evaluation = time.perf_counter() - begun
        begun = time.perf_counter()
        with torch.no_grad():
            stats = target.folds.raw_statistics()
            nested_rank_curve(stats, process.signal_variance, process.noise_variance)
        whole = time.perf_counter() - begun
        begun = time.perf_counter()
        gp.rank_curve()
        ratios.append((whole / evaluation, (time.perf_counter() - begun) / evaluation))
    both = np.median(np.array(ratios), axis=0)
    print(
        f"N={n}, rank 300: rank_curve with its pass over the rows {both[0]:.2f} evaluations, "
        f"from a fitted model {both[1]:.3f}"
    )


def _problem(features: FourierMap | MercerMap, X: torch.Tensor, noise: float) -> Problem:
    model = LowRankModel(Identity(X.shape[1]), features)
    return Problem(model, 1.0, noise, ChunkSource(Chunk(X, torch.zeros(len(X)).double())), LocalEngine())


def _rng() -> np.random.Generator:
    return np.random.default_rng(0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=None)
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--curve", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(1)
    if options.large:
        large(options.rows or 100_000)
    elif options.curve:
        curve(options.rows or 40_000)
    else:
        table(options.rows or 500)


if __name__ == "__main__":
    main()

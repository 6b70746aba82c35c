"""Weakened versions of each theorem's implementation: a factor dropped or a term removed in the source itself."""

from __future__ import annotations

import inspect
import sys
import types
from dataclasses import dataclass
from importlib import import_module

import pytest

from certgp.features.base import FEATURE_MAPS


@dataclass(frozen=True)
class Mutation:
    """Replace ``old`` by ``new`` in a module; the soundness check of ``theorem`` must then fail."""

    theorem: str
    module: str
    old: str
    new: str

    def __str__(self) -> str:
        return f"{self.theorem}: {self.old} -> {self.new}"


GUARANTEES = "certgp.guarantees."
MUTATIONS = [
    Mutation("B1", GUARANTEES + "dense", "0.5 * (trace + one_sided * n)", "0.5 * trace"),
    Mutation("B1+", GUARANTEES + "dense", "n * math.log1p(one_sided)", "0.0"),
    Mutation("B2", GUARANTEES + "dense", "bound2=two_sided * n", "bound2=0.4 * two_sided * n"),
    Mutation("B2+", GUARANTEES + "dense", "0.5 * n * float(log_excess(excess", "0.49 * n * float(log_excess(excess"),
    Mutation("B3", GUARANTEES + "dense", " + one_sided * s2 * n", ""),
    Mutation("B3", GUARANTEES + "dense", "(1.0 - one_sided) * np.trace", "np.trace"),
    Mutation("S1", GUARANTEES + "sandwich", "twice = 2.0 *", "twice = 1.9 *"),
    Mutation("K1", GUARANTEES + "dominated", "0.5 * gap / noise_variance", "0.25 * gap / noise_variance"),
    Mutation("K2", GUARANTEES + "dominated", "0.5 * float(log_excess", "0.49 * float(log_excess"),
    Mutation("E1", "certgp.gp.evidence", "gap / (2.0 * noise_variance)", "gap / (4.0 * noise_variance)"),
    Mutation("E2", "certgp.gp.evidence", "quadratic_noise=noise_variance + gap", "quadratic_noise=noise_variance"),
    Mutation("E3", GUARANTEES + "row_losses", "float(np.log1p(x).sum())", "0.9 * float(np.log1p(x).sum())"),
    Mutation("E4", GUARANTEES + "row_losses", "n * math.log1p(gap / (n * noise", "math.log1p(gap / (noise"),
    Mutation("K2", "certgp.gp.statistics", "prior = weight if diagonal", "prior = torch.ones_like(weight) if diagonal"),
    Mutation("E1", "certgp.gp.statistics", "log_weights=float(weight.log().sum())", "log_weights=0.0"),
    Mutation("E3", GUARANTEES + "row_losses", "x = x * weight.numpy()", "pass"),
    Mutation(
        "C1", "certgp.gp.kernel_products", "return V if self.root is None else self.root[:, None] * V", "return V"
    ),
    Mutation("K3", GUARANTEES + "row_losses", "0.5 * float(_reverse_term", "0.49 * float(_reverse_term"),
    Mutation("K3", GUARANTEES + "row_losses", "_SLOPE = _TURN", "_SLOPE = 0.9 * _TURN"),
    Mutation("K3", GUARANTEES + "row_losses", "0.5 * self.reverse_sum", "0.45 * self.reverse_sum"),
    Mutation("K3", GUARANTEES + "row_losses", "<= _TURN:", "<= 100.0:"),
    Mutation("R1", GUARANTEES + "reference", "0.5 * self.trace_gap", "0.4 * self.trace_gap"),
    Mutation("R1", GUARANTEES + "reference", "below = 0.5 *", "below = 0.45 *"),
    Mutation("R3", GUARANTEES + "reference", "kl_from_model(rank) + below", "kl_from_model(rank) + 0.8 * below"),
    Mutation("P1", GUARANTEES + "pointwise", "(factor + lost", "(0.0 * factor + lost"),
    Mutation("P1", GUARANTEES + "pointwise", "lost.sqrt() * math.sqrt(tau))", "0.0 * lost)"),
    Mutation(
        "P1",
        GUARANTEES + "pointwise",
        "(math.sqrt(max(residual, 0.0)) + self",
        "(0.3 * math.sqrt(max(residual, 0.0)) + self",
    ),
    Mutation("P1 variance", GUARANTEES + "pointwise", " + self._c_norm(features, variance) * math.sqrt(tau)", ""),
    Mutation("P1 variance", GUARANTEES + "pointwise", "(lost.sqrt() + self._c", "(0.0 * lost.sqrt() + self._c"),
    Mutation("P2", GUARANTEES + "predictive", "above = 0.5 * gap / s2", "above = 0.0"),
    Mutation("P2", GUARANTEES + "predictive", "below = 0.5 * losses.log_determinant + 0.5", "below = 0.0"),
    Mutation("P3", GUARANTEES + "sandwich", "np.sqrt(2.0 * gamma * v)", "np.sqrt(1.9 * gamma * v)"),
    Mutation(
        "C1", GUARANTEES + "exact_solve", "(explained * solution.residual)", "(0.4 * explained * solution.residual)"
    ),
    Mutation(
        "V7", "certgp.gp.conjugate_gradients", "0.5 * math.sqrt(prior_variance)", "0.4 * math.sqrt(prior_variance)"
    ),
    Mutation("V7 quadratic", GUARANTEES + "iterative", "+ solution.length**2", ""),
    Mutation("P4", GUARANTEES + "exact_solve", "lost + unsolved", "0.4 * lost + unsolved"),
    Mutation("D1", "certgp.kernels.mercer", "one_minus_q = 2.0 / (w", "one_minus_q = 2.1 / (w"),
    Mutation("D2", "certgp.features.nystrom", "return kzz +", "return 0.9 * kzz +"),
    Mutation("D3", "certgp.features.data_mercer", "return vectors.flip(1)", "return 1.1 * vectors.flip(1)"),
    Mutation("D4", "certgp.features.residual", " - self._base_at_points @ Psi.mT", ""),
    Mutation("D4", "certgp.features.residual", "cholesky(R + _JITTER", "cholesky(0.9 * R + _JITTER"),
    Mutation("R2", GUARANTEES + "statistical", "0.5 * high**2)", "0.0 * high**2)"),
    Mutation("R2", GUARANTEES + "statistical", "half = 2.0 * frobenius * (math.sqrt(x / t) + x / t)", "half = 0.0"),
    Mutation("M1", GUARANTEES + "mercer_rank", "min(chebyshev, cantelli, bernstein, tail / delta, 1.0)", "tail"),
    Mutation("M2", GUARANTEES + "product_spectrum", "correlation /= 1.0 + sign * np.sin(omega) / omega", "pass"),
    Mutation("M2", GUARANTEES + "product_spectrum", "weights = _STEP * np.exp", "weights = 1.02 * _STEP * np.exp"),
    Mutation("M2", GUARANTEES + "product_spectrum", "1.0 - kept +", "1.0 - 1.02 * kept +"),
    Mutation(
        "V1",
        GUARANTEES + "local_factor",
        "np.log(self.lowest), np.log(self.highest)",
        "(0.9 * np.log(self.variances),) * 2",
    ),
    Mutation("V2", GUARANTEES + "local_factor", "0.5 * float(terms.sum()) - slack", "1.2 * float(terms.sum()) - slack"),
    Mutation("V3", GUARANTEES + "local_rows", "(bounds.lower + s2)", "(bounds.upper + s2)"),
    Mutation("V3+", GUARANTEES + "local_sample", "spread + 7.0 * largest * x / (3.0 * (n - 1))", "0.0"),
    Mutation("V4", GUARANTEES + "local_low_rank", "(n - rank) * math.log(noise)", "n * math.log(noise) + n - rank"),
    Mutation("V5", GUARANTEES + "local_rows", "distance = norm / math.sqrt", "distance = 0.7 * norm / math.sqrt"),
    Mutation("V6", GUARANTEES + "local_solution", "residual = rho / math.sqrt(s2)", "residual = 0.0"),
    Mutation("V8", GUARANTEES + "local_low_rank", "np.asarray(0.5 * terms)", "np.asarray(0.3 * terms)"),
    Mutation(
        "V8+", GUARANTEES + "local_low_rank", "mean_above(np.clip(terms, 0.0, largest), largest, delta)", "terms.mean()"
    ),
    Mutation(
        "V9", GUARANTEES + "local_probes", "largest_value, 2.0 * x / t, above=True", "largest_value, 0.0, above=True"
    ),
    Mutation("V9", GUARANTEES + "local_krylov", "self.size * (moved + integral)", "self.size * moved"),
    Mutation("F1", GUARANTEES + "fourier_rank", "8.0 / 3.0 * error**-2 * mass", "8.0 / 3.0 * mass"),
]


def apply(mutation: Mutation, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put the weakened functions and classes in the place of the originals, wherever a module holds them."""
    original = import_module(mutation.module)
    source = inspect.getsource(original)
    assert source.count(mutation.old) == 1, f"{mutation} does not fit the source"
    weakened = types.ModuleType(mutation.module)
    for name, features in FEATURE_MAPS.items():  # a weakened map registers itself: the original comes back afterwards
        monkeypatch.setitem(FEATURE_MAPS, name, features)
    exec(compile(source.replace(mutation.old, mutation.new), original.__file__, "exec"), weakened.__dict__)
    own = {
        name: value for name, value in vars(original).items() if getattr(value, "__module__", None) == mutation.module
    }
    for module in list(sys.modules.values()):
        for name, value in list(vars(module).items()) if isinstance(module, types.ModuleType) else []:
            if name in own and value is own[name]:
                monkeypatch.setattr(module, name, vars(weakened)[name])

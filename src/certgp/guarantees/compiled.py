"""Compiled loops of the certificates of local models; imported at their first use."""

from __future__ import annotations

from certgp.loops import compile_loop


@compile_loop
def substitute(sets, weights, roots, V):  # type: ignore[no-untyped-def]
    """V (N, k) = W^-1 V in place, row after row: x_i = sqrt(d_i) V_i + sum_j v_ij x_j over the set of row i."""
    for i in range(len(V)):
        for c in range(V.shape[1]):
            V[i, c] *= roots[i]
        for position in range(sets.shape[1]):
            row = sets[i, position]
            if row >= 0:
                for c in range(V.shape[1]):
                    V[i, c] += weights[i, position] * V[row, c]


@compile_loop
def substitute_transposed(sets, weights, roots, V):  # type: ignore[no-untyped-def]
    """V (N, k) = W'^-1 V in place, from the last row to the first."""
    for i in range(len(V) - 1, -1, -1):
        for position in range(sets.shape[1]):
            row = sets[i, position]
            if row >= 0:
                for c in range(V.shape[1]):
                    V[row, c] += weights[i, position] * V[i, c]
        for c in range(V.shape[1]):
            V[i, c] *= roots[i]

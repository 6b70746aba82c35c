"""Compiled loops of the Mercer features; imported at their first use, because the compiler takes a while to load.

All compiled code of these features is in this one file: the compiler's cache notices a change of the file of a
function, not of the files of the functions it calls. Rows of data are the innermost loops (they become vector
instructions), in blocks whose intermediate results stay in the processor's cache. Every row is computed on its own, so
results do not depend on the number of threads.
"""

from __future__ import annotations

import math

import numpy as np

from certgp.loops import BLOCK as _BLOCK
from certgp.loops import compile_loop

_RESCALE = 1e100
# Indices of arrays are unsigned below: a signed one would be tested for counting from the end.
_ZERO, _ONE, _TWO = np.uintp(0), np.uintp(1), np.uintp(2)


@compile_loop
def _multiply(out, row, shift, W, a, b, width):  # type: ignore[no-untyped-def]
    """out[row, shift : shift + width] = W[a, :width] W[b, :width]."""
    for i in range(width):
        out[row, shift + i] = W[a, i] * W[b, i]


@compile_loop
def _add_product(C, row, G, g, shift, W, b, width):  # type: ignore[no-untyped-def]
    """C[row, :width] += G[g, shift : shift + width] W[b, :width]."""
    for i in range(width):
        C[row, i] += G[g, shift + i] * W[b, i]


@compile_loop
def _recur(W, row, before, x, j, shift, a, b, width):  # type: ignore[no-untyped-def]
    """W[row + 1] = a x_j W[row] - b W[before]."""
    for i in range(width):
        W[row + _ONE, i] = a * x[j, shift + i] * W[row, i] - b * W[before, i]


@compile_loop
def _recur_scaled(log_start, t, q, W, row, count, i):  # type: ignore[no-untyped-def]
    """The same recurrence for one point, t = slope x, on mantissas m_k with a log-scale L: phi_k = m_k exp(L)."""
    before, now, log_scale = 0.0, 1.0, log_start
    for k in range(count):
        W[row + np.uintp(k), i] = math.copysign(math.exp(math.log(abs(now)) + log_scale), now)
        before, now = now, t * now * math.sqrt(1.0 / (k + 1)) - q * math.sqrt(k / (k + 1)) * before
        size = max(abs(before), abs(now))
        factor = 1.0 / _RESCALE if size > _RESCALE else (_RESCALE if size < 1.0 / _RESCALE else 1.0)
        before, now, log_scale = before * factor, now * factor, log_scale - math.log(factor)


@compile_loop
def _tables(x, start, coefficients, safe, offsets, W, low, width):  # type: ignore[no-untyped-def]
    """Columns from ``low`` as the first ones of W: a row of ones, then phi_k of all dimensions.

    phi_{k+1} = slope x phi_k / sqrt(k + 1) - q sqrt(k / (k + 1)) phi_{k-1}
    """
    W[0] = 1.0
    for dimension in range(len(x)):
        j, row, count = np.uintp(dimension), offsets[dimension], int(offsets[dimension + 1] - offsets[dimension])
        log_start, delta2, slope, q = coefficients[dimension]
        for i in range(width):
            W[row, i] = start[j, low + i]
        for k in range(count - 1):
            a, b = slope * math.sqrt(1.0 / (k + 1)), q * math.sqrt(k / (k + 1))
            now, before = row + np.uintp(k), row + np.uintp(max(k - 1, 0))
            _recur(W, now, before, x, j, low, x.dtype.type(a), x.dtype.type(b), width)
        for i in range(width):
            if start[j, low + i] < safe:
                point = np.float64(x[j, low + i])
                _recur_scaled(log_start - delta2 * point * point, slope * point, q, W, row, count, i)


@compile_loop
def products(x, start, coefficients, safe, offsets, first, second, out, begin, end):  # type: ignore[no-untyped-def]
    """Products of weighted functions: x, start (d, n) -> out (r, n), columns ``begin`` to ``end``.

    ``coefficients`` (d, 4) hold log phi_0(0), delta2, slope and q of each dimension; where start = phi_0(x) is below
    ``safe``, the functions are found by mantissas and logarithms.
    """
    inner, tables = len(first) - len(out), offsets[-1]
    W = np.empty((int(tables) + inner, _BLOCK), x.dtype)
    for position in range(begin, end, _BLOCK):
        low, width = np.uintp(position), np.uintp(min(_BLOCK, end - position))
        _tables(x, start, coefficients, safe, offsets, W, low, width)
        for s in range(inner):
            _multiply(W, tables + np.uintp(s), _ZERO, W, first[s], second[s], width)
        for r in range(len(out)):
            _multiply(out, np.uintp(r), low, W, first[inner + r], second[inner + r], width)


@compile_loop
def pull_back(  # type: ignore[no-untyped-def]
    x, start, coefficients, safe, offsets, first, second, G, sums, begin, end
):
    """Reverse sweep of ``products``: with C_k the cotangent of phi_k(x_j), sums (3, d, n) become

    S = sum_k C_k phi_k,   U = sum_k C_k sqrt(k) phi_{k-1},   K = sum_k k C_k phi_k.
    """
    inner, tables = len(first) - len(G), offsets[-1]
    W = np.empty((int(tables) + inner, _BLOCK), x.dtype)
    C = np.empty_like(W)
    for position in range(begin, end, _BLOCK):
        low, width = np.uintp(position), np.uintp(min(_BLOCK, end - position))
        _tables(x, start, coefficients, safe, offsets, W, low, width)
        for s in range(inner):
            _multiply(W, tables + np.uintp(s), _ZERO, W, first[s], second[s], width)
        C[:] = 0.0
        for r in range(len(G)):
            a, b = first[inner + r], second[inner + r]
            _add_product(C, a, G, np.uintp(r), low, W, b, width)
            _add_product(C, b, G, np.uintp(r), low, W, a, width)
        for s in range(inner - 1, -1, -1):
            _add_product(C, first[s], C, tables + np.uintp(s), _ZERO, W, second[s], width)
            _add_product(C, second[s], C, tables + np.uintp(s), _ZERO, W, first[s], width)
        for j in range(len(x)):
            _sum_up(W, C, offsets[j], int(offsets[j + 1] - offsets[j]), sums, np.uintp(j), low, width)


@compile_loop
def _sum_up(W, C, row, count, sums, j, low, width):  # type: ignore[no-untyped-def]
    """S, U and K of ``pull_back`` for one dimension."""
    for i in range(width):
        sums[_ZERO, j, low + i] = C[row, i] * W[row, i]
        sums[_ONE, j, low + i] = 0.0
        sums[_TWO, j, low + i] = 0.0
    for k in range(1, count):
        degree, root, now = W.dtype.type(k), W.dtype.type(math.sqrt(k)), row + np.uintp(k)
        for i in range(width):
            weighted = C[now, i] * W[now, i]
            sums[_ZERO, j, low + i] += weighted
            sums[_ONE, j, low + i] += root * C[now, i] * W[now - _ONE, i]
            sums[_TWO, j, low + i] += degree * weighted

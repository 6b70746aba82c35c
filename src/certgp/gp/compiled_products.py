"""Compiled loops of products with kernel matrices; imported at their first use.

A row of kernel values is made for a block of columns that stays in the processor's cache, used for all right-hand sides
and forgotten. Coordinates lie as (d, n), so that the innermost loops run over rows of data and become vector
instructions, exponentials included. They run in float64 or float32, by the type of the coordinates.
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from certgp.loops import compile_loop

_compile = partial(compile_loop, reorder_sums=True)
GAUSSIAN, MATERN12, MATERN32, MATERN52 = 0, 1, 2, 3  # profiles, as in ``gp.compiled``
# Cody and Waite: x = n log 2 + r, |r| <= log 2 / 2; log 2 in two parts, of which n times the first is exact
_LOG2_HIGH, _LOG2_LOW = 6.93145751953125e-1, 1.42860682030941723212e-6
_C13, _C12, _C11, _C10, _C9, _C8, _C7, _C6, _C5, _C4, _C3, _C2 = (1.0 / math.factorial(k) for k in range(13, 1, -1))
_F32 = np.float32
_LOG2_HIGH32, _LOG2_LOW32, _PER_LOG2_32 = _F32(0.693359375), _F32(-2.12194440e-4), _F32(1.4426950408889634)
_S7, _S6, _S5, _S4, _S3, _S2 = (_F32(1.0 / math.factorial(k)) for k in range(7, 1, -1))
_ONE32, _HALF32, _LEAST32 = _F32(1.0), _F32(0.5), _F32(-87.0)


@compile_loop
def _decay(Q, E, n):  # type: ignore[no-untyped-def]
    """Q[:n] *= exp(-E[:n]) for E >= 0 in float64, to three units in the last place."""
    for j in range(n):
        x = max(-E[j], -708.0)
        k = np.floor(x * 1.4426950408889634 + 0.5)
        r = (x - k * _LOG2_HIGH) - k * _LOG2_LOW
        p = _C13
        p = p * r + _C12
        p = p * r + _C11
        p = p * r + _C10
        p = p * r + _C9
        p = p * r + _C8
        p = p * r + _C7
        p = p * r + _C6
        p = p * r + _C5
        p = p * r + _C4
        p = p * r + _C3
        p = p * r + _C2
        p = p * (r * r) + r + 1.0
        Q[j] *= p * np.int64((np.int64(k) + 1023) << 52).view(np.float64)


@compile_loop
def _decay32(Q, E, n):  # type: ignore[no-untyped-def]
    """``_decay`` in float32."""
    for j in range(n):
        x = max(-E[j], _LEAST32)
        k = np.floor(x * _PER_LOG2_32 + _HALF32)
        r = (x - k * _LOG2_HIGH32) - k * _LOG2_LOW32
        p = _S7
        p = p * r + _S6
        p = p * r + _S5
        p = p * r + _S4
        p = p * r + _S3
        p = p * r + _S2
        p = p * (r * r) + r + _ONE32
        Q[j] *= p * np.int32((np.int32(k) + np.int32(127)) << np.int32(23)).view(np.float32)


@_compile
def _profile(profile, Q, E, n, number):  # type: ignore[no-untyped-def]
    """Q, E of squared distances Q such that the correlation is Q exp(-E); ``number`` is the type of both."""
    one, half, third = number(1.0), number(0.5), number(1.0 / 3.0)
    if profile == GAUSSIAN:
        for j in range(n):
            E[j] = half * Q[j]
            Q[j] = one
    elif profile == MATERN12:
        for j in range(n):
            E[j] = np.sqrt(Q[j])
            Q[j] = one
    elif profile == MATERN32:
        three = number(3.0)
        for j in range(n):
            a = np.sqrt(three * Q[j])
            E[j] = a
            Q[j] = one + a
    else:
        five = number(5.0)
        for j in range(n):
            a = np.sqrt(five * Q[j])
            E[j] = a
            Q[j] = one + a + third * (a * a)


@_compile
def _row(profile, single, point, P, begin, end, Q, E, number):  # type: ignore[no-untyped-def]
    """Q[: end - begin] = correlations of a point (d,) with the columns ``begin`` to ``end`` of P (d, n)."""
    n = end - begin
    for j in range(n):
        Q[j] = number(0.0)
    for d in range(len(point)):
        own, others = point[d], P[d, begin:end]
        for j in range(n):
            step = own - others[j]
            Q[j] += step * step
    _profile(profile, Q, E, n, number)
    if single:
        _decay32(Q, E, n)
    else:
        _decay(Q, E, n)


@_compile
def multiply_pairs(profile, single, P, V, out, pairs, block, begin, end):  # type: ignore[no-untyped-def]
    """out (k, n) += u(P, P) V for the pairs of blocks of rows ``begin`` to ``end``, V (k, n); both places of each.

    No block may occur in two pairs of one call: threads then write to different places, and each entry of the result is
    a sum in an order of its own, whatever the number of threads.
    """
    number = P.dtype.type
    k, n = V.shape
    Q, E, part = np.empty(block, P.dtype), np.empty(block, P.dtype), np.empty((k, block), P.dtype)
    point = np.empty(len(P), P.dtype)
    for position in range(begin, end):
        low, first = pairs[position, 0] * block, pairs[position, 1] * block
        high, last = min(low + block, n), min(first + block, n)
        part[:] = number(0.0)
        for i in range(low, high):
            for d in range(len(P)):
                point[d] = P[d, i]
            _row(profile, single, point, P, first, last, Q, E, number)
            for c in range(k):
                own, total, others, sums = V[c, i], number(0.0), V[c, first:last], part[c]
                if low == first:
                    for j in range(last - first):
                        total += Q[j] * others[j]
                else:
                    for j in range(last - first):
                        total += Q[j] * others[j]
                        sums[j] += Q[j] * own
                out[c, i] += total
        if low != first:
            for c in range(k):
                for j in range(last - first):
                    out[c, first + j] += part[c, j]


@_compile
def multiply_cross(profile, single, points, P, V, out, block, begin, end):  # type: ignore[no-untyped-def]
    """out (k, q) = u(points, P) V for the points (q, d) ``begin`` to ``end``, P (d, n), V (k, n)."""
    number = P.dtype.type
    k, n = V.shape
    Q, E = np.empty(block, P.dtype), np.empty(block, P.dtype)
    for i in range(begin, end):
        for first in range(0, n, block):
            last = min(first + block, n)
            _row(profile, single, points[i], P, first, last, Q, E, number)
            for c in range(k):
                total, others = number(0.0), V[c, first:last]
                for j in range(last - first):
                    total += Q[j] * others[j]
                out[c, i] += total


@_compile
def combine_columns(profile, single, points, weights, P, out, block, begin, end):  # type: ignore[no-untyped-def]
    """out (n,) = u(P, points) weights for the blocks ``begin`` to ``end`` of P (d, n), points (q, d), weights (q,)."""
    number = P.dtype.type
    n = P.shape[1]
    Q, E = np.empty(block, P.dtype), np.empty(block, P.dtype)
    for position in range(begin, end):
        first = position * block
        last = min(first + block, n)
        for i in range(len(points)):
            _row(profile, single, points[i], P, first, last, Q, E, number)
            weight, sums = weights[i], out[first:last]
            for j in range(last - first):
                sums[j] += weight * Q[j]

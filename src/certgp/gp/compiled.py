"""Compiled loops of local models: one small Gaussian conditional per row; imported at their first use.

A row's term has its neighbours' coordinates as columns of P (d, m + 1), the row itself last, so that the innermost
loops run over neighbours and become vector instructions. Every row is computed on its own, so results do not depend on
the number of threads. A factorisation that fails leaves NaN as the row's variance, for the caller to report.
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from certgp.loops import compile_loop

_compile = partial(compile_loop, reorder_sums=True)
GAUSSIAN, MATERN12, MATERN32, MATERN52 = 0, 1, 2, 3  # profiles u(q) of q = |z - z'|^2


@_compile
def _correlate(profile, Q, n):  # type: ignore[no-untyped-def]
    """Q[:n] = u(Q[:n]), in place."""
    if profile == GAUSSIAN:
        for j in range(n):
            Q[j] = math.exp(-0.5 * Q[j])
    elif profile == MATERN12:
        for j in range(n):
            Q[j] = math.exp(-math.sqrt(Q[j]))
    elif profile == MATERN32:
        for j in range(n):
            a = math.sqrt(3.0 * Q[j])
            Q[j] = (1.0 + a) * math.exp(-a)
    else:
        for j in range(n):
            a = math.sqrt(5.0 * Q[j])
            Q[j] = (1.0 + a + a * a / 3.0) * math.exp(-a)


@_compile
def _slope(profile, Q, U, n):  # type: ignore[no-untyped-def]
    """U[:n] = 2 du/dq at Q[:n]; zero where q = 0, where it multiplies a difference that is zero."""
    if profile == GAUSSIAN:
        for j in range(n):
            U[j] = -math.exp(-0.5 * Q[j])
    elif profile == MATERN12:
        for j in range(n):
            r = math.sqrt(Q[j])
            U[j] = -math.exp(-r) / r if r > 0.0 else 0.0
    elif profile == MATERN32:
        for j in range(n):
            U[j] = -3.0 * math.exp(-math.sqrt(3.0 * Q[j]))
    else:
        for j in range(n):
            a = math.sqrt(5.0 * Q[j])
            U[j] = -(5.0 / 3.0) * (1.0 + a) * math.exp(-a)


@_compile
def _gather(Z, y, noise, neighbours, b, point, P, t, e):  # type: ignore[no-untyped-def]
    """Coordinates (d, n + 1) of the neighbours of row b and of its own point, and the neighbours' targets and noise
    variances; gives n.
    """
    n = 0
    for position in range(neighbours.shape[1]):
        row = neighbours[b, position]
        if row >= 0:
            for d in range(P.shape[0]):
                P[d, n] = Z[row, d]
            t[n] = y[row]
            e[n] = noise[row]
            n += 1
    for d in range(P.shape[0]):
        P[d, n] = point[d]
    return n


@_compile
def _squared_distances(P, i, Q):  # type: ignore[no-untyped-def]
    """Q[j] = |P_i - P_j|^2 for j < i."""
    for j in range(i):
        Q[j] = 0.0
    for d in range(P.shape[0]):
        own = P[d, i]
        for j in range(i):
            step = own - P[d, j]
            Q[j] += step * step


@_compile
def _fill(profile, P, n, signal, e, C):  # type: ignore[no-untyped-def]
    """Lower triangle of the covariance (n + 1, n + 1) of the neighbours' targets, with noise variances e, and of f at
    the point.
    """
    e[n] = 0.0
    for i in range(n + 1):
        _squared_distances(P, i, C[i])
        _correlate(profile, C[i], i)
        for j in range(i):
            C[i, j] *= signal
        C[i, i] = signal + e[i]


@_compile
def _factor(C, n, panel):  # type: ignore[no-untyped-def]
    """Cholesky factor of the leading (n, n) in place; row n becomes L^-1 k and C[n, n] the variance that is left.

    Four columns at a time, which ``panel`` (4, n + 1) keeps together: the triangle behind them is then read and written
    once for all four. True unless a pivot is not positive.
    """
    first, second, third, fourth = panel[0], panel[1], panel[2], panel[3]
    for start in range(0, n, 4):
        stop = min(start + 4, n)
        for k in range(start, stop):
            for i in range(k, n + 1):
                total = C[i, k]
                for earlier in range(start, k):
                    total -= C[i, earlier] * C[k, earlier]
                C[i, k] = total
            if not C[k, k] > 0.0:
                return False
            root = math.sqrt(C[k, k])
            C[k, k] = root
            for i in range(k + 1, n + 1):
                C[i, k] /= root
                panel[k - start, i] = C[i, k]
        for missing in range(stop - start, 4):
            for i in range(stop, n + 1):
                panel[missing, i] = 0.0
        for i in range(stop, n + 1):
            f1, f2, f3, f4 = first[i], second[i], third[i], fourth[i]
            for j in range(stop, i + 1):
                C[i, j] -= f1 * first[j] + f2 * second[j] + f3 * third[j] + f4 * fourth[j]
    return True


@_compile
def _solve_forward(C, b, n):  # type: ignore[no-untyped-def]
    """b[:n] = L^-1 b."""
    for i in range(n):
        total = b[i]
        for k in range(i):
            total -= C[i, k] * b[k]
        b[i] = total / C[i, i]


@_compile
def _solve_backward(C, b, n):  # type: ignore[no-untyped-def]
    """b[:n] = L'^-1 b."""
    for i in range(n - 1, -1, -1):
        b[i] /= C[i, i]
        factor = b[i]
        for k in range(i):
            b[k] -= C[i, k] * factor


@_compile
def _dot(a, b, n):  # type: ignore[no-untyped-def]
    total = 0.0
    for i in range(n):
        total += a[i] * b[i]
    return total


@_compile
def predict(profile, points, Z, y, noise, neighbours, signal, mean, variance, begin, end):  # type: ignore[no-untyped-def]
    """Mean and variance of f at points (B, d) given y at their neighbours (B, m), rows of Z (n, d) with noise
    variances (n,); -1 is no row.
    """
    m = neighbours.shape[1]
    C, P = np.empty((m + 1, m + 1)), np.empty((Z.shape[1], m + 1))
    t, e, panel = np.empty(m + 1), np.empty(m + 1), np.empty((4, m + 1))
    for b in range(begin, end):
        n = _gather(Z, y, noise, neighbours, b, points[b], P, t, e)
        _fill(profile, P, n, signal, e, C)
        if not _factor(C, n, panel):
            variance[b] = np.nan
            continue
        _solve_forward(C, t, n)
        mean[b] = _dot(C[n], t, n)
        variance[b] = C[n, n]


@_compile
def weigh(profile, points, Z, y, noise, neighbours, signal, weights, variance, begin, end):  # type: ignore[no-untyped-def]
    """As ``predict``, with the weights v = (K_N + s2 I)^-1 k (B, m) of the neighbours instead of the mean."""
    m = neighbours.shape[1]
    C, P = np.empty((m + 1, m + 1)), np.empty((Z.shape[1], m + 1))
    t, e, panel = np.empty(m + 1), np.empty(m + 1), np.empty((4, m + 1))
    for b in range(begin, end):
        n = _gather(Z, y, noise, neighbours, b, points[b], P, t, e)
        _fill(profile, P, n, signal, e, C)
        if not _factor(C, n, panel):
            variance[b] = np.nan
            continue
        variance[b] = C[n, n]
        for j in range(n):
            t[j] = C[n, j]
        _solve_backward(C, t, n)
        n = 0
        for position in range(m):
            weights[b, position] = 0.0
            if neighbours[b, position] >= 0:
                weights[b, position] = t[n]
                n += 1


@_compile
def weigh_residual(profile, points, Z, features, noise, neighbours, signal, weights, variance, begin, end):  # type: ignore[no-untyped-def]
    """As ``weigh``, of the rows themselves, for the process k(x, x') - phi(x)'phi(x') that features (n, r) leave."""
    m, r = neighbours.shape[1], features.shape[1]
    C, P, F = np.empty((m + 1, m + 1)), np.empty((Z.shape[1], m + 1)), np.empty((m + 1, r))
    t, e, panel, blank = np.empty(m + 1), np.empty(m + 1), np.empty((4, m + 1)), np.zeros(len(Z))
    for b in range(begin, end):
        n = _gather(Z, blank, noise, neighbours, b, points[b], P, t, e)
        _fill(profile, P, n, signal, e, C)
        n = 0
        for position in range(m):
            if neighbours[b, position] >= 0:
                F[n] = features[neighbours[b, position]]
                n += 1
        F[n] = features[b]
        for i in range(n + 1):
            for j in range(i + 1):
                C[i, j] -= _dot(F[i], F[j], r)
        if not _factor(C, n, panel):
            variance[b] = np.nan
            continue
        variance[b] = C[n, n]
        for j in range(n):
            t[j] = C[n, j]
        _solve_backward(C, t, n)
        n = 0
        for position in range(m):
            weights[b, position] = 0.0
            if neighbours[b, position] >= 0:
                weights[b, position] = t[n]
                n += 1


@_compile
def predict_from(K, y, counts, noise, mean, variance, by_covariance, weights, begin, end):  # type: ignore[no-untyped-def]
    """``predict`` from covariances K (B, m + 1, m + 1) of f at the neighbours and, at position counts[b], at the point,
    with the neighbours' targets and noise variances (B, m + 1), the point's own last. ``weights`` (B, m), where it has
    rows, receives v.
    """
    m = K.shape[1] - 1
    C, t, u, panel = np.empty((m + 1, m + 1)), np.empty(m + 1), np.empty(m + 1), np.empty((4, m + 1))
    for b in range(begin, end):
        n = counts[b]
        for i in range(n + 1):
            for j in range(i + 1):
                C[i, j] = K[b, i, j]
            C[i, i] += noise[b, i]
        C[n, n] = K[b, n, n]
        if not _factor(C, n, panel):
            variance[b] = np.nan
            continue
        for j in range(n):
            t[j] = y[b, j]
        _solve_forward(C, t, n)
        mean[b] = _dot(C[n], t, n)
        variance[b] = C[n, n]
        if len(weights) or len(by_covariance):
            for j in range(n):
                u[j] = C[n, j]
            _solve_backward(C, u, n)
        if len(weights):
            for j in range(m):
                weights[b, j] = u[j] if j < n else 0.0
        if len(by_covariance):
            _solve_backward(C, t, n)
            for j in range(n):
                u[j] = -u[j]
            u[n], t[n] = 1.0, 0.0
            _cotangent(u, t, n, y[b, n] - mean[b], variance[b] + noise[b, n], by_covariance[b])


@_compile
def _cotangent(u, a, n, error, d, G):  # type: ignore[no-untyped-def]
    r"""G with d(loss) = <G, dC> for the loss 1/2 log 2 pi d + e^2 / 2 d of one row.

    d = u'Cu is a minimum over v, u = (-v, 1), so dd = u'dC u; and dmu = a'dC u with a = (C_N^-1 y_N, 0). Hence
    G = (1 / 2d - e^2 / 2d^2) u u' - (e / 2d) (a u' + u a').
    """
    by_d, by_mean = 0.5 / d - 0.5 * error * error / (d * d), -0.5 * error / d
    for i in range(n + 1):
        for j in range(n + 1):
            G[i, j] = by_d * u[i] * u[j] + by_mean * (a[i] * u[j] + u[i] * a[j])


@_compile
def differentiate(  # type: ignore[no-untyped-def]
    profile, points, targets, own_noise, Z, y, noise, neighbours, scale, mean, variance, by_points, by_noise, begin, end
):
    """``predict`` at unit signal variance and the gradient of 1/2 log 2 pi d + e^2 / (2 d scale), d = variance + noise,
    the row's own.

    by_points (B, d, m + 1) is that in the coordinates of the neighbours, in their order, and of the row itself, in the
    place after the last neighbour; by_noise (B,) that in the logarithm of a factor of all noise.
    """
    m, D = neighbours.shape[1], Z.shape[1]
    C, G, P = np.empty((m + 1, m + 1)), np.empty((m + 1, m + 1)), np.empty((D, m + 1))
    a, u, Q, S = np.empty(m + 1), np.empty(m + 1), np.empty(m + 1), np.empty(m + 1)
    panel, e = np.empty((4, m + 1)), np.empty(m + 1)
    root = 1.0 / math.sqrt(scale)
    for b in range(begin, end):
        n = _gather(Z, y, noise, neighbours, b, points[b], P, a, e)
        _fill(profile, P, n, 1.0, e, C)
        if not _factor(C, n, panel):
            variance[b] = np.nan
            continue
        _solve_forward(C, a, n)
        mean[b] = _dot(C[n], a, n)
        variance[b] = C[n, n]
        for j in range(n):
            u[j] = C[n, j]
        _solve_backward(C, a, n)
        _solve_backward(C, u, n)
        for j in range(n):
            a[j] *= root
            u[j] = -u[j]
        a[n], u[n] = 0.0, 1.0
        _cotangent(u, a, n, (targets[b] - mean[b]) * root, variance[b] + own_noise[b], G)
        total = G[n, n] * own_noise[b]
        for i in range(n):
            total += G[i, i] * e[i]
        by_noise[b] = total
        for d in range(D):
            for j in range(m + 1):
                by_points[b, d, j] = 0.0
        for i in range(1, n + 1):
            _squared_distances(P, i, Q)
            _slope(profile, Q, S, i)
            for j in range(i):
                S[j] *= 2.0 * G[i, j]
            for d in range(D):
                point, back = P[d, i], 0.0
                for j in range(i):
                    step = S[j] * (point - P[d, j])
                    by_points[b, d, j] -= step
                    back += step
                by_points[b, d, i] += back

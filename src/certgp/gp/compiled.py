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
def _dot(a, b, n):  # type: ignore[no-untyped-def]
    total = 0.0
    for i in range(n):
        total += a[i] * b[i]
    return total


@_compile
def _gather(Z, noise, neighbours, b, point, P, e):  # type: ignore[no-untyped-def]
    """Coordinates (d, n + 1) of the neighbours of row b and of its own point, and the neighbours' noise; gives n."""
    n = 0
    while n < neighbours.shape[1] and neighbours[b, n] >= 0:
        for d in range(P.shape[0]):
            P[d, n] = Z[neighbours[b, n], d]
        e[n] = noise[neighbours[b, n]]
        n += 1
    for d in range(P.shape[0]):
        P[d, n] = point[d]
    return n


@_compile
def _pick(y, neighbours, b, t):  # type: ignore[no-untyped-def]
    """t[:n] = y at the neighbours of row b, which come first."""
    for j in range(neighbours.shape[1]):
        if neighbours[b, j] >= 0:
            t[j] = y[neighbours[b, j]]


@_compile
def _place(t, neighbours, b, out):  # type: ignore[no-untyped-def]
    """out[b] = t[:n] in the places of the neighbours of row b, zero elsewhere."""
    for j in range(neighbours.shape[1]):
        out[b, j] = t[j] if neighbours[b, j] >= 0 else 0.0


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
    """Lower triangle of the covariance (n + 1, n + 1) of the neighbours' targets, of noise e, and of f at the point."""
    e[n] = 0.0
    for i in range(n + 1):
        _squared_distances(P, i, C[i])
        _correlate(profile, C[i], i)
        for j in range(i):
            C[i, j] *= signal
        C[i, i] = signal + e[i]


@_compile
def _subtract_features(own, features, neighbours, b, n, C, F):  # type: ignore[no-untyped-def]
    """C -= F F' for the features (n + 1, r) of the neighbours of row b and of its own point."""
    r = features.shape[1]
    for i in range(n):
        F[i] = features[neighbours[b, i]]
    F[n] = own[b]
    for i in range(n + 1):
        for j in range(i + 1):
            C[i, j] -= _dot(F[i], F[j], r)


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
def predict(profile, points, Z, y, noise, neighbours, signal, mean, variance, begin, end):  # type: ignore[no-untyped-def]
    """Mean and variance of f at points (B, d) given y at their neighbours (B, m), rows of Z (n, d) with noise
    variances (n,); -1 is no row.
    """
    m = neighbours.shape[1]
    C, P = np.empty((m + 1, m + 1)), np.empty((Z.shape[1], m + 1))
    t, e, panel = np.empty(m + 1), np.empty(m + 1), np.empty((4, m + 1))
    for b in range(begin, end):
        n = _gather(Z, noise, neighbours, b, points[b], P, e)
        _fill(profile, P, n, signal, e, C)
        if not _factor(C, n, panel):
            variance[b] = np.nan
            continue
        _pick(y, neighbours, b, t)
        _solve_forward(C, t, n)
        mean[b] = _dot(C[n], t, n)
        variance[b] = C[n, n]


@_compile
def weigh(profile, points, own, Z, features, noise, neighbours, signal, weights, variance, begin, end):  # type: ignore[no-untyped-def]
    """As ``predict``, with the weights v = (K_N + s2 I)^-1 k (B, m) of the neighbours instead of the mean.

    Of the process k(x, x') - phi(x)'phi(x') that features leave, (n, r) of the rows and (B, r) of the points; with
    r = 0 of the whole process.
    """
    m, r = neighbours.shape[1], features.shape[1]
    C, P, F = np.empty((m + 1, m + 1)), np.empty((Z.shape[1], m + 1)), np.empty((m + 1, r))
    t, e, panel = np.empty(m + 1), np.empty(m + 1), np.empty((4, m + 1))
    for b in range(begin, end):
        n = _gather(Z, noise, neighbours, b, points[b], P, e)
        _fill(profile, P, n, signal, e, C)
        if r:
            _subtract_features(own, features, neighbours, b, n, C, F)
        if not _factor(C, n, panel):
            variance[b] = np.nan
            continue
        variance[b] = C[n, n]
        for j in range(n):
            t[j] = C[n, j]
        _solve_backward(C, t, n)
        _place(t, neighbours, b, weights)


@_compile
def _copy(K, n, noise, C):  # type: ignore[no-untyped-def]
    """Lower triangle of K (n + 1, n + 1), with the noise (m + 1,) on the diagonal of all but the last."""
    for i in range(n + 1):
        for j in range(i + 1):
            C[i, j] = K[i, j]
        C[i, i] += noise[i]
    C[n, n] = K[n, n]


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
        _copy(K[b], n, noise[b], C)
        if not _factor(C, n, panel):
            variance[b] = np.nan
            continue
        for j in range(n):
            t[j] = y[b, j]
        mean[b], variance[b] = _solve_both(C, t, u, n), C[n, n]
        if len(weights):
            for j in range(m):
                weights[b, j] = -u[j] if j < n else 0.0
        if len(by_covariance):
            _density_cotangent(u, t, n, y[b, n] - mean[b], variance[b] + noise[b, n], by_covariance[b])


@_compile
def _solve_both(C, a, u, n):  # type: ignore[no-untyped-def]
    """a = (C_N^-1 a, 0) and u = (-C_N^-1 k, 1); gives k'C_N^-1 a."""
    _solve_forward(C, a, n)
    product = _dot(C[n], a, n)
    for j in range(n):
        u[j] = C[n, j]
    _solve_backward(C, a, n)
    _solve_backward(C, u, n)
    for j in range(n):
        u[j] = -u[j]
    a[n], u[n] = 0.0, 1.0
    return product


@_compile
def _cotangent(u, a, n, by_d, by_mean, G):  # type: ignore[no-untyped-def]
    r"""G with d(loss) = <G, dC> for a loss of one row's d and of linear forms of its weights.

    d = u'Cu is a minimum over v, u = (-v, 1), so dd = u'dC u; and d(s'v) = a'dC u with a = (C_N^-1 s, 0). Hence
    G = by_d u u' + by_mean / 2 (a u' + u a').
    """
    half = 0.5 * by_mean
    for i in range(n + 1):
        for j in range(n + 1):
            G[i, j] = by_d * u[i] * u[j] + half * (a[i] * u[j] + u[i] * a[j])


@_compile
def _density_cotangent(u, a, n, error, d, G):  # type: ignore[no-untyped-def]
    """``_cotangent`` of the loss 1/2 log 2 pi d + e^2 / 2 d, e = y - v'y_N."""
    _cotangent(u, a, n, 0.5 / d - 0.5 * error * error / (d * d), -error / d, G)


@_compile
def _pull_back(profile, P, n, G, Q, S, by_points):  # type: ignore[no-untyped-def]
    """by_points (d, m + 1) = the gradient in the coordinates P of <G, C>, at unit signal variance."""
    by_points[:] = 0.0
    for i in range(1, n + 1):
        _squared_distances(P, i, Q)
        _slope(profile, Q, S, i)
        for j in range(i):
            S[j] *= 2.0 * G[i, j]
        for d in range(P.shape[0]):
            point, back = P[d, i], 0.0
            for j in range(i):
                step = S[j] * (point - P[d, j])
                by_points[d, j] -= step
                back += step
            by_points[d, i] += back


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
        n = _gather(Z, noise, neighbours, b, points[b], P, e)
        _fill(profile, P, n, 1.0, e, C)
        if not _factor(C, n, panel):
            variance[b] = np.nan
            continue
        _pick(y, neighbours, b, a)
        mean[b], variance[b] = _solve_both(C, a, u, n), C[n, n]
        for j in range(n):
            a[j] *= root
        _density_cotangent(u, a, n, (targets[b] - mean[b]) * root, variance[b] + own_noise[b], G)
        e[n] = own_noise[b]
        by_noise[b] = _dot(np.diag(G), e, n + 1)
        _pull_back(profile, P, n, G, Q, S, by_points[b])


@_compile
def differentiate_residual(  # type: ignore[no-untyped-def]
    profile, points, own, own_noise, Z, features, noise, neighbours, sides, by_d, by_side, solved, by_points, by_noise,
    begin, end,
):  # fmt: skip
    r"""The gradient of a loss of d and of s'v, v and d those of ``weigh`` at unit signal variance.

    by_d (B,) and by_side (B,) are the derivatives of each row's loss in d (noise included) and in s'v, s = ``sides``
    (B, m). ``solved`` (B, m) receives C_N^-1 s; by_points and by_noise are as in ``differentiate``, the features fixed.
    """
    m, D, r = neighbours.shape[1], Z.shape[1], features.shape[1]
    C, G, P, F = np.empty((m + 1, m + 1)), np.empty((m + 1, m + 1)), np.empty((D, m + 1)), np.empty((m + 1, r))
    a, u, Q, S = np.empty(m + 1), np.empty(m + 1), np.empty(m + 1), np.empty(m + 1)
    panel, e = np.empty((4, m + 1)), np.empty(m + 1)
    for b in range(begin, end):
        n = _gather(Z, noise, neighbours, b, points[b], P, e)
        _fill(profile, P, n, 1.0, e, C)
        _subtract_features(own, features, neighbours, b, n, C, F)
        if not _factor(C, n, panel):
            by_noise[b] = np.nan
            continue
        for j in range(n):
            a[j] = sides[b, j]
        _solve_both(C, a, u, n)
        _place(a, neighbours, b, solved)
        _cotangent(u, a, n, by_d[b], by_side[b], G)
        e[n] = own_noise[b]
        by_noise[b] = _dot(np.diag(G), e, n + 1)
        _pull_back(profile, P, n, G, Q, S, by_points[b])


@_compile
def differentiate_residual_from(K, sides, counts, noise, by_d, by_side, solved, by_covariance, begin, end):  # type: ignore[no-untyped-def]
    """``differentiate_residual`` from covariances K (B, m + 1, m + 1), as in ``predict_from``, in which
    ``by_covariance`` is the gradient; ``sides`` and ``solved`` have the neighbours in their first places.
    """
    m = K.shape[1] - 1
    C, a, u, panel = np.empty((m + 1, m + 1)), np.empty(m + 1), np.empty(m + 1), np.empty((4, m + 1))
    for b in range(begin, end):
        n = counts[b]
        _copy(K[b], n, noise[b], C)
        if not _factor(C, n, panel):
            by_covariance[b, 0, 0] = np.nan
            continue
        for j in range(n):
            a[j] = sides[b, j]
        _solve_both(C, a, u, n)
        for j in range(n):
            solved[b, j] = a[j]
        _cotangent(u, a, n, by_d[b], by_side[b], by_covariance[b])

"""Loops over nodes for models with a common and a personal part; see `nefele.mixed`."""

from __future__ import annotations

import numpy as np

from nefele._kernels.compiled import inlined, kernel


@kernel
def add_rows(X, y, weight, owner, G, c):  # type: ignore[no-untyped-def]
    """Add weighted products of the rows to G of shape (n, d, d) and c of shape (n, d)."""
    d = X.shape[1]
    for r in range(X.shape[0]):
        i = owner[r]
        for j in range(d):
            a = weight[r] * X[r, j]
            if a != 0.0:
                c[i, j] += a * y[r]
                for k in range(j + 1):
                    G[i, j, k] += a * X[r, k]


@kernel
def mirror(G):  # type: ignore[no-untyped-def]
    """Upper triangles from the lower ones."""
    for i in range(G.shape[0]):
        for j in range(G.shape[1]):
            for k in range(j):
                G[i, k, j] = G[i, j, k]


@inlined
def _factorise(A, p):  # type: ignore[no-untyped-def]
    """A = L L^T in place, lower triangle; the sum of log diag(L)."""
    total = 0.0
    for j in range(p):
        for k in range(j):
            s = A[j, k]
            for q in range(k):
                s -= A[j, q] * A[k, q]
            A[j, k] = s / A[k, k]
        s = A[j, j]
        for q in range(j):
            s -= A[j, q] * A[j, q]
        A[j, j] = np.sqrt(s)
        total += np.log(A[j, j])
    return total


@kernel
def eliminate(G, c, personal, F, Z, C, inner):  # type: ignore[no-untyped-def]
    """The personal parts of nodes that only the centre joins, eliminated one by one.

    With A_i = I + F^T G_i F on the personal columns and V_i = F^T [G_i, c_i] of shape (p, d + 1):
    Z_i = A_i^-1 V_i, C_i = A_i^-1, and the sum over i of V_i^T Z_i goes to `inner`. Returns the
    sum of log det A_i.
    """
    n, d, p = G.shape[0], G.shape[1], len(personal)
    A = np.empty((p, p))
    V = np.empty((p, d + 1))
    total = 0.0
    inner[:] = 0.0
    for i in range(n):
        for a in range(p):
            for k in range(d + 1):
                V[a, k] = 0.0
        for q in range(p):
            at = personal[q]
            for a in range(p):
                f = F[q, a]
                if f != 0.0:
                    for k in range(d):
                        V[a, k] += f * G[i, at, k]
                    V[a, d] += f * c[i, at]
        for a in range(p):
            for e in range(a + 1):
                s = 1.0 if a == e else 0.0
                for q in range(p):
                    s += V[a, personal[q]] * F[q, e]
                A[a, e] = s
        total += 2.0 * _factorise(A, p)
        for a in range(p):  # Z = L^-1 V, and C = L^-1
            for k in range(d + 1):
                Z[i, a, k] = V[a, k]
            for k in range(p):
                C[i, a, k] = 1.0 if a == k else 0.0
            for q in range(a):
                f = A[a, q]
                for k in range(d + 1):
                    Z[i, a, k] -= f * Z[i, q, k]
                for k in range(q + 1):
                    C[i, a, k] -= f * C[i, q, k]
            f = 1.0 / A[a, a]
            for k in range(d + 1):
                Z[i, a, k] *= f
            for k in range(a + 1):
                C[i, a, k] *= f
        for a in range(p):
            for k in range(d + 1):
                z = Z[i, a, k]
                if z != 0.0:
                    for e in range(k + 1):
                        inner[k, e] += z * Z[i, a, e]
        for a in range(p - 1, -1, -1):  # Z = A^-1 V, C = A^-1
            for q in range(a + 1, p):
                f = A[q, a]
                for k in range(d + 1):
                    Z[i, a, k] -= f * Z[i, q, k]
                for k in range(p):
                    C[i, a, k] -= f * C[i, q, k]
            f = 1.0 / A[a, a]
            for k in range(d + 1):
                Z[i, a, k] *= f
            for k in range(p):
                C[i, a, k] *= f
    for k in range(d + 1):
        for e in range(k):
            inner[e, k] = inner[k, e]
    return total


@kernel
def slopes(G, c, personal, F, Z, C, b, N, s2, out):  # type: ignore[no-untyped-def]
    """Gradient of minus half the deviance by F; see `nefele.mixed.likelihood`.

    The sum over i of e_i u_i^T / s2 - G_i F C_i + (G_i - G_i F Z_i) N_i^T on the personal rows,
    u_i = Z_i [-b, 1], e_i = c_i - G_i b - G_i F u_i, N_i = Z_i M^-1.
    """
    n, d, p = G.shape[0], G.shape[1], len(personal)
    H = np.empty((p, p))  # G_i F
    u, e = np.empty(p), np.empty(p)
    E = np.empty((p, d))
    out[:] = 0.0
    for i in range(n):
        for a in range(p):
            at = personal[a]
            for k in range(p):
                H[a, k] = 0.0
            for q in range(p):
                g = G[i, at, personal[q]]
                for k in range(p):
                    H[a, k] += g * F[q, k]
            s = Z[i, a, d]
            for k in range(d):
                s -= Z[i, a, k] * b[k]
            u[a] = s
        for a in range(p):
            at = personal[a]
            s = c[i, at]
            for k in range(d):
                s -= G[i, at, k] * b[k]
                E[a, k] = G[i, at, k]
            for q in range(p):
                h = H[a, q]
                s -= h * u[q]
                for k in range(d):
                    E[a, k] -= h * Z[i, q, k]
            e[a] = s / s2
        for a in range(p):
            for k in range(p):
                s = e[a] * u[k]
                for q in range(p):
                    s -= H[a, q] * C[i, k, q]
                for q in range(d):
                    s += E[a, q] * N[i, k, q]
                out[a, k] += s

"""One fused iteration of the primal-dual method for quadratic losses.

Two passes over memory: the nodes' affine proxes w+ = A_i (w - tau_i q) + c_i, then the edges,
stored by owner, which update their flow and add it into q = D^T u on the way. Over-relaxation
costs no extra traffic. `dims` is a tuple of length d: its length is part of its type, so that
loops over the d parameters are unrolled by the compiler; an empty one means any d.
"""

from __future__ import annotations

import numba
import numpy as np

L2, L1, LINF, SQUARED, HUBER = range(5)
MOST_UNROLLED = 16


@numba.njit(cache=True, fastmath={"reassoc", "contract", "nsz", "arcp"}, error_model="numpy")
def node_pass(dims, w, q, A, c, tau, wbar, rho):  # type: ignore[no-untyped-def]
    """Prox at every node; leaves 2 w+ - w in wbar, the relaxed w in w, and clears q."""
    d = len(dims) if len(dims) > 0 else w.shape[1]
    v = np.empty(d)
    for i in range(len(w)):
        t = tau[i]
        for r in range(d):
            v[r] = w[i, r] - t * q[i, r]
            q[i, r] = 0.0
        for r in range(d):
            new = c[i, r]
            for k in range(d):
                new += A[i, r, k] * v[k]
            old = w[i, r]
            wbar[i, r] = 2.0 * new - old
            w[i, r] = old + rho * (new - old)


@numba.njit(cache=True, fastmath={"reassoc", "contract", "nsz", "arcp"}, error_model="numpy")
def edge_pass(dims, u, q, ptr, tail, scale, flow, wbar, gamma, rho, kind, delta):  # type: ignore[no-untyped-def]
    """Dual update (NFL, Eq. (33)) of every edge with sigma_e = flow_e / (2 gamma)."""
    d = len(dims) if len(dims) > 0 else wbar.shape[1]
    v, here, out = np.empty(d), np.empty(d), np.empty(d)
    for i in range(len(ptr) - 1):
        first, last = ptr[i], ptr[i + 1]
        if first == last:
            continue
        for r in range(d):
            here[r] = wbar[i, r]
            out[r] = 0.0
        for e in range(first, last):
            j, s = tail[e], scale[e]
            sigma = flow[e] / (2.0 * gamma)
            square = 0.0
            for r in range(d):
                v[r] = u[e, r] + sigma * (here[r] - wbar[j, r])
                square += v[r] * v[r]
            if kind == L1:
                for r in range(d):
                    v[r] = min(max(v[r], -s), s)
            elif kind == SQUARED:
                for r in range(d):
                    v[r] *= s / (s + sigma)
            else:
                shrink = 1.0
                if kind == HUBER:
                    shrink = s / (s + sigma * delta)
                norm = shrink * np.sqrt(square)
                if norm > s:
                    shrink *= s / norm
                for r in range(d):
                    v[r] *= shrink
            for r in range(d):
                new = u[e, r] + rho * (v[r] - u[e, r])
                u[e, r] = new
                out[r] += new
                q[j, r] -= new
        for r in range(d):
            q[i, r] += out[r]

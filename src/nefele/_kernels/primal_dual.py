"""One fused iteration of the primal-dual method for quadratic losses.

The nodes take their affine proxes w+ = A_i (w - tau_i q) + c_i; the edges, stored by owner, then
update their flow and add it into q = D^T u on the way. Over-relaxation costs no extra traffic.
The node pass runs only as far ahead of the edge pass as the edges reach, chunk by chunk, so that
w and q are still in the cache when the edges need them. Long edges make it two plain passes.

`dims` is a tuple of length d, part of its type, or None for any d.
nodes = (w, q, wbar, A, c, tau), A the upper triangles of symmetric matrices, row by row.
edges = (u, ptr, tail, scale, flow), scale and flow of length 1 when they do not vary.
rule = (1 / (2 gamma), rho, by_entry, ball, delta); see `_edge_pass`.
"""

from __future__ import annotations

import numpy as np

from nefele._kernels.compiled import inlined, kernel
from nefele._kernels.laplacian import invert
from nefele._kernels.rows import clip, load, square, store, symmetric, zeros

MOST_UNROLLED = 16
_TINY = 1e-300  # stands for the radius of a ball of radius zero


@kernel
def iterate(dims, share, schedule, nodes, edges, rule):  # type: ignore[no-untyped-def]
    """One iteration; schedule = (chunk, reach, bounds, cuts).

    reach[b] is the node after the last one that edges of the chunks 0..b of nodes touch. Block k
    has the chunks bounds[k]..bounds[k + 1]; those from cuts[k] on touch nodes of the next block,
    so their edges wait until all blocks are done. No two blocks then touch the same nodes.

    share = (first, last, sweep, leftover): which blocks, and which of the two parts of the work.
    Threads take blocks of one part each, and wait for each other before the next part.
    """
    first, last, sweep, leftover = share
    if sweep:
        for k in range(first, last):
            _sweep(dims, k, schedule, nodes, edges, rule)
    if leftover:
        for k in range(first, last):
            _leftover(dims, k, schedule, nodes, edges, rule)


@inlined
def _sweep(dims, k, schedule, nodes, edges, rule):  # type: ignore[no-untyped-def]
    """Node pass of block k, and the edge pass that it allows."""
    chunk, reach, bounds, cuts = schedule
    w, q, wbar, A, c, tau = nodes
    u, ptr, tail, scale, flow = edges
    half, rho, by_entry, ball, delta = rule
    done, last = bounds[k] * chunk, min(bounds[k + 1] * chunk, len(w))
    for b in range(bounds[k], cuts[k]):
        _node_pass(dims, done, reach[b], w, q, wbar, A, c, tau, rho)
        done = reach[b]
        i, j = b * chunk, min((b + 1) * chunk, last)
        _edge_pass(dims, i, j, q, wbar, u, ptr, tail, scale, flow, half, rho, by_entry, ball, delta)
    _node_pass(dims, done, last, w, q, wbar, A, c, tau, rho)


@inlined
def _leftover(dims, k, schedule, nodes, edges, rule):  # type: ignore[no-untyped-def]
    """The rest of the edge pass of block k."""
    chunk, _, bounds, cuts = schedule
    _, q, wbar, _, _, _ = nodes
    first, last = cuts[k] * chunk, min(bounds[k + 1] * chunk, len(q))
    _edge_pass(dims, first, last, q, wbar, *edges, *rule)


@inlined
def _node_pass(dims, first, last, w, q, wbar, A, c, tau, rho):  # type: ignore[no-untyped-def]
    """Prox at nodes first..last: 2 w+ - w into wbar, the relaxed w into w, zero into q."""
    if dims is None:
        _node_pass_any(first, last, w, q, wbar, A, c, tau, rho)
        return
    for i in range(first, last):
        old = load(w, i, dims)
        new = symmetric(A, i, old - tau[i] * load(q, i, dims)) + load(c, i, dims)
        store(wbar, i, 2.0 * new - old)
        store(w, i, old + rho * (new - old))
        store(q, i, zeros(dims))


@inlined
def _edge_pass(  # type: ignore[no-untyped-def]
    dims, first, last, q, wbar, u, ptr, tail, scale, flow, half, rho, by_entry, ball, delta
):
    """Dual update (NFL, Eq. (33)) of the edges of nodes first..last, sigma_e = half flow_e.

    v = u + sigma D wbar is clipped to [-scale_e, scale_e] `by_entry`, or shrunk as a whole.
    """
    if dims is None:
        _edge_pass_any(
            first, last, q, wbar, u, ptr, tail, scale, flow, half, rho, by_entry, ball, delta
        )
        return
    s, sigma, varies = scale[0], half * flow[0], len(scale) > 1
    for i in range(first, last):
        here, out = load(wbar, i, dims), zeros(dims)
        for e in range(ptr[i], ptr[i + 1]):
            j = tail[e]
            if varies:  # a branch: an index e * 0 costs 4 ns per node of a grid, d = 1
                s, sigma = scale[e], half * flow[e]
            old = load(u, e, dims)
            v = old + sigma * (here - load(wbar, j, dims))
            if by_entry:
                v = clip(v, s)
            else:
                v = _shrinkage(square(v), s, sigma, ball, delta) * v
            new = old + rho * (v - old)
            store(u, e, new)
            store(q, j, load(q, j, dims) - new)
            out = out + new
        store(q, i, load(q, i, dims) + out)


@inlined
def _shrinkage(square, s, sigma, ball, delta):  # type: ignore[no-untyped-def]
    """The factor s / (s + sigma delta), with a `ball` at most s / ||v||.

    Without a branch on the norm: mispredicted, it costs more than the division (50 ms, not 41).
    """
    k = 1.0
    if delta > 0.0:
        k = s / (s + sigma * delta)
    if ball:
        k *= s / max(k * np.sqrt(square), s, _TINY)
    return k


@inlined
def _node_pass_any(first, last, w, q, wbar, A, c, tau, rho):  # type: ignore[no-untyped-def]
    d = w.shape[1]
    v, new = np.empty(d), np.empty(d)
    for i in range(first, last):
        for r in range(d):
            v[r] = w[i, r] - tau[i] * q[i, r]
            new[r] = c[i, r]
            q[i, r] = 0.0
        k = 0
        for r in range(d):  # entries (r, r), ..., (r, d - 1) of A_i
            row, right, out = A[i, k : k + d - r], v[r:], new[r:]
            total = row[0] * v[r]
            for s in range(1, d - r):
                total += row[s] * right[s]
                out[s] += row[s] * v[r]
            out[0] += total
            k += d - r
        for r in range(d):
            old = w[i, r]
            wbar[i, r] = 2.0 * new[r] - old
            w[i, r] = old + rho * (new[r] - old)


@inlined
def _edge_pass_any(  # type: ignore[no-untyped-def]
    first, last, q, wbar, u, ptr, tail, scale, flow, half, rho, by_entry, ball, delta
):
    d = wbar.shape[1]
    v = np.empty(d)
    s, sigma, varies = scale[0], half * flow[0], len(scale) > 1
    for i in range(first, last):
        for e in range(ptr[i], ptr[i + 1]):
            j = tail[e]
            if varies:
                s, sigma = scale[e], half * flow[e]
            total = 0.0
            for r in range(d):
                v[r] = u[e, r] + sigma * (wbar[i, r] - wbar[j, r])
                total += v[r] * v[r]
            k = 1.0
            if by_entry:
                for r in range(d):
                    v[r] = min(max(v[r], -s), s)
            else:
                k = _shrinkage(total, s, sigma, ball, delta)
            for r in range(d):
                new = u[e, r] + rho * (k * v[r] - u[e, r])
                u[e, r] = new
                q[i, r] += new
                q[j, r] -= new


@kernel
def affine_prox(H, b, tau, order, A, c):  # type: ignore[no-untyped-def]
    """A_i = (I + tau_i H_i)^-1, its upper triangle, and c_i = tau_i A_i b_i.

    A and c are in the order of `order`, tau already is; an empty one means that of the losses.
    Inverted anew for every step: a million eigenbases, d = 5, take 5 s and 240 MB, this 0.1 s.
    """
    d = b.shape[1]
    a = np.empty((d, d))
    for i in range(len(tau)):
        at = order[i] if len(order) > 0 else i
        for r in range(d):
            for k in range(d):
                a[r, k] = tau[i] * H[at, r, k]
            a[r, r] += 1.0
        invert(a)
        entry = 0
        for r in range(d):
            total = 0.0
            for k in range(d):
                total += a[r, k] * b[at, k]
            c[i, r] = tau[i] * total
            for k in range(r, d):
                A[i, entry] = a[r, k]
                entry += 1

"""Directions of the two sides of every entry of an edge: the linf norm in interior-point steps."""

from __future__ import annotations

import numpy as np

from nefele._kernels.compiled import kernel


@kernel
def direct(a, b, p, q, h, k, skew, sums, left, right, lift, pulled, off, change, flow, rest, moves):  # type: ignore[no-untyped-def]
    """Directions from D dw and C D dw; the longest step inside, and how x^T z changes.

    dv = D dw + rest off, dt = (lift + skew^T dv) / sum, da = dt - dv, db = dt + dv, du = C D dw +
    pull, dp = left - h da, dq = right - k db. The heavier side follows from the flow, since da or
    db is a difference with rounding errors.
    """
    dt, dv, du, da, db, dp, dq = moves
    falls, slope, bend = 0.0, 0.0, 0.0
    for e in range(len(a)):
        rise = lift[e]
        for j in range(a.shape[1]):
            dv[e, j] = change[e, j] + rest * off[e, j]
            rise += skew[e, j] * dv[e, j]
        dt[e] = rise / sums[e, 0]
        for j in range(a.shape[1]):
            du[e, j] = flow[e, j] + pulled[e, j]
            if h[e, j] > k[e, j]:
                db[e, j] = dt[e] + dv[e, j]
                dq[e, j] = right[e, j] - k[e, j] * db[e, j]
                dp[e, j] = du[e, j] + dq[e, j]
                da[e, j] = (left[e, j] - dp[e, j]) / h[e, j]
            else:
                da[e, j] = dt[e] - dv[e, j]
                dp[e, j] = left[e, j] - h[e, j] * da[e, j]
                dq[e, j] = dp[e, j] - du[e, j]
                db[e, j] = (right[e, j] - dq[e, j]) / k[e, j]
            falls = max(falls, -da[e, j] / a[e, j], -db[e, j] / b[e, j])
            falls = max(falls, -dp[e, j] / p[e, j], -dq[e, j] / q[e, j])
            slope += a[e, j] * dp[e, j] + p[e, j] * da[e, j]
            slope += b[e, j] * dq[e, j] + q[e, j] * db[e, j]
            bend += da[e, j] * dp[e, j] + db[e, j] * dq[e, j]
    return 1.0 / falls if falls > 0.0 else np.inf, slope, bend

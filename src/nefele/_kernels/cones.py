"""Second-order cones t_e >= ||v_e|| with duals ||u_e|| <= s_e: scaling, directions, step lengths.

The points x = (t, v) and z = (s, -u) of each edge have Nesterov and Todd's scaling W with
W z = W^-1 x (as in Vandenberghe, "The CVXOPT linear and quadratic cone program solvers", 2010):

    W^2 = g (2 y y^T - J),    J = diag(1, -I),    y^T J y = 1,    g^2 = x^T J x / z^T J z.

`dims` is a tuple of the length of v_e (or empty for any), as in `primal_dual`.
"""

from __future__ import annotations

import numpy as np

from nefele._kernels.compiled import inlined, kernel

_TINY = 1e-300


@kernel
def scale(dims, t, v, s, u, soft, y0, y1, g, C):  # type: ignore[no-untyped-def]
    """Scalings y and g, and the matrices C_e = (g I + 2 g y1 y1^T + soft_e I)^-1 between D w and u.

    Returns the sum of x^T z.
    """
    d = len(dims) if len(dims) > 0 else v.shape[1]
    total = 0.0
    for e in range(len(t)):
        vv, uu, uv = 0.0, 0.0, 0.0
        for i in range(d):
            vv += v[e, i] * v[e, i]
            uu += u[e, i] * u[e, i]
            uv += u[e, i] * v[e, i]
        a, b = np.sqrt(vv), np.sqrt(uu)
        a = np.sqrt(max((t[e] - a) * (t[e] + a), _TINY))
        b = np.sqrt(max((s[e] - b) * (s[e] + b), _TINY))
        together = t[e] * s[e] - uv
        total += together
        half = 2.0 * np.sqrt(0.5 * (1.0 + together / (a * b)))
        y0[e] = (t[e] / a + s[e] / b) / half
        square = 0.0
        for i in range(d):
            y1[e, i] = (v[e, i] / a + u[e, i] / b) / half
            square += y1[e, i] * y1[e, i]
        g[e] = a / b
        most = g[e] + soft[e]
        turn = 2.0 * g[e] / (most + 2.0 * g[e] * square)
        for i in range(d):
            for j in range(d):
                C[e, i, j] = -turn * y1[e, i] * y1[e, j] / most
            C[e, i, i] += 1.0 / most
    return total


@kernel
def aim(dims, t, v, s, u, off, y0, y1, g, C, level, bend, dt, dv, du, q0, q1, pull):  # type: ignore[no-untyped-def]
    """Right sides q of W^2 dz + dx = q, and pull = C (off - q1).

    q = -x + level z^-1 - bend W l^-1 o (W^-1 dx o W dz) with l = W z: Mehrotra's second-order term
    from the directions dt, dv, du at level 0, "o" the product of the cone's Jordan algebra.
    """
    d = len(dims) if len(dims) > 0 else v.shape[1]
    c1, l1 = np.empty(d), np.empty(d)
    for e in range(len(t)):
        root = np.sqrt(g[e])
        y, more = y0[e], 1.0 / (1.0 + y0[e])
        uu, yu, yv, ydu = 0.0, 0.0, 0.0, 0.0
        for i in range(d):
            uu += u[e, i] * u[e, i]
            yu += y1[e, i] * u[e, i]
            yv += y1[e, i] * dv[e, i]
            ydu += y1[e, i] * du[e, i]
        b = np.sqrt(uu)
        inverse = level / max((s[e] - b) * (s[e] + b), _TINY)
        x0, xt = (y * dt[e] - yv) / root, (yv * more - dt[e]) / root
        z0, zt = -root * ydu, -root * ydu * more
        l0, lt = root * (y * s[e] - yu), root * (s[e] - yu * more)
        c0, lc, ll = bend * x0 * z0, 0.0, 0.0
        for i in range(d):
            x = dv[e, i] / root + xt * y1[e, i]
            z = -root * du[e, i] + zt * y1[e, i]
            l1[i] = lt * y1[e, i] - root * u[e, i]
            c1[i] = bend * (x0 * z + z0 * x)
            c0 += bend * x * z
            lc += l1[i] * c1[i]
            ll += l1[i] * l1[i]
        ll = np.sqrt(ll)
        r0 = (l0 * c0 - lc) / max((l0 - ll) * (l0 + ll), _TINY)
        yr = 0.0
        for i in range(d):
            c1[i] = (c1[i] - r0 * l1[i]) / l0
            yr += y1[e, i] * c1[i]
        q0[e] = inverse * s[e] - t[e] - root * (y * r0 + yr)
        rt = root * (r0 + yr * more)
        for i in range(d):
            q1[e, i] = inverse * u[e, i] - v[e, i] - root * c1[i] - rt * y1[e, i]
        for i in range(d):
            total = 0.0
            for j in range(d):
                total += C[e, i, j] * (off[e, j] - q1[e, j])
            pull[e, i] = total


@inlined
def _room(here, ahead, cross):  # type: ignore[no-untyped-def]
    """Largest step with here + 2 step cross + step^2 ahead >= 0, or infinity."""
    turn = np.sqrt(max(cross * cross - ahead * here, 0.0)) - cross
    return here / turn if turn > 0.0 else np.inf


@kernel
def direct(dims, t, v, s, u, off, soft, y0, y1, q0, q1, pull, flow, dv, du, dt):  # type: ignore[no-untyped-def]
    """Directions du = C (D dw + off - q1), dv = D dw + off - soft du, and dt.

    dv holds D dw on entry. Returns the longest step inside all cones, and the first- and
    second-order change of the sum of x^T z.
    """
    d = len(dims) if len(dims) > 0 else v.shape[1]
    longest, slope, bend = np.inf, 0.0, 0.0
    for e in range(len(t)):
        along = 0.0
        for i in range(d):
            du[e, i] = flow[e, i] + pull[e, i]
            dv[e, i] += off[e, i] - soft[e] * du[e, i]
            along += y1[e, i] * (q1[e, i] - dv[e, i])
        # Not q0 + 2 g y0 y1^T du: near the boundary y is large, and du has rounding errors.
        dt[e] = q0[e] - 2.0 * y0[e] / (2.0 * y0[e] * y0[e] - 1.0) * along
        vv, uu, vdv, udu, dvdv, dudu = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
        slope += s[e] * dt[e]
        for i in range(d):
            vv += v[e, i] * v[e, i]
            uu += u[e, i] * u[e, i]
            vdv += v[e, i] * dv[e, i]
            udu += u[e, i] * du[e, i]
            dvdv += dv[e, i] * dv[e, i]
            dudu += du[e, i] * du[e, i]
            slope -= u[e, i] * dv[e, i] + v[e, i] * du[e, i]
            bend -= du[e, i] * dv[e, i]
        a, b = np.sqrt(vv), np.sqrt(uu)
        left = (t[e] - a) * (t[e] + a)
        right = (s[e] - b) * (s[e] + b)
        longest = min(longest, _room(left, dt[e] * dt[e] - dvdv, t[e] * dt[e] - vdv))
        longest = min(longest, _room(right, -dudu, -udu))
    return longest, slope, bend

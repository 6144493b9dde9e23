"""Convex clustering by majorisation (Touw, Groenen, Terada 2022): run by clustering.py.

peer_ccmm.py IN.npz OUT.npz, in an environment that has ccmmpy: reads `points` (n, d), `head`,
`tail`, `weight` and `lams`, minimises sum ||w_i - a_i||^2 + lam sum_e A_e ||w_i - w_j|| for each
lam on its own with the package's default settings, writes `w` of all lams and CPU `seconds`.
"""

import sys
import time

import numpy as np
from ccmmpy._ccmmpy import _convex_clusterpath, _fusion_threshold

given = np.load(sys.argv[1])
points, head, tail = given["points"], given["head"], given["tail"]
columns = np.asfortranarray((points - points.mean(axis=0)).T)
rows, others = np.concatenate([head, tail]), np.concatenate([tail, head])
order = np.lexsort((rows, others))
pairs = np.asfortranarray(np.stack([rows[order], others[order]]).astype(np.int32))
values = np.concatenate([given["weight"], given["weight"]])[order]
threshold = _fusion_threshold(np.asfortranarray(points.T), 1e-3)
w, seconds = [], []
for lam in given["lams"]:
    started = time.process_time()
    found = _convex_clusterpath(
        columns, pairs, values, np.array([lam / 2]), 1e-6, threshold, False, True, 25, 5000
    )
    seconds.append(time.process_time() - started)
    w.append(found["clusterpath"].T + points.mean(axis=0))
np.savez(sys.argv[2], w=np.stack(w), seconds=seconds)

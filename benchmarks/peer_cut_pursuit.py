"""Cut pursuit on one image: run in its own environment by denoising.py.

peer_cut_pursuit.py IN.npz OUT.npz OPTIONS: reads `points` (n_nodes, d), `first` and `tail` (the
edges by owner) and `lam`, minimises 1/2 ||w - points||^2 + lam * (norms of the differences over
the edges), writes `w`, `seconds` and the number of `parts`. OPTIONS are JSON arguments of
pycut_pursuit's solver: cp_d1_ql1b with an identity matrix for d = 1, where cp_prox_tv of version
0.1.4 crashes, and cp_prox_tv for the rest.
"""

import json
import sys
import time

import numpy as np
from pycut_pursuit.cp_d1_ql1b import cp_d1_ql1b
from pycut_pursuit.cp_prox_tv import cp_prox_tv

source, target, options = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
given = np.load(source)
points = given["points"]
first, tail = given["first"].astype(np.uint32), given["tail"].astype(np.uint32)
options.update(edge_weights=float(given["lam"]), max_num_threads=1, verbose=0)
started = time.process_time()
if points.shape[1] == 1:
    part, fits = cp_d1_ql1b(points[:, 0].copy(), 1.0, first, tail, **options)[:2]
    fits = fits[None, :]
else:
    part, fits = cp_prox_tv(np.asfortranarray(points.T), first, tail, **options)[:2]
w = fits[:, part].T
seconds = time.process_time() - started
np.savez(target, w=w, seconds=seconds, parts=fits.shape[1])

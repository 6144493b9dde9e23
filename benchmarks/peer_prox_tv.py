"""prox_tv on one image: run in its own environment by denoising.py.

peer_prox_tv.py IN.npz OUT.npz OPTIONS: reads `image` (rows, columns) and `lam`, minimises
1/2 ||w - image||^2 + lam * (absolute differences of neighbours), writes `w` and `seconds`.
OPTIONS are JSON arguments of prox_tv.tv1_2d.
"""

import json
import sys
import time

import numpy as np
import prox_tv

source, target, options = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
given = np.load(source)
image, lam = given["image"], float(given["lam"])
prox_tv.tv1_2d(image[:8, :8].copy(), lam, **options)
started = time.process_time()
w = prox_tv.tv1_2d(image, lam, n_threads=1, **options)
seconds = time.process_time() - started
np.savez(target, w=w, seconds=seconds)

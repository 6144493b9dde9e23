"""byzfl's rules on some vectors: run in its own environment by byzfl_oracle.py.

peer_byzfl.py IN.npz OUT.npz: reads cases `rows-K` of shape (k, d) and `bad-K`, writes what each
rule makes of them as `RULE-K`. The package as a whole needs torchvision for its datasets, so only
its aggregators are imported, beside a package of that name that holds nothing.
"""

import importlib.util
import sys
import types
from pathlib import Path

import numpy as np

TAU, STEPS = 0.7, 4  # of centred clipping
NU, T = 1e-12, 5000  # of Weiszfeld's iteration

place = importlib.util.find_spec("byzfl")
bare = types.ModuleType("byzfl")
bare.__path__ = [str(Path(place.origin).parent)]
sys.modules["byzfl"] = bare
rules = importlib.import_module("byzfl.aggregators.aggregators")

source, target = sys.argv[1:]
given, found = np.load(source), {}
for name in given.files:
    kind, case = name.split("-")
    if kind != "rows":
        continue
    rows, bad = given[name], int(given[f"bad-{case}"])
    found |= {
        f"trimmed-{case}": rules.TrMean(f=bad)(rows),
        f"median-{case}": rules.Median()(rows),
        f"geometric-{case}": rules.GeometricMedian(nu=NU, T=T)(rows),
        f"krum-{case}": rules.Krum(f=bad)(rows),
        f"clipping-{case}": rules.CenteredClipping(L=STEPS, tau=TAU)(rows),
    }
np.savez(target, **found)

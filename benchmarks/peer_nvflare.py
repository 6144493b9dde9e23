"""NVFlare's p2p in a ring of five, in its simulator: run in its own environment by sites.py.

Prints JSON: `version`, and `ms` of each round. In a round each client tells its two neighbours ten
numbers and takes a mean of theirs and its own: what `nvflare.app_opt.p2p` calls an exchange of
values, and nothing else.
"""

import importlib.metadata
import json
import tempfile
import time
from pathlib import Path

import numpy as np
from nvflare.apis.dxo import from_shareable
from nvflare.app_opt.p2p.controllers import DistOptController
from nvflare.app_opt.p2p.executors import SyncAlgorithmExecutor
from nvflare.app_opt.p2p.types import Config, Neighbor, Network, Node
from nvflare.job_config.api import FedJob

CLIENTS, ROUNDS, FIRST, D = 5, 60, 10, 10


class Mean(SyncAlgorithmExecutor):
    """Means over the neighbours; writes down when each round ended."""

    def __init__(self, target: str):
        super().__init__()
        self.target = target

    def run_algorithm(self, fl_ctx, shareable, abort_signal):
        value, ends = np.full(D, float(self.id)), []
        for k in range(from_shareable(shareable).data["iterations"]):
            if abort_signal.triggered:
                return
            self._exchange_values(fl_ctx, value=value, iteration=k)
            heard = self.neighbors_values.pop(k)
            value = self._weight * value
            for one in self.neighbors:
                value = value + one.weight * heard[one.id]
            ends.append(time.perf_counter())
        Path(self.target, f"{self.client_name}.json").write_text(json.dumps(ends))


def main():
    names = [f"site-{i + 1}" for i in range(CLIENTS)]
    nodes = [
        Node(
            id=name,
            neighbors=[Neighbor(id=names[(i + k) % CLIENTS], weight=1 / 3) for k in (-1, 1)],
        )
        for i, name in enumerate(names)
    ]
    with tempfile.TemporaryDirectory() as place:
        job = FedJob(name="ring")
        job.to_server(
            DistOptController(config=Config(network=Network(nodes), extra={"iterations": ROUNDS}))
        )
        for name in names:
            job.to(Mean(target=place), name)
        job.simulator_run(str(Path(place) / "workspace"), threads=CLIENTS)
        ends = [json.loads(Path(place, f"{name}.json").read_text()) for name in names]
    ms = 1e3 * np.diff(ends)[:, FIRST:]
    print(json.dumps({"version": importlib.metadata.version("nvflare"), "ms": ms.ravel().tolist()}))


if __name__ == "__main__":
    main()

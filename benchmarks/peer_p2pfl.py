"""p2pfl between five nodes in one process: run in its own environment by sites.py.

Prints JSON: `version`, and for each node the `ms` from the start of its first training to that of
its second. Later rounds are not counted, in p2pfl's favour: in this setting some of its nodes then
wait for each other until a call's limit of 10 s, or a vote's of 60 s, ends that.

The nodes talk by gRPC on loopback with p2pfl's default settings, each with all others. A model is
ten numbers, and its training one step towards the least squares of 20 rows: what is measured is
p2pfl and not PyTorch.
"""

import importlib.metadata
import json
import os
import time

import numpy as np
from datasets import Dataset
from p2pfl.settings import Settings

Settings.general.DISABLE_RAY = True

from p2pfl.learning.dataset.p2pfl_dataset import P2PFLDataset  # noqa: E402
from p2pfl.learning.frameworks.learner import Learner  # noqa: E402
from p2pfl.learning.frameworks.p2pfl_model import P2PFLModel  # noqa: E402
from p2pfl.node import Node  # noqa: E402
from p2pfl.utils.utils import wait_convergence  # noqa: E402

NODES, ROUNDS, D = 5, 2, 10
LIMIT = 200.0  # seconds for all rounds


class Numbers(P2PFLModel):
    """A model that is one array."""

    def get_parameters(self):
        return [self.model]

    def set_parameters(self, params):
        if isinstance(params, bytes):
            params, self.additional_info = self.decode_parameters(params)
        self.model = np.array(params[0])

    def get_framework(self):
        return "numpy"


class Step(Learner):
    """One gradient step in each round; tells when it began."""

    def __init__(self, seed):
        super().__init__()
        draw = np.random.default_rng(seed)
        self.X, self.y = draw.normal(size=(20, D)), draw.normal(size=20)
        self.begun = []

    def fit(self):
        self.begun.append(time.perf_counter())
        model = self.get_model()
        w = model.get_parameters()[0]
        model.set_parameters([w - 0.01 * self.X.T @ (self.X @ w - self.y)])
        model.set_contribution([self.addr], len(self.y))
        return model

    def interrupt_fit(self):
        pass

    def evaluate(self):
        return {}

    def get_framework(self):
        return "numpy"


def main():
    learners = [Step(seed) for seed in range(NODES)]
    data = P2PFLDataset(Dataset.from_dict({"x": [0.0]}), dataset_name="none")  # of no use here
    nodes = [
        Node(Numbers(np.zeros(D)), data, addr="127.0.0.1", learner=learner) for learner in learners
    ]
    for node in nodes:
        node.start()
    for i, node in enumerate(nodes):
        for other in nodes[:i]:
            node.connect(other.addr)
    wait_convergence(nodes, NODES - 1, wait=60)
    nodes[0].set_start_learning(rounds=ROUNDS, epochs=1, trainset_size=NODES)
    end = time.monotonic() + LIMIT
    while time.monotonic() < end and any(len(one.begun) < ROUNDS for one in learners):
        time.sleep(0.1)
    ms = 1e3 * np.diff([one.begun[:ROUNDS] for one in learners])
    found = {"version": importlib.metadata.version("p2pfl"), "ms": ms.ravel().tolist()}
    print(json.dumps(found), flush=True)
    os._exit(0)  # its threads may wait for each other for long


if __name__ == "__main__":
    main()

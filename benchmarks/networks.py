"""An epoch of coupled networks against the same networks trained one after the other by torch.

Both go through the same rows with one thread and Adam. The loop is what one would write without
nefele: for each node its own module, optimiser and batches, and no coupling. nefele's epoch has
the coupling over a graph of four nearest neighbours, in rounds of `STEPS` steps. CPU seconds of
this process, the least of some epochs, both in turn. Run it by `python benchmarks/networks.py`;
`--out FILE` writes the table.
"""

from __future__ import annotations

import argparse
import copy
import time

import numpy as np
import torch
from torch import nn

from nefele import Graph
from nefele._torch.losses import CLASSIFICATION, logits_of
from nefele.graphs import knn
from nefele.networks.algorithm1 import Algorithm1
from nefele.networks.coupling import Columns
from nefele.networks.features import ArrayFeatures
from nefele.networks.implicit import Implicit
from nefele.networks.rounds import Rounds, Task
from nefele.networks.rows import Source
from nefele.networks.stack import Stack
from nefele.penalties import L2Norm, SquaredL2

ROWS, BATCH, STEPS, CLASSES = 96, 32, 10, 10
TARGET = 1.0


class Convolutions(nn.Module):
    """Two convolutions and two layers, 28 x 28 pixels in."""

    def __init__(self, one: int, two: int, hidden: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(1, one, 5),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(one, two, 5),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Flatten(),
            nn.Linear(16 * two, hidden),
            nn.ReLU(),
        )
        self.head = nn.Linear(hidden, CLASSES)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.body(x))


def perceptron(*hidden: int) -> nn.Module:
    """Layers of so many units, 784 numbers in."""
    layers: list[nn.Module] = [nn.Flatten()]
    for one, two in zip((784, *hidden), (*hidden, CLASSES), strict=True):
        layers += [nn.Linear(one, two), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


NETWORKS = {
    "CNN 52 thousand": lambda: Convolutions(8, 16, 184),
    "CNN 215 thousand": lambda: Convolutions(16, 32, 390),
    "CNN 500 thousand": lambda: Convolutions(32, 48, 580),
    "MLP 784-64-10": lambda: perceptron(64),
    "MLP 784-256-10": lambda: perceptron(256),
}
CASES = [(nodes, name) for name in NETWORKS for nodes in (20, 200)]


def data(nodes: int) -> tuple[np.ndarray, np.ndarray, Graph]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((nodes * ROWS, 1, 28, 28)).astype(np.float32)
    y = rng.integers(0, CLASSES, nodes * ROWS)
    return X, y, knn(rng.random((nodes, 2)), k=4)


def ours(kind: type[Rounds], module: nn.Module, X, y, graph: Graph, form: str) -> Rounds:
    nodes = graph.n_nodes
    source = Source(
        ArrayFeatures(X, torch.float32),
        np.arange(len(X)),
        np.arange(nodes + 1) * ROWS,
        y,
        np.ones(len(X)),
        "float32",
    )
    loss = CLASSIFICATION["cross_entropy"]
    stack = Stack(copy.deepcopy(module), lambda z: logits_of(z, CLASSES), loss, form)
    stack.module.train()
    penalty = SquaredL2() if kind is Implicit else L2Norm()
    return kind(
        Task(
            stack,
            source,
            graph,
            penalty,
            0.05,
            1.0,
            Columns.of("all", stack),
            "adam",
            0.001,
            1000,
            STEPS,
            BATCH,
            "float32",
            np.arange(nodes),
        )
    )


class Loop:
    """Modules of their own."""

    def __init__(self, module: nn.Module, X, y, nodes: int) -> None:
        self.X, self.y = torch.tensor(X), torch.tensor(y)
        self.nets = [copy.deepcopy(module) for _ in range(nodes)]
        self.adams = [torch.optim.Adam(net.parameters(), lr=0.001) for net in self.nets]

    def epoch(self) -> None:
        for i, (net, adam) in enumerate(zip(self.nets, self.adams, strict=True)):
            order = i * ROWS + torch.randperm(ROWS)
            for at in order.split(BATCH):
                adam.zero_grad()
                nn.functional.cross_entropy(net(self.X[at]), self.y[at]).backward()
                adam.step()


def seconds_of(run) -> float:
    """CPU seconds."""
    started = time.process_time()
    run()
    return time.process_time() - started


def a_round(method: Rounds) -> None:
    """What training does in a round, the figures of the history included."""
    method.round(1)
    method.coupling(), method.spread()


def measured(nodes: int, name: str, form: str, repeats: int) -> dict[str, float | str | int]:
    torch.manual_seed(0)
    module = NETWORKS[name]()
    X, y, graph = data(nodes)
    loop = Loop(module, X, y, nodes)
    kinds = {"Algorithm 1": Algorithm1, "implicit": Implicit}
    methods = {word: ours(kind, module, X, y, graph, form) for word, kind in kinds.items()}
    one = methods["implicit"]
    share = one.source.steps_of_epoch(BATCH) / STEPS  # of a round
    found: dict[str, float | str | int] = {
        "nodes": nodes,
        "network": name,
        "form": one.stack.form,
        "parameters": one.w.shape[1],
    }
    times: dict[str, list[float]] = {"loop": [], **{word: [] for word in kinds}}
    for _ in range(1 + repeats):  # the first warms up
        times["loop"].append(seconds_of(loop.epoch))
        for word, method in methods.items():
            times[word].append(share * seconds_of(lambda method=method: a_round(method)))
    return found | {word: min(some[1:]) for word, some in times.items()}


def table(rows: list[dict]) -> str:
    lines = [
        "| network | parameters | nodes | form | loop over modules, s | Algorithm 1, s | ratio | "
        "implicit, s | ratio |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for r in rows:
        lines.append(
            f"| {r['network']} | {r['parameters']} | {r['nodes']} | {r['form']} | {r['loop']:.2f} "
            f"| {r['Algorithm 1']:.2f} | {r['loop'] / r['Algorithm 1']:.2f} | {r['implicit']:.2f} "
            f"| {r['loop'] / r['implicit']:.2f} |"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--form", default="auto")
    parser.add_argument("--only", default="", help="part of a network's name")
    parser.add_argument("--nodes", type=int, default=0)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--out", default="")
    args = parser.parse_args()
    torch.set_num_threads(1)
    rows = []
    for nodes, name in CASES:
        if args.only in name and args.nodes in (0, nodes):
            rows.append(measured(nodes, name, args.form, args.repeats))
            print(table(rows[-1:]).splitlines()[-1], flush=True)
    text = (
        f"# Networks\n\nAn epoch of {ROWS} rows per node in batches of {BATCH}, one thread, CPU "
        f"seconds; ratio: loop over ours (target {TARGET:g}).\n\n{table(rows)}\n"
    )
    if args.out:
        with open(args.out, "w", encoding="utf-8") as file:
            file.write(text)


if __name__ == "__main__":
    main()

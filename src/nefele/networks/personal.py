"""What estimators share that train one network per node by plain gradient steps."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np

from nefele._checks import check_count, check_flag, check_name
from nefele._torch.base import Tensor, tensor, torch
from nefele.graph import Graph
from nefele.networks.base import NetworksBase
from nefele.networks.rows import Source
from nefele.networks.stack import Stack
from nefele.networks.steps import Steps
from nefele.runtime.messages import Ledger


@dataclass(eq=False, repr=False)
class PersonalBase(NetworksBase):
    """The steps, and what is kept of them."""

    _: KW_ONLY
    rounds: int = 60
    local_steps: int = 10
    optimizer: Any = "sgd"
    lr: float = 0.1
    batch_size: int | None = 20
    falling: bool = True
    weighting: str = "rows"

    def _steps(self, stack: Stack, source: Source, rounds: int) -> Steps:
        """Networks and batches of these rows at the start."""
        weight = np.bincount(source.row_node, source.weight, minlength=source.n_nodes)
        share = weight if self.weighting == "rows" else weight > 0
        return Steps(
            stack,
            source,
            tensor(share, self.dtype),
            lr=float(self.lr),
            batch_size=self.batch_size,
            rounds=rounds,
            local_steps=int(self.local_steps),
            falling=bool(self.falling),
        )

    def _keep(self, steps: Steps, w: Tensor, graph: Graph) -> Any:
        """Set the fitted attributes."""
        if not torch.isfinite(w).all():
            raise ValueError(
                "Training diverged: parameters are NaN or inf. Lower lr or the strength of the "
                "method, or scale the features and the target."
            )
        self._keep_networks(steps.stack, w, graph)
        self.gradients_ = steps.taken
        self.traffic_ = steps.moved / steps.n_nodes
        self.ledger_ = Ledger(rounds=int(self.rounds))
        self.ledger_.tally("parameters", 1, steps.sent)
        return self

    def _check_parameters(self) -> None:
        self._check_form()
        check_name(self.optimizer, ("sgd",), "optimizer")
        check_name(self.weighting, ("rows", "nodes"), "weighting")
        check_count(self.rounds, "rounds", low=1)
        check_count(self.local_steps, "local_steps", low=1)
        check_flag(self.falling, "falling")


def own_outputs(stack: Stack, w: Tensor, held: Source) -> Tensor:
    """Outputs of the network of each row's node, in the order of the source."""
    training = stack.module.training
    stack.module.eval()
    found: dict[int, list[Tensor]] = {}
    with torch.no_grad():
        for batch in held.chunks():
            for i, X, _, _ in batch.each():
                found.setdefault(i, []).append(stack.outputs(stack.at(i, w[i])(X)))
    stack.module.train(training)
    return torch.cat([part for i in sorted(found) for part in found[i]])

"""Networks of one architecture at all nodes, trained at once on parameters stacked row by row."""

from __future__ import annotations

import copy
from collections.abc import Callable

from nefele._checks import Array
from nefele._torch.base import Module, RowLoss, Tensor, torch
from nefele.networks.rows import Padded


class Stack:
    """One architecture; the parameters of all nodes are one tensor of shape (n_nodes, P).

    All nodes start at the parameters of `module`; frozen ones (without requires_grad) stay as they
    are and are not among the P. `outputs` shapes what the network gives, predictions (m,) or logits
    (m, n_classes); `loss` is that of each row.
    """

    def __init__(self, module: Module, outputs: Callable[[Tensor], Tensor], loss: RowLoss) -> None:
        self.module, self.outputs, self.loss = module, outputs, loss
        self.free = {name: p for name, p in module.named_parameters() if p.requires_grad}
        self.names = list(self.free)
        self.shapes = [p.shape for p in self.free.values()]
        self.sizes = [p.numel() for p in self.free.values()]
        self._check()

    def _check(self) -> None:
        if not self.names:
            raise ValueError("module must have parameters to train; got none. Add a layer.")
        for name, _ in self.module.named_buffers():
            if name.endswith("num_batches_tracked"):
                raise ValueError(
                    "module must not keep running statistics, which are no parameters to couple; "
                    f"got {name!r}. Use LayerNorm, or BatchNorm with track_running_stats=False."
                )

    @property
    def n_parameters(self) -> int:
        """P, the parameters of one node."""
        return sum(self.sizes)

    def start(self, n_nodes: int) -> Tensor:
        """The parameters of the module for every node: only then are they comparable."""
        flat = torch.cat([p.detach().reshape(-1) for p in self.free.values()])
        return flat.repeat(n_nodes, 1)

    def unfolded(self, flat: Tensor) -> dict[str, Tensor]:
        """The parameters of one node by name."""
        parts = torch.split(flat, self.sizes)
        shaped = (part.view(shape) for part, shape in zip(parts, self.shapes, strict=True))
        return dict(zip(self.names, shaped, strict=True))

    def forward(self, flat: Tensor, X: Tensor) -> Tensor:
        """Outputs of one node's network."""
        return self.outputs(torch.func.functional_call(self.module, self.unfolded(flat), (X,)))

    def forward_all(self, w: Tensor, X: Tensor) -> Tensor:
        """Outputs of all nodes, X of shape (n_nodes, m, d)."""
        return torch.func.vmap(self.forward, randomness="different")(w, X)

    def losses(self, w: Tensor, rows: Padded) -> Tensor:
        """L_i(w_i) of all nodes, shape (n_nodes,)."""
        each = torch.func.vmap(self._loss, randomness="different")
        return each(w, rows.X, rows.y, rows.weight)

    def _loss(self, flat: Tensor, X: Tensor, y: Tensor, weight: Tensor) -> Tensor:
        return (weight * self.loss(self.forward(flat, X), y)).sum()

    def gradients(self, w: Tensor, rows: Padded) -> Tensor:
        """Gradients of L_i at w_i, shape (n_nodes, P): that of the sum, which is separable."""
        at = w.detach().requires_grad_()
        return torch.autograd.grad(self.losses(at, rows).sum(), at)[0]

    def network(self, flat: Array) -> Module:
        """A module with the parameters of one node."""
        made = copy.deepcopy(self.module)
        with torch.no_grad():
            values = torch.as_tensor(flat, dtype=next(made.parameters()).dtype)
            for name, part in self.unfolded(values).items():
                made.get_parameter(name).copy_(part)
        return made.eval()

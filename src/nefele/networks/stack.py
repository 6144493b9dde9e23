"""Networks of one architecture at all nodes, with parameters stacked row by row."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from nefele._checks import Array, check_name
from nefele._torch.base import Module, RowLoss, Tensor, torch
from nefele._torch.building import takes
from nefele.networks.rows import Batch

SDPBackend, sdpa_kernel = torch.nn.attention.SDPBackend, torch.nn.attention.sdpa_kernel
FORMS = ("auto", "loop", "stacked")
nn = torch.nn
_WORD = 2**64 - 1
_ALIGNED = 16  # numbers
_SMALL, _TOGETHER = 2**15, 2**21  # parameters of a network, and of all: stacked up to these

_ROWWISE: tuple[type[Module], ...] = (  # what batched matrix products do well
    nn.Linear,
    nn.Sequential,
    nn.ModuleList,
    nn.Flatten,
    nn.Identity,
    nn.LayerNorm,
    nn.Embedding,
    nn.Dropout,
    nn.ReLU,
    nn.LeakyReLU,
    nn.ELU,
    nn.GELU,
    nn.SiLU,
    nn.Tanh,
    nn.Sigmoid,
    nn.Softplus,
    nn.Softmax,
    nn.LogSoftmax,
)
_STATISTICS = nn.modules.batchnorm._NormBase  # keeps running means and variances
_POOLS = (nn.MaxPool2d, nn.AvgPool2d, nn.AdaptiveAvgPool2d, nn.BatchNorm2d)
_MIXES_ROWS = nn.modules.batchnorm._BatchNorm


class Stack:
    """One architecture; the parameters of all nodes are one tensor of shape (n_nodes, P).

    All nodes start at the parameters of `module`; frozen ones (without requires_grad) stay as they
    are and are not among the P. `outputs` shapes what the network gives, predictions (m,) or logits
    (m, n_classes); `loss` is that of each row.

    Two forms compute the same: "stacked" all nodes at once by `torch.func.vmap`, "loop" one node
    after the other. "auto" loops over networks with convolutions, BatchNorm, recurrent or unknown
    layers, where batched products of weights are slower, or rows of padding would count; and over
    large networks of which many do not fit in a cache together.

    Running statistics of BatchNorm belong to the nodes: `statistics` has them as tensors with one
    row per node, updated in training and used in evaluation.
    """

    def __init__(
        self,
        module: Module,
        outputs: Callable[[Tensor], Tensor],
        loss: RowLoss,
        form: str = "auto",
    ) -> None:
        self.module, self.outputs, self.loss = module, outputs, loss
        self.free = {name: p for name, p in module.named_parameters() if p.requires_grad}
        self.names = list(self.free)
        self.shapes = [p.shape for p in self.free.values()]
        self.sizes = [p.numel() for p in self.free.values()]
        if not self.names:
            raise ValueError("module must have parameters to train; got none. Add a layer.")
        self.rowwise = all(
            isinstance(m, _ROWWISE) for m in module.modules() if not _is_container(m)
        )
        self.form = self._form(check_name(form, FORMS, "form"))
        self._free_form = form == "auto" and self.rowwise
        self.statistics: dict[str, Tensor] = {}
        self.seed = 0  # of dropout, with the number of the step
        self.step = 0
        self._by_pixels: bool | None = None if _suits_pixels(module) else False
        self.keys: Any = None  # numbers of the nodes in the whole network
        self.ids: Any = None  # names of the nodes, for messages
        self._worker: Module | None = None

    def _form(self, form: str) -> str:
        if form == "stacked" and any(isinstance(m, _MIXES_ROWS) for m in self.module.modules()):
            raise ValueError(
                'form="stacked" pads the rows of nodes, which BatchNorm would count; use '
                'form="loop" or "auto".'
            )
        if form != "auto":
            return form
        return "stacked" if self.rowwise else "loop"

    @property
    def n_parameters(self) -> int:
        """P, the parameters of one node."""
        return sum(self.sizes)

    @property
    def dtype(self) -> torch.dtype:
        """The kind of numbers of the parameters."""
        return next(iter(self.free.values())).dtype

    def start(self, n_nodes: int) -> Tensor:
        """The parameters of the module for every node: only then are they comparable."""
        self.statistics = {
            name: buffer.detach().clone().expand(n_nodes, *buffer.shape).clone()
            for name, buffer in _running(self.module).items()
        }
        flat = torch.cat([p.detach().reshape(-1) for p in self.free.values()])
        if self._free_form:
            small = len(flat) <= _SMALL or n_nodes * len(flat) <= _TOGETHER
            self.form = "stacked" if small else "loop"
        if self.form == "stacked":
            return flat.repeat(n_nodes, 1)
        # Each row begins where memory is aligned: products may round differently elsewhere.
        width = -(-len(flat) // _ALIGNED) * _ALIGNED
        w = torch.zeros(n_nodes, width, dtype=flat.dtype)[:, : len(flat)]
        return w.copy_(flat)

    def unfolded(self, flat: Tensor) -> dict[str, Tensor]:
        """The parameters of one node by name."""
        parts = torch.split(flat, self.sizes)
        shaped = (part.view(shape) for part, shape in zip(parts, self.shapes, strict=True))
        return dict(zip(self.names, shaped, strict=True))

    # -- losses and gradients -------------------------------------------------------------------

    def gradients(self, w: Tensor, batch: Batch) -> Tensor:
        """Gradients of L_i at w_i, shape (n_nodes, P); zero where a node has no rows."""
        return self.with_losses(w, batch)[0]

    def with_losses(
        self, w: Tensor, batch: Batch, out: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Gradients of L_i at w_i, shape (n_nodes, P), and L_i(w_i), shape (n_nodes,).

        `out` is memory for the gradients that may be used: new memory takes time.
        """
        losses = torch.zeros(len(w), dtype=self.dtype)
        if self.form == "loop":
            gradient = torch.empty_like(w.detach()) if out is None else out
            absent = torch.ones(len(w), dtype=torch.bool)
            absent[torch.from_numpy(batch.nodes)] = False
            gradient[absent] = 0.0
            self._loop(w.detach(), batch, losses, gradient)
            return gradient, losses
        gradient = torch.zeros_like(w.detach()) if len(batch.nodes) < len(w) else w
        if len(batch.nodes):
            nodes = torch.from_numpy(batch.nodes)
            every = len(batch.nodes) == len(w)
            at = (w if every else w[nodes]).detach().requires_grad_()
            self._reseed()
            found = self._stacked(at, batch)
            found_gradient = torch.autograd.grad(found.sum(), at)[0]
            if every:
                return found_gradient, found.detach()
            gradient[nodes], losses[nodes] = found_gradient, found.detach()
        return gradient, losses

    def losses(self, w: Tensor, batch: Batch) -> Tensor:
        """L_i(w_i) of all nodes, shape (n_nodes,); zero where a node has no rows."""
        losses = torch.zeros(len(w), dtype=self.dtype)
        with torch.no_grad():
            if self.form == "loop" or not self.rowwise:  # some fast paths know no vmap
                self._loop(w.detach(), batch, losses, None)
            elif len(batch.nodes):
                nodes = torch.from_numpy(batch.nodes)
                losses[nodes] = self._stacked(w.detach()[nodes], batch)
        return losses

    def _stacked(self, w: Tensor, batch: Batch) -> Tensor:
        with sdpa_kernel(SDPBackend.MATH):  # attention that vmap knows
            return torch.func.vmap(self._loss, randomness="different")(w, *batch.padded())

    def _loss(self, flat: Tensor, X: Tensor, y: Tensor, weight: Tensor) -> Tensor:
        return (weight * self.loss(self.forward(flat, X), y)).sum()

    def forward(self, flat: Tensor, X: Tensor) -> Tensor:
        """Outputs of one node's network."""
        return self.outputs(torch.func.functional_call(self.module, self.unfolded(flat), (X,)))

    def forward_all(self, w: Tensor, X: Tensor) -> Tensor:
        """Outputs of all nodes, X of shape (n_nodes, m, ...)."""
        if self.form == "loop":
            with torch.no_grad():
                return torch.stack([self.outputs(self.at(i, w[i])(X[i])) for i in range(len(w))])
        return torch.func.vmap(self.forward, randomness="different")(w, X)

    # -- one node after the other ---------------------------------------------------------------

    def _loop(self, w: Tensor, batch: Batch, losses: Tensor, gradient: Tensor | None) -> None:
        for i, X, y, weight in batch.each():
            worker = self.at(i, w[i])
            if gradient is None:
                losses[i] = self._loss_of(worker, i, X, y, weight)
            else:
                losses[i] = self.gradient_of(worker, i, (X, y, weight), gradient[i])

    def _loss_of(self, worker: Module, node: int, X: Tensor, y: Tensor, weight: Tensor) -> Tensor:
        X = self._laid_out(X)
        self._reseed(node)
        try:
            out = worker(X)
        except ValueError:
            if len(X) > 1 or not any(isinstance(m, _MIXES_ROWS) for m in worker.modules()):
                raise
            name = f"number {node}" if self.ids is None else repr(self.ids[node])
            raise ValueError(
                f"BatchNorm needs two rows or more at once; node {name} has a batch of one. Use a "
                "larger batch_size, GroupNorm or LayerNorm, or drop the node."
            ) from None
        return (weight * self.loss(self.outputs(out), y)).sum()

    def _laid_out(self, X: Tensor) -> Tensor:
        """Images with the channels of a pixel side by side, where torch is faster with them.

        The same up to rounding. A network that takes only the usual order gets that.
        """
        if self._by_pixels is False or X.ndim != 4:
            return X
        laid = X.to(memory_format=torch.channels_last)
        if self._by_pixels is None:
            self._by_pixels = takes(copy.deepcopy(self.module).eval(), laid[:1])
        return laid if self._by_pixels else X

    def gradient_of(
        self, worker: Module, node: int, rows: tuple[Tensor, Tensor, Tensor], out: Tensor
    ) -> Tensor:
        """The gradient of a node at which `at` has put the worker, in `out`; its loss."""
        loss = self._loss_of(worker, node, *rows)
        for p in self._free_of_worker:
            p.grad = None
        loss.backward()
        grads = [
            torch.zeros(p.numel(), dtype=p.dtype) if p.grad is None else p.grad.reshape(-1)
            for p in self._free_of_worker
        ]
        torch.cat(grads, out=out)
        return loss.detach()

    def at(self, node: int, flat: Tensor) -> Module:
        """A module for this node's parameters; valid until the next call.

        They are not copied. Running statistics are the node's own, updated in place.
        """
        if self._worker is None:
            self._worker = copy.deepcopy(self.module).train(self.module.training)
            named = dict(self._worker.named_parameters())
            self._free_of_worker = [named[name] for name in self.names]
        worker = self._worker
        for p, part in zip(self._free_of_worker, torch.split(flat, self.sizes), strict=True):
            p.data = part.view(p.shape)
        for name, rows in self.statistics.items():
            owner, _, last = name.rpartition(".")
            worker.get_submodule(owner)._buffers[last] = rows[node]
        if worker.training != self.module.training:
            worker.train(self.module.training)
        return worker

    def _reseed(self, node: int | None = None) -> None:
        """Random numbers of this step, and node: dropout is the same after a restart."""
        key = -1 if node is None else int(node if self.keys is None else self.keys[node])
        torch.default_generator.manual_seed(_mixed(self.seed, self.step, key + 1))

    def network(self, flat: Array, statistics: dict[str, Array] | None = None) -> Module:
        """A module with the parameters, and running statistics, of one node."""
        made = copy.deepcopy(self.module)
        with torch.no_grad():
            values = torch.as_tensor(flat, dtype=self.dtype)
            for name, part in self.unfolded(values).items():
                made.get_parameter(name).copy_(part)
            for name, value in (statistics or {}).items():
                made.get_buffer(name).copy_(torch.as_tensor(value))
        return made.eval()


def _mixed(*numbers: int) -> int:
    """One number of 63 bits from several; unlike ones nearly always differ (SplitMix64)."""
    found = 0
    for number in numbers:
        found = (found + number + 0x9E3779B97F4A7C15) & _WORD
        found = ((found ^ found >> 30) * 0xBF58476D1CE4E5B9) & _WORD
        found = ((found ^ found >> 27) * 0x94D049BB133111EB) & _WORD
        found ^= found >> 31
    return found >> 1


def _is_container(module: Module) -> bool:
    """A user's own module that only calls others."""
    known = type(module).__module__.startswith("torch.")
    bare = next(module.parameters(recurse=False), None) is None
    return bare and not known and next(module.children(), None) is not None


def _suits_pixels(module: Module) -> bool:
    """Whether convolutions of all channels and pooling are among the layers."""
    layers = list(module.modules())
    convolutions = [one for one in layers if isinstance(one, nn.Conv2d)]
    whole = bool(convolutions) and all(one.groups == 1 for one in convolutions)
    return whole and any(isinstance(one, _POOLS) for one in layers)


def _running(module: Module) -> dict[str, Tensor]:
    """Buffers of layers with running statistics, by name; other buffers are constants."""
    found = {}
    for prefix, layer in module.named_modules():
        if isinstance(layer, _STATISTICS):
            for name, buffer in layer.named_buffers(recurse=False):
                found[f"{prefix}.{name}" if prefix else name] = buffer
    return found

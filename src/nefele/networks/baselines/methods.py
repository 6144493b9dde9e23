"""Federated learning with a server, general and personalised: one class per paper.

A method trains stacked networks: `train(training)` gives the parameters of all nodes. All methods
get the same budget of gradients per node; those that need two gradients for a step do half as many
steps in a round. Steps are plain, as in the papers.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

from sklearn.base import BaseEstimator

from nefele._checks import check_number
from nefele._torch.base import Tensor
from nefele.networks.steps import Pull, Steps


class Method(BaseEstimator):
    """A way to train one network per node: a class of your own gives `train`.

    Examples
    --------
    >>> class Still(Method):
    ...     def train(self, training):
    ...         return training.start()
    >>> import numpy as np
    >>> from nefele.networks.baselines import PersonalRegressor
    >>> model = PersonalRegressor(method=Still()).fit(np.eye(2), [0.0, 1.0], node_ids=[0, 1])
    >>> bool((model.parameters_[0] == model.parameters_[1]).all())
    True
    """

    def check(self) -> None:
        """Raise ValueError for parameters out of their domain."""

    def train(self, training: Steps) -> Tensor:
        """The parameters of all nodes, shape (n_nodes, P).

        Parameters
        ----------
        training : Steps
            Networks, batches, and a budget of gradients per node.
        """
        raise NotImplementedError


def check_share(value: float, name: str) -> None:
    """A ValueError unless it is from 0 to 1."""
    check_number(value, name, low=0.0)
    if value > 1:
        raise ValueError(f"{name} must be a share, at most 1; got {value}.")


def towards(centre: Tensor, strength: float) -> Pull:
    """The gradient of strength / 2 ||v - centre||^2."""
    return lambda v: strength * (v - centre)


class Local(Method):
    """Own rows only: no message is sent.

    Examples
    --------
    >>> Local()
    Local()
    """

    def train(self, training: Steps) -> Tensor:
        return training.finetune(training.start())


class Pooled(Method):
    """One network for the rows of all nodes: a step by the mean of the nodes' gradients.

    It is what a centre with all rows would do; the rows are what it would be sent.

    Examples
    --------
    >>> Pooled()
    Pooled()
    """

    def train(self, training: Steps) -> Tensor:
        w = training.start()
        for _ in range(training.budget):
            rate = training.rate
            move = (training.share * training.gradient(w)).sum(dim=0, keepdim=True)
            w = w - rate * move
        return w


@dataclass(eq=False, repr=False)
class FedAvg(Method):
    """Federated averaging, then steps of each node by itself.

    McMahan et al., "Communication-Efficient Learning of Deep Networks from Decentralized Data",
    AISTATS 2017, Algorithm 1, all clients in each round: w_i = w - steps on L_i, w = sum_i p_i w_i.

    Parameters
    ----------
    finetune : float
        Share of the gradients at the end that each node takes by itself; 0: one network for all.

    Examples
    --------
    >>> FedAvg(finetune=0.25)
    FedAvg(finetune=0.25)
    """

    finetune: float = 0.0

    def check(self) -> None:
        check_share(self.finetune, "finetune")

    def train(self, training: Steps) -> Tensor:
        w = training.start()
        common = round(training.rounds * (1.0 - self.finetune))
        for _ in range(common):
            w = training.mean(self._local(training, w))
        return training.finetune(w)

    def _local(self, training: Steps, w: Tensor) -> Tensor:
        return training.descend(w, training.local_steps)


@dataclass(eq=False, repr=False)
class FedProx(FedAvg):
    """Federated averaging whose local steps are held near the server's parameters.

    Li et al., "Federated Optimization in Heterogeneous Networks", MLSys 2020, Algorithm 2: local
    steps on L_i(v) + mu / 2 ||v - w||^2.

    Parameters
    ----------
    finetune : float
        See `FedAvg`.
    mu : float

    Examples
    --------
    >>> FedProx(mu=0.5)
    FedProx(mu=0.5)
    """

    _: KW_ONLY
    mu: float = 0.1

    def check(self) -> None:
        super().check()
        check_number(self.mu, "mu", low=0.0)

    def _local(self, training: Steps, w: Tensor) -> Tensor:
        return training.descend(w, training.local_steps, towards(w, self.mu))

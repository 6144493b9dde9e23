"""Federated learning with a server, general and personalised: one class per paper.

A method trains stacked networks: `train(training)` gives the parameters of all nodes. All methods
get the same budget of gradients per node; those that need two gradients for a step do half as many
steps in a round. Steps are plain, as in the papers.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

from sklearn.base import BaseEstimator

from nefele._checks import check_count, check_number
from nefele._torch.base import Tensor, torch
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
        """The parameters of all nodes, shape (n_nodes, P)."""
        raise NotImplementedError


def _share(value: float, name: str) -> None:
    check_number(value, name, low=0.0)
    if value > 1:
        raise ValueError(f"{name} must be a share, at most 1; got {value}.")


def _towards(centre: Tensor, strength: float) -> Pull:
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
        _share(self.finetune, "finetune")

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
        return training.descend(w, training.local_steps, _towards(w, self.mu))


@dataclass(eq=False, repr=False)
class Ditto(Method):
    """A personal network near the server's, which is trained beside it.

    Li et al., "Ditto: Fair and Robust Federated Learning Through Personalization", ICML 2021,
    Algorithm 1: half of the steps on L_i from the server's w, for its mean; half on
    L_i(v) + lam / 2 ||v - w||^2 from the node's own v.

    Parameters
    ----------
    lam : float

    Examples
    --------
    >>> Ditto(lam=0.5)
    Ditto(lam=0.5)
    """

    lam: float = 0.1

    def check(self) -> None:
        check_number(self.lam, "lam", low=0.0)

    def train(self, training: Steps) -> Tensor:
        w = own = training.start()
        half = training.local_steps // 2
        for _ in range(training.rounds):
            sent, centre = training.descend(w, half), w
            rest = training.local_steps - half
            own = training.descend(own, rest, _towards(centre, self.lam))
            w = training.mean(sent)
        return own


@dataclass(eq=False, repr=False)
class PFedMe(Method):
    """Personal networks as Moreau envelopes around the server's.

    Dinh, Tran, Nguyen, "Personalized Federated Learning with Moreau Envelopes", NeurIPS 2020,
    Algorithm 1: theta is `inner` steps on the loss of one batch + lam / 2 ||theta - w_i||^2, then
    w_i goes the share `step` (the paper's eta lam) of the way to theta (Eq. (7)); the server takes
    (1 - beta) w + beta mean_i w_i. The personal network is theta.

    Parameters
    ----------
    lam : float
    inner : int
        Gradients for each theta.
    step, beta : float

    Examples
    --------
    >>> PFedMe(lam=5.0)
    PFedMe(lam=5.0)
    """

    lam: float = 1.0
    _: KW_ONLY
    inner: int = 5
    step: float = 0.5
    beta: float = 1.0

    def check(self) -> None:
        check_number(self.lam, "lam", low=0.0, strict=True)
        check_count(self.inner, "inner", low=1)
        check_number(self.step, "step", low=0.0, strict=True)
        check_number(self.beta, "beta", low=0.0, strict=True)

    def train(self, training: Steps) -> Tensor:
        w = own = training.start()
        times = max(1, training.local_steps // self.inner)
        for _ in range(training.rounds):
            local = w
            for _ in range(times):
                own = self._theta(training, local)
                local = local - self.step * (local - own)
            w = (1.0 - self.beta) * w + self.beta * training.mean(local)
        return own

    def _theta(self, training: Steps, w: Tensor) -> Tensor:
        theta, batch = w, training.batch()
        for _ in range(self.inner):
            rate = training.rate
            theta = theta - rate * (training.gradient(theta, batch) + self.lam * (theta - w))
        return theta


@dataclass(eq=False, repr=False)
class PerFedAvg(Method):
    """A start from which one step of a node's own goes far.

    Fallah, Mokhtari, Ozdaglar, "Personalized Federated Learning with Theoretical Guarantees: A
    Model-Agnostic Meta-Learning Approach", NeurIPS 2020, Algorithm 1: local steps
    w - rate (I - inner H(w)) g(w - inner g(w)), with g on one batch and the outer gradient on
    another. The Hessian is left out (Per-FedAvg (FO)) or taken as a difference of gradients along
    the outer one (Per-FedAvg (HF)).

    Parameters
    ----------
    inner : float
        Step size of the personal step (the paper's alpha).
    hessian : bool
    finetune : float
        Share of the gradients at the end that each node takes by itself, by steps of size inner.

    Examples
    --------
    >>> PerFedAvg(inner=0.1)
    PerFedAvg(inner=0.1)
    """

    inner: float = 0.05
    _: KW_ONLY
    hessian: bool = False
    finetune: float = 0.05

    def check(self) -> None:
        check_number(self.inner, "inner", low=0.0, strict=True)
        _share(self.finetune, "finetune")

    def train(self, training: Steps) -> Tensor:
        w = training.start()
        each = 4 if self.hessian else 2
        times = max(1, training.local_steps // each)
        for _ in range(round(training.rounds * (1.0 - self.finetune))):
            local = w
            for _ in range(times):
                local = self._step(training, local)
            w = training.mean(local)
        while training.taken < training.budget:
            w = w - self.inner * training.gradient(w)
        return w

    def _step(self, training: Steps, w: Tensor) -> Tensor:
        rate = training.rate
        outer = training.gradient(w - self.inner * training.gradient(w))
        if self.hessian:
            batch, delta = training.batch(), 1e-3
            ahead = training.gradient(w + delta * outer, batch)
            behind = training.gradient(w - delta * outer, batch)
            outer = outer - self.inner * (ahead - behind) / (2 * delta)
        return w - rate * outer


@dataclass(eq=False, repr=False)
class APFL(Method):
    """A mixture of the server's network and one's own.

    Deng, Kamani, Mahdavi, "Adaptive Personalized Federated Learning", 2020, Algorithm 1: a step of
    w on L_i(w), then one of v on L_i(mix v + (1 - mix) w); with `adaptive` the share moves along
    its own gradient (Eq. (10)).

    Parameters
    ----------
    mix : float
        Share of the own network, the paper's alpha.
    adaptive : bool

    Examples
    --------
    >>> APFL(mix=0.75)
    APFL(mix=0.75)
    """

    mix: float = 0.5
    _: KW_ONLY
    adaptive: bool = False

    def check(self) -> None:
        _share(self.mix, "mix")

    def train(self, training: Steps) -> Tensor:
        w = own = training.start()
        mix = torch.full((training.n_nodes, 1), float(self.mix), dtype=w.dtype)
        for _ in range(training.rounds):
            for _ in range(max(1, training.local_steps // 2)):
                rate = training.rate
                after = w - rate * training.gradient(w)
                gradient = training.gradient(mix * own + (1.0 - mix) * w)
                if self.adaptive:
                    slope = ((own - w) * gradient).sum(dim=1, keepdim=True)
                    mix, own = (mix - rate * slope).clamp(0.0, 1.0), own - rate * mix * gradient
                else:
                    own = own - rate * mix * gradient
                w = after
            w = training.mean(w)
        return mix * own + (1.0 - mix) * w


@dataclass(eq=False, repr=False)
class FedPer(Method):
    """A common body below a personal last layer, trained together.

    Arivazhagan et al., "Federated Learning with Personalization Layers", 2019, Algorithms 1, 2:
    local steps on both; the server takes the mean of the bodies.

    Examples
    --------
    >>> FedPer()
    FedPer()
    """

    def train(self, training: Steps) -> Tensor:
        w = training.start()
        head = training.head().to(w.dtype)
        on = head == 0
        for _ in range(training.rounds):
            w = self._local(training, w, head)
            common = w.clone()
            common[:, on] = training.mean(w[:, on])
            w = common
        return w

    def _local(self, training: Steps, w: Tensor, head: Tensor) -> Tensor:
        return training.descend(w, training.local_steps)


@dataclass(eq=False, repr=False)
class FedRep(FedPer):
    """A common body below a personal last layer, first the one, then the other.

    Collins et al., "Exploiting Shared Representations for Personalized Federated Learning", ICML
    2021, Algorithm 1: steps of the last layer at the body received, then steps of the body, of
    which the server takes the mean.

    Parameters
    ----------
    of_head : float
        Share of the local steps for the last layer.

    Examples
    --------
    >>> FedRep(of_head=0.5)
    FedRep()
    """

    of_head: float = 0.5

    def check(self) -> None:
        _share(self.of_head, "of_head")

    def _local(self, training: Steps, w: Tensor, head: Tensor) -> Tensor:
        first = round(training.local_steps * self.of_head)
        w = training.descend(w, first, only=head)
        return training.descend(w, training.local_steps - first, only=1.0 - head)


@dataclass(eq=False, repr=False)
class FedAMP(Method):
    """A server that gives every node its own mean, in which similar nodes weigh more.

    Huang et al., "Personalized Cross-Silo Federated Learning on Non-IID Data", AAAI 2021,
    Algorithm 1: u_i = sum_j xi_ij w_j with xi_ij = step A'(||w_i - w_j||^2) for j other than i and
    xi_ii = 1 - sum_j xi_ij (Eqs. (3), (4)), A(d) = 1 - exp(-d / sigma); then local steps on
    L_i(w) + lam / 2 ||w - u_i||^2 (Eq. (5), with lam for lambda / step) from the node's w. A step
    too large for weights >= 0 is made as large as it may be.

    Parameters
    ----------
    lam : float
    step : float
        The paper's alpha_k; `inf`: as large as it may be.
    sigma : float or "median"
        Unit of squared distances; "median": of all pairs of the first round.

    Examples
    --------
    >>> FedAMP(lam=0.5)
    FedAMP(lam=0.5)
    """

    lam: float = 0.1
    _: KW_ONLY
    step: float = float("inf")
    sigma: float | str = "median"

    def check(self) -> None:
        check_number(self.lam, "lam", low=0.0)
        if not self.step > 0:
            raise ValueError(f"step must be > 0; got {self.step}.")
        if self.sigma != "median":
            check_number(self.sigma, "sigma", low=0.0, strict=True)

    def train(self, training: Steps) -> Tensor:
        w = training.start()
        sigma = None if self.sigma == "median" else float(self.sigma)
        for k in range(training.rounds):
            if k:  # all are alike before
                apart = _squared_distances(w)
                if sigma is None:
                    upper = torch.triu_indices(len(w), len(w), 1)
                    sigma = max(float(apart[upper[0], upper[1]].median()), 1e-12)
                training.by_server(w.shape[1])
                centre = self._weights(apart, sigma) @ w
            else:
                centre = w
            w = training.descend(w, training.local_steps, _towards(centre, self.lam))
        return w

    def _weights(self, apart: Tensor, sigma: float) -> Tensor:
        slope = torch.exp(-apart / sigma) / sigma
        slope.fill_diagonal_(0.0)
        most = float(slope.sum(dim=1).max())
        xi = slope * (min(self.step, 1.0 / most) if most > 0 else 0.0)
        return xi + torch.diag(1.0 - xi.sum(dim=1))


def _squared_distances(w: Tensor) -> Tensor:
    gram = w @ w.T
    size = torch.diagonal(gram)
    return (size[:, None] + size - 2 * gram).clamp(min=0.0)

"""Personal networks beside that of a server: Ditto, pFedMe, Per-FedAvg, APFL."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

from nefele._checks import check_count, check_number
from nefele._torch.base import Tensor, torch
from nefele.networks.baselines.methods import Method, check_share, towards
from nefele.networks.steps import Steps


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
            own = training.descend(own, rest, towards(centre, self.lam))
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
        check_share(self.finetune, "finetune")

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
        check_share(self.mix, "mix")

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

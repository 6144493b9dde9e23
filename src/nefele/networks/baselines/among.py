"""Personal parts and personal means: FedPer, FedRep, FedAMP."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

from nefele._checks import check_number
from nefele._torch.base import Tensor, torch
from nefele.networks.baselines.methods import Method, check_share, towards
from nefele.networks.steps import Steps


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
        check_share(self.of_head, "of_head")

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
            w = training.descend(w, training.local_steps, towards(centre, self.lam))
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

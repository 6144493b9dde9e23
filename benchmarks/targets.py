"""The targets: what is asked, and which figure of a run answers."""

from __future__ import annotations

from typing import NamedTuple


class Target(NamedTuple):
    key: str
    what: str
    bound: float
    least: bool = True  # at least the bound; otherwise at most

    @property
    def asked(self) -> str:
        return f"{'>=' if self.least else '<='} {self.bound:g}"

    def met(self, value: float) -> bool:
        return value >= self.bound if self.least else value <= self.bound


TARGETS = (
    Target("a node", "a, 1e-6: times faster than node by node", 1000),
    Target("a clarabel", "a, 1e-6: times faster than Clarabel", 10),
    Target("b node", "b, 1e-6: times faster than node by node", 250),
    Target("b clarabel", "b, 1e-6: times faster than Clarabel", 200),
    Target("c scs", "c, 1e-4: times faster than SCS", 1000),
    Target("c fine", "c: time to 1e-6 over time to 1e-4", 3, False),
    Target("d printed", "d, 1e-6: times faster than Algorithm 1 as printed, same kernels", 3),
    Target("f clarabel", "f, 1e-6: times faster than Clarabel", 6),
    Target("tv1 prox_tv", "TV denoising, d = 1, error 1e-4: times faster than prox_tv", 1),
    Target("tv1 cut pursuit", "TV denoising, d = 1, error 1e-4: times faster than cut pursuit", 1),
    Target("tv3 cut pursuit", "TV denoising, d = 3, error 1e-4: times faster than cut pursuit", 5),
    Target("quadratic", "1M nodes, quadratic penalty, 1e-8: compiled iterations", 80, False),
    Target("e 1e-3", "e, l2, 1e-3: compiled iterations", 400, False),
    Target("e 1e-4", "e, l2, 1e-4: compiled iterations", 800, False),
    Target("kernel", "e: bandwidth of the kernel, % of triad", 70),
    Target("exponent", "exponent of the iteration's time, 10k to 1M nodes", 1.05, False),
    Target("path", "c: 50 lams over one cold solve at the middle lam", 10, False),
    Target("prox 10 5", "logistic prox, 10 rows, d = 5: times faster than L-BFGS per node", 50),
    Target("prox 50 10", "logistic prox, 50 rows, d = 10: times faster than L-BFGS per node", 50),
    Target("logistic 30", "logistic, grid 30 x 30, 1e-6: times faster than Clarabel", 5),
    Target("logistic 100", "logistic, grid 100 x 100, 1e-6: times faster than Clarabel", 5),
    Target("counts 30", "Poisson, grid 30 x 30, 1e-6: times faster than Clarabel", 5),
    Target("counts 100", "Poisson, grid 100 x 100, 1e-6: times faster than Clarabel", 5),
    Target("classes 30", "multinomial, grid 30 x 30, 1e-6: times faster than Clarabel", 5),
    Target("classes 100", "multinomial, grid 100 x 100, 1e-6: times faster than Clarabel", 5),
    Target("memory", "1M nodes: peak memory, GB", 3, False),
    Target("sites 20 direct", "20 sites, direct: p50 of a round, ms", 10, False),
    Target("sites 20 relayed", "20 sites, relayed: p50 of a round, ms", 20, False),
    Target("sites nvflare", "5 sites, direct: times faster than NVFlare's p2p", 10),
    Target("sites p2pfl", "5 sites, direct: times faster than p2pfl", 100),
)

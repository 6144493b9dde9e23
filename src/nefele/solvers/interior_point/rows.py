"""Kinks of the losses in an interior-point method: one cone t_r >= |x_r^T w - y_r| for each.

See `kinks` for which rows and entries these are.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nefele._checks import Array
from nefele._systems.forest import unrolled
from nefele.solvers.interior_point.cones import Cones
from nefele.solvers.interior_point.kinks import Source


class RowCones(Cones):
    """All kinks together, with v = X w - y and u their part of the gradient.

    They start at w, where x^T z is `level` in each cone.
    """

    name = "rows"

    def __init__(self, sources: Sequence[Source], w: Array, level: float) -> None:
        self.sources = list(sources)
        s = np.concatenate([source.s for source in sources])
        soft = np.concatenate([source.soft for source in sources])
        self.y = np.concatenate([source.y for source in sources])[:, None]
        ends = np.cumsum([len(source.s) for source in sources])
        self._places = [slice(b - len(x.s), b) for b, x in zip(ends, sources, strict=True)]
        self.dims = unrolled(1, len(s))
        v = self.off_labels(w)
        self.shape = v.shape
        self._begin(s, soft, v, np.zeros_like(v), level * len(s))

    def off_labels(self, w: Array) -> Array:
        """X w - y, shape (n_cones, 1)."""
        return self.change(w) - self.y

    def to_nodes(self, values: Array) -> Array:
        """X^T values over each node, shape (n_nodes, d)."""
        flat = values.ravel()
        if len(self.sources) == 1:
            return self.sources[0].to_nodes(flat)
        first, *others = zip(self.sources, self._places, strict=True)
        out = first[0].to_nodes(flat[first[1]])
        for source, place in others:
            out = out + source.to_nodes(flat[place])
        return out

    def gram(self, w: Array) -> Array:
        """Scale the cones to the present point; returns X^T C X, shape (n_nodes, d, d)."""
        give = self.scale().ravel()
        first, *others = zip(self.sources, self._places, strict=True)
        out = first[0].gram(give[first[1]])
        for source, place in others:
            out = out + source.gram(give[place])
        return out

    def change(self, dw: Array) -> Array:
        """X dw, shape (n_cones, 1)."""
        found = [source.predict(dw) for source in self.sources]
        return (found[0] if len(found) == 1 else np.concatenate(found))[:, None]

    def give(self, change: Array) -> Array:
        """C X dw, shape (n_cones, 1)."""
        return self._C[:, 0] * change

    def residual(self, w: Array) -> float:
        """Fenchel-Young residuals at w."""
        v, u = self.off_labels(w)[:, 0], self.u[:, 0]
        width, size = self.soft * self.s, np.abs(v)
        round_ = v * v / (2 * np.where(self.soft > 0, self.soft, 1.0))
        value = np.where(size < width, round_, self.s * (size - width / 2))
        return float((value + self.soft * u * u / 2 - u * v).sum())

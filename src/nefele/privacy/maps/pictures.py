"""Pictures of the feature maps; they need matplotlib."""

from __future__ import annotations

from typing import Any

import numpy as np

from nefele._checks import Array, as_float_array
from nefele._draw.drawing import BLUE, ORANGE, new_axes
from nefele.privacy.maps.attribute import is_numeric
from nefele.privacy.maps.mondrian import KAnonymous

_MARKS = ("o", "s", "^", "D", "v")


def plot_removed(
    X: Any, Z: Any, attribute: Any, ax: Any = None, names: tuple[str, str] = ("first", "second")
) -> Any:
    """The rows before and after a map, by their private attribute.

    The arrow is the direction in which the features and the attribute vary together: the map should
    leave nothing of it.

    Parameters
    ----------
    X, Z : arrays of shape (n_rows, 2)
        Two features before and after.
    attribute : array of shape (n_rows,)
        Numbers, or two to five classes.
    ax : pair of matplotlib Axes, optional
    names : pair of str
        Of the features.

    Returns
    -------
    array of two matplotlib Axes

    Examples
    --------
    >>> import matplotlib; matplotlib.use("agg")
    >>> X = np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 1.0]])
    >>> axes = plot_removed(X, X * [0.0, 1.0], [0.0, 1.0, 2.0])
    >>> [ax.get_title() for ax in axes]
    ['before', 'after the map']
    """
    pair = _pair(ax)
    secret = np.asarray(attribute)
    for one, rows, title in zip(pair, (X, Z), ("before", "after the map"), strict=True):
        at = as_float_array(rows, "rows", 2)
        if at.shape != (len(secret), 2):
            raise ValueError(f"rows must have shape ({len(secret)}, 2); got {at.shape}.")
        _scatter(one, at, secret)
        _arrow(one, at, secret)
        one.set_title(title)
        one.set_xlabel(f"{names[0]} feature" if names[0] == "first" else names[0])
        one.set_ylabel(f"{names[1]} feature" if names[1] == "second" else names[1])
    for limits, bounds in (("xlim", pair[0].get_xlim()), ("ylim", pair[0].get_ylim())):
        pair[1].set(**{limits: bounds})
    return pair


def plot_cells(model: KAnonymous, X: Any, ax: Any = None) -> Any:
    """One feature against what k-anonymity makes of it: constant on cells of at least k rows.

    Parameters
    ----------
    model : KAnonymous
        Fitted to rows with one feature.
    X : array of shape (n_rows, 1)
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import matplotlib; matplotlib.use("agg")
    >>> X = np.arange(10.0)[:, None]
    >>> plot_cells(KAnonymous(k=5).fit(X), X).get_title()
    'k = 5: 2 cells'
    """
    from nefele._draw.drawing import axes

    ax = axes(ax)
    rows = as_float_array(X, "X", 2)
    if rows.shape[1] != 1:
        raise ValueError(f"X must have one feature for this picture; got {rows.shape[1]}.")
    order = np.argsort(rows[:, 0], kind="stable")
    x, z = rows[order, 0], np.asarray(model.transform(rows), dtype=float)[order, 0]
    cells = model.cells(rows)[order]
    for edge in np.flatnonzero(np.diff(cells)):
        ax.axvline((x[edge] + x[edge + 1]) / 2, color="0.8", linewidth=0.8)
    ax.plot(x, x, color="0.6", linewidth=1, linestyle=(0, (4, 2)), label="as it is")
    for cell in np.unique(cells):
        on = cells == cell
        ax.plot(x[on], z[on], color=BLUE, linewidth=2.2)
    ax.scatter(x, z, color=ORANGE, s=12, zorder=3, label="rows")
    ax.set_title(f"k = {model.k}: {model.n_cells_} cells")
    ax.set_xlabel("feature")
    ax.set_ylabel("what others get")
    ax.legend(frameon=False)
    return ax


def _pair(ax: Any) -> Any:
    if ax is None:
        return new_axes(1, 2, layout="constrained", figsize=(8.0, 3.6))
    if len(ax) != 2:
        raise ValueError(f"ax must be two matplotlib Axes; got {len(ax)}.")
    return ax


def _scatter(ax: Any, at: Array, secret: Any) -> None:
    if is_numeric(secret):
        ax.scatter(*at.T, c=secret.astype(float), cmap="cividis", s=14)
        return
    from nefele._draw.drawing import GROUPS

    for j, label in enumerate(np.unique(secret)):
        on = secret == label
        style = {"marker": _MARKS[j % 5], "color": GROUPS[j % 6], "s": 14}
        ax.scatter(*at[on].T, label=str(label), **style)
    ax.legend(frameon=False)


def _arrow(ax: Any, at: Array, secret: Any) -> None:
    """From the mean along the covariance of rows and attribute, as long as it says."""
    if is_numeric(secret):
        number = secret.astype(float)
    else:
        number = np.unique(secret, return_inverse=True)[1].astype(float)
    spread = float(number.std()) or 1.0
    way = 2 * ((at - at.mean(axis=0)).T @ (number - number.mean())) / (len(at) * spread)
    if np.hypot(*way) > 1e-6 * max(float(at.std()), 1e-300):
        start = at.mean(axis=0)
        style = {"arrowstyle": "-|>", "color": ORANGE, "linewidth": 2.2}
        ax.annotate("", xy=start + way, xytext=start, arrowprops=style)

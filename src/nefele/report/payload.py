"""What the page's script reads: a view as one JSON object of small size."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from nefele._checks import Array
from nefele.report import sample
from nefele.report.encode import number, pack, pack_table
from nefele.report.layout import place
from nefele.report.tracks import SINGLE, SMALL, Tracks, follow
from nefele.report.view import View

Ints = NDArray[np.int64]

_MOST_COEF = 330_000  # coefficients along the path, 0.9 MB of text
_MOST_TABLE = 40_000  # coefficients at one alpha for the table
_MOST_COLUMNS = 40  # parameters in the table
_SAME = 1e-9  # relative difference up to which two errors are equal


def payload(view: View) -> dict[str, Any]:
    """Everything the script needs, arrays packed, at most 2,000 nodes."""
    n, K = len(view.nodes), len(view.alphas)
    start = starting_place(view)
    tracks = follow(np.asarray(view.clusters, dtype=np.int64), start)
    gain = _gain(view)
    kept = sample.pick(tracks.number[start], gain[start], sample.most_nodes(K))
    return {
        "start": start,
        "places": {
            "used": view.chosen,
            "best prediction": view.best,
            "clearest clusters": view.clearest,
        },
        "metric": str(view.metric),
        "alphas": [number(a) for a in view.alphas],
        "gaps": [number(g) for g in view.gaps],
        "error": _error_curve(view),
        "se": [number(v) for v in view.cv_se],
        "byRows": view.held_out is not None,
        "crossValidated": bool(np.isfinite(view.cv_error).any()),
        "lines": [[str(name), number(v)] for name, v in _baselines(view)],
        "tol": number(view.tol),
        "history": [[int(s.iteration), number(s.objective), number(s.gap)] for s in view.history],
        "total": n,
        "totalEdges": len(view.edges),
        "centre": bool(view.centre),
        "outcome": _outcome(gain),
        **_nodes(view, kept),
        **_picture(view, kept),
        **_clusters(tracks, kept),
        **_parameters(view, kept, start),
    }


def starting_place(view: View) -> int:
    """Where the slider stands at first: the alpha used, else the best, else the first."""
    return next((k for k in (view.chosen, view.best, view.clearest) if k >= 0), 0)


def _gain(view: View) -> Array:
    own, ours = np.asarray(view.own_error), np.asarray(view.node_error)
    with np.errstate(invalid="ignore"):
        gain = own - ours
        gain[np.abs(gain) <= _SAME * np.abs(own)] = 0.0
    return np.where(np.isfinite(gain), gain, np.nan)


def _outcome(gain: Array) -> list[list[int]]:
    """Nodes that gain, lose, stay the same, and cannot be judged, at each alpha."""
    parts = (gain > 0, gain < 0, gain == 0, np.isnan(gain))
    return np.column_stack([part.sum(axis=1) for part in parts]).tolist()


def _error_curve(view: View) -> list[float | None]:
    """Cross-validated error, or the mean over held-out rows where there is none."""
    curve = np.asarray(view.cv_error, dtype=np.float64)
    if not np.isfinite(curve).any():
        curve = np.array([_mean(view, errors) for errors in view.node_error])
    return [number(v) for v in curve]


def _baselines(view: View) -> list[tuple[str, float]]:
    """Own data only and one model, judged on the same rows and in the same way as the curve."""
    if np.isfinite(view.cv_error).any():
        errors = (view.cv_own, view.cv_pooled)
    else:
        errors = (_mean(view, view.own_error), _mean(view, view.pooled_error))
    return list(zip(("own data only", "one model"), errors, strict=True))


def _mean(view: View, errors: Array) -> float:
    """Mean over all held-out rows, as in the headline; over the nodes where none are counted."""
    errors = np.asarray(errors, dtype=np.float64)
    weight = np.ones(len(errors)) if view.held_out is None else np.asarray(view.held_out)
    known = np.isfinite(errors) & (weight > 0)
    return float(np.average(errors[known], weights=weight[known])) if known.any() else np.nan


def is_ours(name: str) -> bool:
    """Whether a score is that of the coupled models."""
    return "nefele" in str(name).lower() or "coupled" in str(name).lower()


def _nodes(view: View, kept: Ints) -> dict[str, Any]:
    errors = np.asarray(view.node_error, dtype=np.float64)[:, kept]
    return {
        "ids": [str(view.nodes[i]) for i in kept],
        "rows": [int(v) for v in np.asarray(view.rows)[kept]],
        "own": pack(np.asarray(view.own_error)[kept], "f8"),
        "pooled": pack(np.asarray(view.pooled_error)[kept], "f8"),
        "nodeError": pack_table(errors.T),
    }


def _picture(view: View, kept: Ints) -> dict[str, Any]:
    n = len(view.nodes)
    all_edges = np.asarray(view.edges, dtype=np.int64).reshape(-1, 2)
    edges, weights = sample.shown_edges(kept, all_edges, np.asarray(view.weights), n)
    edges, weights = sample.fewer_edges(edges, weights)
    positions = None if view.positions is None else np.asarray(view.positions)[kept]
    places = place(len(kept), edges, positions, view.geographic)
    heaviest = float(weights.max(initial=0.0))
    even = not heaviest > 0 or bool(np.ptp(weights) <= 1e-9 * heaviest)
    return {
        "xy": pack(np.rint(places.xy * 65_535), "u2"),
        "box": [round(side, 6) for side in places.box],
        "globe": places.globe,
        "placed": positions is not None,
        "edges": pack(edges, "u2"),
        "weights": None if even else pack(np.rint(255 * np.sqrt(weights / heaviest)), "u1"),
    }


def _clusters(tracks: Tracks, kept: Ints) -> dict[str, Any]:
    single = (tracks.mark == SINGLE).sum(axis=1)
    small = [
        len(np.unique(row[m == SMALL])) for row, m in zip(tracks.number, tracks.mark, strict=True)
    ]
    return {
        "counts": tracks.counts.tolist(),
        "single": single.tolist(),
        "small": small,
        "legend": [tracks.legend(k) for k in range(len(tracks.counts))],
        "number": pack(np.minimum(tracks.number[:, kept], 65_535), "u2"),
        "mark": pack(tracks.mark[:, kept], "u1"),
    }


def _parameters(view: View, kept: Ints, start: int) -> dict[str, Any]:
    """Parameters along the path: all of them, or those that differ most between the nodes."""
    coef = np.asarray(view.coef, dtype=np.float64)
    coef = np.where(np.isfinite(coef), coef, np.nan)
    K, _, p = coef.shape
    spread = _spread(coef[start])
    if not (spread > 0).any():
        spread = _spread(coef[-1])
    order = np.lexsort((np.arange(p), -spread))
    room = max(2, _MOST_COEF // (K * len(kept)))
    along = np.sort(order[:room])
    listed = np.sort(order[: max(1, min(_MOST_COLUMNS, _MOST_TABLE // len(kept)))])
    main, share = first_component(coef)
    first = [int(np.flatnonzero(along == j)[0]) for j in order[:2]]
    return {
        "parameters": [str(name) for name in view.parameters],
        "along": along.tolist(),
        "axes": sorted(first),
        "coef": pack_table(coef[:, kept][:, :, along].transpose(2, 0, 1).reshape(len(along), -1)),
        "listed": listed.tolist(),
        "coefUsed": None if room >= p else pack_table(coef[start][kept][:, listed].T),
        "main": pack_table(main[:, kept].reshape(1, -1)) if p > 1 else None,
        "mainShare": number(share),
    }


def _spread(coef: Array) -> Array:
    known = np.isfinite(coef)
    count = np.maximum(known.sum(axis=0), 1)
    filled = np.where(known, coef, 0.0)
    scale = np.maximum(np.abs(filled).max(axis=0, initial=0.0), 1e-300)
    filled = filled / scale
    mean = filled.sum(axis=0) / count
    spread = np.sqrt((np.where(known, filled - mean, 0.0) ** 2).sum(axis=0) / count)
    # what is rounding only does not differ
    return np.where(spread > 1e-9, spread * scale, 0.0)


def first_component(coef: Array) -> tuple[Array, float]:
    """First principal component of the standardised parameters along the path, shape (K, n).

    Of coefficients of shape (K, n, p); with the share of the variance that it carries.

    Examples
    --------
    >>> line = np.array([[[0.0, 0.0], [1.0, 2.0]]])
    >>> values, share = first_component(line)
    >>> np.round(values, 6).tolist(), round(share, 6)
    ([[-1.414214, 1.414214]], 1.0)
    """
    K, n, p = coef.shape
    flat = coef.reshape(-1, p)
    spread = _spread(flat)
    known = np.isfinite(flat)
    mean = np.where(known, flat, 0.0).sum(axis=0) / np.maximum(known.sum(axis=0), 1)
    unit = np.where(spread > 0, spread, np.inf)
    scaled = np.where(known, (flat - mean) / unit, 0.0)
    values, vectors = np.linalg.eigh(scaled.T @ scaled)
    axis = vectors[:, -1]
    axis = axis * (-1.0 if axis[np.abs(axis).argmax()] < 0 else 1.0)
    main = np.where(known.all(axis=1), scaled @ axis, np.nan)
    total = float(values.sum())
    return main.reshape(K, n), float(values[-1]) / total if total > 0 else float("nan")

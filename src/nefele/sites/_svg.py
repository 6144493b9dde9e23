"""Small pictures for the pages about sites, as text: bars, curves, a network.

All are 360 wide, so that their letters have a readable size on a phone.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from nefele.sites._html import text

Points = Sequence[tuple[float, float]]
Marks = Sequence[tuple[float, str]]

_WIDE = 360
_LEFT, _RIGHT, _TOP, _HIGH = 46.0, 350.0, 20.0, 190.0  # of the plane of a curve
_LONG = 18  # letters of a name


def short(value: float) -> str:
    """Three digits that count.

    Examples
    --------
    >>> short(0.00123456), short(float("nan"))
    ('0.00123', 'unknown')
    """
    return f"{value:.3g}" if math.isfinite(value) else "unknown"


def bars(groups: Mapping[str, Mapping[str, float | None]], ours: str) -> str:
    """Horizontal bars in groups, each with its number; those called `ours` stand out.

    Examples
    --------
    >>> bars({"here": {"a": 1.0, "b": None}}, "a").count("<rect")
    1
    """
    known = [v for group in groups.values() for v in group.values() if v is not None]
    top, y, found = max(known, default=0.0) or 1.0, 0.0, []
    for title, group in groups.items():
        found.append(f'<text class="strong" x="0" y="{y + 12:.0f}">{text(title)}</text>')
        y += 20
        for name, value in group.items():
            wide = 0.0 if value is None else 190 * max(value, 0.0) / top
            label = "unknown" if value is None else short(value)
            found.append(f'<text x="92" y="{y + 11:.0f}" text-anchor="end">{text(name)}</text>')
            if value is not None:
                kind = "bar ours" if name == ours else "bar"
                found.append(
                    f'<rect class="{kind}" x="100" y="{y:.0f}" width="{wide:.1f}" height="14"/>'
                )
            strong = ' class="strong"' if name == ours else ""
            found.append(f'<text{strong} x="{106 + wide:.1f}" y="{y + 11:.0f}">{label}</text>')
            y += 19
        y += 8
    return _picture(found, y, "Errors at held-out rows as bars; the table has the same numbers.")


def curves(
    series: Mapping[str, Points],
    labels: tuple[str, str],
    *,
    logs: tuple[bool, bool] = (False, False),
    limit: tuple[float, str] | None = None,
    marks: Marks = (),
) -> str:
    """Curves over a plane, with dots where a curve has few points.

    Parameters
    ----------
    series : dict of name to list of (x, y)
    labels : (x, y)
    logs : (x, y)
        Which axes are logarithmic; there only positive numbers are drawn.
    limit : (y, words), optional
        A dashed line across.
    marks : list of (x, words)
        Dashed lines upwards.

    Examples
    --------
    >>> picture = curves({"": [(1, 0.1), (2, 0.01)]}, ("round", "gap"), logs=(False, True))
    >>> picture.count("<polyline"), picture.count("<circle")
    (1, 2)
    """
    drawn = {name: [p for p in points if _fits(p, logs)] for name, points in series.items()}
    xs = [x for points in drawn.values() for x, _ in points]
    ys = [y for points in drawn.values() for _, y in points]
    if not xs:
        return ""
    xs += [x for x, _ in marks]
    if limit is not None and (limit[0] > 0 or not logs[1]):
        ys.append(limit[0])
    across, up = _Axis(xs, logs[0], _LEFT, _RIGHT), _Axis(ys, logs[1], _HIGH, _TOP)
    found = [*_axes(across, up, labels)]
    if limit is not None and (limit[0] > 0 or not logs[1]):
        y = up(limit[0])
        found.append(f'<path class="limit" d="M{_LEFT} {y:.1f}H{_RIGHT}"/>')
        found.append(_words(_LEFT + 5, y - 4, limit[1], "start"))
    for k, (x, words) in enumerate(marks):
        at, high = across(x), _TOP + 10 + 14 * (k % 4)
        found.append(f'<path class="mark" d="M{at:.1f} {_TOP}V{_HIGH}"/>')
        left = at > (_LEFT + _RIGHT) / 2
        found.append(_words(at + (-4 if left else 4), high, words, "end" if left else "start"))
    for k, (name, points) in enumerate(drawn.items()):
        found += _curve(name, [(across(x), up(y)) for x, y in points], k)
    return _picture(found, 226, f"{labels[1]} against {labels[0]}")


def network(links: Mapping[tuple[str, str], float], words: Mapping[tuple[str, str], str]) -> str:
    """Names around a circle, joined by lines that are wider where the number is larger.

    Examples
    --------
    >>> network({("a", "b"): 5.0}, {("a", "b"): "5 B"}).count("<line")
    1
    """
    names = list(dict.fromkeys(name for pair in links for name in pair))
    turn = [2 * math.pi * k / max(len(names), 1) - math.pi / 2 for k in range(len(names))]
    at = {
        name: (180 + 118 * math.cos(a), 132 + 96 * math.sin(a))
        for name, a in zip(names, turn, strict=True)
    }
    most = max(links.values(), default=0.0) or 1.0
    found = []
    for pair, value in links.items():
        (x, y), (u, v) = at[pair[0]], at[pair[1]]
        found.append(
            f'<line class="link" x1="{x:.1f}" y1="{y:.1f}" x2="{u:.1f}" y2="{v:.1f}" '
            f'stroke-width="{1.5 + 7 * value / most:.1f}"/>'
        )
    for pair in links:
        (x, y), (u, v) = at[pair[0]], at[pair[1]]
        found.append(_words((x + u) / 2, (y + v) / 2 + 4, words[pair], "middle"))
    for name, (x, y) in at.items():
        found.append(f'<circle class="node" cx="{x:.1f}" cy="{y:.1f}" r="9"/>')
        below = y + 24 if y > 132 else y - 14
        found.append(_words(x, below, _cut(name), "middle", "strong halo"))
    return _picture(found, 264, "The sites and how much went along each link")


class _Axis:
    """From numbers to places on a picture."""

    def __init__(self, values: Sequence[float], log: bool, first: float, last: float) -> None:
        self.log, self.first, self.last = log, first, last
        low, high = (self._scale(v) for v in (min(values), max(values)))
        if log:
            low, high = math.floor(low + 1e-9), math.ceil(high - 1e-9)
        elif low > 0 and low < 0.5 * high:
            low = 0.0
        self.low, self.high = (low, high) if high > low else (low - 1.0, high + 1.0)

    def _scale(self, value: float) -> float:
        return math.log10(value) if self.log else float(value)

    def __call__(self, value: float) -> float:
        share = (self._scale(value) - self.low) / (self.high - self.low)
        return self.first + share * (self.last - self.first)

    def ticks(self) -> list[float]:
        """Some round numbers."""
        if self.log:
            step = max(1, math.ceil((self.high - self.low) / 6))
            return [10.0**k for k in range(int(self.low), int(self.high) + 1, step)]
        span = self.high - self.low
        unit = 10.0 ** math.floor(math.log10(span / 4))
        width = unit * next((k for k in (1, 2, 5, 10) if span / (k * unit) <= 5), 10)
        first = math.ceil(self.low / width - 1e-9)
        return [k * width for k in range(first, math.floor(self.high / width + 1e-9) + 1)]


def _axes(across: _Axis, up: _Axis, labels: tuple[str, str]) -> list[str]:
    found = []
    for value in up.ticks():
        y = up(value)
        found.append(f'<path class="grid" d="M{_LEFT} {y:.1f}H{_RIGHT}"/>')
        found.append(_words(_LEFT - 5, y + 4, f"{value:g}", "end", ""))
    for value in across.ticks():
        x = across(value)
        found.append(f'<path class="axis" d="M{x:.1f} {_HIGH}v4"/>')
        found.append(_words(x, _HIGH + 16, f"{value:g}", "middle", ""))
    found.append(f'<path class="axis" d="M{_LEFT} {_TOP}V{_HIGH}H{_RIGHT}"/>')
    found.append(_words((_LEFT + _RIGHT) / 2, _HIGH + 32, labels[0], "middle", ""))
    found.append(_words(0, 8, labels[1], "start", ""))
    return found


def _curve(name: str, points: Points, k: int) -> list[str]:
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    kind = f"c{k % 5}"
    found = [f'<polyline class="curve {kind}" points="{line}"/>']
    if len(points) <= 40 and k == 0:
        found += [f'<circle class="dot" cx="{x:.1f}" cy="{y:.1f}" r="2.6"/>' for x, y in points]
    if name:
        y = _HIGH - 8 - 14 * k
        found.append(_words(_RIGHT, y, _cut(name), "end", f"halo {kind}"))
    return found


def _fits(point: tuple[float, float], logs: tuple[bool, bool]) -> bool:
    pairs = zip(point, logs, strict=True)
    return all(math.isfinite(value) and (value > 0 or not log) for value, log in pairs)


def _words(x: float, y: float, words: str, anchor: str, kind: str = "halo") -> str:
    style = f' class="{kind}"' if kind else ""
    return f'<text{style} x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{text(words)}</text>'


def _cut(name: str) -> str:
    return name if len(name) <= _LONG else name[: _LONG - 1] + "…"


def _picture(parts: Sequence[str], high: float, title: str) -> str:
    return (
        f'<svg viewBox="0 0 {_WIDE} {high:.0f}" role="img" aria-label="{text(title)}">'
        f"{''.join(parts)}</svg>"
    )

"""Rules by name, as they stand in the file of a federation."""

from __future__ import annotations

from typing import Any

from nefele._checks import check_name
from nefele._words import short
from nefele.robust.rules import (
    CentredClip,
    Clip,
    FLTrust,
    GeometricMedian,
    Krum,
    Median,
    Rule,
    TrimmedMean,
)

# The rule, the kinds of its numbers, and how many of them must be there.
_RULES: dict[str, tuple[Any, tuple[type, ...], int]] = {
    "clip": (Clip, (float,), 1),
    "trimmed-mean": (TrimmedMean, (int,), 0),
    "median": (Median, (), 0),
    "geometric-median": (GeometricMedian, (), 0),
    "krum": (Krum, (int,), 0),
    "centred-clip": (CentredClip, (float, int), 1),
    "fltrust": (FLTrust, (), 0),
}


def rule_of(text: str) -> Rule:
    """A rule from its name and numbers, such as "median", "clip:0.5" or "krum:2".

    Examples
    --------
    >>> rule_of("centred-clip:0.5:3"), rule_of("trimmed-mean:2")
    (CentredClip(radius=0.5, steps=3), TrimmedMean(trim=2))
    >>> rule_of("clip")
    Traceback (most recent call last):
    ValueError: The guard "clip" needs a number; got 'clip'. Write it as "clip:NUMBER".
    """
    if not isinstance(text, str):
        raise ValueError(f'guard must be a name such as "median" or "clip:0.5"; got {short(text)}.')
    name, *numbers = text.split(":")
    make, kinds, least = _RULES[check_name(name, _RULES, "guard")]
    if not least <= len(numbers) <= len(kinds):
        wanted = "no number" if not kinds else "a number" if len(kinds) == 1 else "1 or 2 numbers"
        form = ":".join([name, *["NUMBER"] * max(least, min(len(numbers), len(kinds)))])
        raise ValueError(
            f'The guard "{name}" needs {wanted}; got {short(text)}. Write it as "{form}".'
        )
    try:
        values = [kind(number) for kind, number in zip(kinds, numbers, strict=False)]
    except ValueError:
        raise ValueError(
            f'Behind "{name}:" must stand numbers, {" and ".join(k.__name__ for k in kinds)}; got '
            f"{short(text)}."
        ) from None
    return make(*values)

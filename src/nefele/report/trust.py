"""The seven requirements for trustworthy AI, as rows of a table; the words come from the run."""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from nefele._words import at_most

MEASURED, PROVEN, OPEN = "measured", "proven", "not covered"
MARKS = (MEASURED, PROVEN, OPEN)
_HEADS = ("Requirement", "Measured", "Proven", "Not covered", "A person must")


@dataclass(frozen=True)
class Entry:
    """One statement and what stands behind it.

    Parameters
    ----------
    mark : {"measured", "proven", "not covered"}
    text : str
    number : float, optional
        What was measured or proven. Without a finite number a statement is "not covered"; one
        that is may have a number, such as an estimate.

    Examples
    --------
    >>> Entry("proven", "certified relative gap", 1e-7).mark
    'proven'
    >>> Entry("proven", "all is well")
    Traceback (most recent call last):
    ValueError: An entry that is proven must have a finite number; got None: 'all is well'.
    """

    mark: str
    text: str
    number: float | None = None

    def __post_init__(self) -> None:
        if self.mark not in MARKS:
            raise ValueError(f"mark must be one of {', '.join(MARKS)}; got {self.mark!r}.")
        known = self.number is not None and math.isfinite(self.number)
        if self.mark != OPEN and not known:
            raise ValueError(
                f"An entry that is {self.mark} must have a finite number; got {self.number}: "
                f"{self.text!r}."
            )

    def words(self) -> str:
        """The statement with its number; what is proven is a bound, and is rounded up.

        Examples
        --------
        >>> Entry("measured", "held-out rows", 120).words()
        'held-out rows: 120'
        >>> Entry("proven", "at most", 0.12345611).words()
        'at most: 0.123457'
        """
        if self.number is None:
            return self.text
        shown = at_most(self.number) if self.mark == PROVEN else f"{self.number:.6g}"
        return f"{self.text}: {shown}"


@dataclass(frozen=True)
class Requirement:
    """One of the seven requirements: what is known of it, and what a person must still do.

    Examples
    --------
    >>> row = Requirement("Transparency", (Entry("measured", "models", 4),), "Read them.")
    >>> row.of("measured"), row.of("proven")
    (['models: 4'], [])
    """

    name: str
    entries: Sequence[Entry]
    to_do: str

    def of(self, mark: str) -> list[str]:
        """The statements with this mark, in words."""
        return [entry.words() for entry in self.entries if entry.mark == mark]

    def plain(self) -> dict[str, Any]:
        """For JSON."""
        entries = [
            {"mark": entry.mark, "text": entry.text, "number": entry.number}
            for entry in self.entries
        ]
        return {"requirement": self.name, "entries": entries, "to_do": self.to_do}


def chapter(rows: Sequence[Requirement]) -> str:
    """The table as a section of the report; nothing where there are no rows."""
    if not rows:
        return ""
    words = _HEADS[1:]
    head = "".join(f'<th scope="col">{word}</th>' for word in _HEADS)
    body = "".join(
        f'<tr><th scope="row">{_text(row.name)}</th>'
        + "".join(
            f'<td data-head="{word}">{cell}</td>'  # a narrow page shows the head in each cell
            for word, cell in zip(words, _cells(row), strict=True)
        )
        + "</tr>"
        for row in rows
    )
    says = (
        "The seven requirements of the EU's guidelines for trustworthy AI. Nothing counts as "
        "measured or proven without a number; this table is no assessment by itself."
    )
    return (
        '<section class="page trust" aria-labelledby="trust-title"><h2 id="trust-title">'
        f'Seven requirements</h2><p class="says">{says}</p>'
        '<div class="scroll" tabindex="0" role="region" aria-labelledby="trust-title">'
        f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div></section>"
    )


def _cells(row: Requirement) -> list[str]:
    return [*(_items(row.of(mark)) for mark in MARKS), _text(row.to_do)]


def _items(words: list[str]) -> str:
    if not words:
        return "nothing"
    return "<ul>" + "".join(f"<li>{_text(word)}</li>" for word in words) + "</ul>"


def _text(value: str) -> str:
    return html.escape(value, quote=True)

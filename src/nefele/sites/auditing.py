"""What a site's run gave away, from the books that it kept."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

from nefele.runs.auditing import Audit
from nefele.sites.config import FILE

_LEARNT = {
    "parameters": (
        "parameters of your nodes at the border, in every round, without noise. From d + 1 rounds "
        "a neighbour can work out gradients of your losses; of a node with one row it is that row; "
        "a neighbour without rows ends with your models"
    ),
    "predictions": (
        "predictions at the agreed rows. A model that remembers its rows shows labels of those "
        "that lie near"
    ),
    "probabilities": (
        "probabilities at the agreed rows. A model that remembers its rows shows labels of those "
        "that lie near"
    ),
    "sums": (
        "sums over you and those below you: counts, errors, gradients, second derivatives. Who has "
        "no one below sends its own numbers"
    ),
    "masked": "masked shares: the sum over all neighbours, and nothing else, can be read",
    "dual": "flows of edges, which both ends know",
    "correction": "corrections of flows, to prove the gap",
    "keys": "public keys",
}


def is_site(folder: Path) -> bool:
    """Whether this is the folder of a site or of one of its runs."""
    inside = folder.name.startswith("run-") and (folder.parent / FILE).is_file()
    return (folder / FILE).is_file() or inside


def audit_site(folder: Path) -> Audit:
    """Audit a run of a site; given the site's folder, its newest finished one.

    A ValueError when no run is finished, or its files cannot be read.
    """
    run = _newest(folder) if (folder / FILE).is_file() else folder
    facts, rows = _read(run)
    sent = [row for row in rows if row["direction"] == "sent"]
    lines = []
    for row in sent:
        times, numbers = int(row["messages"]), int(row["numbers"])
        text = f"{times:,} messages with {numbers:,} numbers of {row['content']} to {row['peer']}."
        lines.append(("sent", text))
    if not sent:
        lines.append(("sent", "nothing."))
    contents = sorted({row["content"] for row in sent})
    promised = facts.get("privacy", "none")
    private = promised != "none"
    if private:
        text = (
            f"nothing of a single row beyond the agreed guarantee ({promised}): all that was sent "
            "was computed from noisy moments that were released once."
        )
        lines.append(("can be worked out", text))
    for content in () if private else contents:
        lines.append(("can be worked out", f"{_LEARNT.get(content, content)}."))
    single = facts.get("rows") == 1 and not private
    if single and "parameters" in contents:
        lines.append(("can be worked out", "you have one row: neighbours can know it exactly."))
    why = (
        "not measured here: it takes models without some of the rows, which all members would have "
        "to fit. Audit a run of nefele fit on rows like yours."
    )
    lines.append(("membership", why))
    found = {
        "kind": "site",
        "folder": str(run),
        "name": facts.get("name"),
        "sent": [
            {
                "to": row["peer"], "content": row["content"], "messages": int(row["messages"]),
                "numbers": int(row["numbers"]), "bytes": int(row["bytes"]),
            }
            for row in sent
        ],
        "worked_out": (
            {} if private else {content: _LEARNT.get(content, content) for content in contents}
        ),
        "membership": None,
        "guarantee": promised if private else None,
    }  # fmt: skip
    return Audit(lines, found)


def _newest(folder: Path) -> Path:
    runs = [path.parent for path in folder.glob("run-*/run.json")]
    if not runs:
        raise ValueError(
            f"The site in {str(folder)!r} must have a finished run; it has none. Start one by: "
            f"nefele site run {folder}"
        )
    return max(runs, key=lambda run: (run / "run.json").stat().st_mtime)


def _read(run: Path) -> tuple[dict[str, Any], list[dict[str, str]]]:
    """What run.json and ledger.csv hold."""
    try:
        facts = json.loads((run / "run.json").read_text(encoding="utf-8"))
        with (run / "ledger.csv").open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        for row in rows:
            _ = row["direction"], row["peer"], row["content"], int(row["bytes"])
            _ = int(row["messages"]), int(row["numbers"])
        return dict(facts), rows
    except (OSError, ValueError, KeyError, TypeError):
        raise ValueError(
            f"{str(run)!r} must be a finished run of a site, with run.json and ledger.csv as it "
            "wrote them; they are missing or damaged."
        ) from None

"""`nefele trust`: what a run shows of the seven requirements, and its model card."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from nefele.cli._common import Json, Quiet, RunArgument, check_file, input_errors, print_json, say


def trust(
    run: RunArgument,
    card: Annotated[
        Path | None, typer.Option(help="Write the model card: a .md or .json file.")
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """The seven requirements for trustworthy AI: what is measured, proven and not covered.

    Ends with exit code 1 when the fit of the run did not reach its tolerance.
    """
    from nefele.runs.folder import RunFolder, check_writable
    from nefele.runs.model_card import card_of, card_text, check_card, trust_of
    from nefele.sites.card import site_card
    from nefele.sites.trust import site_facts, site_requirements

    with input_errors():
        if card is not None:
            check_file(card, (".md", ".json"), "--card")
            check_writable(card.parent)
            check_card(card)
        facts = site_facts(run)
        if facts is not None:
            rows = site_requirements(run, facts)
            made = None if card is None else site_card(run, facts, rows)
        else:
            folder = RunFolder(run)
            facts, _, rows = trust_of(folder)
            made = None if card is None else card_of(folder)
        if card is not None and made is not None:
            text = card_text(made, card.suffix.lower().removeprefix("."))
            RunFolder(card.parent).write_text(card.name, text)
    if json:
        print_json(
            {
                "run": str(run),
                "trustworthy": facts["converged"],
                "card": card and str(card),
                "requirements": [row.plain() for row in rows],
            }
        )
    else:
        _print(rows)
        if card is not None and not quiet:
            say(f"Model card: {card}")
    if not facts["converged"]:
        say("Not trustworthy: the final fit did not reach its tolerance.", err=True)
        raise typer.Exit(1)


def _print(rows: list[Any]) -> None:
    """Each requirement with its statements, marked."""
    for row in rows:
        say(row.name)
        for entry in row.entries:
            say(f"  {entry.mark + ':':<12} {entry.words()}")
        say(f"  {'to do:':<12} {row.to_do}")

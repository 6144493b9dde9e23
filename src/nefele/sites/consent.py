"""What leaves a site, in plain words and as a limit that the program keeps.

Everything that a site says is an array of a known kind, to a known receiver, of a known size, at
most so many times. What is not in this list is not sent: the run stops instead.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from nefele._checks import Array
from nefele.sites.federation import Federation
from nefele.sites.introducing import NUMBERS
from nefele.sites.links import Network, network
from nefele.sites.nets import NetTerms

_SOLVES = 18  # linear systems of one certificate, at most
_STEPS = 500  # steps of each of them, at most
_BITS = 255  # counts of one step of an exact median
_SETTING_UP = 40  # sums before the rounds of a fit begin, at most
_NEWTON = 50  # steps to one model for all, at most


@dataclass(frozen=True)
class Item:
    """One kind of thing that leaves, to one receiver.

    Attributes
    ----------
    content : str
    to : str
    numbers : int
        In one message, at most.
    times : int
        Messages in one run, at most.
    words : str
        What they are.
    """

    content: str
    to: str
    numbers: int
    times: int
    words: str


class ConsentError(RuntimeError):
    """The program wants to say what was not agreed to."""


@dataclass(frozen=True, eq=False)
class Consent:
    """All that may leave a member in one run.

    Examples
    --------
    >>> from nefele.sites.example import coast
    >>> consent = consent_of(coast(), "oulu")
    >>> sorted({item.content for item in consent.items})
    ['correction', 'dual', 'parameters', 'sums']
    """

    federation: Federation
    name: str
    items: tuple[Item, ...]

    def text(self) -> str:
        """The list for a person who has to agree."""
        federation, name = self.federation, self.name
        lines = [
            f"{name} is a member of the federation {federation.name}: "
            f"{len(federation.members)} members, {len(federation.edges)} edges.",
            f"Agreed: {_agreed(federation)}.",
            "",
            f"What leaves {name} in one run:",
        ]
        for to in dict.fromkeys(item.to for item in self.items):
            lines.append(f"  to {to}:")
            lines += [f"    {item.words}: {_amount(item)}" for item in self.items if item.to == to]
        most = sum(item.numbers * item.times for item in self.items)
        lines += [
            f"  in all at most {most:,} numbers, {8 * most / 1e6:,.0f} MB; usually far fewer.",
            "",
            "What stays: all rows, all labels, names of files and columns, errors and their texts.",
            *_learnable(federation),
            "",
            f"Hash: {federation.hash}",
        ]
        return "\n".join(lines)


def _learnable(federation: Federation) -> list[str]:
    if federation.privacy.mechanism != "none":
        return [
            f"What others can learn: {_said(federation)} and sums are computed from noisy moments",
            "of your rows, made once. About single rows they tell hardly more than if others had",
            f"been in their place: {federation.privacy.text()}.",
            "How many rows each node has is not hidden.",
        ]
    return [
        f"What others can learn: {_said(federation)} and sums are computed from your rows",
        "without noise. Neighbours can infer from them what your rows look like on the whole,",
        "and from few rows even single ones. Take part only with members whom you trust that",
        "far.",
    ]


def _agreed(federation: Federation) -> str:
    alpha = federation.alpha if federation.alpha != "auto" else "chosen by cross-validation"
    features = ", ".join(
        f"{f.name} ({f.low:g} to {f.high:g}{' ' + f.unit if f.unit else ''})"
        for f in federation.features
    )
    again = "" if federation.absent == "wait" else ", and the others send all of this again"
    return (
        f"{federation.task} of {federation.target.name} by {features}; loss {federation.loss}, "
        f"penalty {federation.penalty}, alpha {alpha}, method {federation.method}, "
        f"{_until(federation)} {federation.tol:g}, at most {federation.rounds} rounds in a fit; a "
        f"member that is silent for {federation.absent_after:g} s: {federation.absent}{again}; "
        f"noise for privacy: {federation.privacy.text()}"
    )


def _said(federation: Federation) -> str:
    if federation.masked:
        return "sums of neighbours' parameters"
    return federation.method if federation.method == "predictions" else "parameters"


def _until(federation: Federation) -> str:
    guard = federation.guard and f"each node hears its neighbours by the guard {federation.guard}, "
    if federation.method == "predictions":
        return f"{guard or ''}local models of any kind, change of predictions at most"
    if federation.network is not None:
        return f"one network per node: {federation.network.text()}; no certificate, change at most"
    if federation.masked:
        return "masked sums over neighbours, no certificate, change of parameters at most"
    return f"{guard}no certificate, change of parameters at most" if guard else "certified gap"


def _amount(item: Item) -> str:
    return f"{item.numbers} number{'s' * (item.numbers != 1)}, at most {item.times:,} times"


def consent_of(
    federation: Federation, name: str, run: Network | None = None, n_shared: int = 0
) -> Consent:
    """What may leave a member, from the federation's file and the number of shared rows."""
    net = network(federation) if run is None else run
    if federation.method == "predictions":
        return Consent(federation, name, tuple(_of_predictions(net, name, n_shared)))
    if federation.network is not None:
        return Consent(federation, name, tuple(_of_networks(net, name, federation.network)))
    outputs = len(federation.target.classes or ())
    d = (len(federation.features) + 1) * (outputs if outputs > 2 else 1)
    automatic = federation.alpha == "auto"
    n_alphas = len(federation.alphas or ()) or federation.n_alphas
    fits = 2 + (federation.folds * n_alphas if automatic else 0)
    checks = _checks(federation.rounds, federation.check_every) * fits
    items = []
    for to, (nodes, edges) in net.borders(name).items():
        if federation.masked:
            items += _of_masks(net, name, to, d, fits)
            continue
        rows = f"parameters of {nodes} node{'s' * (nodes != 1)} at the border, in each round"
        times = fits * (federation.rounds + 2) + 3 * checks
        items.append(Item("parameters", to, nodes * d, times, rows))
        if federation.guard is not None:  # without a certificate
            continue
        words = "corrections of flows, to prove the gap"
        items.append(Item("correction", to, nodes * d, checks * _SOLVES * (_STEPS + 2), words))
        words = f"flows of {edges} edge{'s' * (edges != 1)}, to compare the copies"
        items.append(Item("dual", to, 2 * edges * d, checks, words))
    if federation.masked:
        return Consent(federation, name, tuple(items + _of_masked_sums(net, name, fits)))
    longest = max(d * d + d + 2, _BITS, 3 * d * net.n_components, n_alphas, 7)
    times = fits * _SETTING_UP + 4 * _NEWTON + 20 + checks * _SOLVES * (2 * _STEPS + 30)
    words = (
        "counts of rows, errors, losses, their gradients and second derivatives, steps of a "
        "linear system"
    )
    items += _of_sums(net, name, longest, times, words)
    return Consent(federation, name, tuple(items))


def _of_predictions(net: Network, name: str, n_shared: int) -> list[Item]:
    """What leaves with models of any kind."""
    federation = net.federation
    classes = len(federation.target.classes or ())
    content = "probabilities" if classes else "predictions"
    n_alphas = len(federation.alphas or ()) or federation.n_alphas
    tries = federation.folds if federation.alpha == "auto" else 0
    fits = 2 + tries * n_alphas
    items = []
    for to, (nodes, _) in net.borders(name).items():
        words = (
            f"{content} at the {n_shared} agreed rows of {nodes} node{'s' * (nodes != 1)}, in each "
            "round"
        )
        size = nodes * n_shared * max(classes, 1)
        items.append(Item(content, to, size, fits * (federation.rounds + 1), words))
    longest = max(len(federation.owner), n_alphas + 1, len(federation.features), 7)
    times = fits * federation.rounds + 4 * (tries + 2) + 20
    words = "counts of rows, errors, target values and their squares, largest changes"
    return items + _of_sums(net, name, longest, times, words)


def _of_networks(net: Network, name: str, terms: NetTerms) -> list[Item]:
    """What leaves with networks: all of their parameters, in each round of two fits."""
    federation, items = net.federation, []
    outputs = len(federation.target.classes or ()) or 1
    P = terms.n_parameters(len(federation.features), outputs)
    for to, (nodes, _) in net.borders(name).items():
        words = (
            f"all {P:,} parameters of the network of {nodes} node{'s' * (nodes != 1)} at the "
            f"border, in each round, as {terms.wire}"
        )
        items.append(Item("parameters", to, nodes * P, 2 * federation.rounds, words))
    longest = max(5, len(federation.features))
    words = "counts of rows, errors at held-out rows, marks of the start, largest changes"
    return items + _of_sums(net, name, longest, 40, words)


def _of_masks(net: Network, name: str, to: str, d: int, fits: int) -> list[Item]:
    """What leaves to a neighbour under masks."""
    federation = net.federation
    nodes = max(net.borders(name)[to][0], net.borders(to)[name][0])
    most = max(len(federation.neighbours(member.name)) for member in federation.members)
    words = f"masked shares of sums, of which {to} learns the sum over all neighbours only"
    keys = "your public key with your certificate, and those of your neighbours"
    return [
        Item("masked", to, 2 * nodes * d, fits * federation.rounds, words),
        Item("keys", to, most * NUMBERS, 2, keys),
    ]


def _of_masked_sums(net: Network, name: str, fits: int) -> list[Item]:
    """Sums beside masks: nothing from which a model could be worked out."""
    federation = net.federation
    n_alphas = len(federation.alphas or ()) or federation.n_alphas
    automatic = federation.alpha == "auto"
    changes = -(-federation.rounds // federation.check_every) + 1
    scales = 8 if federation.standardize == "sums" else 2
    longest = max(7, n_alphas if automatic else 0, len(federation.features) if scales > 2 else 0)
    words = [
        "counts of rows",
        "errors at held-out rows",
        "largest changes of parameters",
        "contraction factors",
    ]
    if federation.standardize == "sums":
        words.append("sums of features and their squares")
    if automatic:
        words.append("steepest losses")
    times = fits * changes + scales + 1 + (2 + (federation.alphas is None) if automatic else 0)
    return _of_sums(net, name, longest, times, ", ".join(words))


def _of_sums(net: Network, name: str, longest: int, times: int, what: str) -> list[Item]:
    """Sums go up and down the tree."""
    items, above = [], net.tree.parent[name]
    if above is not None:
        whose = "yours" if not net.tree.children[name] else "yours and of those below you"
        words = f"sums for all members, {whose}: {what}"
        items.append(Item("sums", above, longest, times, words))
    for child in net.tree.children[name]:
        items.append(Item("sums", child, longest, times, "sums over all members"))
    return items


def _checks(rounds: int, every: int) -> int:
    """How often a fit is certified at most."""
    count, due = 1, every
    while due < rounds:
        count, due = count + 1, due + max(every, due // 2)
    return count


class Guard:
    """Lets pass what was agreed to, and counts it.

    Examples
    --------
    >>> from nefele.sites.example import coast
    >>> guard = Guard(consent_of(coast(), "oulu"))
    >>> guard("parameters", "kemi", np.zeros((1, 3)))
    >>> guard("parameters", "kemi", np.zeros((50, 3)))
    Traceback (most recent call last):
    nefele.sites.consent.ConsentError: oulu must not send 150 numbers of parameters to kemi: at ...
    """

    def __init__(self, consent: Consent) -> None:
        self.name = consent.name
        self.items = {(item.content, item.to): item for item in consent.items}
        self.sent: Counter[tuple[str, str]] = Counter()

    def __call__(self, content: str, to: str, values: Array) -> None:
        """A `ConsentError` unless this may be sent."""
        item = self.items.get((content, to))
        if item is None:
            raise ConsentError(f"{self.name} must not send {content} to {to}: nobody agreed to it.")
        if np.size(values) > item.numbers:
            raise ConsentError(
                f"{self.name} must not send {np.size(values)} numbers of {content} to {to}: at "
                f"most {item.numbers} were agreed to."
            )
        self.sent[content, to] += 1
        if self.sent[content, to] > item.times:
            raise ConsentError(
                f"{self.name} must not send {content} to {to} more than {item.times} times, as "
                "agreed."
            )

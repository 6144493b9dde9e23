"""Strengths of the coupling for benchmarks/robust.py, chosen on other seeds than it judges by."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from nefele.runs.attacking import QUADRATIC, Scene, attacks, defences, play

GRIDS = {
    "generated": (0.005, 0.007, 0.01, 0.014, 0.02, 0.03),
    "weather": (0.01, 0.03, 0.1, 0.3, 1.0),
    "digits": (0.003, 0.01, 0.03, 0.1),
}
QUADRATICS = (0.01, 0.03, 0.1, 0.3)  # the quadratic penalty means another lam
HELD = 1.75  # error over the attack-free one that a strength may allow, some way below the limit
PLAIN = {"l2": "l2", "huber": "huber", QUADRATIC: "none (quadratic)"}

Make = Callable[[int], Scene]


def choose(name: str, make: Make, seeds: range) -> dict[str, float]:
    """A strength for each penalty, from networks that are not judged.

    For a norm: of the strengths at which no attack but the backdoor makes the honest error more
    than `HELD` times what it is without an attack, on any of the seeds, the one with the least
    error without; when there is none, the one with the least such factor. For the quadratic
    penalty, which none of the attacks spares: the one with the least error without.
    """
    scenes = [make(seed) for seed in seeds]
    found = {}
    for penalty in PLAIN:
        grid = QUADRATICS if penalty == QUADRATIC else GRIDS[name]
        order = sorted(grid, key=partial(_clean, scenes, penalty))
        if penalty == QUADRATIC:
            found[penalty] = order[0]
            continue
        worst = {}
        for lam in order:
            worst[lam] = _worst(scenes, penalty, lam)
            print(name, penalty, f"lam {lam:g}: error times {worst[lam]:.3g} at worst", flush=True)
            if worst[lam] <= HELD:
                break
        found[penalty] = min(worst, key=lambda lam: worst[lam])
    return found


def at(scene: Scene, penalty: str, lam: float) -> Scene:
    """The scene with another strength of one penalty."""
    return replace(scene, lam={**scene.lam, penalty: lam})


def _clean(scenes: list[Scene], penalty: str, lam: float) -> float:
    return sum(_error(at(scene, penalty, lam), penalty, "nobody") for scene in scenes)


def _error(scene: Scene, penalty: str, attack: str) -> float:
    return play(scene, attacks(scene)[attack], defences()[PLAIN[penalty]]).error


def _worst(scenes: list[Scene], penalty: str, lam: float) -> float:
    """The largest error over the attack-free one; no more is tried once it is too large."""
    worst = 1.0
    for scene in (at(scene, penalty, lam) for scene in scenes):
        clean = _error(scene, penalty, "nobody")
        for attack in attacks(scene):
            if attack not in ("nobody", "backdoor"):
                worst = max(worst, _error(scene, penalty, attack) / clean)
            if worst > 2 * HELD:
                return worst
    return worst

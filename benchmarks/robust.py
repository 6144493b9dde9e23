"""Attacks against defences, on generated networks, weather stations and digits.

Strengths are chosen on some seeds and judged on others. `make bench-robust` writes
benchmarks/results/robust.md. Weather data are found as elsewhere: by NEFELE_FMI_DATA, or beside the
repository; without them that table is left out and said to be.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
from dataclasses import replace
from pathlib import Path

for name in ("OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"

import robust_scenes as scenes  # noqa: E402
from robust_strengths import HELD, choose  # noqa: E402

from nefele.experiments.weather import WHERE, find_weather  # noqa: E402
from nefele.runs.attacking import WORSE, defences, table  # noqa: E402

HERE = Path(__file__).parent
KEPT = HERE.parent / ".bench" / "robust"
CHOSEN_ON = {"generated": range(100, 105), "weather": range(100, 102), "digits": range(100, 102)}
JUDGED_ON = {"generated": range(200, 205), "weather": range(200, 205), "digits": range(200, 203)}
SCENES = tuple(JUDGED_ON)
TITLES = {
    "generated": "SBM of 40 nodes in two clusters, 8 captured; mean squared error of parameters",
    "weather": "weather stations, a fifth of them captured; mean squared error at held-out days",
    "digits": "threes against eights at 20 nodes, 4 captured; share of wrong held-out rows",
}


def scene_of(name: str, seed: int):
    """A scene by name; None when its data are not here."""
    if name == "weather":
        path = find_weather()
        return None if path is None else scenes.weather(path, seed)
    return getattr(scenes, name)(seed)


def strengths(name: str, anew: bool) -> dict[str, float]:
    """The strengths of a scene's penalties: chosen now, or before unless `anew`."""
    path = KEPT / f"{name}-strengths.json"
    if anew or not path.exists():
        found = choose(name, lambda seed: scene_of(name, seed), CHOSEN_ON[name])
        path.write_text(json.dumps(found))
    return json.loads(path.read_text())


def measure(name: str, seeds: range, against: list[str] | None = None) -> None:
    """Play all pairs, and keep what came out after each seed.

    With `against` only these defences are measured again; the others keep their records.
    """
    KEPT.mkdir(parents=True, exist_ok=True)
    path, found = KEPT / f"{name}.json", []
    if against is not None and path.exists():
        found = [r for r in json.loads(path.read_text()) if r["defence"] not in against]
    for seed in seeds:
        scene = scene_of(name, seed)
        if scene is None:
            print(f"{name}: no data, see {WHERE}")
            return
        scene = replace(scene, lam=strengths(name, anew=against is None and seed == seeds[0]))
        for attack, defence, outcome, success in table(scene, against=against):
            record = {
                "seed": seed,
                "attack": attack,
                "defence": defence,
                "error": outcome.error,
                "used": outcome.used if outcome.used == outcome.used else None,
                "success": success,
                "seconds": outcome.seconds,
            }
            found.append(record)
            print(name, *record.values(), flush=True)
        path.write_text(json.dumps(found))


def cell(values: list[float]) -> str:
    """Mean and standard deviation."""
    middle = statistics.fmean(values)
    return f"{middle:.3g} ± {statistics.pstdev(values):.1g}"


def of(records: list[dict], attack: str, defence: str, what: str) -> list[float]:
    return [
        r[what]
        for r in records
        if r["attack"] == attack and r["defence"] == defence and r[what] is not None
    ]


def grid(records: list[dict], what: str, shown) -> list[str]:
    """A table of attacks by defences."""
    names = [name for name in defences() if of(records, "nobody", name, "error")]
    attacks = list(dict.fromkeys(r["attack"] for r in records))
    lines = [f"| attack | {' | '.join(names)} |", "|---" * (len(names) + 1) + "|"]
    for attack in attacks:
        values = (of(records, attack, name, what) for name in names)
        lines.append(f"| {attack} | {' | '.join(shown(v) if v else '-' for v in values)} |")
    return lines


def factors(records: list[dict], defence: str) -> dict[str, float]:
    """For each attack, the largest error over the attack-free one of the same seed."""
    own = [r for r in records if r["defence"] == defence]
    clean = {r["seed"]: r["error"] for r in own if r["attack"] == "nobody"}
    found: dict[str, float] = {}
    for r in own:
        if r["attack"] != "nobody":
            factor = r["error"] / clean[r["seed"]] if clean[r["seed"]] else float("inf")
            found[r["attack"]] = max(found.get(r["attack"], 0.0), factor)
    return found


def holds(records: list[dict]) -> list[str]:
    """Which defence holds where: the attacks that more than double the error in some seed.

    A backdoor leaves errors at clean rows nearly as they are; what it wins stands beside them.
    """
    lines = ["Which defence holds where, in all seeds:", "", "| defence | holds against | largest "
             "error over the attack-free one | fails against | backdoor wins at most |",
             "|---|---|---|---|---|"]  # fmt: skip
    for name in defences():
        found = factors(records, name)
        if not found:
            continue
        bad = [attack for attack, factor in found.items() if not factor <= WORSE]
        worst = max(found, key=lambda a: found[a])
        won = max(of(records, "backdoor", name, "success"), default=float("nan"))
        lines.append(
            f"| {name} | {len(found) - len(bad)} of {len(found)} | {found[worst]:.3g} ({worst}) | "
            f"{', '.join(bad) or '-'} | {won:.0%} |"
        )
    return lines


def _strengths_line(name: str) -> str:
    path = KEPT / f"{name}-strengths.json"
    if not path.exists():
        return "Strengths: not chosen here."
    found = ", ".join(f"{key} {lam:g}" for key, lam in json.loads(path.read_text()).items())
    tuned, judged = CHOSEN_ON[name], JUDGED_ON[name]
    return (
        f"Strengths lam: {found}. Chosen on the seeds {tuned[0]} to {tuned[-1]}, judged on the "
        f"seeds {judged[0]} to {judged[-1]}."
    )


def chapter(name: str) -> list[str]:
    """The tables of one scene."""
    path = KEPT / f"{name}.json"
    if not path.exists():
        return [f"## {name.capitalize()}", "", "Not measured here.", ""]
    records = json.loads(path.read_text())
    seeds = len({r["seed"] for r in records})
    kept = [r for r in records if r["used"] is not None]
    most = max((r["used"] for r in kept), default=float("nan"))
    clean = {d: of(records, "nobody", d, "error") for d in defences()}
    cost = ", ".join(f"{d} {statistics.fmean(v):.3g}" for d, v in clean.items() if v)
    return [
        f"## {name.capitalize()}",
        "",
        f"{TITLES[name]}. {seeds} seed{'s' * (seeds != 1)}, mean ± standard deviation.",
        "",
        _strengths_line(name),
        "",
        "Error of the honest nodes:",
        "",
        *grid(records, "error", cell),
        "",
        "Success of the attack (share of stamped rows won for the backdoor; for the others, the "
        "share of seeds in which the error is more than twice that without an attack):",
        "",
        *grid(records, "success", lambda v: f"{statistics.fmean(v):.2f}"),
        "",
        *holds(records),
        "",
        f"Error when nobody attacks, the cost of a defence: {cost}.",
        f"Largest deviation over its certified bound: {most:.3f}.",
        "",
    ]


def write() -> None:
    """All that has been measured, as a page."""
    head = [
        "# Attacks against defences",
        "",
        "Written by `make bench-robust`. Norm penalties run Algorithm 1, the others FedRelax with "
        "guarded messages; poisoned rows without a guard are solved directly. Runs with messages "
        "end after a fixed number of rounds, 100 or 120 of Algorithm 1 and 30 or 40 of FedRelax, "
        "at rest or not. A node that needs "
        "to know how many neighbours are bad takes a quarter. The last feature of the generated "
        "network, one of the weather's and two pixels of the digits are zero in all clean rows: "
        "there the backdoor's trigger is.",
        "",
        "How the strengths were set: on other seeds than those of the tables, by one rule "
        "everywhere. For l2 and huber: of the strengths at which no attack but the backdoor made "
        f"the honest error more than {HELD:g} times what it is without an attack, the one with "
        "the least error without; when there is none, the one with the least such factor. For the "
        "quadratic penalty, and so for all guards and robust losses: the one with the least error "
        "without an attack. Seeds of the generated network are new networks. Those of the weather "
        "are other splits and other captured stations of the same days, those of the digits other "
        "parts of the same images: less fresh. Robust losses bend less than the squared one, and "
        "their strength is smaller in the same ratio.",
        "",
    ]
    lines = head + [line for name in SCENES for line in chapter(name)]
    (HERE / "results" / "robust.md").write_text("\n".join(lines), encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, help="only so many of each scene")
    parser.add_argument("--only", choices=SCENES)
    parser.add_argument("--against", help="only these defences, comma between them")
    parser.add_argument("--write", action="store_true", help="only write what was measured before")
    given = parser.parse_args()
    if not given.write:
        for name in [given.only] if given.only else SCENES:
            seeds = JUDGED_ON[name][: given.seeds]
            measure(name, seeds, given.against and given.against.split(","))
    write()


if __name__ == "__main__":
    main()

"""The table of benchmarks/grouped.py, its ratios, and whether the claims hold."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from statistics import geometric_mean, median

from grouped_ours import NAME
from grouped_sources import REGRESSION, Dataset
from report import line

MIXED, BAYES = "MixedLM slope", "Bayes slope"
NEAR = 1.01  # error over that of the best other
LONGEST = 3.0  # time over that of the mixed model, on each dataset


class Table:
    """What every method gave on every dataset."""

    def __init__(self, methods: Iterable[str]) -> None:
        self.order = list(methods)
        self.datasets = dict[str, dict]()
        self.records = dict[str, dict[str, list[dict]]]()

    def begin(self, data: Dataset) -> None:
        self.datasets[data.name] = {
            "rows": len(data.table),
            "groups": data.n_groups,
            "task": data.task,
            "places": data.coords is not None,
            "source": data.source,
        }
        self.records[data.name] = {}

    def add(self, name: str, method: str, records: list[dict]) -> None:
        self.records[name][method] = sorted(records, key=lambda record: record["seed"])

    # -- numbers --------------------------------------------------------------------------------

    def error(self, name: str, method: str) -> float | None:
        """Mean over the splits; None when the method failed on one of them, or did not run."""
        return self._mean(name, method, "error")

    def seconds(self, name: str, method: str) -> float | None:
        """Mean over the splits, as `error`."""
        return self._mean(name, method, "seconds")

    def best_other(self, name: str) -> str | None:
        """The method with the least error, ours apart."""
        errors = {m: self.error(name, m) for m in self.records[name] if m != NAME}
        known = {m: e for m, e in errors.items() if e is not None}
        return min(known, key=known.__getitem__) if known else None

    def error_ratio(self, name: str) -> float | None:
        """Our error over that of the best other."""
        best = self.best_other(name)
        return None if best is None else _ratio(self.error(name, NAME), self.error(name, best))

    def time_ratio(self, name: str) -> float | None:
        """Our time over that of a mixed model with a random slope."""
        return _ratio(self.seconds(name, NAME), self.seconds(name, self.mixed(name)))

    def mixed(self, name: str) -> str:
        """The mixed model with a random slope for the task."""
        return MIXED if self.datasets[name]["task"] == REGRESSION else BAYES

    def methods(self) -> list[str]:
        """All that ran on some dataset, in order."""
        return [m for m in self.order if any(m in ran for ran in self.records.values())]

    def _mean(self, name: str, method: str, key: str) -> float | None:
        records = self.records[name].get(method, [])
        if not records or any(record["failed"] for record in records):
            return None
        return sum(record[key] for record in records) / len(records)

    # -- claims ---------------------------------------------------------------------------------

    def verdicts(self) -> list[tuple[str, str, bool]]:
        """Each claim with what was measured and whether it holds."""
        ran = [name for name in self.datasets if NAME in self.records[name]]
        if not ran:
            return []
        errors = {name: ratio for name in ran if (ratio := self.error_ratio(name)) is not None}
        times = {name: ratio for name in ran if (ratio := self.time_ratio(name)) is not None}
        failed = [name for name in ran if self.error(name, NAME) is None]
        out = []
        if errors:
            worse = [f"{n} {r:.3f}" for n, r in errors.items() if r > NEAR]
            worse += [f"{n} failed" for n in failed]
            told = f"{len(errors) - len(worse) + len(failed)} of {len(ran)}" + _but(worse)
            out.append(("within 1% of the best other or better on every dataset", told, not worse))
            mean = geometric_mean(errors.values())
            told = f"geometric mean of the ratios {mean:.3f}"
            out.append(("better on average", told, mean < 1.0))
        if times:
            middle = median(times.values())
            told = f"median of the ratios {middle:.2f}"
            out.append(("time at most that of the mixed model with a slope", told, middle <= 1.0))
            long = [f"{n} {r:.1f}" for n, r in times.items() if r > LONGEST]
            told = f"{len(times) - len(long)} of {len(times)}" + _but(long)
            lone = [name for name in ran if name not in times]
            told += f"; nothing to compare with on {', '.join(lone)}" if lone else ""
            out.append(("time at most 3 times that on each", told, not long))
        return out

    # -- words ----------------------------------------------------------------------------------

    def progress(self, name: str, method: str) -> str:
        records = self.records[name][method]
        error = self.error(name, method)
        if error is None:
            told = f"failed: {next(r['failed'] for r in records if r['failed'])}"
        else:
            told = f"{error:.5g}  {self.seconds(name, method):.3g} s"
        warned = sum(bool(record["warned"]) for record in records)
        return f"{name:14} {method:18} {told}" + (f"  ({warned} warned)" if warned else "")

    def markdown(self, head: str) -> str:
        parts = [head, *self._claims(), *self._ratios()]
        parts += self._grid("Error", self._error_cell)
        parts += [
            "Mean squared error, log loss of classes, mean Poisson deviance of counts; a mean over "
            "the splits. Bold: the best other. \\*: warned of not converging on some split.",
            "",
        ]
        parts += self._grid("CPU seconds of a fit", self._time_cell)
        return "\n".join([*parts, *self._failures(), *self._sources()])

    def _claims(self) -> list[str]:
        rows = [
            (claim, told, "holds" if met else "does not hold")
            for claim, told, met in self.verdicts()
        ]
        return _table("Claims", ("claim", "measured", ""), rows) if rows else []

    def _ratios(self) -> list[str]:
        rows = []
        for name in self.datasets:
            best, error, time = self.best_other(name), self.error_ratio(name), self.time_ratio(name)
            if NAME in self.records[name]:
                rows.append((name, best or "-", _number(error, ".3f"), _number(time, ".2f")))
        head = ("data", "best other", "our error over its", "our time over a mixed model's")
        return _table("Ratios", head, rows) if rows else []

    def _grid(self, title: str, cell) -> list[str]:
        methods = self.methods()
        rows = [
            [name, f"{facts['rows']:,}, {facts['groups']:,}", *(cell(name, m) for m in methods)]
            for name, facts in self.datasets.items()
        ]
        return _table(title, ("data", "rows, groups", *methods), rows)

    def _error_cell(self, name: str, method: str) -> str:
        if method not in self.records[name]:
            return "-"
        error = self.error(name, method)
        if error is None:
            return "failed"
        star = "\\*" if any(r["warned"] for r in self.records[name][method]) else ""
        text = f"{error:.4g}{star}"
        return f"**{text}**" if method == self.best_other(name) else text

    def _time_cell(self, name: str, method: str) -> str:
        return _number(self.seconds(name, method), ".2g")

    def _failures(self) -> list[str]:
        rows = []
        for name, methods in self.records.items():
            for method, records in methods.items():
                for kind in ("failed", "warned"):
                    seeds = [str(record["seed"]) for record in records if record[kind]]
                    if seeds:
                        said = next(record[kind] for record in records if record[kind])
                        rows.append((name, method, ", ".join(seeds), kind, _cell(said)))
        return _table("Failures", ("data", "method", "splits", "", "says"), rows) if rows else []

    def _sources(self) -> list[str]:
        rows = [(name, facts["task"], facts["source"]) for name, facts in self.datasets.items()]
        return _table("Data", ("data", "task", "source; licence"), rows)

    def write(self, target: Path, head: str) -> None:
        """The table as Markdown, and everything measured as JSON."""
        target.parent.mkdir(parents=True, exist_ok=True)
        target.with_suffix(".md").write_text(self.markdown(head).rstrip() + "\n", encoding="utf-8")
        facts = {
            "head": head,
            "claims": [
                {"claim": claim, "measured": told, "holds": met}
                for claim, told, met in self.verdicts()
            ],
            "datasets": {
                name: facts
                | {
                    "best_other": self.best_other(name),
                    "error_ratio": self.error_ratio(name),
                    "time_ratio": self.time_ratio(name),
                }
                for name, facts in self.datasets.items()
            },
            "records": self.records,
        }
        target.with_suffix(".json").write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")


def _ratio(ours: float | None, theirs: float | None) -> float | None:
    return None if ours is None or theirs is None else ours / theirs


def _number(value: float | None, form: str) -> str:
    return "-" if value is None else format(value, form)


def _but(names: list[str]) -> str:
    return f"; not {', '.join(names)}" if names else ""


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _table(title: str, columns, rows) -> list[str]:
    head = [f"## {title}", "", line(columns), line(["---"] * len(columns))]
    return ["", *head, *(line(row) for row in rows), ""]

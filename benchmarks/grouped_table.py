"""The table of benchmarks/grouped.py, its ratios, and whether the claims hold."""

from __future__ import annotations

import json
import time
from pathlib import Path
from statistics import median

from grouped_data import REGRESSION, Dataset
from grouped_ours import NAME
from report import _line, _processor

CLOCKS = {True: "MixedLM slope", False: "Bayes slope"}  # by whether it is a regression
NEAR = 1.01  # error over the best other's
LONGEST = 3.0  # time over the clock's


class Table:
    """What every method gave on every dataset."""

    def __init__(self) -> None:
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

    def error(self, name: str, method: str) -> float | None:
        """Mean over the splits; None when the method failed on one of them."""
        return self._mean(name, method, "error")

    def seconds(self, name: str, method: str) -> float | None:
        return self._mean(name, method, "seconds")

    def best_other(self, name: str) -> str | None:
        """The method with the least error, ours apart."""
        others = {m: e for m in self.records[name] if m != NAME and (e := self.error(name, m))}
        return min(others, key=others.__getitem__) if others else None

    def error_ratio(self, name: str) -> float | None:
        """Our error over the best other's."""
        best, ours = self.best_other(name), self.error(name, NAME)
        return None if best is None or ours is None else ours / self.error(name, best)

    def time_ratio(self, name: str) -> float | None:
        """Our time over that of a mixed model with a random slope."""
        ours = self.seconds(name, NAME)
        theirs = self.seconds(name, self.clock(name))
        return None if ours is None or theirs is None else ours / theirs

    def clock(self, name: str) -> str:
        return CLOCKS[self.datasets[name]["task"] == REGRESSION]

    def _mean(self, name: str, method: str, key: str) -> float | None:
        records = self.records[name].get(method)
        values = [record[key] for record in records or []]
        if not values or any(record["failed"] for record in records):
            return None
        return sum(values) / len(values)

    # -- words ----------------------------------------------------------------------------------

    def line(self, name: str, method: str) -> str:
        """Progress."""
        error, seconds = self.error(name, method), self.seconds(name, method)
        why = next((r["failed"] for r in self.records[name][method] if r["failed"]), "")
        told = f"{error:.5g}  {seconds:.3g} s" if error is not None else f"failed: {why}"
        warned = sum(bool(record["warned"]) for record in self.records[name][method])
        return f"{name:14} {method:18} {told}" + (f"  ({warned} warned)" if warned else "")

    def methods(self) -> list[str]:
        return list(dict.fromkeys(m for found in self.records.values() for m in found))

    def markdown(self) -> str:
        lines = [f"Measured on {time.strftime('%Y-%m-%d')}: {_processor()}, one thread.", ""]
        for title, cell in (("Error", self._error_cell), ("CPU seconds of a fit", self._time_cell)):
            head = ["data", "rows, groups", *self.methods()]
            lines += [f"## {title}", "", _line(head), _line(["---"] * len(head))]
            for name, facts in self.datasets.items():
                size = f"{facts['rows']:,}, {facts['groups']:,}"
                lines.append(_line([name, size, *(cell(name, m) for m in self.methods())]))
            lines.append("")
        return "\n".join(lines)

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
        seconds = self.seconds(name, method) if method in self.records[name] else None
        return "-" if seconds is None else f"{seconds:.2g}"

    def write(self, target: Path) -> None:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.with_suffix(".md").write_text(self.markdown() + "\n", encoding="utf-8")
        facts = {"datasets": self.datasets, "records": self.records}
        target.with_suffix(".json").write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")


_ = median, NEAR, LONGEST

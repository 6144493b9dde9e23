"""A run with a guarantee: after one noisy release it sees nothing of the rows any more."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from nefele._checks import Array
from nefele.estimators import GTVRegressor, GTVRegressorCV
from nefele.estimators.design import Design, Rows
from nefele.estimators.fitting import make_design, run_fold
from nefele.estimators.private import check, released
from nefele.estimators.rehearsal import rehearse
from nefele.estimators.released import Released
from nefele.privacy import Bounds, Price, Privacy, Spent, price
from nefele.report.pictures import Picture
from nefele.runs.config import RunConfig
from nefele.runs.folder import RunFolder
from nefele.runs.inputs import Inputs
from nefele.runs.pipeline import Arrays, Pipeline, Stages, Tick, model_options
from nefele.runs.promise import budget_of, promise_of
from nefele.runs.split import folds_inside, hold_out
from nefele.runs.wording import PICTURES, PRICE
from nefele.selection import alpha_grid

_FOLDS = 2  # each more costs noise
_HELD = -1  # the part that is held out for the comparison


class PrivatePipeline(Pipeline):
    """The stages of a run over noisy moments of each node and part.

    Parts (two folds, and what is held out) share no rows: all together cost one release. It is
    kept as a stage of its own, so that a run that is gone on with releases nothing again; where
    it was charged and not kept, it is charged again.
    """

    def __init__(self, config: RunConfig, inputs: Inputs) -> None:
        super().__init__(config, inputs)
        check(_promised(self.model, promise_of(config)), self.rows)
        self._raw: Rows = self.rows
        train, held = hold_out(inputs.ids, None, config.seed)
        self._part = np.zeros(len(inputs.y), dtype=np.int64)
        self._part[held] = _HELD
        if self.automatic:
            inside = folds_inside(inputs.ids[train], None, _FOLDS, config.seed)
            for k, (_, own) in enumerate(inside):
                self._part[train[own]] = k
            self.splits = list(range(len(inside)))
        rehearse(self.model, self._raw, self._part)  # what is wrong is said before a folder is made
        self.model.privacy = None

    def run(self, folder: RunFolder, tick: Tick) -> Stages:
        """Charge, release, and all stages after it."""
        found = folder.load_stage("released")
        if found is None:
            found = self._release()
            folder.save_stage("released", found)
        self.spent = Spent.from_dict(json.loads(str(found["spent"])))
        if self.spent.head is not None:  # an older copy of the account does not know of it
            budget_of(self.config).check_head(self.spent.head)
        box = promise_of(self.config).bounds.fixed(self._raw.X.shape[1], self.model._names())
        names, fold, count = found["names"], found["fold"], found["count"]
        self._shown = Released(names, fold, count, found["noise"], box, found["spread"])
        self.priced = _price(self.model, self.config, self._raw) if self.config.price else None
        del self._raw
        self.rows = self._shown.rows(np.ones(len(self._shown.fold), dtype=bool))
        self.train = np.arange(len(self.rows.y))
        self.model.group_level_ = []
        return replace(super().run(folder, tick), spent=self.spent)

    def _release(self) -> Arrays:
        model = _promised(self.model, promise_of(self.config, budget_of(self.config)))
        found = released(model, self._raw, self._part)
        model.privacy = None
        return {
            "names": found.names,
            "fold": found.fold,
            "count": found.count,
            "noise": found.noise,
            "spread": np.asarray(found.spread),
            "spent": np.array(json.dumps(model.privacy_.to_dict())),
        }

    @cached_property
    def _trained(self) -> Rows:
        return self._shown.rows(self._shown.fold != _HELD)

    def _grid(self) -> Arrays:
        design = make_design(self.model, self._trained)
        alphas = alpha_grid(design.problem, design.columns, n_alphas=self.config.n_alphas)
        if not self.automatic:
            alphas = np.unique(np.append(alphas, float(self.config.alpha)))[::-1]
        return {"alphas": np.array(alphas)}

    def _split(self, held: int, among: Any) -> tuple[Rows, Any]:
        """Rows of a training part and of a held-out one, and where each of them is."""
        fold = self._shown.fold
        train = self._shown.rows(among & (fold != held))
        test = self._shown.rows(fold == held, judged=True)
        places = np.arange(len(train.y) + len(test.y))
        return train.then(test), (places[: len(train.y)], places[len(train.y) :])

    def _fold(self, rows: Rows, split: Any, alphas: Array, name: str) -> Arrays:
        bank, places = self._split(split, self._shown.fold != _HELD)
        return super()._fold(bank, places, alphas, name)

    def _compare(self, alphas: Array) -> Arrays:
        bank, places = self._split(_HELD, np.ones(len(self._shown.fold), dtype=bool))
        told = self._told("held-out rows")
        return self._compared(run_fold(self.model, bank, places, alphas, told=told))

    def _proofs(self, final: Design) -> Arrays:
        found = super()._proofs(final)
        if self.priced is None:
            return found
        picture = Picture.drawn(self.priced.plot(), *PICTURES[PRICE])
        self.folder.write_bytes(f"pictures/{PRICE}", picture.data)
        words = ("what privacy costs", self.priced.text())
        return {
            **found,
            "pictures": np.append(found["pictures"], PRICE),
            "theory": np.vstack([found["theory"], np.array([words], dtype=str)]),
        }

    def _accounts(self) -> Iterable[tuple[str, Picture]]:
        return ()  # its rows stand for noisy moments

    def _path(self, alphas: Array, chosen: int) -> Arrays:
        self.model.privacy_ = self.spent  # saved with the model
        return super()._path(alphas, chosen)


def _price(model: Any, config: RunConfig, rows: Rows) -> Price:
    """Errors against epsilon, for the model of the run; from raw rows."""
    options = {**model_options(config), "node": None}
    kind: Any = GTVRegressorCV if config.alpha == "auto" else GTVRegressor
    if config.alpha == "auto":
        options["n_alphas"] = config.n_alphas
    else:
        options["alpha"] = float(config.alpha)
    one = kind(model.graph, privacy=promise_of(config), **options)
    asked = np.unique([0.3, 1.0, 3.0, 10.0, float(config.epsilon or 1.0)])
    bounds = Bounds(**{**(config.bounds or {}), "x": _by_place(config, model)})
    one.set_params(privacy=replace(one.privacy, bounds=bounds))
    return price(
        one, rows.X, rows.y, asked.tolist(), node_ids=rows.node_ids, random_state=config.seed
    )


def _by_place(config: RunConfig, model: Any) -> Any:
    """The bounds of features in the order of the rows, which have no names here."""
    x = (config.bounds or {})["x"]
    return [x[name] for name in model._names()] if isinstance(x, dict) else x


def _promised(model: Any, promise: Privacy) -> Any:
    model.privacy = promise
    return model

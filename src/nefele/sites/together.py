"""The programs of all sites in one process: for notebooks, and to know what a run must give."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from nefele._ids import describe
from nefele.estimators.design import Rows
from nefele.runtime.drivers import InProcess
from nefele.runtime.passing import Wrap, wrapped
from nefele.sites.federation import Federation
from nefele.sites.learning import Learner
from nefele.sites.learnt import Learnt
from nefele.sites.links import network
from nefele.sites.noisy import fresh_release
from nefele.sites.predicting import Predicted
from nefele.sites.programs import program_of


def learn_together(
    federation: Federation,
    rows: Mapping[str, Rows],
    gone: tuple[str, ...] = (),
    wrap: Wrap | None = None,
) -> dict[str, Learnt | Predicted]:
    """What all members would learn, without keys and messages: the same numbers, bit for bit.

    Parameters
    ----------
    federation : Federation
    rows : dict of member to Rows
        As `Site.rows` reads them.
    gone : tuple of str
        Members that do not take part.
    wrap : dict of member to callable, optional
        What changes a member's program, such as an attack of `nefele.robust`.

    Returns
    -------
    dict of member to Learnt
        With the method "networks" to `nefele.sites.predicting.Networked`.

    Examples
    --------
    >>> import numpy as np
    >>> from nefele.sites.example import coast, some_rows
    >>> federation = coast(alpha=0.3)
    >>> found = learn_together(federation, some_rows(federation))
    >>> found["oulu"].part.w1.shape, found["oulu"].fitted.gap <= federation.tol
    ((2, 3), True)
    """
    for name, own in rows.items():
        _check(federation, name, own)
    net = network(federation, frozenset(gone))
    if missing := [name for name in net.members if name not in rows]:
        raise ValueError(
            f"rows must have all members that take part; there are none of {', '.join(missing)}. "
            "A member may have no rows: give it arrays of length 0, or name it in gone."
        )
    programs = {}
    for name in net.members:
        noisy = fresh_release(federation, name, rows[name])
        learner = Learner(federation, name, rows[name], gone, noisy=noisy)
        programs[name] = program_of(learner, None, np.zeros((0, len(federation.features))))
    return InProcess(net.links, wrapped(programs, wrap)).run()


def _check(federation: Federation, name: str, rows: Rows) -> None:
    """A ValueError when rows are not of the federation's member and features."""
    own, width = federation.member(name).nodes, len(federation.features)
    if rows.X.ndim != 2 or rows.X.shape[1] != width:
        raise ValueError(
            f"X of {name} must have one column for each of the {width} feature(s); its shape is "
            f"{rows.X.shape}."
        )
    ids = np.asarray(rows.node_ids).astype(str)
    strange = ids[~np.isin(ids, own)]
    if len(strange):
        raise ValueError(
            f"node_ids of {name} must be its nodes, {describe(np.array(own))}; got "
            f"{describe(np.unique(strange))}."
        )

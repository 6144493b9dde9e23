"""The programs of all sites in one process: for notebooks, and to know what a run must give."""

from __future__ import annotations

from collections.abc import Mapping

from nefele.estimators.design import Rows
from nefele.runtime.drivers import InProcess
from nefele.sites.federation import Federation
from nefele.sites.learning import Learner, Learnt
from nefele.sites.links import network


def learn_together(
    federation: Federation, rows: Mapping[str, Rows], gone: tuple[str, ...] = ()
) -> dict[str, Learnt]:
    """What all members would learn, without keys and messages: the same numbers, bit for bit.

    Parameters
    ----------
    federation : Federation
    rows : dict of member to Rows
        As `Site.rows` reads them.
    gone : tuple of str
        Members that do not take part.

    Returns
    -------
    dict of member to Learnt

    Examples
    --------
    >>> import numpy as np
    >>> from nefele.sites.example import coast, some_rows
    >>> federation = coast(alpha=0.3)
    >>> found = learn_together(federation, some_rows(federation))
    >>> found["oulu"].part.w1.shape, found["oulu"].fitted.gap <= federation.tol
    ((2, 3), True)
    """
    net = network(federation, frozenset(gone))
    programs = {name: Learner(federation, name, rows[name], gone).run() for name in net.members}
    return InProcess(net.links, programs).run()

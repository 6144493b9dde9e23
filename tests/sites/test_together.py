"""Rows that do not fit are refused before anything is learnt."""

from dataclasses import replace

import numpy as np
import pytest

from nefele.sites import learn_together
from nefele.sites.config import SiteConfig
from nefele.sites.example import coast, some_rows
from nefele.sites.members import Member


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda rows: rows.pop("kemi"), "none of kemi"),
        (lambda rows: rows.update(vaasa=rows["kemi"]), 'No member "vaasa"'),
        (lambda rows: rows.update(kemi=rows["oulu"]), "node_ids of kemi must be its nodes"),
        (
            lambda rows: rows.update(kemi=replace(rows["kemi"], X=np.ones((12, 7)))),
            "X of kemi must have one column for each",
        ),
    ],
)
def test_rows_of_others(change, message):
    federation = coast(alpha=0.3)
    rows = some_rows(federation)
    change(rows)
    with pytest.raises(ValueError, match=message):
        learn_together(federation, rows)


def test_neighbours_of_a_member_with_a_folder_need_it_too(tmp_path):
    federation = coast()
    members = tuple(
        Member(m.name, m.nodes, kind="folder") if m.name == "inari" else m
        for m in federation.members
    )
    site = SiteConfig.from_dict({"name": "kemi"}, tmp_path)
    with pytest.raises(ValueError, match='shared folder of "inari"'):
        site.check(coast(members=members))

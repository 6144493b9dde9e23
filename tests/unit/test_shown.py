"""What a notebook shows of summaries, verdicts, components and explanations."""

import numpy as np
import pytest

import nefele
from nefele._words import Text


class Printer:
    """As IPython's: it is given text."""

    def __init__(self):
        self.shown = ""

    def text(self, text):
        self.shown += text


@pytest.fixture(scope="module")
def model():
    rng = np.random.default_rng(0)
    ids, X = np.repeat([f"<{k}>" for k in range(8)], 10), rng.normal(size=(80, 1))
    y = 2.0 * X[:, 0] + np.repeat(rng.normal(size=8), 10) + rng.normal(size=80)
    return nefele.GTVRegressorCV(features="linear").fit(X, y, node_ids=ids)


def test_summaries_are_shown_as_they_are_printed(model):
    for told in (model.summary(), model.best_estimator_.summary(), model.verdict_.text()):
        printer = Printer()
        told._repr_pretty_(printer, False)
        assert printer.shown == told and isinstance(told, Text)
    assert "\n" in model.summary() and model.summary() + "" == str(model.summary())


def test_short_tables_escape_what_users_named(model):
    found = nefele.explain(model, "<0>")
    html = found._repr_html_()
    assert "<0>" not in html and "rows of &lt;0&gt;" in html and "others" in html
    assert html.count("<tr>") == 8  # six nodes, the others, how it is known
    assert model.verdict_.text() in model.verdict_._repr_html_()
    assert "own data only" in model.verdict_._repr_html_()


def test_components_are_a_list(model):
    found = nefele.components_of(model)
    assert str(found).splitlines()[-1].startswith("intraclass correlation: 0.")
    assert "intraclass correlation" in found._repr_html_()

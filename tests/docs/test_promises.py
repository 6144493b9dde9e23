"""docs/promises.md names a test for each promise, and the tests are there."""

import re

import pytest

from tests.docs.pages import ROOT

LINES = (ROOT / "docs/promises.md").read_text(encoding="utf-8").splitlines()
ROWS = [line for line in LINES if line.startswith("| ") and not line.startswith("| Promise")]


@pytest.mark.parametrize("row", ROWS)
def test_the_test_of_a_promise_exists(row):
    _, promise, test, _ = row.split("|")
    file, _, name = test.strip().partition("::")
    assert promise.strip() and re.fullmatch(r"tests/\w+/test_\w+\.py", file)
    text = (ROOT / file).read_text(encoding="utf-8")
    assert f"def {name or 'test_'}" in text

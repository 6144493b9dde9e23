"""A run goes on with the rows it began with, or not at all; who stops it has not failed."""

from types import SimpleNamespace

import numpy as np
import pytest

from nefele.estimators.design import Rows
from nefele.sites.attempt import Attempt


def attempt(folder, y, run="1"):
    found = object.__new__(Attempt)
    found.site = SimpleNamespace(run_folder=folder / f"run-{run}", run_name=run)
    found.rows = Rows(np.ones((3, 1)), np.asarray(y), np.array(["a"] * 3), np.ones(3))
    return found


def test_other_rows_are_refused_though_the_folder_of_the_run_is_gone(tmp_path):
    attempt(tmp_path, [1.0, 2.0, 3.0])._check_rows()
    attempt(tmp_path, [1.0, 2.0, 3.0])._check_rows()
    with pytest.raises(ValueError, match="agree with all members on a new run"):
        attempt(tmp_path, [1.0, 2.0, 4.0])._check_rows()
    attempt(tmp_path, [1.0, 2.0, 4.0], run="2")._check_rows()


@pytest.mark.parametrize(("raised", "states"), [(KeyboardInterrupt, []), (ValueError, ["failed"])])
def test_only_errors_are_failures(tmp_path, raised, states):
    found, written, closed = attempt(tmp_path, [1.0, 2.0, 3.0]), [], []
    carrier = SimpleNamespace(open=lambda receive: None, close=lambda: closed.append(True))
    found.site.carrier = carrier
    found.status = SimpleNamespace(write=lambda state: written.append(state))

    def gone():
        raise raised

    found._gone = gone
    with pytest.raises(raised):
        found.run()
    assert written == states and closed

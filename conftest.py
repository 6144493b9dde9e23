"""What holds for the tests and for the examples in docstrings."""

import signal
import sys

import pytest


@pytest.fixture(autouse=True)
def no_figure_stays_open():
    """Pictures of pyplot stay open until they are closed, and many open ones are a warning."""
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # Started in the background, where Ctrl-C is ignored, and so by all processes of the tests.
    signal.signal(signal.SIGINT, signal.default_int_handler)

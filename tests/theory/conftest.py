"""Axes to draw into."""

import matplotlib as mpl
import pytest
from matplotlib.figure import Figure

mpl.use("agg")


@pytest.fixture
def ax():
    """Axes of a figure that pyplot does not know; drawn at the end, so that errors show."""
    figure = Figure(layout="constrained")
    yield figure.add_subplot()
    figure.draw_without_rendering()


@pytest.fixture(autouse=True)
def closed_figures():
    yield
    import matplotlib.pyplot as plt

    plt.close("all")

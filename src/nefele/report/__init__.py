"""One static HTML file per run, which opens without a network."""

from nefele.report.pictures import Picture
from nefele.report.render import render, write_report
from nefele.report.view import Step, View

__all__ = ["Picture", "Step", "View", "render", "write_report"]

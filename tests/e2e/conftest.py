"""Tests in a browser need one: without it they are left out, and the summary says so."""

import importlib.util
import shutil

BROWSERS = ("chromium", "chromium-browser", "google-chrome")

missing = []
if importlib.util.find_spec("playwright") is None:
    missing.append("the Python package playwright")
if not any(map(shutil.which, BROWSERS)):
    missing.append("a browser (" + ", ".join(BROWSERS) + ")")

collect_ignore = ["test_report_browser.py"] if missing else []


def pytest_terminal_summary(terminalreporter):
    if missing:
        terminalreporter.write_line(
            f"tests/e2e/test_report_browser.py was left out; missing: {' and '.join(missing)}."
        )

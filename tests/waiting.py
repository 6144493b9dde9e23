"""Waiting for something to happen, however slow the machine is."""

import time

LONG = 600  # seconds after which what should have happened counts as failed


def wait_until(happened, what):
    """Return once `happened()` is true; fail after a time that no machine needs."""
    give_up = time.monotonic() + LONG
    while not happened():
        assert time.monotonic() < give_up, f"waited {LONG} s in vain: {what}"
        time.sleep(0.02)

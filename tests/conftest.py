"""Settings that must hold before SciPy is imported, and for all tests."""

import os

from hypothesis import settings

# scikit-learn's check of array API input runs only with this.
os.environ.setdefault("SCIPY_ARRAY_API", "1")

# How long an example takes says something about the machine only.
settings.register_profile("tests", deadline=None, derandomize=True)
settings.load_profile("tests")

"""Settings that must hold before SciPy is imported."""

import os

# scikit-learn's check of array API input runs only with this.
os.environ.setdefault("SCIPY_ARRAY_API", "1")

"""Runs: from files to a folder with a model, a comparison, and all that is needed to repeat it."""

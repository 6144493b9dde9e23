"""What all networks of torch need: torch itself, seeds, threads, building, losses of rows."""

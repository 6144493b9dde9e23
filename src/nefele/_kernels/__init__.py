"""Plain array-in, array-out loops, compiled by Numba; imported only where they are used."""

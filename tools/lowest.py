"""Print the lowest versions that pyproject.toml allows, one pin per line.

`make test-lowest` installs them: `python tools/lowest.py > lowest.txt`. Names of extras may follow
for their requirements as well: `python tools/lowest.py plot`.
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

PYPROJECT = Path(__file__).parents[1] / "pyproject.toml"


def pins(project: dict, extras: list[str]) -> list[str]:
    """`name==lowest` for each requirement of the form `name>=lowest` or `name==lowest`.

    Parameters
    ----------
    project : dict
        The table `project` of pyproject.toml.
    extras : list of str
        Optional dependencies to add.

    Examples
    --------
    >>> table = {"dependencies": ["numpy>=2.1"], "optional-dependencies": {"plot": ["a>=1,<3"]}}
    >>> pins(table, ["plot"])
    ['numpy==2.1', 'a==1']
    """
    optional = project.get("optional-dependencies", {})
    unknown = sorted(set(extras) - optional.keys())
    if unknown:
        raise ValueError(f"No extra {unknown[0]!r} in pyproject.toml. Known are {list(optional)}.")
    wanted = [*project["dependencies"], *(line for name in extras for line in optional[name])]
    return [pin(line) for line in wanted]


def pin(requirement: str) -> str:
    """The lowest version that one requirement allows.

    Examples
    --------
    >>> pin("scipy>=1.14.1"), pin("torch==2.13.0")
    ('scipy==1.14.1', 'torch==2.13.0')
    """
    found = re.fullmatch(r"([\w.-]+)\s*[>=]=\s*([\w.]+)(,\s*[<!][^;]*)?", requirement)
    if found is None:
        raise ValueError(
            f"A requirement must say its lowest version, such as name>=1.2; got {requirement!r} "
            "in pyproject.toml."
        )
    return f"{found[1]}=={found[2]}"


if __name__ == "__main__":
    table = tomllib.loads(PYPROJECT.read_text(encoding="utf-8"))["project"]
    print("\n".join(pins(table, sys.argv[1:])))

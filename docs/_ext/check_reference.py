"""Whether the reference names every parameter of everything that is exported.

Run it: python docs/_ext/check_reference.py build/docs/html
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from reference import exported, homes, signature_of


def problems(folder: Path) -> list[str]:
    """One line per exported name whose page lacks a parameter."""
    things = exported()
    pages = homes(things)
    found = []
    for thing in {id(t): t for named in things.values() for t in named.values()}.values():
        page = pages.get(id(thing))
        if page is None:
            continue
        file = folder / "api" / f"{page}.html"
        if not file.exists():
            found.append(f"{page} has no page")
            continue
        text = file.read_text(encoding="utf-8")
        told = " ".join(re.findall(r"<strong>(.*?)</strong>", text))
        missing = [name for name in signature_of(thing) if not re.search(rf"\b{name}\b", told)]
        if missing:
            found.append(f"{page} does not tell about {', '.join(missing)}")
    return sorted(found)


if __name__ == "__main__":
    wrong = problems(Path(sys.argv[1]))
    print("\n".join(wrong) or "The reference names every parameter of every exported name.")
    sys.exit(bool(wrong))

"""One set of a run's files in place of another: by one rename, and what is left to do after it.

The new files lie ready in a folder of their own, with a list of them. Renaming that folder to
`READY` is the moment from which they are the run; putting them in their places can then be
repeated until it is done, after a crash by whatever command comes next.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterable
from pathlib import Path

from nefele._files import sync_folder, write_whole

READY = ".ready"  # inside a run folder: files that go in the place of the others
_LIST = "files.json"


def replace_files(home: Path, staged: Path, names: Iterable[str], old: Iterable[str]) -> None:
    """Put the files `names` of a folder in the place of the files `old` of the run in `home`."""
    listed = {"new": sorted(names), "old": sorted(old)}
    write_whole(staged / _LIST, lambda part: part.write_text(json.dumps(listed), encoding="utf-8"))
    for folder in {(staged / name).parent for name in listed["new"]}:
        sync_folder(folder)
    os.rename(staged, home / READY)
    sync_folder(home)
    complete(home)


def complete(home: Path) -> None:
    """Finish a replacement that was begun, if there is one."""
    ready = home / READY
    if not ready.is_dir():
        return
    if (ready / _LIST).is_file():  # it goes last
        listed = json.loads((ready / _LIST).read_text(encoding="utf-8"))
        for name in set(listed["old"]) - set(listed["new"]):
            (home / name).unlink(missing_ok=True)
        for name in listed["new"]:
            if (ready / name).is_file():
                (home / name).parent.mkdir(exist_ok=True)
                os.replace(ready / name, home / name)
                sync_folder((home / name).parent)
        (ready / _LIST).unlink()
    shutil.rmtree(ready)

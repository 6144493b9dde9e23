"""One set of a run's files in place of another: by one rename, and what is left to do after it.

The new files lie ready in a folder of their own, with a list of them. Renaming that folder to
`READY` is the moment from which they are the run; putting them in their places can then be
repeated until it is done, after a crash by whatever command comes next.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Collection
from pathlib import Path

from nefele._files import sync_folder, write_whole

READY = ".ready"  # inside a run folder: files that go in the place of the others
_LIST = "files.json"


def replace_files(home: Path, staged: Path, names: Collection[str]) -> None:
    """Put those files `names` that a folder has in the place of all of them in `home`."""
    new = [name for name in names if (staged / name).is_file()]
    text = json.dumps(new)
    write_whole(staged / _LIST, lambda part: part.write_text(text, encoding="utf-8"))
    for folder in {(staged / name).parent for name in new}:
        sync_folder(folder)
    os.rename(staged, home / READY)
    sync_folder(home)
    complete(home, names)


def complete(home: Path, names: Collection[str]) -> None:
    """Finish a replacement that was begun, if there is one; no other files are touched."""
    ready = home / READY
    if not ready.exists():
        return
    if ready.is_symlink() or not ready.is_dir():
        raise ValueError(_strange(ready))
    if (ready / _LIST).is_file():  # it goes last
        try:
            new = set(json.loads((ready / _LIST).read_text(encoding="utf-8")))
        except (ValueError, TypeError):
            raise ValueError(_strange(ready)) from None
        for name in names:
            if name not in new:
                (home / name).unlink(missing_ok=True)
            elif (ready / name).is_file():
                (home / name).parent.mkdir(exist_ok=True)
                os.replace(ready / name, home / name)
                sync_folder((home / name).parent)
        (ready / _LIST).unlink()
    shutil.rmtree(ready)


def _strange(ready: Path) -> str:
    return f"{str(ready)!r} must be as nefele left it; it is damaged or from elsewhere. Remove it."

"""Images of twenty clients with few digits each: PFLlib's MNIST scenario, and stand-ins.

PFLlib (https://github.com/TsingZ0/PFLlib) deals the images of MNIST to 20 clients by a Dirichlet
distribution with parameter 0.1 for each digit; mnist_20_clients.json has its published counts.
"""

from __future__ import annotations

import json
import zipfile
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nefele.experiments.digits import read_idx

COUNTS, FASHION = "mnist_20_clients.json", "fashion_mnist.npz"
WHERE = (
    "MNIST's four idx files in mnist/ (or beside), fashion_mnist.npz (images, labels) and "
    "mnist_20_clients.json (label_counts, from PFLlib's dataset/MNIST/config.json)"
)
SMALL = 27  # counts are divided by this
DIGITS = "8 x 8 digits"


def find_images() -> Path | None:
    """The folder ../shared/data, when the counts and images are there; None when they are not.

    Examples
    --------
    >>> found = find_images()
    >>> found is None or found.is_dir()
    True
    """
    folder = Path("../shared/data")
    return folder if not missing_images(folder) else None


def missing_images(folder: Path) -> list[str]:
    """Which files of the scenario are not in the folder.

    Examples
    --------
    >>> len(missing_images(Path("nowhere")))
    6
    """
    lost = [name for name in (COUNTS, FASHION) if not (folder / name).is_file()]
    for part in ("train", "t10k"):
        for kind in ("images-idx3", "labels-idx1"):
            if _idx_file(folder, f"{part}-{kind}-ubyte") is None:
                lost.append(f"mnist/{part}-{kind}-ubyte.gz")
    return lost


@lru_cache(maxsize=1)
def load_images(name: str, folder: Path | None) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Images as rows in [0, 1] and their classes.

    Examples
    --------
    >>> X, y = load_images("8 x 8 digits", None)
    >>> X.shape, int(y.max())
    ((1797, 64), 9)
    """
    if name == DIGITS or folder is None:
        from sklearn.datasets import load_digits

        found = load_digits()
        return (found.data / 16.0).astype(np.float32), found.target.astype(np.int64)
    if name == "Fashion-MNIST":
        return _fashion(folder / FASHION)
    parts = [
        [read_idx(file) for part in ("train", "t10k") if (file := _idx_file(folder, part + kind))]
        for kind in ("-images-idx3-ubyte", "-labels-idx1-ubyte")
    ]
    X, y = (np.concatenate(part) for part in parts)
    return _rows(X, y)


def label_counts(folder: Path | None, y: NDArray[np.int64]) -> NDArray[np.int64]:
    """Images of each class at each client, shape (n_clients, 10): PFLlib's, or drawn.

    Examples
    --------
    >>> _, y = load_images("8 x 8 digits", None)
    >>> counts = label_counts(None, y)
    >>> counts.shape, bool((counts.sum(axis=0) <= np.bincount(y)).all())
    ((10, 10), True)
    """
    if folder is not None:
        try:
            listed = json.loads((folder / COUNTS).read_text(encoding="utf-8"))["label_counts"]
            return np.array([[int(one.get(str(c), 0)) for c in range(10)] for one in listed])
        except (OSError, ValueError, KeyError, AttributeError, TypeError):
            raise ValueError(
                f"{str(folder / COUNTS)!r} must have label_counts, one dict of digits and counts "
                "per client; it has not."
            ) from None
    return dirichlet_counts(np.bincount(y, minlength=10), 10, 0.1, 0)


def dirichlet_counts(
    total: NDArray[np.int64], n_clients: int, concentration: float, seed: int, least: int = 8
) -> NDArray[np.int64]:
    """Deal the images of each class by a Dirichlet distribution, shape (n_clients, n_classes).

    Drawn again until every client has `least` images, as in PFLlib.

    Examples
    --------
    >>> dirichlet_counts(np.array([100, 100]), 4, 1.0, 0).sum(axis=0).tolist()
    [100, 100]
    """
    rng = np.random.default_rng(seed)
    for _ in range(1000):
        share = rng.dirichlet(np.full(n_clients, concentration), len(total))
        ends = np.floor(np.cumsum(share, axis=1) * total[:, None] + 1e-9).astype(np.int64)
        ends[:, -1] = total
        counts = np.diff(ends, axis=1, prepend=0).T
        if (counts.sum(axis=1) >= least).all():
            return counts
    raise ValueError(f"No deal gave each of {n_clients} clients {least} images; use fewer clients.")


@dataclass(frozen=True, eq=False)
class Dealt:
    """Rows of the training and test images, and the client of each."""

    X: NDArray[Any]
    y: NDArray[np.int64]
    train: NDArray[np.int64]
    test: NDArray[np.int64]
    train_ids: NDArray[np.int64]
    test_ids: NDArray[np.int64]


def deal(
    X: NDArray[Any], y: NDArray[np.int64], counts: NDArray[np.int64], divided: int, seed: int
) -> Dealt:
    """A quarter of every client's images of each digit for the test, three quarters to train.

    With `divided` > 1 the test images are the same and counts / divided are there to train, at
    least one of each digit that the client has and three quarters at most.

    Examples
    --------
    >>> X, y = load_images("8 x 8 digits", None)
    >>> dealt = deal(X, y, label_counts(None, y), 1, seed=0)
    >>> len(set(dealt.train) & set(dealt.test))
    0
    """
    rng = np.random.default_rng(seed)
    pools = [rng.permutation(np.flatnonzero(y == c)) for c in range(counts.shape[1])]
    at = np.zeros(counts.shape[1], dtype=np.int64)
    parts: dict[str, list[NDArray[np.int64]]] = {"train": [], "test": []}
    owners: dict[str, list[NDArray[np.int64]]] = {"train": [], "test": []}
    for i, row in enumerate(counts):
        for c in np.flatnonzero(row):
            own = pools[c][at[c] : at[c] + row[c]]
            at[c] += row[c]
            cut = round(0.75 * len(own))
            few = cut if divided == 1 else min(cut, max(1, round(row[c] / divided)))
            for name, some in (("train", own[:few]), ("test", own[cut:])):
                parts[name].append(some)
                owners[name].append(np.full(len(some), i))
    joined = {name: np.concatenate(part) for name, part in parts.items()}
    ids = {name: np.concatenate(part) for name, part in owners.items()}
    order = rng.permutation(len(joined["train"]))
    return Dealt(X, y, joined["train"][order], joined["test"], ids["train"][order], ids["test"])


def _idx_file(folder: Path, name: str) -> Path | None:
    places = (folder / "mnist", folder)
    ends = ("", ".gz")
    return next((p for f in places for e in ends if (p := f / (name + e)).is_file()), None)


def _fashion(file: Path) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    try:
        with np.load(file) as found:  # no pickles
            return _rows(found["images"], found["labels"])
    except (OSError, ValueError, KeyError, zipfile.BadZipFile):
        raise ValueError(
            f"{str(file)!r} must have images (n, 28, 28) and labels of Fashion-MNIST; it has not, "
            "or it is cut off."
        ) from None


def _rows(
    images: NDArray[np.uint8], labels: NDArray[np.uint8]
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    return (images.reshape(len(images), -1) / np.float32(255)).astype(np.float32), labels.astype(
        np.int64
    )

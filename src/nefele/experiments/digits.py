"""Handwritten digits: MNIST from files or openml.org, or the 8 x 8 digits of scikit-learn."""

from __future__ import annotations

import gzip
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from nefele._checks import Array
from nefele.experiments.base import Inputs

IMAGES, LABELS = "train-images-idx3-ubyte", "train-labels-idx1-ubyte"
PAIRS = ((0, 1), (2, 3))
N_NODES = 40
_MAGIC = {IMAGES: 2051, LABELS: 2049}
_SECONDS = 10.0


def find_mnist(folder: Path) -> Path | None:
    """The folder, if the training files of MNIST are in it, gzipped or not.

    Examples
    --------
    >>> find_mnist(Path("nowhere")) is None
    True
    """
    return folder if len(mnist_files(folder)) == 2 else None


def mnist_files(folder: Path) -> list[Path]:
    """Those of the two training files of MNIST that are in the folder.

    Examples
    --------
    >>> mnist_files(Path("nowhere"))
    []
    """
    files = [_file(folder, name) for name in (IMAGES, LABELS)]
    return [file for file in files if file is not None]


@lru_cache(maxsize=2)
def load_digits(inputs: Inputs) -> tuple[Array, NDArray[np.int64], str]:
    """Images as rows in [0, 1], their digits, and what they are.

    Examples
    --------
    >>> X, y, name = load_digits(Inputs())
    >>> X.shape[1], name
    (64, '8 x 8 digits of scikit-learn')
    """
    if inputs.mnist is not None:
        return (*_read(inputs.mnist), "MNIST")
    if inputs.fetch:
        return (*_fetch(), "MNIST")
    from sklearn.datasets import load_digits as bundled

    found = bundled()
    return found.data / 16.0, found.target.astype(np.int64), "8 x 8 digits of scikit-learn"


def deal(
    X: Array, y: NDArray[np.int64], train: int, held: int, seed: int
) -> tuple[list[tuple[Array, NDArray[np.int64]]], list[tuple[Array, NDArray[np.int64]]]]:
    """Images of 0 and 1 to the first 20 nodes, of 2 and 3 to the others, none twice.

    Gives the training and the held-out (images, digits) of each node.

    Examples
    --------
    >>> X, y, _ = load_digits(Inputs())
    >>> own, held = deal(X, y, 5, 13, seed=0)
    >>> len(own), own[0][0].shape, sorted(set(held[39][1].tolist()))
    (40, (5, 64), [2, 3])
    """
    check_enough(y, train + held)
    rng = np.random.default_rng(seed)
    own, rest = [], []
    for pair in PAIRS:
        order = rng.permutation(np.flatnonzero(np.isin(y, pair)))
        size = train + held
        for k in range(N_NODES // 2):
            mine = order[k * size : (k + 1) * size]
            own.append((X[mine[:train]], y[mine[:train]]))
            rest.append((X[mine[train:]], y[mine[train:]]))
    return own, rest


def check_enough(y: NDArray[np.int64], size: int) -> None:
    """A ValueError unless every node can have `size` images.

    Examples
    --------
    >>> check_enough(np.arange(4), 1)
    Traceback (most recent call last):
    ValueError: The digits (0, 1) must have 20 images; got 2. Take all of MNIST.
    """
    for pair in PAIRS:
        there, needed = int(np.isin(y, pair).sum()), size * N_NODES // 2
        if there < needed:
            raise ValueError(
                f"The digits {pair} must have {needed} images; got {there}. Take all of MNIST."
            )


def _file(folder: Path, name: str) -> Path | None:
    places = (folder / name, folder / f"{name}.gz", folder / name.replace("-idx", ".idx"))
    return next((place for place in places if place.is_file()), None)


def _read(folder: Path) -> tuple[Array, NDArray[np.int64]]:
    images, labels = _idx(folder, IMAGES), _idx(folder, LABELS)
    if len(images) != len(labels):
        raise ValueError(f"{folder} must have a label per image; got {len(labels)}, {len(images)}.")
    return images.reshape(len(images), -1) / 255.0, labels.astype(np.int64)


def _idx(folder: Path, name: str) -> NDArray[np.uint8]:
    file = _file(folder, name)
    assert file is not None
    return read_idx(file, name)


def read_idx(file: Path, name: str = "") -> NDArray[np.uint8]:
    """An idx file: a magic number whose last byte is the number of axes, the sizes, the bytes.

    `name` says which file of MNIST it is, if not its own name does.

    Examples
    --------
    >>> read_idx(Path("nothing"), LABELS)
    Traceback (most recent call last):
    ValueError: 'nothing' must be the idx file train-labels-idx1-ubyte of MNIST; it is not, or it \
is cut off.
    """
    name = name or file.name.removesuffix(".gz")
    wanted = _MAGIC[IMAGES] if "images" in name else _MAGIC[LABELS]
    try:
        raw = gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes()
        magic = int.from_bytes(raw[:4], "big")
        axes = magic % 256
        shape = tuple(int(n) for n in np.frombuffer(raw, ">i4", count=axes, offset=4))
        values = np.frombuffer(raw, np.uint8, offset=4 + 4 * axes)
        if magic != wanted or values.size != np.prod(shape):
            raise ValueError
    except (OSError, EOFError, ValueError):
        raise ValueError(
            f"{str(file)!r} must be the idx file {name} of MNIST; it is not, or it is cut off."
        ) from None
    return values.reshape(shape)


def _fetch() -> tuple[Array, NDArray[np.int64]]:
    from sklearn.datasets import fetch_openml

    try:
        with _patience(_SECONDS):
            found = fetch_openml("mnist_784", version=1, as_frame=False, n_retries=0)
    except Exception as error:  # no network, no answer, a broken file: all end the same way
        raise ValueError(
            f"MNIST could not be fetched from openml.org ({error}). Give a folder with its idx "
            "files by --data, or leave out --fetch to use the digits of scikit-learn."
        ) from None
    return found.data / 255.0, found.target.astype(np.int64)


@contextmanager
def _patience(seconds: float) -> Iterator[None]:
    before = socket.getdefaulttimeout()
    socket.setdefaulttimeout(seconds)
    try:
        yield
    finally:
        socket.setdefaulttimeout(before)

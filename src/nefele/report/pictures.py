"""Pictures that stand still: drawn by matplotlib, or files, for a section of the report."""

from __future__ import annotations

import base64
import io
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from nefele._words import visible

_TYPES = {".svg": "image/svg+xml", ".png": "image/png"}
_SVG = "{http://www.w3.org/2000/svg}svg"
_PNG = b"\x89PNG\r\n\x1a\n"
_MOST_BYTES = 4_000_000
_MANY = 2_000  # lines and points from which they become pixels
_DPI = 110


@dataclass(frozen=True)
class Picture:
    """A picture with its words.

    Attributes
    ----------
    title : str
    data : bytes
        Content of an SVG or PNG file.
    says : str
        One or two sentences: what is to be seen.

    Examples
    --------
    >>> Picture("Nothing", b"<svg xmlns='http://www.w3.org/2000/svg'/>").media
    'image/svg+xml'
    """

    title: str
    data: bytes = field(repr=False)
    says: str = ""

    def __post_init__(self) -> None:
        if not isinstance(self.data, bytes):
            raise ValueError(
                f"The data of a picture must be bytes; got {type(self.data).__name__}. Use "
                "Picture.drawn or Picture.read."
            )
        if len(self.data) > _MOST_BYTES:
            raise ValueError(
                f"The picture {self.title!r} must have at most {_MOST_BYTES:,} bytes; got "
                f"{len(self.data):,}. Save it as PNG, or with fewer points."
            )
        if self.media is None:
            raise ValueError(f"The picture {self.title!r} must be SVG or PNG; it is neither.")
        if self.media == _TYPES[".svg"]:
            try:
                root = ElementTree.fromstring(self.data).tag
            except ElementTree.ParseError as error:
                raise ValueError(
                    f"The picture {self.title!r} must be whole; its SVG is not: {error}."
                ) from None
            if root not in ("svg", _SVG):
                raise ValueError(f"The picture {self.title!r} must be SVG or PNG; got a {root}.")

    @property
    def media(self) -> str | None:
        """Media type by what the data begin with."""
        if self.data.startswith(_PNG):
            return _TYPES[".png"]
        return _TYPES[".svg"] if b"<svg" in self.data[:4096] else None

    @property
    def address(self) -> str:
        """The picture as an address that asks nobody: in it, scripts do not run."""
        return f"data:{self.media};base64,{base64.b64encode(self.data).decode('ascii')}"

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the picture to a file, whose name ends in .svg or .png as the picture is.

        Parameters
        ----------
        path : str or Path

        Examples
        --------
        >>> Picture("Nothing", b"<svg xmlns='http://www.w3.org/2000/svg'/>").write("nothing.png")
        Traceback (most recent call last):
        ValueError: The file of this picture must end in .svg; got 'nothing.png'. Rename it.
        """
        suffix = next(name for name, kind in _TYPES.items() if kind == self.media)
        if Path(path).suffix.lower() != suffix:
            raise ValueError(
                f"The file of this picture must end in {suffix}; got {str(path)!r}. Rename it."
            )
        Path(path).write_bytes(self.data)

    @classmethod
    def drawn(cls, figure: Any, title: str, says: str = "") -> Picture:
        """A matplotlib Figure, or an Axes of it, as SVG; the same figure gives the same bytes.

        Parameters
        ----------
        figure : matplotlib Figure or Axes
            More than 2,000 lines and points of collections are stored as pixels.
        title, says : str

        Examples
        --------
        >>> from matplotlib.figure import Figure
        >>> ax = Figure().subplots()
        >>> line = ax.plot([1, 2, 4])
        >>> Picture.drawn(ax, "Growth").media
        'image/svg+xml'
        """
        figure = getattr(figure, "figure", figure)
        if not hasattr(figure, "savefig"):
            raise ValueError(
                f"figure must be a matplotlib Figure or Axes; got {type(figure).__name__}."
            )
        from matplotlib import rc_context
        from matplotlib.collections import Collection

        parts = figure.findobj(Collection)
        if sum(max(len(p.get_paths()), len(p.get_offsets())) for p in parts) > _MANY:
            for part in parts:
                part.set_rasterized(True)
        out = io.BytesIO()
        # the salt names the parts of the file, which are random otherwise; letters stay letters
        with rc_context({"svg.hashsalt": "nefele", "svg.fonttype": "none"}):
            options = dict(dpi=_DPI, transparent=True, bbox_inches="tight")
            figure.savefig(out, format="svg", metadata={"Date": None}, **options)
        lines = out.getvalue().decode("utf-8").split("\n")
        return cls(title, "\n".join(map(visible, lines)).encode("utf-8"), says)

    @classmethod
    def read(cls, path: str | os.PathLike[str], title: str = "", says: str = "") -> Picture:
        """A picture from an SVG or PNG file; its title is the name of the file by default.

        Parameters
        ----------
        path : str or Path
        title, says : str

        Examples
        --------
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     place = Path(folder) / "phase_diagram.svg"
        ...     _ = place.write_text("<svg xmlns='http://www.w3.org/2000/svg'/>")
        ...     Picture.read(place).title
        'phase diagram'
        """
        place = Path(path)
        try:
            with place.open("rb") as file:
                data = file.read(_MOST_BYTES + 1)
        except OSError as error:
            raise ValueError(
                f"A picture must be a file that can be read; {str(place)!r} is not: "
                f"{error.strerror}."
            ) from None
        return cls(title or place.stem.replace("_", " ").replace("-", " "), data, says)


def pictures_in(
    folder: Path, known: Sequence[tuple[str, str, str]] = ()
) -> tuple[list[Picture], list[str]]:
    """The pictures of a folder, if there is one, and what is wrong with files that are none.

    File, title and words of those that are `known` come first, without what is lost of them; the
    others follow by name.

    Examples
    --------
    >>> pictures_in(Path("no such folder"))
    ([], [])
    """
    words = {name: (title, says) for name, title, says in known}
    names = [name for name in words if (folder / name).is_file()]
    if folder.is_dir():
        names += sorted(
            file.name
            for file in folder.iterdir()
            if file.suffix.lower() in _TYPES
            and file.name not in words
            and not file.name.startswith(".")
        )
    found, wrong = [], []
    for name in names:
        try:
            found.append(Picture.read(folder / name, *words.get(name, ())))
        except ValueError as error:
            wrong.append(f"{folder.name}/{name} was left out. {error}")
    return found, wrong

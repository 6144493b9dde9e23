"""A site's identity while it runs: it signs by the key of its certificate, and checks others."""

from __future__ import annotations

from pathlib import Path

from nefele.sites import _certificates as x
from nefele.sites._toml import read_bytes
from nefele.sites.identity import AUTHORITY, CERTIFICATE, KEY
from nefele.sites.validity import check_chain, one_certificate


def certified_name(folder: Path) -> str:
    """The name in the certificate of a folder, which nobody has checked yet."""
    advice = "Make it by: nefele site request, then nefele site join"
    content = read_bytes(folder / CERTIFICATE, advice)
    return x.common_name(one_certificate(content, CERTIFICATE), CERTIFICATE)


class Identity:
    """The key, the certificate and the authority in the folder of a site.

    Parameters
    ----------
    folder : Path
        A file that is missing is a ValueError: without certificates nothing starts.

    Attributes
    ----------
    name : str
        The name that the certificate proves.
    certificate, authority : bytes
    """

    def __init__(self, folder: Path) -> None:
        advice = "Make it by: nefele site request, then nefele site join"
        self.key, self.certificate, self.authority = (
            read_bytes(folder / name, advice) for name in (KEY, CERTIFICATE, AUTHORITY)
        )
        mode = (folder / KEY).stat().st_mode
        if mode & 0o077:
            raise ValueError(
                f"{str(folder / KEY)!r} must be readable by its owner only; its mode is "
                f"{mode & 0o777:o}. Use: chmod 600"
            )
        self._private = x.load_key(self.key, KEY)
        self.name = check_chain(self.certificate, self.authority)
        if x.spki(self._private) != x.spki(one_certificate(self.certificate, CERTIFICATE)):
            raise ValueError(f"{KEY} must be the key of {CERTIFICATE}; it is another one.")

    def sign(self, data: bytes) -> bytes:
        """A signature by ECDSA on P-256 with SHA-256."""
        return x.sign(self._private, data)

    def verify(self, name: str, certificate: bytes, data: bytes, signature: bytes) -> None:
        """A ValueError unless this member, certified by the same authority, has signed it."""
        found = check_chain(certificate, self.authority)
        if found != name:
            raise ValueError(f"The certificate must be of {name}; it is of {found}.")
        if not x.is_signed_by(one_certificate(certificate, "The certificate"), data, signature):
            raise ValueError(f"{name} must have signed this; the signature is another's.")

"""Keys and certificates: who is who in a federation.

Each site makes its key where it runs, and the key never leaves. What travels is a request with the
public half, signed by the key; the authority of the federation answers with a certificate for the
names that the federation file gives to that member. Keys are ECDSA on P-256, which every library
for TLS 1.3 takes.

There are no lists of revoked certificates. A member is removed by agreeing to a new federation
file without it: a certificate counts only for a member of the file, and the new file has another
hash. When a key is stolen, agree to a new authority (the hash of its certificate is in the file),
or give the member another name.
"""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from nefele._checks import check_number
from nefele._files import sync_folder
from nefele.sites import _certificates as x
from nefele.sites._secrets import write, write_secret
from nefele.sites._toml import read_bytes
from nefele.sites.federation import FILE, Federation
from nefele.sites.members import RELAY, check_member_name, split_address
from nefele.sites.validity import (
    check_chain,
    days_left,
    end_day,
    expiry_message,
    fingerprint,
    one_certificate,
    renewal_command,
)

__all__ = [
    "check_chain",
    "check_pinned",
    "days_left",
    "expiry_message",
    "fingerprint",
    "host_names",
    "install",
    "make_authority",
    "make_request",
    "renewal_command",
    "sign_request",
]

AUTHORITY_DAYS, SITE_DAYS = 3650, 397
KEY, REQUEST, CERTIFICATE, AUTHORITY = "key.pem", "request.pem", "certificate.pem", "authority.pem"
NEXT_KEY, NEXT_REQUEST = "key-new.pem", "request-new.pem"  # of a renewal, until it is joined


def make_authority(folder: Path, name: str, days: float = AUTHORITY_DAYS) -> str:
    """Make the key and the certificate of a federation's authority, and return its hash.

    Nothing is ever replaced: a lost authority is a new federation.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as place:
    ...     digest = make_authority(Path(place), "coast")
    ...     sorted(file.name for file in Path(place).iterdir())
    ['certificate.pem', 'key.pem']
    >>> len(digest)
    64
    """
    check_member_name(name, "the request", "The name of a federation")
    check_number(days, "days", low=0.0, strict=True)
    if (folder / CERTIFICATE).exists():
        raise ValueError(f"{str(folder)!r} has an authority already. Name another folder.")
    key = x.new_key()
    write_secret(folder / KEY, x.private_pem(key))
    certificate = x.authority_certificate(key, name, days, datetime.now(UTC))
    write(folder / CERTIFICATE, x.pem(certificate))
    return x.digest(certificate)


def make_request(folder: Path, name: str, *, renew: bool = False) -> bytes:
    """Make a key and a request for a certificate of this name; return the request.

    With `renew` they are put beside those in use, which stay until `install` has the answer.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as place:
    ...     make_request(Path(place), "oulu")[:35]
    b'-----BEGIN CERTIFICATE REQUEST-----'
    """
    check_member_name(name, "the request")
    if renew and not (folder / KEY).exists():
        raise ValueError(f"No {KEY} in {str(folder)!r} to renew. Leave out --renew.")
    if not renew and (folder / CERTIFICATE).exists():
        raise ValueError(f"{str(folder)!r} has a certificate already. Use --renew for a new one.")
    key_file, file = (folder / n for n in ((NEXT_KEY, NEXT_REQUEST) if renew else (KEY, REQUEST)))
    if file.exists():
        advice = (
            f"Send it, or delete {NEXT_KEY} and {NEXT_REQUEST} to make others."
            if renew
            else "Use --renew for a new one beside it."
        )
        raise ValueError(f"{str(file)!r} is there already. {advice}")
    if not key_file.exists():  # else an earlier call was interrupted before the request
        write_secret(key_file, x.private_pem(x.new_key()))
    key = x.load_key(read_bytes(key_file), str(key_file))
    content = x.pem(x.request_for(key, name))
    write(file, content)
    return content


def sign_request(
    authority: Path, request: bytes, federation: Federation, days: float = SITE_DAYS
) -> bytes:
    """The certificate that answers a request.

    The request must be for a member (or for "relay" when there is one) and signed by its own key;
    nothing but its name and its public key is used. Names of hosts come from the federation file.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from nefele.sites.example import coast
    >>> with TemporaryDirectory() as place:
    ...     home, site = Path(place) / "authority", Path(place) / "oulu"
    ...     federation = coast(authority=make_authority(home, "coast"))
    ...     certificate = sign_request(home, make_request(site, "oulu"), federation)
    ...     check_chain(certificate, (home / "certificate.pem").read_bytes())
    'oulu'
    """
    check_number(days, "days", low=0.0, strict=True)
    asked = x.load_request(request, "The request")
    name = x.common_name(asked, "The request")
    names = host_names(federation, name)
    issuer = one_certificate(read_bytes(authority / CERTIFICATE), str(authority / CERTIFICATE))
    key = x.load_key(read_bytes(authority / KEY), str(authority / KEY))
    if x.spki(key) != x.spki(issuer):
        raise ValueError(f"{str(authority)!r} must have a key that fits its certificate.")
    check_pinned(issuer, federation)
    now = datetime.now(UTC)
    if days > (issuer.not_valid_after_utc - now) / timedelta(days=1):
        raise ValueError(
            f"A certificate must end before its authority does, on {end_day(issuer)}; got "
            f"{days:g} days. Use fewer by --days, or make a new federation."
        )
    subject, end = (name, federation.name), now + timedelta(days=days)
    return x.pem(x.site_certificate(key, issuer, asked.public_key(), subject, names, end, now))


def host_names(federation: Federation, name: str) -> list[str]:
    """What a member's certificate is for: its name, and the host of its address.

    Examples
    --------
    >>> from nefele.sites.example import coast
    >>> host_names(coast(), "oulu")
    ['oulu', 'oulu.example']
    """
    if name == RELAY and federation.relay is not None:
        address: str | None = federation.relay
    else:
        address = federation.member(name).address
    host = [] if address is None else [split_address(address, FILE)[0]]
    return list(dict.fromkeys([name, *host]))


def install(folder: Path, answer: bytes) -> str:
    """Put the answer to a site's request in its place, and return the name it is for.

    The answer holds two certificates, the site's and the authority's. The first must be for the
    key and the name of this folder, the second the authority of its federation file.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from nefele.sites.example import coast
    >>> with TemporaryDirectory() as place:
    ...     home, site = Path(place) / "authority", Path(place) / "oulu"
    ...     federation = coast(authority=make_authority(home, "coast"))
    ...     answer = sign_request(home, make_request(site, "oulu"), federation)
    ...     _ = (site / "federation.toml").write_bytes(federation.content)
    ...     install(site, answer + (home / "certificate.pem").read_bytes())
    'oulu'
    """
    certificates = x.load_certificates(answer, "The answer")
    if len(certificates) != 2:
        raise ValueError(
            "The answer must hold two certificates, the site's and the authority's; it has "
            f"{len(certificates)}. Ask for the file that nefele federation sign wrote."
        )
    certificate, authority = map(x.pem, certificates)
    federation = Federation.read(folder)
    check_pinned(certificates[1], federation)
    known = folder / AUTHORITY
    if known.exists() and known.read_bytes() != authority:
        raise ValueError(
            f"The answer must be of the authority in {str(known)!r}; it is of another one."
        )
    name = check_chain(certificate, authority)
    host_names(federation, name)
    _take_key(folder, certificates[0], name)
    write(known, authority)
    write(folder / CERTIFICATE, certificate)
    return name


def _take_key(folder: Path, certificate: Any, name: str) -> None:
    """Find the key that a certificate is for; that of a renewal takes the place of the old one."""
    for key_file, request in ((KEY, REQUEST), (NEXT_KEY, NEXT_REQUEST)):
        path = folder / key_file
        if not path.exists():
            continue
        if x.spki(x.load_key(path.read_bytes(), str(path))) != x.spki(certificate):
            continue
        if (folder / request).exists():
            asked = x.load_request((folder / request).read_bytes(), str(folder / request))
            if x.common_name(asked, str(folder / request)) != name:
                raise ValueError(f'The answer must be for the name that was asked; got "{name}".')
        if key_file == NEXT_KEY:
            os.replace(path, folder / KEY)
            if (folder / request).exists():
                os.replace(folder / request, folder / REQUEST)
            sync_folder(folder)
        return
    raise ValueError(
        f"The answer must be for a key in {str(folder)!r}; it is for another one. Join it in the "
        "folder where the request was made."
    )


def check_pinned(authority: Any, federation: Federation) -> None:
    """A ValueError when an authority is not the one that all have agreed to."""
    if federation.authority is not None and x.digest(authority) != federation.authority:
        raise ValueError(
            "The authority must be the one of the federation file, "
            f"{federation.authority[:16]}...; got {x.digest(authority)[:16]}..."
        )

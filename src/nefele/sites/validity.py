"""What a certificate proves, and for how long."""

from __future__ import annotations

import hashlib
import shlex
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from nefele.sites import _certificates as x

_WARN = timedelta(days=7)


def check_chain(certificate: bytes, authority: bytes, at: datetime | None = None) -> str:
    """The name that a certificate proves, at a time; a ValueError when it proves none.

    The caller asks the federation file whether this is a member: `Federation.member`.

    Examples
    --------
    >>> from nefele.sites.example import made
    >>> certificate, authority = made("oulu")
    >>> check_chain(certificate, authority)
    'oulu'
    >>> check_chain(certificate, authority, at=datetime(1999, 1, 1, tzinfo=UTC))
    Traceback (most recent call last):
    ValueError: The certificate of oulu must be valid now; it is from ... UTC on. Check the clock.
    """
    at = datetime.now(UTC) if at is None else at
    issuer = one_certificate(authority, "The certificate of the authority")
    found = one_certificate(certificate, "The certificate")
    if not x.is_authority(issuer) or not x.is_issued_by(issuer, issuer):
        raise ValueError("The authority must have a certificate that may sign others; it has not.")
    if not x.is_issued_by(found, issuer):
        raise ValueError("A certificate must be signed by the authority; this one is not.")
    if not x.is_site(found):
        raise ValueError("A certificate must be for both ends of a connection; this one is not.")
    name = x.common_name(found, "The certificate")
    x.check_public(found, f"The certificate of {name}")
    for one, whose in ((found, name), (issuer, "the authority")):
        if at < one.not_valid_before_utc:
            raise ValueError(
                f"The certificate of {whose} must be valid now; it is from "
                f"{one.not_valid_before_utc:%Y-%m-%d %H:%M} UTC on. Check the clock."
            )
        if at > one.not_valid_after_utc:
            raise ValueError(
                f"The certificate of {whose} must be valid now; it expired on {end_day(one)}."
            )
    return name


def days_left(certificate: bytes, at: datetime | None = None) -> float:
    """Days until a certificate expires, negative afterwards.

    Examples
    --------
    >>> from nefele.sites.example import made
    >>> round(days_left(made("oulu")[0]))
    397
    """
    at = datetime.now(UTC) if at is None else at
    return (one_certificate(certificate, "The certificate").not_valid_after_utc - at) / timedelta(
        days=1
    )


def expiry_message(
    certificate: bytes, folder: Path | str = ".", at: datetime | None = None
) -> str | None:
    """What to say about the end of a certificate: None, or from a week ahead how to renew it.

    An expired one is a ValueError.

    Examples
    --------
    >>> from nefele.sites.example import made
    >>> expiry_message(made("oulu")[0]) is None
    True
    >>> expiry_message(made("oulu", days=5.5)[0], "sites/oulu")
    'certificate of oulu expires in 5 days, on ...: renew with nefele site request sites/oulu --...'
    """
    found = one_certificate(certificate, "The certificate")
    left = days_left(certificate, at)
    name, renew = x.common_name(found, "The certificate"), renewal_command(folder)
    if left < 0:
        raise ValueError(f"certificate of {name} expired on {end_day(found)}: renew with {renew}")
    if left > _WARN.days:
        return None
    whole = int(left)
    when = f"in {whole} day{'s' * (whole != 1)}" if whole else "in less than a day"
    return f"certificate of {name} expires {when}, on {end_day(found)}: renew with {renew}"


def renewal_command(folder: Path | str) -> str:
    """The command that renews the certificate of a site.

    Examples
    --------
    >>> renewal_command("sites/oulu")
    'nefele site request sites/oulu --renew'
    """
    return shlex.join(["nefele", "site", "request", str(folder), "--renew"])


def fingerprint(content: bytes) -> str:
    """The hash of the public key of a request or a certificate, to compare over the phone.

    Examples
    --------
    >>> from nefele.sites.example import made
    >>> len(fingerprint(made("oulu")[0]).split())
    16
    """
    if b"CERTIFICATE REQUEST" in content:
        found: Any = x.load_request(content, "The request")
    else:
        found = x.load_certificates(content, "The certificate")[0]
    text = hashlib.sha256(x.spki(found)).hexdigest()
    return " ".join(text[k : k + 4] for k in range(0, 64, 4))


def one_certificate(content: bytes, where: str) -> Any:
    """The only certificate of a PEM file.

    Examples
    --------
    >>> from nefele.sites.example import made
    >>> one_certificate(made("oulu")[0], "certificate.pem").subject.rfc4514_string()
    'O=coast,CN=oulu'
    """
    found = x.load_certificates(content, where)
    if len(found) != 1:
        raise ValueError(f"{where} must be one certificate; got {len(found)}.")
    return found[0]


def end_day(certificate: Any) -> str:
    """The day on which a certificate expires.

    Examples
    --------
    >>> from nefele.sites.example import made
    >>> len(end_day(one_certificate(made("oulu")[0], "certificate.pem")))
    10
    """
    return f"{certificate.not_valid_after_utc:%Y-%m-%d}"

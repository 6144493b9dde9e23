"""Certificates as objects: made, read, and what they say. Files are `identity`'s concern."""

from __future__ import annotations

import hashlib
import ipaddress
from datetime import datetime, timedelta
from typing import Any

from nefele.sites.members import check_member_name

try:
    from cryptography import x509
    from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
except ImportError as error:  # pragma: no cover
    raise ImportError('Sites need cryptography: pip install "nefele[sites]".') from error

Key = ec.EllipticCurvePrivateKey
_USES = (ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH)
_SLOW_CLOCKS = timedelta(hours=1)  # a new certificate counts where the clock is late, too
_PEM = serialization.Encoding.PEM


def new_key() -> Key:
    """A key of ECDSA on P-256."""
    return ec.generate_private_key(ec.SECP256R1())


def private_pem(key: Key) -> bytes:
    """A key for a file that nobody else reads."""
    kind = serialization.PrivateFormat.PKCS8
    return key.private_bytes(_PEM, kind, serialization.NoEncryption())


def load_key(content: bytes, where: str) -> Key:
    """A key from its file; errors do not quote it."""
    try:
        key = serialization.load_pem_private_key(content, None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise ValueError(f"{where} must be a private key in PEM; it is another kind.") from None
    if not isinstance(key, Key) or not isinstance(key.curve, ec.SECP256R1):
        raise ValueError(f"{where} must be a key of ECDSA on P-256; it is of another kind.")
    return key


def spki(thing: Any) -> bytes:
    """The public half of a key, a request or a certificate."""
    kind = serialization.PublicFormat.SubjectPublicKeyInfo
    found: bytes = thing.public_key().public_bytes(serialization.Encoding.DER, kind)
    return found


def pem(thing: x509.Certificate | x509.CertificateSigningRequest) -> bytes:
    """The text of a request or a certificate."""
    return thing.public_bytes(_PEM)


def digest(certificate: x509.Certificate) -> str:
    """SHA-256 of a certificate, as a federation file names its authority."""
    return hashlib.sha256(certificate.public_bytes(serialization.Encoding.DER)).hexdigest()


def load_certificates(content: bytes, where: str) -> list[x509.Certificate]:
    """The certificates of a PEM file, in its order."""
    try:
        return x509.load_pem_x509_certificates(content)
    except ValueError:
        raise ValueError(f"{where} must be a certificate in PEM; it is another kind.") from None


def load_request(content: bytes, where: str) -> x509.CertificateSigningRequest:
    """A request whose signature is right, with a key of the right kind."""
    try:
        request = x509.load_pem_x509_csr(content)
        genuine = request.is_signature_valid
    except (ValueError, InvalidSignature):
        raise ValueError(
            f"{where} must be a request in PEM; it is damaged or no request."
        ) from None
    except UnsupportedAlgorithm:
        raise ValueError(f"{where} must be a request with a key of ECDSA on P-256.") from None
    if not genuine:
        raise ValueError(
            f"{where} must be signed by its own key; the signature is wrong. It was changed on "
            "its way: ask for it again."
        )
    check_public(request, where)
    return request


def check_public(thing: Any, where: str) -> None:
    """A ValueError when a request or a certificate is for another kind of key."""
    try:
        key = thing.public_key()
    except (ValueError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, ec.EllipticCurvePublicKey) or not isinstance(key.curve, ec.SECP256R1):
        raise ValueError(f"{where} must be for a key of ECDSA on P-256; it is for another kind.")


def common_name(thing: x509.Certificate | x509.CertificateSigningRequest, where: str) -> str:
    """The one name that a request or a certificate is for."""
    names = [name.value for name in thing.subject.get_attributes_for_oid(NameOID.COMMON_NAME)]
    if len(names) != 1:
        raise ValueError(f"{where} must be for one name; it has {len(names)}.")
    return check_member_name(names[0], where)


def request_for(key: Key, name: str) -> x509.CertificateSigningRequest:
    """A request for a name, signed by the key."""
    builder = x509.CertificateSigningRequestBuilder().subject_name(_subject(name))
    return builder.sign(key, hashes.SHA256())


def authority_certificate(
    key: Key, federation: str, days: float, now: datetime
) -> x509.Certificate:
    """A certificate that signs those of sites, and no other authorities."""
    name = _subject("authority", federation)
    builder = _builder(name, name, key.public_key(), now, now + timedelta(days=days))
    limits, own = x509.BasicConstraints(ca=True, path_length=0), key.public_key()
    builder = builder.add_extension(limits, critical=True)
    builder = builder.add_extension(_key_usage(signs=True), critical=True)
    builder = builder.add_extension(x509.SubjectKeyIdentifier.from_public_key(own), critical=False)
    return builder.sign(key, hashes.SHA256())


def site_certificate(
    key: Key,
    authority: x509.Certificate,
    public: Any,
    subject: tuple[str, str],
    names: list[str],
    end: datetime,
    now: datetime,
) -> x509.Certificate:
    """A certificate of a site, for both ends of a connection; `subject` is (name, federation)."""
    builder = _builder(_subject(*subject), authority.subject, public, now, end)
    issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(key.public_key())
    extensions: list[tuple[x509.ExtensionType, bool]] = [
        (x509.BasicConstraints(ca=False, path_length=None), True),
        (_key_usage(signs=False), True),
        (x509.ExtendedKeyUsage(_USES), False),
        (x509.SubjectAlternativeName(list(map(_alternative, names))), False),
        (x509.SubjectKeyIdentifier.from_public_key(public), False),
        (issuer, False),
    ]
    for extension, critical in extensions:
        builder = builder.add_extension(extension, critical=critical)
    return builder.sign(key, hashes.SHA256())


def is_issued_by(certificate: x509.Certificate, authority: x509.Certificate) -> bool:
    """Whether the authority signed a certificate."""
    try:
        certificate.verify_directly_issued_by(authority)
    except (ValueError, TypeError, InvalidSignature, UnsupportedAlgorithm):
        return False
    return True


def is_authority(certificate: x509.Certificate) -> bool:
    """Whether a certificate may sign others."""
    limits = _extension(certificate, x509.BasicConstraints)
    usage = _extension(certificate, x509.KeyUsage)
    return bool(limits and limits.ca and usage and usage.key_cert_sign)


def is_site(certificate: x509.Certificate) -> bool:
    """Whether a certificate is for both ends of a connection, and signs no others."""
    limits = _extension(certificate, x509.BasicConstraints)
    uses = _extension(certificate, x509.ExtendedKeyUsage)
    return bool(limits and not limits.ca and uses and set(_USES) <= set(uses))


def alternative_names(certificate: x509.Certificate) -> list[str]:
    """Names of hosts and addresses that a certificate is for."""
    found = _extension(certificate, x509.SubjectAlternativeName)
    return [str(name.value) for name in found or ()]


def _extension(certificate: x509.Certificate, kind: Any) -> Any:
    try:
        return certificate.extensions.get_extension_for_class(kind).value
    except (x509.ExtensionNotFound, x509.DuplicateExtension, ValueError):
        return None


def _subject(name: str, federation: str = "") -> x509.Name:
    parts = [x509.NameAttribute(NameOID.COMMON_NAME, name)]
    if federation:
        parts.append(x509.NameAttribute(NameOID.ORGANIZATION_NAME, federation))
    return x509.Name(parts)


def _builder(
    subject: x509.Name, issuer: x509.Name, public: Any, now: datetime, end: datetime
) -> x509.CertificateBuilder:
    return x509.CertificateBuilder(
        issuer_name=issuer,
        subject_name=subject,
        public_key=public,
        serial_number=x509.random_serial_number(),
        not_valid_before=now - _SLOW_CLOCKS,
        not_valid_after=end,
    )


def _key_usage(*, signs: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs,
        crl_sign=False,
        encipher_only=False,
        decipher_only=False,
    )


def _alternative(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name.rstrip("."))


def sign(key: Key, data: bytes) -> bytes:
    """A signature of some bytes."""
    return key.sign(data, ec.ECDSA(hashes.SHA256()))


def is_signed_by(certificate: x509.Certificate, data: bytes, signature: bytes) -> bool:
    """Whether the owner of a certificate signed some bytes."""
    public = certificate.public_key()
    if not isinstance(public, ec.EllipticCurvePublicKey):
        return False
    try:
        public.verify(signature, data, ec.ECDSA(hashes.SHA256()))
    except InvalidSignature:
        return False
    return True

"""Keys stay with their owners, and a certificate proves a member's name or nothing."""

import base64
import os
import shutil
import stat
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from nefele.sites.example import coast, made
from nefele.sites.identity import (
    check_chain,
    days_left,
    expiry_message,
    fingerprint,
    install,
    make_authority,
    make_request,
    sign_request,
)

PEM = serialization.Encoding.PEM


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def home(tmp_path):
    """An authority, and the federation that names it."""
    digest = make_authority(tmp_path / "authority", "coast")
    return tmp_path / "authority", coast(authority=digest, relay="10.0.0.7:7447")


def join(folder, home, name, **options):
    """A member that asked and was answered."""
    authority, federation = home
    folder.mkdir(exist_ok=True)
    (folder / "federation.toml").write_bytes(federation.content)
    certificate = sign_request(authority, make_request(folder, name, **options), federation)
    answer = certificate + (authority / "certificate.pem").read_bytes()
    assert install(folder, answer) == name
    return answer


def csr(name="oulu", key=None, names=None):
    key = key or ec.generate_private_key(ec.SECP256R1())
    parts = [x509.NameAttribute(NameOID.COMMON_NAME, one) for one in (names or [name])]
    builder = x509.CertificateSigningRequestBuilder().subject_name(x509.Name(parts))
    builder = builder.add_extension(
        x509.SubjectAlternativeName([x509.DNSName("kemi"), x509.DNSName("evil.example")]), False
    ).add_extension(x509.BasicConstraints(True, None), True)
    algorithm = None if isinstance(key, ed25519.Ed25519PrivateKey) else hashes.SHA256()
    return builder.sign(key, algorithm).public_bytes(PEM)


def test_keys_are_for_their_owner_alone_from_the_start(tmp_path, home, monkeypatch):
    seen = []
    real = os.open

    def watch(path, flags, *args, **kwargs):
        handle = real(path, flags, *args, **kwargs)
        if str(path).endswith("key.pem"):
            seen.append((bool(flags & os.O_EXCL), stat.S_IMODE(os.fstat(handle).st_mode)))
        return handle

    monkeypatch.setattr(os, "open", watch)
    before = os.umask(0)
    try:
        make_authority(tmp_path / "other", "coast")
        join(tmp_path / "oulu", home, "oulu")
    finally:
        os.umask(before)
    assert seen == [(True, 0o600)] * 2
    assert mode(tmp_path / "other" / "key.pem") == mode(tmp_path / "oulu" / "key.pem") == 0o600


def test_nothing_is_replaced(tmp_path, home):
    join(tmp_path / "oulu", home, "oulu")
    key = (tmp_path / "oulu" / "key.pem").read_bytes()
    with pytest.raises(ValueError, match="--renew"):
        make_request(tmp_path / "oulu", "oulu")
    with pytest.raises(ValueError, match="has an authority already"):
        make_authority(home[0], "coast")
    with pytest.raises(ValueError, match="has a certificate already"):
        make_request(home[0], "oulu")  # the authority's key is not used for a site
    assert (tmp_path / "oulu" / "key.pem").read_bytes() == key


def test_an_interrupted_request_goes_on_with_its_key(tmp_path):
    first = make_request(tmp_path, "oulu")
    (tmp_path / "request.pem").unlink()
    assert fingerprint(make_request(tmp_path, "oulu")) == fingerprint(first)


def test_a_certificate_says_what_the_federation_file_says(tmp_path, home):
    authority, federation = home
    answer = sign_request(authority, csr(), federation)
    found = x509.load_pem_x509_certificate(answer)
    names = found.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert [name.value for name in names] == ["oulu", "oulu.example"]
    assert not found.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    uses = found.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert set(uses) == {ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH}
    assert found.subject.rfc4514_string() == "O=coast,CN=oulu"
    assert 396 < days_left(answer) < 397.01
    relay = sign_request(authority, csr("relay"), federation)
    names = x509.load_pem_x509_certificate(relay).extensions
    names = names.get_extension_for_class(x509.SubjectAlternativeName).value
    assert [str(name.value) for name in names] == ["relay", "10.0.0.7"]
    issuer = x509.load_pem_x509_certificate((authority / "certificate.pem").read_bytes())
    limits = issuer.extensions.get_extension_for_class(x509.BasicConstraints).value
    assert (limits.ca, limits.path_length) == (True, 0)


def test_requests_of_others_are_refused(home):
    authority, federation = home
    with pytest.raises(ValueError, match='No member "turku"'):
        sign_request(authority, csr("turku"), federation)
    with pytest.raises(ValueError, match='No member "relay"'):
        sign_request(authority, csr("relay"), coast(authority=federation.authority))
    with pytest.raises(ValueError, match="a-z, 0-9"):
        sign_request(authority, csr("Oulu"), federation)
    with pytest.raises(ValueError, match="must be for one name; it has 2"):
        sign_request(authority, csr(names=["oulu", "kemi"]), federation)


def test_tampered_requests_are_refused(home):
    authority, federation = home
    body = base64.b64decode("".join(csr("oulu").decode().splitlines()[1:-1]))
    assert body.count(b"oulu") == 1
    changed = base64.encodebytes(body.replace(b"oulu", b"kemi")).decode()
    kind = "CERTIFICATE REQUEST-----"
    text = f"-----BEGIN {kind}\n{changed}-----END {kind}\n".encode()
    with pytest.raises(ValueError, match="signature is wrong"):
        sign_request(authority, text, federation)
    for bad in (b"", b"hello", made("oulu")[0], text[:200]):
        with pytest.raises(ValueError, match="must be a request in PEM"):
            sign_request(authority, bad, federation)


@pytest.mark.parametrize(
    "key", [ec.generate_private_key(ec.SECP384R1()), ed25519.Ed25519PrivateKey.generate()]
)
def test_other_kinds_of_keys_are_refused(home, key):
    with pytest.raises(ValueError, match="P-256"):
        sign_request(home[0], csr(key=key), home[1])


def test_another_authority_does_not_sign_or_answer(tmp_path, home):
    authority, federation = home
    make_authority(tmp_path / "false", "coast")
    request = make_request(tmp_path / "oulu", "oulu")
    with pytest.raises(ValueError, match="must be the one of the federation file"):
        sign_request(tmp_path / "false", request, federation)
    answer = sign_request(tmp_path / "false", request, coast())
    answer += (tmp_path / "false" / "certificate.pem").read_bytes()
    (tmp_path / "oulu" / "federation.toml").write_bytes(federation.content)
    with pytest.raises(ValueError, match="must be the one of the federation file"):
        install(tmp_path / "oulu", answer)
    assert not (tmp_path / "oulu" / "certificate.pem").exists()
    with pytest.raises(ValueError, match="end before its authority"):
        sign_request(authority, request, federation, days=4000)


def test_an_answer_is_for_the_key_the_name_and_the_federation(tmp_path, home):
    answer = join(tmp_path / "oulu", home, "oulu")
    other = tmp_path / "kemi"
    make_request(other, "kemi")
    (other / "federation.toml").write_bytes(home[1].content)
    with pytest.raises(ValueError, match="must be for a key in"):
        install(other, answer)
    with pytest.raises(ValueError, match="must hold two certificates"):
        install(other, answer[: answer.index(b"-----BEGIN", 1)])
    shutil.copy(tmp_path / "oulu" / "key.pem", other / "key.pem")
    with pytest.raises(ValueError, match="for the name that was asked"):
        install(other, answer)
    without = tuple(member for member in coast().members if member.name != "oulu")
    smaller = coast(authority=home[1].authority, members=without, edges=())
    (tmp_path / "oulu" / "federation.toml").write_bytes(smaller.content)
    with pytest.raises(ValueError, match='No member "oulu"'):
        install(tmp_path / "oulu", answer)


def test_a_chain_is_signed_by_the_authority_and_by_no_site(tmp_path, home):
    certificate, authority = made("oulu")
    assert check_chain(certificate, authority) == "oulu"
    with pytest.raises(ValueError, match="must be signed by the authority"):
        check_chain(certificate, made("oulu")[1])
    with pytest.raises(ValueError, match="may sign others"):
        check_chain(certificate, certificate)
    with pytest.raises(ValueError, match="both ends of a connection"):
        check_chain(authority, authority)
    with pytest.raises(ValueError, match="must be a certificate in PEM"):
        check_chain(b"x", authority)


def test_certificates_end_and_say_so_a_week_ahead():
    certificate, authority = made("oulu", days=30)
    now = datetime.now(UTC)
    assert expiry_message(certificate, "d", at=now) is None
    assert expiry_message(certificate, "d", at=now + timedelta(days=22.9)) is None
    message = expiry_message(certificate, "my sites/oulu", at=now + timedelta(days=24.5))
    day = f"{now + timedelta(days=30):%Y-%m-%d}"
    assert message == (
        f"certificate of oulu expires in 5 days, on {day}: renew with nefele site request "
        "'my sites/oulu' --renew"
    )
    assert "in 1 day," in expiry_message(certificate, at=now + timedelta(days=28.5))
    assert "in less than a day" in expiry_message(certificate, at=now + timedelta(days=29.5))
    late = now + timedelta(days=30.1)
    assert days_left(certificate, at=late) < 0
    with pytest.raises(ValueError, match=f"expired on {day}: renew with"):
        expiry_message(certificate, at=late)
    with pytest.raises(ValueError, match=f"expired on {day}"):
        check_chain(certificate, authority, at=late)
    with pytest.raises(ValueError, match="Check the clock"):
        check_chain(certificate, authority, at=now - timedelta(hours=2))
    assert check_chain(certificate, authority, at=now - timedelta(minutes=30)) == "oulu"


def test_a_renewal_keeps_the_old_key_until_it_is_joined(tmp_path, home):
    authority, federation = home
    folder = tmp_path / "oulu"
    old = join(folder, home, "oulu")
    key = (folder / "key.pem").read_bytes()
    request = make_request(folder, "oulu", renew=True)
    assert (folder / "key.pem").read_bytes() == key and mode(folder / "key-new.pem") == 0o600
    with pytest.raises(ValueError, match="is there already"):
        make_request(folder, "oulu", renew=True)
    answer = sign_request(authority, request, federation)
    answer += (authority / "certificate.pem").read_bytes()
    for _ in range(2):  # the second time nothing is left to be done
        assert install(folder, answer) == "oulu"
        assert (folder / "key.pem").read_bytes() != key and mode(folder / "key.pem") == 0o600
        assert not (folder / "key-new.pem").exists() and not (folder / "request-new.pem").exists()
        assert fingerprint((folder / "certificate.pem").read_bytes()) == fingerprint(request)
    with pytest.raises(ValueError, match="must be for a key in"):
        install(folder, old)
    with pytest.raises(ValueError, match="to renew"):
        make_request(tmp_path / "none", "oulu", renew=True)


def test_errors_about_keys_do_not_quote_them(tmp_path, home):
    answer = join(tmp_path / "oulu", home, "oulu")
    secret = b"-----BEGIN PRIVATE KEY-----\nc2VjcmV0\n-----END PRIVATE KEY-----\n"
    (tmp_path / "oulu" / "key.pem").write_bytes(secret)
    with pytest.raises(ValueError, match="must be a private key in PEM") as error:
        install(tmp_path / "oulu", answer)
    assert "c2VjcmV0" not in str(error.value)

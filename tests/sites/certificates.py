"""A small authority and certificates of it, ECDSA on P-256, with names of sites as common names."""

import datetime
import ipaddress
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

PEM = serialization.Encoding.PEM
DAY = datetime.timedelta(days=1)


class Authority:
    """Writes `authority.pem`, and a folder with key and certificate for each name."""

    def __init__(self, folder):
        self.folder = Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self._key = ec.generate_private_key(ec.SECP256R1())
        self.file = self.folder / "authority.pem"
        self.file.write_bytes(self._sign("authority", self._key, ca=True, hosts=()))

    def files(self, name, hosts=("localhost", "127.0.0.1")):
        """Paths of the three files of a site, by the names of a carrier's arguments."""
        folder = self.folder / name
        if not folder.exists():
            folder.mkdir()
            key = ec.generate_private_key(ec.SECP256R1())
            private = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            (folder / "key.pem").write_bytes(key.private_bytes(PEM, *private))
            (folder / "certificate.pem").write_bytes(self._sign(name, key, False, hosts))
            (folder / "authority.pem").write_bytes(self.file.read_bytes())
        return {
            "private_key": folder / "key.pem",
            "certificate": folder / "certificate.pem",
            "authority": folder / "authority.pem",
        }

    def _sign(self, name, key, ca, hosts):
        now = datetime.datetime.now(datetime.UTC)
        builder = (
            x509.CertificateBuilder()
            .subject_name(_named(name))
            .issuer_name(_named("authority"))
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - DAY)
            .not_valid_after(now + DAY)
            .add_extension(x509.BasicConstraints(ca=ca, path_length=None), critical=True)
        )
        if hosts:
            names = x509.SubjectAlternativeName([_host(host) for host in hosts])
            builder = builder.add_extension(names, critical=False)
        return builder.sign(self._key, hashes.SHA256()).public_bytes(PEM)


def _named(name):
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _host(host):
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)

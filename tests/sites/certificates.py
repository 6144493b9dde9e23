"""A small authority and certificates of it, with names of sites as common names."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

from nefele.sites import _certificates as x


class Authority:
    """Writes `authority.pem`, and a folder with key and certificate for each name."""

    def __init__(self, folder):
        self.folder = Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self._key, now = x.new_key(), datetime.now(UTC)
        self._certificate = x.authority_certificate(self._key, "coast", 30, now)
        self.file = self.folder / "authority.pem"
        self.file.write_bytes(x.pem(self._certificate))

    def files(self, name, hosts=("localhost", "127.0.0.1"), days=20.0):
        """Paths of the three files of a site, by the names of a carrier's arguments."""
        folder = self.folder / name
        if not folder.exists():
            folder.mkdir()
            self._make(folder, name, list(hosts), days)
        return {
            "private_key": folder / "key.pem",
            "certificate": folder / "certificate.pem",
            "authority": folder / "authority.pem",
        }

    def _make(self, folder, name, hosts, days):
        key, now = x.new_key(), datetime.now(UTC)
        start = now - timedelta(days=10) if days < 0 else now
        certificate = x.site_certificate(
            self._key,
            self._certificate,
            key.public_key(),
            (name, "coast"),
            hosts,
            now + timedelta(days=days),
            start,
        )
        (folder / "key.pem").touch(0o600)
        (folder / "key.pem").write_bytes(x.private_pem(key))
        (folder / "certificate.pem").write_bytes(x.pem(certificate))
        (folder / "authority.pem").write_bytes(self.file.read_bytes())

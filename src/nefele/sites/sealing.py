"""End-to-end sealing: whoever carries a message can neither read nor change it.

Each site draws a key pair for one run and signs its public half, together with the run and the
federation's hash, by the key of its certificate. Two sites that have heard each other's `hello`
share a secret that nobody between them has.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
from collections.abc import Callable, Iterable
from itertools import count
from pathlib import Path
from typing import Any, Protocol

from nefele.sites._secrets import write_secret
from nefele.sites.wire import VERSION, Packet, RefusedError, decode, encode, run_mark

_HELLO, _SEALED = b"H", b"S"
_NONCE = 25  # bytes before what is sealed: the kind, and the nonce
OVERHEAD = _NONCE + 16  # bytes that sealing adds
_LONGEST = 16384  # bytes of a hello
_KEY = 32  # bytes
_NEEDS = 'Sites need more packages. Install them by: pip install "nefele[sites]"'


class Signer(Protocol):
    """Who a site is, and how it knows who others are."""

    name: str
    certificate: bytes

    def sign(self, data: bytes) -> bytes:
        """A signature by the key of the certificate."""

    def verify(self, name: str, certificate: bytes, data: bytes, signature: bytes) -> None:
        """A ValueError unless a certificate of this name, by the same authority, signed it."""


def run_key(path: Path) -> bytes:
    """The private key of a run, drawn once and kept in a file that only its owner can read."""
    if path.exists():
        key = path.read_bytes()
        if len(key) == _KEY:
            return key
        path.unlink()  # the process that drew it was killed, and has told nobody
    key = os.urandom(_KEY)
    write_secret(path, key)
    return key


class Seal:
    """Seals what goes to neighbours and opens what comes from them.

    Parameters
    ----------
    signer : Signer
    federation, run : str
        Hash of the federation's file, and name of the run.
    peers : iterable of str
        Sites that may be talked to; a hello of anybody else is refused.
    key : bytes
        Private key of this run, 32 bytes.
    told : callable, optional
        Is given (name, certificate) of each new peer; may raise a ValueError.
    """

    def __init__(
        self,
        signer: Signer,
        federation: str,
        run: str,
        peers: Iterable[str],
        key: bytes,
        told: Callable[[str, bytes], object] = lambda name, certificate: None,
    ) -> None:
        try:
            from nacl import bindings
        except ImportError as error:  # pragma: no cover
            raise ImportError(_NEEDS) from error
        self._nacl, self._private = bindings, key
        # Never used twice with a key: drawn for this process, then counted.
        first = os.urandom(16)
        self._nonces = (first + number.to_bytes(8, "little") for number in count())
        self.signer, self.federation, self.run, self.told = signer, federation, run, told
        self.peers = frozenset(peers)
        me = signer.name
        self._out = {name: run_mark(federation, run, me, name) for name in self.peers}
        self._in = {name: run_mark(federation, run, name, me) for name in self.peers}
        self._secrets: dict[str, bytes] = {}
        self._keys: dict[str, bytes] = {}

    def knows(self, name: str) -> bool:
        """Whether a peer's hello has come."""
        return name in self._secrets

    # -- hello ----------------------------------------------------------------------------------

    def hello(self, ask: bool) -> bytes:
        """Who this is and its key of the run, signed; `ask` for the other's."""
        key = self._nacl.crypto_scalarmult_base(self._private)
        signature = self.signer.sign(self._said(self.signer.name, key))
        content = {
            "version": VERSION,
            "federation": self.federation,
            "run": self.run,
            "name": self.signer.name,
            "key": _text(key),
            "certificate": self.signer.certificate.decode(),
            "signature": _text(signature),
            "ask": ask,
        }
        return _HELLO + json.dumps(content).encode()

    def _said(self, name: str, key: bytes) -> bytes:
        """What is signed."""
        words = ("nefele hello", str(VERSION), self.federation, self.run, name)
        return b"\0".join((*(word.encode() for word in words), key))

    def meet(self, sender: str, blob: bytes) -> bool:
        """Take a peer's hello, and say whether it asks for ours; a `RefusedError` otherwise."""
        found = self._checked(sender, blob, sender in self.peers)
        key = _bytes(found["key"])
        if self._keys.get(sender) != key:
            self._secrets[sender] = self._agreed(key)
            self._keys[sender] = key
        return bool(found["ask"])

    def _agreed(self, key: bytes) -> bytes:
        """The secret that the owner of a public key shares with this site."""
        try:
            found: bytes = self._nacl.crypto_box_beforenm(key, self._private)
        except Exception:  # a key that gives the same secret with any other
            raise RefusedError("malformed", "a weak key") from None
        return found

    def secret(self, name: str, blob: bytes) -> bytes:
        """What nobody but this site and the one that signed a hello knows, 32 bytes."""
        key = _bytes(self._checked(name, blob, True)["key"])
        return hashlib.blake2b(b"nefele pair", key=self._agreed(key), digest_size=32).digest()

    def _checked(self, sender: str, blob: bytes, known: bool) -> dict[str, Any]:
        """The content of a hello; a `RefusedError` unless a known member has signed it."""
        found = _read_hello(blob)
        if found["version"] != VERSION:
            raise RefusedError("other version", f"{found['version']}, this is {VERSION}")
        if found["federation"] != self.federation:
            raise RefusedError("other federation file", f"of {sender}")
        if found["run"] != self.run:
            raise RefusedError("other run", f"of {sender}: {found['run'][:40]!r}")
        if found["name"] != sender or not known:
            raise RefusedError("not a neighbour" if found["name"] == sender else "spoofed sender")
        key = _bytes(found["key"])
        if len(key) != _KEY:
            raise RefusedError("malformed")
        certificate = found["certificate"].encode()
        try:
            self.signer.verify(
                sender, certificate, self._said(sender, key), _bytes(found["signature"])
            )
            self.told(sender, certificate)
        except ValueError as error:
            raise RefusedError("not signed by its certificate", str(error)) from None
        return found

    # -- messages -------------------------------------------------------------------------------

    def encode(self, to: str, packet: Packet) -> bytes:
        """A message to a peer as bytes that are not sealed yet."""
        return encode(packet, self._out[to])

    def decode(self, to: str, plain: bytes) -> Packet:
        """The way back."""
        return decode(plain, self._out[to])

    def decode_from(self, sender: str, plain: bytes) -> Packet:
        """The message of a peer that was opened before."""
        return decode(plain, self._in[sender])

    def seal(self, to: str, packet: Packet) -> bytes:
        """What goes to a peer whose hello has come."""
        return self.seal_plain(to, self.encode(to, packet))

    def seal_plain(self, to: str, plain: bytes) -> bytes:
        """The same, of a message that is encoded already."""
        nonce = next(self._nonces)
        sealed = self._nacl.crypto_box_easy_afternm(plain, nonce, self._secrets[to])
        return b"".join((_SEALED, nonce, sealed))

    def open(self, sender: str, blob: bytes) -> Packet:
        """The message of a peer; a `RefusedError` when it is not what that peer has sealed."""
        if sender not in self._secrets:
            raise RefusedError("unknown sender" if sender not in self.peers else "no hello yet")
        secret = self._secrets[sender]
        try:
            plain = self._nacl.crypto_box_open_easy_afternm(blob[_NONCE:], blob[1:_NONCE], secret)
        except Exception:  # whatever changed bytes provoke
            raise RefusedError("changed or forged") from None
        return decode(plain, self._in[sender])


def is_hello(blob: bytes) -> bool:
    """Whether some bytes claim to be a hello."""
    return blob[:1] == _HELLO


def is_sealed(blob: bytes) -> bool:
    """Whether some bytes claim to be a sealed message."""
    return blob[:1] == _SEALED


def _read_hello(blob: bytes) -> dict[str, Any]:
    if len(blob) > _LONGEST:
        raise RefusedError("too long")
    kinds = {
        **dict.fromkeys(("federation", "run", "name", "key", "certificate", "signature"), str),
        **{"version": int, "ask": bool},
    }
    try:
        found = json.loads(blob[1:])
        whole = isinstance(found, dict) and all(
            type(found[name]) is kind for name, kind in kinds.items()
        )
        for name in kinds if whole else ():
            str(found[name]).encode()  # half characters cannot be
    except (ValueError, KeyError, RecursionError):
        whole = False
    if not whole:
        raise RefusedError("malformed")
    return dict(found)


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _bytes(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except ValueError:
        raise RefusedError("malformed") from None

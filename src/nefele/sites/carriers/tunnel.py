"""A way out through an HTTP proxy: Zenoh knows none, so it dials a local port instead.

What runs through is TLS from end to end; the proxy sees where it goes and how much.
"""

from __future__ import annotations

import base64
import contextlib
import ipaddress
import os
import socket
import threading
from collections.abc import Callable, Mapping
from urllib.parse import unquote, urlsplit

from nefele.sites.carriers.names import host_and_port

_PATIENCE = 10.0  # seconds for the proxy to answer
_LONGEST_ANSWER = 16384
_CHUNK = 65536


def proxy_for(
    host: str, port: int, proxy: str | None = None, environ: Mapping[str, str] = os.environ
) -> str | None:
    """URL of the proxy that leads to a host, or None when it is dialled straight.

    Parameters
    ----------
    proxy : str, optional
        A proxy of one's own, whatever the environment says; "" for none.

    Examples
    --------
    >>> outside = {"https_proxy": "http://proxy.example:3128", "no_proxy": "localhost,.local"}
    >>> proxy_for("relay.example", 7447, environ=outside)
    'http://proxy.example:3128'
    >>> proxy_for("nas.local", 7447, environ=outside) is None
    True
    """
    if proxy is not None:
        return _checked(proxy) if proxy else None
    found = environ.get("https_proxy") or environ.get("HTTPS_PROXY")
    if not found or _excepted(host, port, environ.get("no_proxy") or environ.get("NO_PROXY") or ""):
        return None
    return _checked(found)


def _excepted(host: str, port: int, no_proxy: str) -> bool:
    host = host.lower().rstrip(".")
    for entry in (part.strip().lower() for part in no_proxy.split(",")):
        name = entry.removesuffix(f":{port}").removeprefix("*.").removeprefix(".")
        if entry == "*" or (name and (host == name or host.endswith(f".{name}"))):
            return True
        with contextlib.suppress(ValueError):
            if ipaddress.ip_address(host) in ipaddress.ip_network(entry, strict=False):
                return True
    return False


def _checked(proxy: str) -> str:
    url = proxy if "://" in proxy else f"http://{proxy}"
    try:
        parts = urlsplit(url)
        good = parts.scheme == "http" and parts.hostname
        host_and_port(f"{_bracketed(parts.hostname or '')}:{parts.port or 80}")
    except ValueError:
        good = None
    if not good:
        raise ValueError(
            'The proxy must be "http://[user:password@]host:port"; got '
            f"{url.rpartition('@')[2]!r}."  # never the password
        )
    return url


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


class Tunnel:
    """A port on 127.0.0.1 whose connections lead through a proxy to one host.

    Parameters
    ----------
    proxy : str
        "http://[user:password@]host:port".
    host, port : str, int
        Where all connections lead.

    Attributes
    ----------
    port : int
        The local port.
    """

    def __init__(self, proxy: str, host: str, port: int) -> None:
        parts = urlsplit(_checked(proxy))
        self._proxy = (parts.hostname or "", parts.port or 80)
        target = f"{_bracketed(host)}:{port}"
        lines = [f"CONNECT {target} HTTP/1.1", f"Host: {target}"]
        if parts.username is not None:
            user = f"{unquote(parts.username)}:{unquote(parts.password or '')}".encode()
            lines.append(f"Proxy-Authorization: Basic {base64.b64encode(user).decode()}")
        self._request = ("\r\n".join(lines) + "\r\n\r\n").encode()
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        self._threads: list[threading.Thread] = []
        self._closed = False
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._start(self._accept)

    def close(self) -> None:
        """End the port and all connections."""
        with self._lock:
            self._closed = True
            ending = list(self._open)
        for one in ending:
            _end(one)
        with contextlib.suppress(OSError):  # wakes who accepts
            socket.create_connection(("127.0.0.1", self.port), timeout=_PATIENCE).close()
        for thread in self._threads:
            thread.join()

    def _start(self, target: Callable[..., None], *args: socket.socket) -> bool:
        thread = threading.Thread(target=target, args=args, name="nefele-tunnel", daemon=True)
        with self._lock:
            if not self._closed:
                self._threads = [one for one in self._threads if one.is_alive()]
                self._threads.append(thread)
                thread.start()
            return not self._closed

    def _accept(self) -> None:
        with self._listener:
            while not self._closed:
                near, _ = self._listener.accept()
                if not self._start(self._carry, near):
                    near.close()

    def _carry(self, near: socket.socket) -> None:
        far: socket.socket | None = None
        with near:
            self._keep(near)
            try:
                far = self._through()
                self._start(self._pump, far, near)
                self._pump(near, far)
            except OSError:
                pass
            finally:
                self._drop(near)
                if far is not None:
                    self._drop(far)

    def _through(self) -> socket.socket:
        """A connection to the host; an OSError when the proxy gives none."""
        far = socket.create_connection(self._proxy, timeout=_PATIENCE)
        self._keep(far)
        try:
            far.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            far.sendall(self._request)
            answer = b""
            while b"\r\n\r\n" not in answer:
                # Byte by byte: what follows the answer belongs to the connection.
                more = far.recv(1)
                answer += more
                if not more or len(answer) > _LONGEST_ANSWER:
                    raise ConnectionError("the proxy did not answer")
            if answer.split(None, 2)[1:2] != [b"200"]:
                raise ConnectionError("the proxy refused")
            far.settimeout(None)
        except OSError:
            self._drop(far)
            raise
        return far

    def _pump(self, source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while chunk := source.recv(_CHUNK):
                sink.sendall(chunk)
        _end(source)
        _end(sink)

    def _keep(self, one: socket.socket) -> None:
        with self._lock:
            self._open.add(one)
            if self._closed:
                _end(one)

    def _drop(self, one: socket.socket) -> None:
        with self._lock:
            self._open.discard(one)
        one.close()


def _end(one: socket.socket) -> None:
    """Wake whoever waits for a socket, in any thread."""
    with contextlib.suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)

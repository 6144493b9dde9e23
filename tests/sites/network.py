"""What tests of carriers share: free ports, a mailbox, messages that are said until they come."""

import contextlib
import json
import queue
import select
import socket
import threading
import time

import zenoh

from nefele.sites.carriers.zenoh_settings import settings
from tests.waiting import wait_until


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Mailbox:
    """What came, in order; a carrier takes it as `receive`."""

    def __init__(self):
        self.came = []

    def __call__(self, sender, blob):
        self.came.append((sender, blob))

    def __contains__(self, message):
        return message in self.came


@contextlib.contextmanager
def opened(*carriers):
    """Open carriers with a mailbox each; close them all."""
    boxes = [Mailbox() for _ in carriers]
    with contextlib.ExitStack() as stack:
        for carrier, box in zip(carriers, boxes, strict=True):
            carrier.open(box)
            stack.callback(carrier.close)
        yield boxes


def say_until(carrier, to, blob, box, message=None):
    """Send until it came: carriers may lose, and who sends says it again."""
    message = message or (carrier.me, blob)
    last = [0.0]

    def came():
        if time.monotonic() - last[0] > 0.2:
            carrier.send(to, blob)
            last[0] = time.monotonic()
        return message in box

    wait_until(came, f"{blob!r} to {to}")


def stranger(authority, name, at, mode="peer", protocol="tls", listens=False):
    """A Zenoh session without any access control of its own: it tries all it can."""
    values = settings(mode, files=authority.files(name), access={"enabled": False}, most_bytes=1000)
    values |= {
        "listen/endpoints" if listens else "connect/endpoints": [f"{protocol}/{at}"],
        "transport/link/protocols": [protocol],
    }
    config = zenoh.Config()
    for path, value in values.items():
        config.insert_json5(path, json.dumps(value))
    return zenoh.open(config)


class Proxy:
    """An HTTP proxy that knows CONNECT only; counts the tunnels, and may want a password."""

    def __init__(self, authorization=None):
        self.targets = queue.Queue()
        self.refused = 0
        self._wanted = authorization
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self._stop.set()
        for thread in self._threads:
            thread.join()
        self._listener.close()

    def _accept(self):
        while not self._stop.is_set():
            if select.select([self._listener], [], [], 0.05)[0]:
                one, _ = self._listener.accept()
                self._threads.append(threading.Thread(target=self._serve, args=(one,)))
                self._threads[-1].start()

    def _serve(self, near):
        with near, contextlib.suppress(OSError):
            request = b""
            while b"\r\n\r\n" not in request:
                more = near.recv(4096)
                if not more:
                    return
                request += more
            verb, target, _ = request.split(None, 2)
            assert verb == b"CONNECT"
            if self._wanted is not None and self._wanted.encode() not in request:
                self.refused += 1
                near.sendall(b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n")
                return
            host, _, port = target.decode().rpartition(":")
            with socket.create_connection((host, int(port))) as far:
                self.targets.put(target.decode())
                near.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
                self._pump(near, far)

    def _pump(self, near, far):
        while not self._stop.is_set():
            for source in select.select([near, far], [], [], 0.05)[0]:
                chunk = source.recv(65536)
                if not chunk:
                    return
                (far if source is near else near).sendall(chunk)

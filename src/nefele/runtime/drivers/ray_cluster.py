"""Where Ray runs: on this machine alone, or a cluster that is there already."""

from __future__ import annotations

import os
import socket
import sys
import time
from typing import Any

from nefele.runtime.optional import need

_PATIENCE = 10.0  # seconds
LOCAL = {
    "RAY_USAGE_STATS_ENABLED": "0",
    # The node's address is then that of the loopback device, and nothing listens anywhere else.
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
}


class Connected:
    """Ray while it is needed: one that runs already, one at an address, or one of our own.

    Our own listens on the loopback device only, and ends with the solve.
    """

    def __init__(self, address: str | None, parts: int) -> None:
        self.address, self.parts, self.ours = address, parts, False

    def __enter__(self) -> Connected:
        local = self.address is None
        if local:
            _stay_local()
        ray = need("ray", "ray", "Ray, which runs parts on many machines")
        if not ray.is_initialized():
            self.ours = True
            if local:
                cpus = max(self.parts, os.cpu_count() or 1)
                _begin(ray, num_cpus=cpus, include_dashboard=False, _node_ip_address="127.0.0.1")
            else:
                _begin(ray, address=self.address)
        try:
            _check_room(ray, self.parts)
        except ValueError:
            self.__exit__()
            raise
        return self

    def __exit__(self, *error: Any) -> None:
        if self.ours:
            need("ray", "ray", "Ray").shutdown()


def _begin(ray: Any, **options: Any) -> None:
    address = options.get("address")
    try:
        if address is not None:
            _knock(address)
        ray.init(log_to_driver=False, configure_logging=False, **options)
    except (OSError, ValueError) as error:  # a ConnectionError of Ray as well
        raise ValueError(
            f"address must be that of a running Ray cluster, or auto; got {address!r} ({error}). "
            "Start one by ray start --head, or leave out address."
        ) from None


def _knock(address: str) -> None:
    """Whether anybody listens there: Ray itself would try for minutes."""
    host, _, port = address.rpartition(":")
    if host and port.isdecimal() and "/" not in address:
        socket.create_connection((host.strip("[]"), int(port)), timeout=_PATIENCE).close()


def _stay_local() -> None:
    """Before Ray is imported; it reads some of this once."""
    for name, value in LOCAL.items():
        os.environ.setdefault(name, value)
    constants = sys.modules.get("ray._private.ray_constants")
    if constants is not None and os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] == "0":
        constants.ENABLE_RAY_CLUSTER = False  # type: ignore[attr-defined]


def _check_room(ray: Any, parts: int) -> None:
    give_up = time.monotonic() + _PATIENCE  # resources are told a little after the start
    while "CPU" not in ray.cluster_resources() and time.monotonic() < give_up:
        time.sleep(0.1)
    cpus = ray.cluster_resources().get("CPU", 0)
    if cpus < parts:
        raise ValueError(
            f"parts must be at most the CPUs of the cluster, {cpus:g}; got {parts}. Each part is "
            "an actor with a CPU of its own."
        )

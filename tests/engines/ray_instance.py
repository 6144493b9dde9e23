"""One small Ray instance for the tests of a module, on the loopback device."""

import os
from contextlib import contextmanager

from nefele.runtime.drivers.ray_cluster import LOCAL


@contextmanager
def small_ray():
    """A Ray with four CPUs on paper, as a test module needs it; yields the module `ray`."""
    before = {name: os.environ.get(name) for name in LOCAL}
    os.environ.update(LOCAL)
    import ray

    ray.init(
        num_cpus=4,
        include_dashboard=False,
        object_store_memory=100 * 2**20,
        _node_ip_address="127.0.0.1",
        log_to_driver=False,
        configure_logging=False,
    )
    try:
        yield ray
    finally:
        ray.shutdown()
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})

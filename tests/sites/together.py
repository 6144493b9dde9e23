"""Programs of all members at once: in one process, or over the sites' driver and a hub."""

import threading

from nefele.runtime.drivers import InProcess
from nefele.sites.carriers.memory import Hub
from nefele.sites.consent import Guard, consent_of
from nefele.sites.driver import Driver
from nefele.sites.journal import Journal
from nefele.sites.links import network
from nefele.sites.sealing import Seal


class Signer:
    """Stands for certificates: whoever has the name has signed."""

    def __init__(self, name):
        self.name, self.certificate = name, b"certificate of " + name.encode()

    def sign(self, data):
        return self.name.encode() + data

    def verify(self, name, certificate, data, signature):
        if signature != name.encode() + data or certificate != b"certificate of " + name.encode():
            raise ValueError("not signed")


def seal_of(federation, name, net, key=None):
    key = bytes([net.members.index(name) + 1]) * 32 if key is None else key
    return Seal(Signer(name), federation.hash, "1", net.of(name).peers, key)


def in_process(federation, programs):
    """What the program of each member returns."""
    return InProcess(network(federation).links, programs).run()


def by_sites(federation, programs, folder, n_shared=0, hub=None, seals=None):
    """The same over sealed messages, and the drivers; consent is kept."""
    net, hub = network(federation), hub or Hub()
    values, drivers, errors = {}, {}, {}

    def run(name):
        carrier = hub.carrier(name)
        try:
            with Journal(folder / f"journal-{name}", b"test") as journal:
                seal = seals[name] if seals else seal_of(federation, name, net)
                guard = Guard(consent_of(federation, name, net, n_shared))
                driver = drivers[name] = Driver(net.of(name), carrier, seal, journal, allow=guard)
                carrier.open(driver.receive)
                values[name] = driver.run(programs[name])
                driver.linger(10.0)
        except Exception as error:
            errors[name] = error
        finally:
            carrier.close()

    threads = [threading.Thread(target=run, args=(name,), daemon=True) for name in programs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
        if errors:
            raise next(iter(errors.values()))
    assert values.keys() == programs.keys()
    return values, drivers

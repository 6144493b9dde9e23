"""The settings of Zenoh sessions: mutual TLS only, nothing found by itself, exact rights.

Who is at the other end of a link is told by the common name of its certificate, and the rights are
bound to that name: whoever answers at the address of a neighbour, or of the relay, can read and
write only what its own certificate allows. Hence a tunnel, where the name of the host cannot be
checked (Zenoh knows it as 127.0.0.1), gives nothing away.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

RELAY = "relay"  # the common name of the relay's certificate; no site is called so
_QUEUES = "control real_time interactive_high interactive_low data_high data data_low background"
_RETRY = {"period_init_ms": 1000, "period_max_ms": 4000, "period_increase_factor": 2}


def key(federation: str, sender: str, receiver: str) -> str:
    """Key of the messages from one site to another."""
    return f"nefele/{federation}/{sender}/{receiver}"


def rights(federation: str, others: Mapping[str, Iterable[tuple[str, str]]]) -> dict[str, Any]:
    """Access control: what the holders of certificates may do over their links, all else denied.

    Parameters
    ----------
    others : mapping of str to pairs of str
        For each common name the pairs (sender, receiver) whose messages may come from it. Those of
        the opposite direction may go to it.

    Examples
    --------
    >>> made = rights("f00d", {"b": [("b", "a")]})
    >>> for rule in made["rules"]:
    ...     print(rule["flows"], rule["messages"], rule["key_exprs"])
    ['ingress'] ['put'] ['nefele/f00d/b/a']
    ['egress'] ['declare_subscriber'] ['nefele/f00d/b/a']
    ['egress'] ['put'] ['nefele/f00d/a/b']
    ['ingress'] ['declare_subscriber'] ['nefele/f00d/a/b']
    """
    rules = {name: _rules(federation, name, list(pairs)) for name, pairs in others.items()}
    return {
        "enabled": True,
        "default_permission": "deny",
        "rules": [rule for own in rules.values() for rule in own],
        "subjects": [{"id": name, "cert_common_names": [name]} for name in rules],
        "policies": [
            {"rules": [rule["id"] for rule in own], "subjects": [name]}
            for name, own in rules.items()
        ],
    }


def _rules(federation: str, name: str, pairs: list[tuple[str, str]]) -> list[dict[str, Any]]:
    there = sorted({key(federation, a, b) for a, b in pairs})
    back = sorted({key(federation, b, a) for a, b in pairs})
    allowed = (
        ("ingress", "put", there),
        ("egress", "declare_subscriber", there),
        ("egress", "put", back),
        ("ingress", "declare_subscriber", back),
    )
    return [
        {
            "id": f"{name}-{number}",
            "permission": "allow",
            "flows": [flow],
            "messages": [message],
            "key_exprs": keys,
        }
        for number, (flow, message, keys) in enumerate(allowed)
    ]


def check_files(**files: Path | str | None) -> dict[str, Path]:
    """A ValueError unless all files of mutual TLS are there: nothing weaker is made."""
    found = {}
    for what, file in files.items():
        if file is None or not Path(file).is_file():
            raise ValueError(
                f"Sites talk by mutual TLS only: {what} must be a file; got "
                f"{None if file is None else str(file)!r}."
            )
        found[what] = Path(file)
    return found


def tls(files: Mapping[str, Path]) -> dict[str, Any]:
    """TLS of both ends of a link."""
    private_key, certificate = str(files["private_key"]), str(files["certificate"])
    return {
        "root_ca_certificate": str(files["authority"]),
        "enable_mtls": True,
        "listen_private_key": private_key,
        "listen_certificate": certificate,
        "connect_private_key": private_key,
        "connect_certificate": certificate,
        "verify_name_on_connect": True,
        "close_link_on_expiration": True,
    }


def settings(
    mode: str,
    *,
    files: Mapping[str, Path],
    access: Mapping[str, Any],
    listen: Iterable[str] = (),
    connect: Iterable[str] = (),
    most_bytes: int,
) -> dict[str, Any]:
    """All settings of a session, by the paths of Zenoh's configuration."""
    return {
        "mode": mode,
        "listen/endpoints": [f"tls/{address}" for address in listen],
        "connect/endpoints": [f"tls/{address}" for address in connect],
        # A client would block until it is connected: it tries once, and is opened again.
        "connect/timeout_ms": 0 if mode == "client" else -1,
        "connect/exit_on_failure": mode == "client",
        "connect/retry": _RETRY,
        "scouting/multicast/enabled": False,
        "scouting/gossip/enabled": False,
        "open/return_conditions/connect_scouted": False,
        "open/return_conditions/declares": False,
        "scouting/delay": 0,
        "adminspace/enabled": False,
        "access_control": access,
        "transport/link/protocols": ["tls"],
        "transport/link/tls": tls(files),
        "transport/shared_memory/enabled": False,
        **_queues(),
        # Somewhat longer ones are seen and counted; far longer ones are dropped unread.
        "transport/link/rx/max_message_size": 2 * most_bytes + 65536,
    }


def _queues() -> dict[str, Any]:
    """How much waits for a link, and how long: the defaults lose messages in lockstep."""
    return {
        # An express message takes a place of its own in the queue of a link; what finds none within
        # 1 ms is dropped. With the usual 2 places the relay drops: 20 sites of degree 4 in
        # lockstep, p90 of a round 506 ms; with 16 (the most) 11 ms. Then p50 is 3 to 7 ms direct
        # and 5 to 8 ms relayed on two cores, express or not; less in one thread, see
        # `use_one_thread`.
        "transport/link/tx/queue/size": {
            one: 16 if one == "data" else 2 for one in _QUEUES.split()
        },
        # Pieces of long messages wait longer, or none would pass a slow link. Over 1 MB/s, 8 MB
        # came with this limit; 16 MB did not within 30 s.
        "transport/link/tx/queue/congestion_control/drop": {
            "wait_before_drop": 1000,
            "max_wait_before_drop_fragments": 5_000_000,
        },
    }

"""Algorithms over a network: parts, programs and drivers that move what programs ask for."""

from nefele.runtime.drivers import InProcess
from nefele.runtime.faults import Faults
from nefele.runtime.messages import Ledger, Message
from nefele.runtime.part import Part, join, split
from nefele.runtime.passing import pass_messages, relax_messages
from nefele.runtime.run import Round, Run

__all__ = [
    "Faults",
    "InProcess",
    "Ledger",
    "Message",
    "Part",
    "Round",
    "Run",
    "join",
    "pass_messages",
    "relax_messages",
    "split",
]

"""Runtimes move messages between sites; they hold no formulas of their own."""

from nefele.runtime.faults import Faults
from nefele.runtime.messages import Ledger, Message
from nefele.runtime.mock import MessageRun, pass_messages
from nefele.runtime.relax import RelaxRun, relax_messages

__all__ = [
    "Faults",
    "Ledger",
    "Message",
    "MessageRun",
    "RelaxRun",
    "pass_messages",
    "relax_messages",
]

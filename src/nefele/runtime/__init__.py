"""Runtimes move messages between sites; they hold no formulas of their own."""

from nefele.runtime.mock import MessageRun, pass_messages

__all__ = ["MessageRun", "pass_messages"]

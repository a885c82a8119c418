"""What is made of a gold: a completion, and whether the check has to take it."""

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

Kind = Literal["form", "near"]
"""The classes of ``PROBES`` that are made of a gold: ``form`` has to pass, ``near`` has to fail."""

Wrap = Callable[[str], str]
"""Puts an answer into the text that the steps of a check read."""


class Made(NamedTuple):
    """A completion, text or messages, made of a gold; an independent reading has proved what it is."""

    form: str
    kind: Kind
    completion: Any


SPACES = {"padded": (" \n ", " \n")}
MARKS = {"bold": ("**", "**"), "code": ("`", "`"), "quotes": ('"', '"')}
"""What stands around an answer."""

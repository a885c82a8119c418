"""What is asked of a pattern and a text; most runs ask no process."""

from typing import NamedTuple

Answer = bool | Exception
"""Whether a text contains the pattern, or the error."""


class Question(NamedTuple):
    """A text to search, and the pattern with its flags.

    Attributes:
        pattern: The pattern.
        text: The text.
        flags: Flags of ``re``.
        lists: The named lists of a pattern of the package ``regex``, as JSON; ``""`` for a pattern of ``re``.
    """

    pattern: str
    text: str
    flags: int = 0
    lists: str = ""

    @property
    def compiled(self) -> tuple[str, int, str]:
        """What a process compiles."""
        return self.pattern, self.flags, self.lists

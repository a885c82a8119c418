"""Patterns that rows bring: searched for without regard to case, in bounded time."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from assay.calls.limits import Limits
from assay.errors import quoted
from assay.expressions.regex.search import search, search_here
from assay.expressions.regex.spans import Matches, results

Value = TypeVar("Value")
_PLAIN = re.compile(r"[A-Za-z0-9 _:,'\"!#%&/;<=>@~-]+")
"""Matches what stands for itself in a pattern."""


@dataclass(frozen=True)
class Pattern:
    """A pattern, and the limits of searching for it.

    Attributes:
        source: A Python regular expression, if it is valid.
        limits: The limits.
    """

    source: str
    limits: Limits | None = None

    def found(self, text: str, *, flags: int = re.IGNORECASE) -> bool:
        """Return whether ``re.search`` finds it."""
        return self._named(lambda: self._found(text, flags))

    def count(self, text: str, *, ignore_case: bool = True) -> int:
        """Return the number of matches of ``re.findall``; raises what ``found`` raises."""
        return self._named(lambda: self._count(text, ignore_case=ignore_case))

    def found_as_word(self, text: str) -> bool:
        r"""Return whether ``re.search`` finds it between two ``\b``; raises what ``found`` raises."""
        if self._plain(text) and not self.found(text):
            return False
        return Pattern(rf"\b{self.source}\b", self.limits).found(text)

    def _found(self, text: str, flags: int) -> bool:
        if flags == re.IGNORECASE and (word := self._plain(text)):
            return word in text.lower()
        stop = None if self.limits is None else self.limits.stop
        (answer,) = search_here(self.source, [text], stop, flags=flags)
        if isinstance(answer, Exception):
            raise answer
        return search(self.source, text, self.limits, flags=flags) if answer is None else answer

    def _count(self, text: str, *, ignore_case: bool) -> int:
        if word := self._plain(text):
            return text.lower().count(word) if ignore_case else text.count(self.source)
        (number,) = results(Matches(f"(?i){self.source}" if ignore_case else self.source), [text], self.limits)
        if isinstance(number, Exception):
            raise number
        return int(number or 0)

    def _plain(self, text: str) -> str:
        # to search for a phrase in a text in lower case takes a tenth of the time
        return self.source.lower() if text.isascii() and _PLAIN.fullmatch(self.source) else ""

    def _named(self, search_: Callable[[], Value]) -> Value:
        shown = f"the pattern {quoted(self.source)}"
        try:
            return search_()
        except (TimeoutError, MemoryError) as error:
            raise type(error)(f"{shown}: {error}") from None
        except Exception as error:  # noqa: BLE001  (re has bugs of its own, besides what it rejects)
            raise ValueError(f"{shown}: {error}") from None

"""Extract the text between two tags in linear time."""

import contextlib
import re
import warnings
from collections import deque
from re import _constants as sre  # type: ignore[attr-defined]
from re import _parser as sre_parser  # type: ignore[attr-defined]
from typing import NamedTuple


class TagText:
    r"""One tag: matches ``<name>\s*(.*?)\s*</name>`` with DOTALL, in linear time.

    The pattern itself takes quadratic time for runs of white space, and for opening tags without a closing one. But its match always
    spans from the first opening tag to the first closing tag after it; if there is none, later opening tags do not match either. And
    ``\s`` is what ``str.strip`` strips. A name with special characters is used as part of the pattern if that compiles, and
    literally if not. The same holds for a name that is a sequence of characters and classes; one with groups, alternatives or
    repeats is searched for by ``re``.
    """

    _LITERAL = re.compile(r"[^.^$*+?{}\[\]\\|()]*", re.DOTALL)

    def __init__(self, name: str) -> None:
        self.name = name
        self._open, self._close = _Text(f"<{name}>"), _Text(f"</{name}>")
        self._pattern: re.Pattern[str] | None = None
        if not self._LITERAL.fullmatch(name):
            with contextlib.suppress(re.error, OverflowError, RecursionError):
                self._pattern = re.compile(rf"<{name}>\s*(.*?)\s*</{name}>", re.DOTALL)
        if self._pattern is not None and _is_flat(name):
            self._open, self._close = (_Text(mark, re.compile(mark, re.DOTALL)) for mark in (f"<{name}>", f"</{name}>"))
            self._pattern = None

    @property
    def is_linear(self) -> bool:
        """Whether it takes linear time: its name has no groups, alternatives and repeats."""
        return self._pattern is None

    @property
    def marks(self) -> tuple[str, str] | None:
        """The opening and the closing tag; None if they are patterns."""
        return None if self._pattern or self._open.pattern else (self._open.text, self._close.text)

    def is_in(self, text: str) -> bool:
        """Return whether ``find`` would return a text."""
        if self._pattern is not None:
            return self._match(self._pattern, text, strip=True, last=False) is not None
        start = self._open.span(text, 0)
        return start is not None and self._close.span(text, start[1]) is not None

    def find(self, text: str, *, strip: bool, last: bool) -> str | None:
        """Return the text between the tags, without surrounding white space."""
        if self._pattern is not None:
            return self._match(self._pattern, text, strip=strip, last=last)
        content = self.content(text, last=last)
        return None if content is None else text[content[0] : content[1]].strip()

    def content(self, text: str, *, last: bool) -> tuple[int, int] | None:
        """Return where the text between the tags begins and ends, with the white space around it; of a linear tag."""
        content = None
        end = 0
        while (start := self._open.span(text, end)) is not None:
            stop = self._close.span(text, start[1])
            if stop is None:
                break
            content = start[1], stop[0]
            if not last:
                break
            end = stop[1]
        return content

    @staticmethod
    def _match(pattern: re.Pattern[str], text: str, *, strip: bool, last: bool) -> str | None:
        matches = pattern.finditer(text)
        match = next(iter(deque(matches, maxlen=1)), None) if last else next(matches, None)
        # NOTE: group 1 may be a group in the name, which may not have taken part in the match
        content: str | None = match.group(1) if match else None
        return content.strip() if content is not None and strip else content


class _Text(NamedTuple):
    """An opening or closing tag: a text, or a pattern that matches texts of one length."""

    text: str
    pattern: re.Pattern[str] | None = None

    def span(self, text: str, start: int) -> tuple[int, int] | None:
        """Return where the tag first occurs at or after a position."""
        if self.pattern is not None:
            match = self.pattern.search(text, start)
            return match.span() if match else None
        at = text.find(self.text, start)
        return None if at < 0 else (at, at + len(self.text))


_CHARACTERS = (sre.LITERAL, sre.NOT_LITERAL, sre.ANY, sre.IN)


def _is_flat(name: str) -> bool:
    """Return whether a pattern is a sequence of characters and classes: it matches in one way only, wherever it does."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return all(op in _CHARACTERS for op, _ in sre_parser.parse(f"<{name}>", re.DOTALL))

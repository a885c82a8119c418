"""Extract the text between two tags in linear time."""

import contextlib
import re
from collections import deque

__all__ = ["Tag"]


class Tag:
    r"""One tag: matches ``<name>\s*(.*?)\s*</name>`` with DOTALL, in linear time.

    The pattern itself takes quadratic time for runs of white space, and for opening tags without a closing one. But its match always
    spans from the first opening tag to the first closing tag after it; if there is none, later opening tags do not match either. And
    ``\s`` is what ``str.strip`` strips. A name with special characters is used as part of the pattern if that compiles, and
    literally if not.

    Args:
        name: The name of the tag.
    """

    _LITERAL = re.compile(r"[^.^$*+?{}\[\]\\|()]*", re.DOTALL)

    def __init__(self, name: str) -> None:
        self.name = name
        self._open, self._close = f"<{name}>", f"</{name}>"
        self._pattern: re.Pattern[str] | None = None
        if not self._LITERAL.fullmatch(name):
            with contextlib.suppress(re.error, OverflowError, RecursionError):
                self._pattern = re.compile(rf"<{name}>\s*(.*?)\s*</{name}>", re.DOTALL)

    def is_in(self, text: str) -> bool:
        """Return whether ``find`` would return a text."""
        if self._pattern is not None:
            return self._match(self._pattern, text, strip=True, last=False) is not None
        start = text.find(self._open)
        return start >= 0 and text.find(self._close, start + len(self._open)) >= 0

    def find(self, text: str, *, strip: bool, last: bool) -> str | None:
        """Return the text between the tags, without surrounding white space.

        Args:
            text: The text to search.
            strip: Whether to strip a text that was matched by a name with special characters.
            last: Whether to return the last match instead of the first.

        Returns:
            None if the tag does not occur.
        """
        if self._pattern is not None:
            return self._match(self._pattern, text, strip=strip, last=last)
        span = None
        end = 0
        while (start := text.find(self._open, end)) >= 0:
            start += len(self._open)
            stop = text.find(self._close, start)
            if stop < 0:
                break
            span = start, stop
            if not last:
                break
            end = stop + len(self._close)
        return None if span is None else text[span[0] : span[1]].strip()

    @staticmethod
    def _match(pattern: re.Pattern[str], text: str, *, strip: bool, last: bool) -> str | None:
        matches = pattern.finditer(text)
        match = next(iter(deque(matches, maxlen=1)), None) if last else next(matches, None)
        # NOTE: group 1 may be a group in the name, which may not have taken part in the match
        content: str | None = match.group(1) if match else None
        return content.strip() if content is not None and strip else content

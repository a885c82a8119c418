"""What stands between two tags, in linear time."""

import contextlib
import re
from collections import deque

__all__ = ["Tag"]


class Tag:
    r"""One tag: ``<name>\s*(.*?)\s*</name>``, with ``.`` for any character, and without its price.

    That pattern reads a run of white space once for every character in it, and from every opening tag to the end where no
    closing one follows. But its match always spans from the first opening tag to the first closing one behind it, if there is
    one; if not, none fits a later opening tag either. And ``\s`` is what ``str.strip`` strips. A name with characters that
    mean something in a pattern is part of that pattern; it means itself where it cannot be.

    Args:
        name: The name of the tag.
    """

    _MEANS_ITSELF = re.compile(r"[^.^$*+?{}\[\]\\|()]*", re.DOTALL)

    def __init__(self, name: str) -> None:
        self.name = name
        self._open, self._close = f"<{name}>", f"</{name}>"
        self._pattern: re.Pattern[str] | None = None
        if not self._MEANS_ITSELF.fullmatch(name):
            with contextlib.suppress(re.error, OverflowError, RecursionError):
                self._pattern = re.compile(rf"<{name}>\s*(.*?)\s*</{name}>", re.DOTALL)

    def is_in(self, text: str) -> bool:
        """Whether ``find`` finds anything."""
        if self._pattern is not None:
            return self._match(self._pattern, text, strip=True, last=False) is not None
        start = text.find(self._open)
        return start >= 0 and text.find(self._close, start + len(self._open)) >= 0

    def find(self, text: str, *, strip: bool, last: bool) -> str | None:
        """The text between the tags without the white space next to them.

        Args:
            text: Where to look.
            strip: Strip what a name that is a pattern took as the text.
            last: Take the last such text instead of the first.

        Returns:
            None where the tag is not there.
        """
        if self._pattern is not None:
            return self._match(self._pattern, text, strip=strip, last=last)
        found = None
        end = 0
        while (start := text.find(self._open, end)) >= 0:
            start += len(self._open)
            stop = text.find(self._close, start)
            if stop < 0:
                break
            found = start, stop
            if not last:
                break
            end = stop + len(self._close)
        return None if found is None else text[found[0] : found[1]].strip()

    @staticmethod
    def _match(pattern: re.Pattern[str], text: str, *, strip: bool, last: bool) -> str | None:
        matches = pattern.finditer(text)
        match = next(iter(deque(matches, maxlen=1)), None) if last else next(matches, None)
        # NOTE: a group of the name comes before that of the text, and may have matched nothing
        said: str | None = match.group(1) if match else None
        return said.strip() if said is not None and strip else said

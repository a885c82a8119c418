"""Texts whose characters know where they come from: places in the text that the steps of a check begin with."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from assay.frozen import frozen

Place = tuple[int, int]
"""Start and end, in code points."""


def places_of(text: str, phrase: str) -> Iterator[Place]:
    """Yield where a phrase occurs, from the left, none overlapping: those that ``str.count`` counts."""
    at = text.find(phrase)
    while phrase and at >= 0:
        yield at, at + len(phrase)
        at = text.find(phrase, at + len(phrase))


@frozen
class PlacedText:
    """A text; each of its characters has a place in another one.

    Attributes:
        text: The text.
        starts: Where the place of each character starts.
        ends: Where it ends.
        block: Of characters that all come from the same part of the other text, how many there are, here and in what was cut off;
            0 for characters of which each has its own place.
    """

    text: str
    starts: Sequence[int]
    ends: Sequence[int]
    block: int = 0

    @classmethod
    def of(cls, text: str) -> "PlacedText":
        """Return a text whose characters stand where they are."""
        return cls(text, range(len(text)), range(1, len(text) + 1))

    def hull(self, start: int = 0, end: int | None = None) -> Place:
        """Return the place that the characters from ``start`` to ``end`` cover; an empty one for none."""
        end = len(self.text) if end is None else end
        return (self.starts[start], self.ends[end - 1]) if start < end else (0, 0)

    def span(self, start: int, end: int) -> Place | None:
        """Return the place that characters cover; None for no characters, and for a part of a block."""
        covers = start < end and (not self.block or end - start == self.block)
        return self.hull(start, end) if covers else None

    def cut(self, start: int, end: int) -> "PlacedText":
        """Return a part, whose characters keep their places."""
        return replace(self, text=self.text[start:end], starts=self.starts[start:end], ends=self.ends[start:end])

    def stripped(self) -> "PlacedText":
        """Return the part that ``str.strip`` leaves."""
        start = len(self.text) - len(self.text.lstrip())
        return self.cut(start, start + len(self.text.strip()))

    def as_block(self, text: str) -> "PlacedText":
        """Return another text, made of this one as a whole."""
        start, end = self.hull()
        return PlacedText(text, [start] * len(text), [end] * len(text), len(text))

    def rewritten(self, pieces: Iterable[tuple[str, int, int]]) -> "PlacedText":
        """Return the text that pieces make: each the same as the characters from a start to an end, or in their place as a whole."""
        texts, starts, ends = [], list[int](), list[int]()
        for text, start, end in pieces:
            texts.append(text)
            if text == self.text[start:end]:
                starts += self.starts[start:end]
                ends += self.ends[start:end]
            else:
                first, last = self.hull(start, end)
                starts += [first] * len(text)
                ends += [last] * len(text)
        text = "".join(texts)
        return PlacedText(text, starts, ends, self._block_of(text))

    def replaced(self, places: Iterable[Place], new: str) -> "PlacedText":
        """Return the text with another in place of some of its parts, which are in order."""

        def pieces() -> Iterable[tuple[str, int, int]]:
            at = 0
            for start, end in places:
                yield self.text[at:start], at, start
                yield new, start, end
                at = end
            yield self.text[at:], at, len(self.text)

        return self.rewritten(pieces())

    def recased(self, change: Callable[[str], str]) -> "PlacedText":
        """Return the text as ``str.lower`` or the like change it, of which each character may become several."""
        text = change(self.text)
        if len(text) == len(self.text):
            return replace(self, text=text)
        sizes = [len(change(character)) for character in self.text]
        if sum(sizes) != len(text):
            return self.as_block(text)
        starts, ends = (
            [place for place, size in zip(places, sizes, strict=True) for _ in range(size)]
            for places in (self.starts, self.ends)
        )
        return PlacedText(text, starts, ends, self._block_of(text))

    def _block_of(self, text: str) -> int:
        """Return ``block`` for a text that has more or fewer characters in place of these."""
        return self.block and self.block + len(text) - len(self.text)

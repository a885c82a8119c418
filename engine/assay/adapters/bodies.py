"""Bodies of requests: how much of them is in memory, in bytes and as Python values.

A list of a million empty lists is 3 MB on the network and 64 MB in Python, and a column of them is more. So the values of a body are
counted while it arrives, before it is parsed.
"""

import asyncio
import contextlib
import json
from array import array
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass
from itertools import accumulate
from sys import getsizeof
from typing import Any

from pydantic_core import from_json

from assay.errors import describe_error
from assay.frozen import frozen

BYTES_PER_VALUE = 32
"""Bytes of a large body for each value that it may have: a value takes up to 300 bytes until it is scored."""

MAX_DEPTH = 100
"""Levels of nesting in a body."""

MAX_WIDE = 4_000_000
"""Bytes of memory for a text of which a few characters make all wide; scoring takes several times as much."""

_UNCOUNTED = 65_536
"""Bytes of a body for which none need to be free: those of a few rows never wait for large bodies."""

_AT_ONCE = 4
"""Bodies of the maximum size that are in memory at once."""


@frozen
class ServerLimits:
    """What a server accepts.

    Attributes:
        body: Maximum size of a request's body, in bytes; four times as many are in memory at once, for all requests.
        values: Maximum JSON values in a body; a larger body may have one for every 32 bytes.
        row_values: Maximum JSON values in the columns of a row that checks read.
        rows: Maximum rows that wait to be scored; a request beyond gets 503.
        seconds: Time that a client has to send its body, which gets 408 afterwards, and that a body waits for room, which then gets 503.
    """

    body: int = 32_000_000
    values: int = 100_000
    row_values: int = 10_000
    rows: int = 20_000
    seconds: float = 30.0


class Refused(Exception):  # noqa: N818  (an answer, not an error of ours)
    """A request that is refused."""

    def __init__(self, status: int, message: str, patience: float = 30.0) -> None:
        super().__init__(message)
        self.status = status
        self.patience = patience


_SPACE = b" \t\r\n"
_OPENING, _CLOSING = b"[{", b"]}"
_STEPS = bytes.maketrans(_OPENING + _CLOSING, b"\1\1\xff\xff")
_NOT_BRACKETS = bytes(set(range(256)) - set(_OPENING + _CLOSING))


class Structure:
    """How many values JSON text has, and how deep they are nested, by its punctuation outside of strings."""

    def __init__(self) -> None:
        self.values = 1
        self.depth = 0
        self._level = 0
        self._in_string = False
        self._rest = b""
        self._last = b""

    def see(self, piece: bytes) -> None:
        """Count what the next bytes of the text hold."""
        outside = self._outside(self._rest + piece)
        opened = sum(map(outside.count, (b"[", b"{")))
        joined = self._last + outside
        self.values += outside.count(b",") + opened - joined.count(b"[]") - joined.count(b"{}")
        levels = [*accumulate(array("b", outside.translate(_STEPS, _NOT_BRACKETS)), initial=self._level)]
        self.depth, self._level = max(self.depth, *levels), levels[-1]
        self._last = b'"' if self._in_string else joined[-1:]

    def _outside(self, text: bytes) -> bytes:
        self._rest = b""
        if b"\\" in text:
            text = text.replace(rb"\\", b"")
            if text.endswith(b"\\"):  # what it escapes is still to come
                text, self._rest = text[:-1], b"\\"
            text = text.replace(rb"\"", b"")
        parts = text.split(b'"')
        outside = b'"'.join(parts[self._in_string :: 2])
        self._in_string ^= len(parts) % 2 == 0
        return outside.translate(None, _SPACE)


@dataclass
class Body:
    """A body that has arrived."""

    content: bytearray
    values: int

    def parsed(self) -> Any:
        """Return the body as Python values."""
        with contextlib.suppress(ValueError):  # a lone surrogate, or no JSON at all
            values = from_json(self.content)  # without the text between, of which a character may take four bytes
            self.content.clear()
            return values
        try:
            text = self.content.decode("utf-8-sig", "surrogatepass")
            self.content.clear()
            return json.loads(text)
        except (ValueError, RecursionError) as error:
            raise Refused(400, f"The body is not JSON: {describe_error(error)}") from None


def row_problem(row: Iterable[Any], limits: ServerLimits) -> str | None:
    """Return why a row is not scored, given the values that checks read of it; None if it is."""
    values = 0
    queue = [*row]
    while queue:
        value = queue.pop()
        values += 1
        if isinstance(value, dict):
            queue += value.values()
        elif isinstance(value, list):
            queue += value
        elif isinstance(value, str) and getsizeof(value) > MAX_WIDE and not value.isascii():
            # Python keeps each character in as many bytes as the widest
            is_wide = getsizeof(value) > 1.5 * len(value.encode("utf-8", "surrogatepass"))
            megabytes = f"{getsizeof(value) / 1e6:.0f} MB"
            if is_wide:
                return (
                    f"A text of {len(value):,} characters takes {megabytes} of memory, because a few of them are "
                    f"wider than the others; at most {MAX_WIDE / 1e6:.0f} MB are read of such a text."
                )
        if values > limits.row_values:
            return f"The columns that checks read have more than {limits.row_values:,} JSON values in this row."
    return None


class Bodies:
    """The bodies of a server's requests: each within limits, and together, too."""

    def __init__(self, limits: ServerLimits) -> None:
        self._limits = limits
        self._free = _AT_ONCE * limits.body
        self._freed = asyncio.Event()
        self._turn = asyncio.Lock()

    @contextlib.asynccontextmanager
    async def of(self, request: Any) -> AsyncIterator[Body]:
        """Read the body of a request; its bytes count as used until the end of the context."""
        length = request.headers.get("content-length", "")
        size = int(length) if length.isdecimal() else self._limits.body
        if size > self._limits.body:
            raise self._too_large
        body, counted = Body(bytearray(), 0), 0
        try:
            structure, pieces = Structure(), request.stream()
            await self._read(body.content, structure, pieces, min(size, _UNCOUNTED), size)
            if min(size, len(body.content)) > _UNCOUNTED:
                counted = await self._take(size)
                await self._read(body.content, structure, pieces, size, size)
            self._check(structure, len(body.content))
            body.values = structure.values
            yield body
        finally:
            body.content.clear()  # a refusal refers to it until it is answered
            self._free += counted
            self._freed.set()

    async def _take(self, size: int) -> int:
        try:
            async with asyncio.timeout(self._limits.seconds), self._turn:
                while self._free < size:
                    self._freed.clear()
                    await self._freed.wait()
        except TimeoutError:
            raise Refused(503, "Too many bytes of other requests are in memory; try again later.") from None
        self._free -= size
        return size

    async def _read(
        self, content: bytearray, structure: Structure, pieces: AsyncIterator[bytes], until: int, size: int
    ) -> None:
        try:
            async with asyncio.timeout(self._limits.seconds):
                async for piece in pieces:
                    content += piece
                    if len(content) > self._limits.body:
                        raise self._too_large
                    structure.see(piece)
                    self._check(structure, size)
                    if len(content) > until:
                        return
        except TimeoutError:
            raise Refused(408, f"The body did not arrive within {self._limits.seconds:g} seconds.", 0) from None

    def _check(self, structure: Structure, size: int) -> None:
        if structure.depth > MAX_DEPTH:
            raise Refused(
                400, f"The body is nested {structure.depth:,} levels deep or deeper; at most {MAX_DEPTH} are read."
            )
        most = max(self._limits.values, size // BYTES_PER_VALUE)
        if structure.values > most:
            raise Refused(
                413,
                f"The body has {structure.values:,} JSON values or more; at most {most:,} are read of {size:,} bytes. Send fewer "
                "rows, without columns that no check reads, or start the server with a larger --max-values.",
            )

    @property
    def _too_large(self) -> Refused:
        return Refused(413, f"The body is larger than {self._limits.body:,} bytes.", 2.0)

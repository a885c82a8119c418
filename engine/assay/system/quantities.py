"""Sizes, and numbers of rows, as people write them."""

import re

from assay.errors import UsageError

__all__ = ["Most", "read_size"]

_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?)i?b?\s*", re.IGNORECASE)
_POWERS = {letter: power for power, letter in enumerate(("", "k", "m", "g", "t"))}


def read_size(option: str, given: int | str) -> int:
    """Bytes, as people write them: ``256MB``, ``1.5 GiB``, ``4096``; thousands are 1,024s.

    Raises:
        UsageError: It is no size, or none at all.
    """
    match = _SIZE.fullmatch(str(given))
    size = int(float(match.group(1)) * 1024 ** _POWERS[match.group(2).lower()]) if match else 0
    if size < 1:
        raise UsageError(f"{option} {given}: expected a size.", f"For example {option} 256MB")
    return size


class Most:
    """How many rows may be so: a number, or a share of all rows.

    Args:
        option: What the command line calls it.
        given: ``100``, ``"5%"``, or None for any number.

    Raises:
        UsageError: It is neither.
    """

    _FORM = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(%?)\s*")

    def __init__(self, option: str, given: int | str | None) -> None:
        match = None if given is None else self._FORM.fullmatch(str(given))
        if given is not None and (match is None or (not match.group(2) and "." in match.group(1))):
            raise UsageError(
                f"{option} {given}: expected a number of rows or a share.",
                f"Write {option} 100 or {option} 5%.",
            )
        self.given = given
        self._share = float(match.group(1)) / 100 if match and match.group(2) else None
        self._rows = int(match.group(1)) if match and not match.group(2) else None

    def exceeded(self, count: int, rows: int, *, final: bool = True) -> bool:
        """Whether ``count`` of so many rows are too many; a share is only known when all rows are, at the end."""
        if self._rows is not None:
            return count > self._rows
        return final and self._share is not None and count > self._share * rows

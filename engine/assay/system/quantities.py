"""Sizes, shares, and numbers of rows, as people write them."""

import re
from typing import TYPE_CHECKING

from assay.errors import UsageError

if TYPE_CHECKING:
    from fractions import Fraction

_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?)i?b?\s*", re.IGNORECASE)
_POWERS = {letter: power for power, letter in enumerate(("", "k", "m", "g", "t"))}


def read_size(option: str, value: int | str) -> int:
    """Parse a size in bytes: ``256MB``, ``1.5 GiB``, ``4096``. Every unit is a power of 1,024."""
    match = _SIZE.fullmatch(str(value))
    size = int(float(match.group(1)) * 1024 ** _POWERS[match.group(2).lower()]) if match else 0
    if size < 1:
        raise UsageError(f"{option} {value}: expected a size.", f"For example {option} 256MB")
    return size


_SHARE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(%?)\s*")


def read_share(option: str, value: "float | str | Fraction") -> "Fraction":
    """Parse a share: ``80%``, ``0.8``; exactly, as it is written."""
    from fractions import Fraction  # few runs have a share

    if isinstance(value, Fraction):
        return value
    match = _SHARE.fullmatch(str(value))
    share = Fraction(match.group(1)) / (100 if match.group(2) else 1) if match else None
    if share is None or share > 1:
        hint = f"{option} {value}%" if match and not match.group(2) and share and share <= 100 else f"{option} 80%"  # noqa: PLR2004
        raise UsageError(f"{option} {value}: expected a percentage up to 100%.", f"Write {hint}.")
    return share


class RowLimit:
    """A limit on a number of rows: absolute, or a percentage of all rows."""

    _FORM = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(%?)\s*")

    def __init__(self, option: str, given: int | str | None) -> None:
        match = None if given is None else self._FORM.fullmatch(str(given))
        if given is not None and (match is None or (not match.group(2) and "." in match.group(1))):
            raise UsageError(
                f"{option} {given}: expected a number of rows or a percentage.", f"Write {option} 100 or {option} 5%."
            )
        self.given = given
        self._share = float(match.group(1)) / 100 if match and match.group(2) else None
        self._rows = int(match.group(1)) if match and not match.group(2) else None

    def exceeded(self, count: int, rows: int, *, final: bool = True) -> bool:
        """Return whether ``count`` exceeds the limit; a percentage is only checked when all ``rows`` are known (``final``)."""
        if self._rows is not None:
            return count > self._rows
        return final and self._share is not None and count > self._share * rows

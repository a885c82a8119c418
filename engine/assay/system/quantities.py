"""Sizes as people write them."""

import re

from assay.errors import UsageError

__all__ = ["read_size"]

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

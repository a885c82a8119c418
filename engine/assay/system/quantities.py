"""Parse sizes such as ``256MB``."""

import re

from assay.errors import UsageError

__all__ = ["read_size"]

_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?)i?b?\s*", re.IGNORECASE)
_POWERS = {letter: power for power, letter in enumerate(("", "k", "m", "g", "t"))}


def read_size(option: str, value: int | str) -> int:
    """Parse a size in bytes: ``256MB``, ``1.5 GiB``, ``4096``. Every unit is a power of 1,024.

    Raises:
        UsageError: The value is not a size, or less than one byte.
    """
    match = _SIZE.fullmatch(str(value))
    size = int(float(match.group(1)) * 1024 ** _POWERS[match.group(2).lower()]) if match else 0
    if size < 1:
        raise UsageError(f"{option} {value}: expected a size.", f"For example {option} 256MB")
    return size

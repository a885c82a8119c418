"""Patterns that graders compile once."""

import re
import warnings
from functools import lru_cache

GSM8K_ANSWER = r"#### (\-?[0-9\.\,]+)"
"""What stands behind the mark of GSM8K's solutions."""


@lru_cache(256)
def compiled(pattern: str, flags: int = 0) -> re.Pattern[str]:
    """Return a compiled pattern, without warnings about set syntax."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return re.compile(pattern, flags)

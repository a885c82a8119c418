"""The native kernel of Assay: where its library lies. ``assay`` finds it by this module, and scores the same without it."""

import sys
from pathlib import Path

__all__ = ["LIBRARY"]

_ENDING = {"darwin": ".dylib", "win32": ".dll"}.get(sys.platform, ".so")

LIBRARY = Path(__file__).with_name(f"libassay_kernel{_ENDING}")
"""The library, a plugin of Polars."""

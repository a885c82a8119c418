"""What an adapter says where the package that it is for is not installed."""

import contextlib
from collections.abc import Iterator

from assay.errors import UsageError

__all__ = ["package"]


@contextlib.contextmanager
def package(name: str, extra: str) -> Iterator[None]:
    """Turn a failing import of an optional package into an error with the command that installs it.

    Args:
        name: What people call the package.
        extra: The extra of Assay that brings it.

    Raises:
        UsageError: The package is not installed.
    """
    try:
        yield
    except ImportError:
        raise UsageError(f"{name} is not installed.", f"Install it: pip install 'assay[{extra}]'") from None

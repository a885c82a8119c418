"""``assay.fns`` under the path by which code for other SDKs imports it."""

from assay import fns
from assay.fns import *  # noqa: F403  (its ``__all__``)

__all__ = fns.__all__
_normalize_json = fns._normalize_json  # noqa: SLF001  (as above)

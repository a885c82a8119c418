"""Scorers that the command line of Inspect finds by their names: ``inspect score sums.eval --scorer assay/reward -S file=sums.yaml``.

Inspect imports this module, which pyproject.toml names, whenever it looks for what other packages have; so it imports little.
"""

import sys
from typing import Any


def register() -> None:
    """Register the scorers ``assay/reward`` and ``assay/checks``."""
    from inspect_ai.scorer import Scorer, mean, scorer, stderr

    of_each = [mean(), stderr()]

    # no argument is named ``spec``, which Inspect keeps for itself
    @scorer(metrics=of_each)  # type: ignore[untyped-decorator]
    def reward(file: str, **options: Any) -> Scorer:
        from assay.adapters import inspect

        return inspect(file, **options)

    @scorer(metrics={"*": of_each})  # type: ignore[untyped-decorator]
    def checks(file: str, **options: Any) -> Scorer:
        from assay.adapters import inspect

        return inspect(file, per_check=True, **options)


if "inspect_ai" in sys.modules:
    register()

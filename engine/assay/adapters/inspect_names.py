"""Scorers that the command line of Inspect finds by their names: ``inspect score sums.eval --scorer assay/reward -S file=sums.yaml``.

Inspect imports this module, which pyproject.toml names, whenever it looks for what other packages have; so it imports little.
"""

import sys
from collections.abc import Callable
from typing import Any


def register() -> None:
    """Register the scorers ``assay/reward`` and ``assay/checks``."""
    from inspect_ai.scorer import Scorer, mean, scorer, stderr
    from inspect_ai.util import registry_info

    def named(name: str, metrics: Any, make: Callable[..., Scorer]) -> None:
        # NOTE: Inspect writes the package before the name, but not of a checkout whose distribution has another name than the package
        if registry_info(scorer(metrics=metrics, name=name)(make)).name == name:
            scorer(metrics=metrics, name=f"assay/{name}")(make)

    # no argument is named ``spec``, which Inspect keeps for itself
    def reward(file: str, **options: Any) -> Scorer:
        from assay.adapters import inspect

        return inspect(file, **options)

    def checks(file: str, **options: Any) -> Scorer:
        return reward(file, per_check=True, **options)

    of_each = [mean(), stderr()]
    named("reward", of_each, reward)
    named("checks", {"*": of_each}, checks)


if "inspect_ai" in sys.modules:
    register()

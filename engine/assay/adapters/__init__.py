"""What trainers and evaluators call, imported when it is used; no package of theirs is needed to import Assay.

``assay.adapters.trl("spec.yaml")`` is a reward function for TRL. The other names work alike; ``verl`` is a module, because verl
takes a path to one.
"""

import importlib
from typing import Any

_HOMES = {
    **dict.fromkeys(("evals", "evaluate", "inspect", "lighteval", "lm_eval"), "evaluators"),
    **dict.fromkeys(("dspy", "gepa", "gepa_adapter", "gepa_batch"), "optimizers"),
    **dict.fromkeys(("nemo_gym", "nemo_rl", "skyrl"), "environments"),
    "openrlhf": "openrlhf_rewards",
    "row": "row_rewards",
    "trl": "trl_rewards",
}
"""The function for each package, and the file that has it.

NOTE: no file may have the name of a function: importing the file would put the module in its place.
"""

_MODULES = ("promptfoo", "verifiers", "verl")
"""What is called by the path of its module."""

__all__ = sorted(_HOMES)  # noqa: PLE0605  (names are written once, above)


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return globals().setdefault(name, getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name))
    hint = f"; it is a module: import {__name__}.{name}" if name in _MODULES else ""
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}{hint}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

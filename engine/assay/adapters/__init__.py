"""What trainers and evaluators call: one file for each, imported when it is used; no package of theirs is needed to import Assay.

``assay.adapters.trl("spec.yaml")`` is a reward function for TRL. The other names work alike; ``verl`` is a module, because verl
takes a path to one.
"""

import importlib
from typing import Any

_HOMES = {
    "dspy": "dspy_metric",
    "evals": "evaluators.openai_eval",
    "evaluate": "evaluators.evaluate_metric",
    "gepa": "gepa_evaluators",
    "gepa_adapter": "gepa_evaluators",
    "gepa_batch": "gepa_evaluators",
    "inspect": "evaluators.inspect_scorer",
    "lighteval": "evaluators.lighteval_metric",
    "lm_eval": "evaluators.lm_eval_filter",
    "nemo_gym": "nemo_gym_verify",
    "nemo_rl": "nemo_rl_environment",
    "openrlhf": "openrlhf_rewards",
    "row": "row_rewards",
    "skyrl": "skyrl_environment",
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

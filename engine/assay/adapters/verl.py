"""The reward function of verl, by configuration alone.

    reward.custom_reward_function.path=pkg://assay.adapters.verl
    reward.custom_reward_function.name=compute_score
    +reward.custom_reward_function.reward_kwargs.spec=/path/to/spec.yaml

verl asks for one sample at a time; the samples that a worker asks for at the same time are scored in one batch. Read from verl 0.9.1:
``trainer/ppo/reward.py`` and ``experimental/reward_loop``.
"""

import json
import math
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from assay.adapters.golds import Unscored, number_of
from assay.adapters.verdicts import score_names
from assay.errors import RAISED
from assay.scoring.batching import Batcher
from assay.values.plain import plain

__all__ = ["compute_score", "score"]


async def compute_score(
    data_source: str,
    solution_str: str,
    ground_truth: Any,
    extra_info: Any = None,
    *,
    spec: Any,
    unscored: Unscored = "raise",
    strict: bool = True,
    **_: Any,
) -> dict[str, Any]:
    """Return the score of a sample, with what verl logs and dumps beside it.

    Args:
        data_source: The name of the dataset; a column that checks may read, as ``extra_info`` is.
        solution_str: The response, decoded without special tokens.
        ground_truth: The gold, read as ``answer`` and as ``ground_truth``: a value, a list of golds, or JSON text.
        extra_info: What else verl knows of the sample; checks reach into it by a path, ``extra_info.difficulty``.
        spec: The verifier: a path, or the mapping itself.
        unscored: The reward of a sample that cannot be scored; by default that is an error, which ends the run.
        strict: As of ``assay.compile``.

    Returns:
        ``score``, ``passed`` and ``unscored`` (1.0 or 0.0), ``feedback``, ``error``, and the score of each check: the same keys for
        every sample. A check that did not run is NaN.

    Raises:
        FailedRunError: The sample cannot be scored.
        SpecError: The verifier cannot be used.
    """
    result = await _batcher(_key(spec), strict=strict).score(_row(data_source, solution_str, ground_truth, extra_info))
    return _shown(result, unscored)


def score(
    data_source: str,
    solution_str: str,
    ground_truth: Any,
    extra_info: Any = None,
    *,
    spec: Any,
    unscored: Unscored = "raise",
    strict: bool = True,
    **_: Any,
) -> float:
    """Return the score alone, at once: what ``verl.trainer.main_eval`` takes. Arguments as of ``compute_score``.

    Raises:
        FailedRunError: The sample cannot be scored.
        SpecError: The verifier cannot be used.
    """
    result = _batcher(_key(spec), strict=strict).score_sync(_row(data_source, solution_str, ground_truth, extra_info))
    return number_of(result, unscored)


def _row(data_source: str, solution_str: str, ground_truth: Any, extra_info: Any) -> dict[str, Any]:
    return {
        "completion": solution_str,
        "answer": ground_truth,
        "ground_truth": ground_truth,
        "data_source": data_source,
        "extra_info": _info(extra_info),
    }


def _info(extra_info: Any) -> Any:
    """Return what verl knows of a sample as JSON text; what has none is returned as it is, and leaves the sample unscored.

    NOTE: as text, because its fields differ from sample to sample, and a column of structs would be a new type for each batch.
    """
    try:
        return None if extra_info is None else json.dumps(plain(extra_info), default=str)
    except RAISED:
        return extra_info


def _shown(result: Mapping[str, Any], unscored: Unscored) -> dict[str, Any]:
    return {
        "score": number_of(result, unscored),
        "passed": float(bool(result["passed"])),
        "unscored": float(result["reward"] is None),
        "feedback": result["feedback"] or "",
        "error": result["error"] or "",
        **{name: math.nan if result[name] is None else float(result[name]) for name in score_names(result)},
    }


def _key(spec: Any) -> str:
    """Return a verifier of a configuration as text: a path, or the JSON of a mapping."""
    return spec if isinstance(spec, str) else json.dumps(plain(spec))


@lru_cache(32)
def _batcher(key: str, *, strict: bool) -> Batcher:
    return Batcher(json.loads(key) if key.startswith(("{", "[")) else key, strict=strict)

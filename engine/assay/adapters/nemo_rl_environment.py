"""An environment of NeMo-RL: one turn of a batch of conversations, scored in one pass.

nemo-rl 0.6.0 has no usable package on a registry: this follows the shape of its ``EnvironmentInterface.step``, which was not run.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from assay.adapters.golds import Unscored, number_of
from assay.errors import UsageError
from assay.scoring.batching import Verifiers, plan_of

_GOLDS = ("ground_truth", "expected_answer", "answer")
"""Names of the gold in the metadata of a conversation."""


def nemo_rl(spec: Verifiers, *, unscored: Unscored = "raise", strict: bool = True) -> Any:
    """Return an environment class, for ``ray.remote``.

    A gold is the conversation's ``ground_truth``, ``expected_answer`` or ``answer`` in its metadata, read as ``answer``; all of the
    metadata are columns.

    Args:
        spec: Verifiers, a rubric, or a plan.
        unscored: The reward of a conversation that cannot be scored; by default that is an error.
        strict: As of ``assay.compile``.

    Raises:
        SpecError: A verifier cannot be used.
        UsageError: NeMo-RL is not installed.
    """
    try:
        import torch
        from nemo_rl.environments.interfaces import EnvironmentInterface, EnvironmentReturn
    except ImportError:
        raise UsageError(
            "NeMo-RL is not installed.", "It is run from its repository: github.com/NVIDIA-NeMo/RL"
        ) from None
    plan = plan_of(spec, strict=strict)

    class AssayEnvironment(EnvironmentInterface):  # type: ignore[misc]
        """One turn, scored."""

        def __init__(self, cfg: Any = None) -> None:
            del cfg

        def step(self, message_log_batch: Sequence[Sequence[Mapping[str, Any]]], metadata: Sequence[Any]) -> Any:
            results = plan.score_rows(list(map(_row, message_log_batch, metadata))).to_dicts()
            rewards = torch.tensor([number_of(result, unscored) for result in results], dtype=torch.float32)
            observations = [{"role": "environment", "content": result["feedback"] or "correct"} for result in results]
            return EnvironmentReturn(
                observations=observations,
                metadata=list(metadata),
                next_stop_strings=[None] * len(results),
                rewards=rewards,
                terminateds=torch.ones_like(rewards),
                answers=None,
            )

        def global_post_process_and_metrics(self, batch: Any) -> tuple[Any, dict[str, Any]]:
            return batch, {}

    return AssayEnvironment


def _row(messages: Sequence[Mapping[str, Any]], metadata: Any) -> dict[str, Any]:
    columns = dict(metadata or {})
    gold = next((columns[name] for name in _GOLDS if columns.get(name) is not None), None)
    # a message has token ids, too, which nothing here reads
    chat = [{"role": message["role"], "content": message["content"]} for message in messages]
    return {**columns, "answer": gold, "completion": chat}

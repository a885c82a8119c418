"""What trainers with environments call: environments of one turn for NeMo-RL and SkyRL, and the ``verify`` of a server of NeMo-Gym.

Read from skyrl-gym 0.4.0 (``envs/base_text_env.py``) and nemo-gym 0.4.0 (``base_resources_server.py``). nemo-rl 0.6.0 has no usable
package on a registry: this follows the shape of its ``EnvironmentInterface.step``, which was not run.
"""

from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any

from pydantic import BaseModel

from assay.adapters.verdicts import Unscored, number_of, with_gold
from assay.errors import UsageError, package
from assay.scoring.batching import Batcher, Verifiers, plan_of
from assay.values.plain import plain

_GOLDS = ("ground_truth", "expected_answer", "answer")
"""Names of the gold in the metadata of a conversation of NeMo-RL."""


def nemo_rl(spec: Verifiers, *, unscored: Unscored = "raise", strict: bool = True) -> Any:
    """Return an environment class, for ``ray.remote``.

    A gold is the conversation's ``ground_truth``, ``expected_answer`` or ``answer`` in its metadata, read as ``answer``; all of the
    metadata are columns.

    Args:
        spec: Verifiers, a rubric, a plan, or the name of a grader.
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
            rows = []
            for messages, known in zip(message_log_batch, metadata, strict=False):
                columns = dict(known or {})
                gold = next((columns[name] for name in _GOLDS if columns.get(name) is not None), None)
                # a message has token ids, too, which nothing here reads
                chat = [{"role": message["role"], "content": message["content"]} for message in messages]
                rows.append({**columns, "answer": gold, "completion": chat})
            results = plan.score_rows(rows).to_dicts()
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


def skyrl(spec: Verifiers, *, unscored: Unscored = "raise", strict: bool = True) -> Any:
    """Return an environment class, for ``skyrl_gym.register(id=…, entry_point=…)``.

    The gold is ``reward_spec.ground_truth`` of the dataset, read as ``answer``; the other columns of the dataset keep their names.

    Args:
        spec: Verifiers, a rubric, a plan, or the name of a grader.
        unscored: The reward of a response that cannot be scored; by default that is an error.
        strict: As of ``assay.compile``.

    Raises:
        SpecError: A verifier cannot be used.
        UsageError: skyrl-gym is not installed.
    """
    with package("skyrl-gym", "skyrl"):
        from skyrl_gym.envs.base_text_env import BaseTextEnv
    batcher = Batcher(spec, strict=strict)

    class AssayEnv(BaseTextEnv):  # type: ignore[misc]
        """One turn, scored."""

        def __init__(self, env_config: Any = None, extras: dict[str, Any] | None = None) -> None:
            super().__init__()
            del env_config
            self._columns = dict(extras or {})
            self._columns.setdefault("answer", (self._columns.get("reward_spec") or {}).get("ground_truth"))
            self._result: dict[str, Any] = {}

        def step(self, action: str) -> Any:
            self._result = batcher.score_sync({**self._columns, "completion": action})
            reward = number_of(self._result, unscored)
            metadata = {name: self._result[name] for name in ("passed", "feedback", "error")}
            return {"observations": [], "reward": reward, "done": True, "metadata": metadata}

        def get_metrics(self) -> dict[str, Any]:
            checks = {name: value for name, value in self._result.items() if name.startswith("check/")}
            return {name: value for name, value in checks.items() if value is not None}

    return AssayEnv


class VerifyRequest(BaseModel, extra="allow"):
    """What NeMo-Gym posts to ``/verify``: a task with its fields, and the model's response.

    NOTE: FastAPI reads the body of a request by its type; one of ``Any`` would be a parameter of the address.
    """

    responses_create_params: dict[str, Any]
    response: dict[str, Any]


def nemo_gym(
    spec: Verifiers, *, gold: str = "expected_answer", unscored: Unscored = "raise", strict: bool = True
) -> Callable[..., Coroutine[Any, Any, dict[str, Any]]]:
    """Return ``verify(self, body)`` for a class of server; requests at the same time are scored together.

    Args:
        spec: Verifiers, a rubric, a plan, or the name of a grader.
        gold: The field of a request with the gold; checks read it as ``answer``, and the other fields by their names.
        unscored: The reward of a response that cannot be scored; by default that is an error, a status of 500.
        strict: As of ``assay.compile``.

    Returns:
        A function whose result is the request with ``reward`` and ``reward_components``, the score of each check that ran.

    Raises:
        SpecError: A verifier cannot be used.
    """
    batcher = Batcher(spec, strict=strict)

    async def verify(self: Any, body: VerifyRequest) -> dict[str, Any]:
        del self
        fields = plain(body)
        row = {name: value for name, value in fields.items() if name not in ("response", "responses_create_params")}
        row["completion"] = _text(fields.get("response") or {})
        result = await batcher.score(with_gold(row, gold) if gold in row else row)
        components = {name: value for name, value in result.items() if name.startswith("check/") and value is not None}
        return {**fields, "reward": number_of(result, unscored), "reward_components": components}

    return verify


def _text(response: Mapping[str, Any]) -> str | None:
    outputs = [output for output in response.get("output") or () if output.get("type", "message") == "message"]
    if not outputs:
        return None
    content = outputs[-1].get("content")
    return content if isinstance(content, str) else "".join(part.get("text") or "" for part in content or ())

"""An environment of SkyRL: one turn, whose response is scored.

Read from skyrl-gym 0.4.0: ``envs/base_text_env.py``.
"""

from typing import Any

from assay.adapters.golds import Unscored, number_of
from assay.errors import package
from assay.scoring.batching import Batcher, Verifiers


def skyrl(spec: Verifiers, *, unscored: Unscored = "raise", strict: bool = True) -> Any:
    """Return an environment class, for ``skyrl_gym.register(id=…, entry_point=…)``.

    The gold is ``reward_spec.ground_truth`` of the dataset, read as ``answer``; the other columns of the dataset keep their names.

    Args:
        spec: Verifiers, a rubric, or a plan.
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

"""Several environments as one: each rollout is generated and scored by the environment that its task names."""

from collections.abc import Mapping, Sequence
from typing import Any

from assay.calls.coroutines import maybe_await
from assay.environments.environment import Environment
from assay.environments.run import merge_sampling_args
from assay.errors import UsageError, listed
from assay.rubrics.rubric import RubricGroup
from assay.types import Info, Messages, RolloutScore, RolloutScores, SamplingArgs, State


class EnvGroupRubric(RubricGroup):
    """The rubrics of several environments: a rollout is scored by that of its task; metrics of the others are 0.0."""

    def __init__(self, env_map: Mapping[str, Environment]) -> None:
        super().__init__([env.rubric for env in env_map.values()])
        self.env_map = env_map

    def get_reward_func_names(self) -> list[str]:
        """Return the names of all members, each once."""
        return sorted({*super().get_reward_func_names()})

    @property
    def has_group_funcs(self) -> bool:
        """Return whether a function of a rubric takes all rollouts of an example."""
        return any(rubric.has_group_funcs for rubric in self.rubrics)

    async def score_rollout(
        self,
        prompt: Messages,
        completion: Messages,
        answer: str = "",
        state: State | None = None,
        task: str = "default",
        *args: Any,
        **kwargs: Any,
    ) -> RolloutScore:
        """Score one rollout with the rubric of its task."""
        rubric = _named(self.env_map, task).rubric
        score = await rubric.score_rollout(prompt, completion, answer, state, task, *args, **kwargs)
        metrics = dict.fromkeys(self.get_reward_func_names(), 0.0) | score.metrics
        return RolloutScore(reward=score.reward, metrics=metrics)

    async def score_rollouts(  # type: ignore[override]
        self,
        prompts: list[Messages],
        completions: list[Messages],
        answers: list[str],
        states: list[State],
        tasks: list[str],
        infos: list[Info],
        example_ids: list[int] | None = None,
        **kwargs: Any,
    ) -> RolloutScores:
        """Score rollouts, those of each task with its rubric."""
        rewards = [0.0] * len(prompts)
        metrics = {name: [0.0] * len(prompts) for name in self.get_reward_func_names()}
        lists: list[Any] = [
            prompts,
            completions,
            answers,
            states,
            tasks,
            infos,
            *([example_ids] if example_ids else ()),
        ]
        for task in dict.fromkeys(tasks):
            rows = [row for row, of_row in enumerate(tasks) if of_row == task]
            score: Any = _named(self.env_map, task).rubric.score_rollouts
            scored = await score(*([values[row] for row in rows] for values in lists), **kwargs)
            for number, row in enumerate(rows):
                rewards[row] = scored.reward[number]
                for name, values in scored.metrics.items():
                    metrics.setdefault(name, [0.0] * len(prompts))[row] = values[number]
        return RolloutScores(reward=rewards, metrics=metrics)


class EnvGroup(Environment):
    """Several environments as one: a mixture of their datasets, in which ``task`` names the environment of each row.

    Args:
        envs: The environments. Those of a group among them keep their names.
        env_names: Their names; by default ``env_0``, ``env_1`` …
        **kwargs: As for ``Environment``.

    Raises:
        ValueError: There are none, or the numbers of environments and names differ, or two have the same name.
        UsageError: Some take messages, and others text.

    Example:
        >>> import assay
        >>> rubric = assay.Rubric([lambda completion, answer: float(completion[-1]["content"] == answer)])
        >>> sums = assay.SingleTurnEnv(dataset=[{"question": "2 + 2?", "answer": "4"}], rubric=rubric)
        >>> capitals = assay.SingleTurnEnv(dataset=[{"question": "Capital of Norway?", "answer": "Oslo"}], rubric=rubric)
        >>> env = assay.EnvGroup([sums, capitals], ["sums", "capitals"])
        >>> [row["task"] for row in env.get_dataset()]
        ['sums', 'capitals']
    """

    def __init__(self, envs: Sequence[Environment], env_names: Sequence[str] | None = None, **kwargs: Any) -> None:
        self.envs = list(envs)
        self.env_names = list(env_names or (f"env_{number}" for number in range(len(self.envs))))
        if not self.envs:
            raise ValueError("EnvGroup requires at least one environment")
        if len(self.env_names) != len(self.envs):
            raise ValueError(f"{len(self.envs)} environments have {len(self.env_names)} names")
        pairs = [
            pair
            for name, env in zip(self.env_names, self.envs, strict=True)
            for pair in (env.env_map.items() if isinstance(env, EnvGroup) else [(name, env)])
        ]
        self.env_map: dict[str, Environment] = dict(pairs)
        if len(self.env_map) < len(pairs):
            raise ValueError(f"two environments have the same name: {', '.join(name for name, _ in pairs)}")
        types = {env.message_type for env in self.envs}
        if len(types) > 1:
            raise UsageError("A group has environments for messages and for text.", "Make a group of each kind.")
        has_eval = any(env.eval_dataset is not None for env in self.envs)
        super().__init__(
            dataset=self._together([env.dataset or [] for env in self.envs]),
            eval_dataset=self._together([env.get_eval_dataset() for env in self.envs]) if has_eval else None,
            rubric=EnvGroupRubric(self.env_map),
            message_type=types.pop(),
            **kwargs,
        )

    def _together(self, datasets: Sequence[Sequence[Mapping[str, Any]]]) -> list[dict[str, Any]]:
        rows = [
            {**row, **({} if isinstance(env, EnvGroup) else {"task": name})}
            for name, env, dataset in zip(self.env_names, self.envs, datasets, strict=True)
            for row in dataset
        ]
        return [{**row, "example_id": number} for number, row in enumerate(rows)]

    def get_env_for_task(self, task: str) -> Environment:
        """Return the environment of a task; the first if no environment has that name."""
        return self.env_map.get(task, self.envs[0])

    async def init_state(
        self, prompt: Messages, completion: Messages, answer: str, task: str, info: Info, example_id: int, **kwargs: Any
    ) -> State:
        """Return the state of a new rollout, from its environment."""
        init: Any = _named(self.env_map, task).init_state
        fields = {"prompt": prompt, "completion": completion, "answer": answer, "task": task, "info": info}
        state: State = await maybe_await(init(**fields, example_id=example_id, **kwargs))
        return state

    async def rollout(
        self,
        client: Any,
        model: str,
        prompt: Messages,
        completion: Messages | None = None,
        answer: str = "",
        state: State | None = None,
        task: str = "default",
        info: Info | None = None,
        example_id: int = 0,
        sampling_args: SamplingArgs | None = None,
        **kwargs: Any,
    ) -> tuple[Messages, State]:
        """Generate one rollout in the environment of its task."""
        env = _named(self.env_map, task)
        args = merge_sampling_args(env.sampling_args, sampling_args)
        return await env.rollout(
            client, model, prompt, completion, answer, state, task, info, example_id, args, **kwargs
        )


def _named(env_map: Mapping[str, Environment], task: str) -> Environment:
    if task not in env_map:
        raise UsageError(f"No environment is called {task!r}.", f"Tasks: {listed([*env_map])}.")
    return env_map[task]

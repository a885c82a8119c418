"""The types around which RL environments are written: messages, inputs and outputs of generation, scores.

    from assay.types import ChatMessage, GenerateInputs, GenerateOutputs, Messages, State

Models check what they are given and keep every field; unknown fields are refused by none of them, and not kept either.
A run goes to a table and back without loss: ``run.to_parquet("run.parquet")``, ``GenerateOutputs.from_parquet("run.parquet")``.
"""

from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, Self

from pydantic import BaseModel, Field, model_validator

__all__ = [
    "ChatMessage",
    "GenerateInputs",
    "GenerateMetadata",
    "GenerateOutputs",
    "Info",
    "Messages",
    "ProcessedOutputs",
    "RewardFunc",
    "RolloutScore",
    "RolloutScores",
    "SamplingArgs",
    "State",
]

ChatMessage = dict[str, Any]
"""A message: ``role`` ("system", "user", "assistant", "tool"), ``content``, and what else its role has: ``tool_calls`` …"""

Messages = str | list[ChatMessage]
"""A prompt or a completion: text, or chat messages."""

Info = dict[str, Any]
"""What a dataset knows of an example beside its answer."""

State = dict[str, Any]
"""What a rollout knows of itself: ``prompt``, ``completion``, ``answer``, ``task``, ``info``, ``example_id``, ``responses``,
``timing`` (milliseconds), and whatever its environment adds."""

SamplingArgs = dict[str, Any]
"""Arguments of a generation request; what only vLLM knows stands under ``extra_body``."""

RewardFunc = Callable[..., float | Awaitable[float]]
"""A reward function: it gets the arguments that it names (see ``assay.Rubric``)."""


class _ById(BaseModel):
    """Base of models that number their examples: ``id`` and ``example_id`` are one list by two names."""

    @model_validator(mode="before")
    @classmethod
    def _one_name(cls, given: Any) -> Any:
        if not isinstance(given, Mapping) or "example_id" not in given:
            return given
        found = dict(given)
        other = found.pop("example_id")
        if found.setdefault("id", other) is None:
            found["id"] = other
        if other is not None and list(found["id"]) != list(other):
            raise ValueError("`id` and `example_id` are two names of one list; here they differ")
        return found

    @property
    def example_id(self) -> Any:
        """``id`` by its other name."""
        return self.id

    @example_id.setter
    def example_id(self, value: Any) -> None:
        self.id = value


class GenerateInputs(_ById):
    """What to generate from, one value a rollout in every list.

    Attributes:
        prompt: Text or chat messages.
        answer: The gold of each.
        info: What else is known of each example.
        task: The kind of task of each.
        completion: Completions that are there already; such rollouts are scored and not generated.
        id: The example of each; rollouts of one example share it. Also read, and to be had, as ``example_id``.
    """

    prompt: list[Messages]
    answer: list[str] | None = None
    info: list[Info] | None = None
    task: list[str] | None = None
    completion: list[Messages] | None = None
    id: list[int] | None = None


class GenerateMetadata(BaseModel):
    """How a run was generated.

    Attributes:
        env_id: Name of the environment.
        env_args: Its arguments.
        model: Name of the model.
        base_url: Where it answered.
        num_examples: Examples generated from.
        rollouts_per_example: Rollouts of each.
        sampling_args: Arguments of the requests.
        date: When the run began, ISO 8601 with its offset.
        time_ms: How long it took, in milliseconds.
        avg_reward: Mean of the rewards of the scored rollouts; 0 where none is.
        avg_metrics: The same for each metric.
        state_columns: Fields of the state that are kept in what is saved.
        path_to_save: Where the run is saved.
    """

    env_id: str = ""
    env_args: dict[str, Any] = Field(default_factory=dict)
    model: str = ""
    base_url: str = ""
    num_examples: int = 0
    rollouts_per_example: int = 1
    sampling_args: SamplingArgs = Field(default_factory=dict)
    date: str = ""
    time_ms: float = 0.0
    avg_reward: float = 0.0
    avg_metrics: dict[str, float] = Field(default_factory=dict)
    state_columns: list[str] = Field(default_factory=list)
    path_to_save: Path = Path()


class GenerateOutputs(_ById):
    """Rollouts with their rewards, one value a rollout in every list.

    Attributes:
        prompt: Text or chat messages.
        completion: Text or chat messages.
        answer: The gold of each.
        state: What each rollout knows of itself.
        info: What else is known of each example.
        task: The kind of task of each.
        id: The example of each. Also read, and to be had, as ``example_id``.
        reward: The reward of each; None for a rollout that failed and has nothing to score.
        metrics: By the name of a reward function, what it gave each rollout.
        metadata: How the run was generated.
    """

    prompt: list[Messages]
    completion: list[Messages]
    answer: list[str]
    state: list[State]
    info: list[Info]
    task: list[str]
    id: list[int]
    reward: list[float | None]
    metrics: dict[str, list[float | None]] = Field(default_factory=dict)
    metadata: GenerateMetadata

    def to_arrow(self) -> Any:
        """The rollouts as a table, which ``assay.score`` reads and ``from_arrow`` turns back.

        Columns: ``example_id``; ``prompt`` and ``completion``, text where all are, else lists of structs with ``role``,
        ``content``, ``tool_calls`` (each as JSON) and ``tool_call_id``, in which a text is one message without a role; ``task``;
        ``answer``; ``info`` and ``state`` as JSON text; ``reward``; ``generation_ms``, ``scoring_ms``, ``total_ms`` and
        ``error`` as the state has them, null where it does not; ``generation_error`` where a generation failed, with
        which a row stays unscored when it is scored again; and one a metric, by its name, or as ``metric/<name>``
        where that is taken. ``exact``, a column and a field of messages, is there where something needs it: JSON of
        what the others cannot say. ``metadata`` stands in the metadata of the schema.

        JSON is tagged where it has no word for a value of Python's (a tuple, a key that is no string, bytes, a date …), so
        that it comes back as it was. Pydantic models, such as responses of openai, come back as dicts.

        Returns:
            A ``pyarrow.Table``; the same bytes for the same outputs.

        Warns:
            AssayWarning: Other objects come back changed, as text, a list or a dict; the warning says where they are.
        """
        from assay.values import saved_outputs as outputs

        table, changed = outputs.table_of(self)
        outputs.warn(changed)
        return table

    @classmethod
    def from_arrow(cls, table: Any) -> Self:
        """The rollouts of a table that ``to_arrow`` gave.

        Rows may have been taken away or put in another order since. Other libraries may have lost the metadata of the
        schema, as Polars does; then the outputs have the default ``metadata``, and every further column of floats is a metric.
        Columns that are copies of what is in the state are not read.

        Args:
            table: A ``pyarrow.Table``, or what gives an Arrow stream, such as a Polars frame.

        Raises:
            InputError: A column is missing, or a value cannot be read.
        """
        from assay.values import saved_outputs as outputs

        return cls._made(*outputs.read_table(table))

    def to_parquet(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Save the rollouts, the whole file or none.

        Args:
            path: A file that ends in ``.parquet``; what is in it is what ``to_arrow`` says.
            overwrite: Replace an existing file.

        Raises:
            UsageError: The path cannot be used, or a file is already there.
            OutputError: The file cannot be written; an existing file is unchanged.

        Warns:
            AssayWarning: As ``to_arrow``, once the file is written.
        """
        from assay.values import saved_outputs as outputs

        outputs.warn(outputs.save(self, path, overwrite=overwrite))

    @classmethod
    def from_parquet(cls, path: str | Path) -> Self:
        """The rollouts of a file that ``to_parquet`` wrote.

        Raises:
            InputError: The file cannot be read, or ``to_parquet`` did not write it.
        """
        from assay.values import saved_outputs as outputs

        return cls._made(*outputs.read_file(path))

    @classmethod
    def _made(cls, fields: dict[str, Any], metadata: dict[str, Any]) -> Self:
        # not checked again: what could be saved can be read
        return cls.model_construct(**fields, metadata=GenerateMetadata.model_construct(**metadata))


class RolloutScore(BaseModel):
    """What a rubric says of one rollout.

    Attributes:
        reward: The weighted sum.
        metrics: By the name of a reward function, what it gave.
    """

    reward: float
    metrics: dict[str, float] = Field(default_factory=dict)


class RolloutScores(BaseModel):
    """What a rubric says of rollouts, one value a rollout in every list.

    Attributes:
        reward: The weighted sums.
        metrics: By the name of a reward function, what it gave each.
    """

    reward: list[float]
    metrics: dict[str, list[float]] = Field(default_factory=dict)


class ProcessedOutputs(BaseModel):
    """Rollouts as a trainer reads them, one list a rollout.

    Attributes:
        prompt_ids: Token ids of the prompt.
        prompt_mask: 1 where a token of the prompt counts.
        completion_ids: Token ids of the completion.
        completion_mask: 1 where a token of the completion counts.
        completion_logprobs: Log-probability of each token of the completion.
        rewards: The reward of each.
    """

    prompt_ids: list[list[int]]
    prompt_mask: list[list[int]]
    completion_ids: list[list[int]]
    completion_mask: list[list[int]]
    completion_logprobs: list[list[float]]
    rewards: list[float]

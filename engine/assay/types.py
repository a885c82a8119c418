"""Types of RL environments: messages, inputs and outputs of generation, scores.

    from assay.types import ChatMessage, GenerateInputs, GenerateOutputs, Messages, State

Models validate their fields; unknown fields are ignored.
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
"""A message: ``role`` ("system", "user", "assistant", "tool"), ``content``, and further fields such as ``tool_calls``."""

Messages = str | list[ChatMessage]
"""A prompt or a completion: text, or chat messages."""

Info = dict[str, Any]
"""Further data of an example in a dataset, besides its answer."""

State = dict[str, Any]
"""The state of a rollout: ``prompt``, ``completion``, ``answer``, ``task``, ``info``, ``example_id``, ``responses``,
``timing`` (milliseconds), and whatever its environment adds."""

SamplingArgs = dict[str, Any]
"""Arguments of a generation request; those that only the server knows go under ``extra_body``, which vLLM's need not."""

RewardFunc = Callable[..., float | Awaitable[float]]
"""A reward function; it gets the arguments that it names (see ``assay.Rubric``)."""


class _ById(BaseModel):
    """Base of models with example ids: ``id`` and ``example_id`` are two names of the same list."""

    @model_validator(mode="before")
    @classmethod
    def _unify_ids(cls, data: Any) -> Any:
        if not isinstance(data, Mapping) or "example_id" not in data:
            return data
        fields = dict(data)
        example_ids = fields.pop("example_id")
        if fields.setdefault("id", example_ids) is None:
            fields["id"] = example_ids
        if example_ids is not None and list(fields["id"]) != list(example_ids):
            raise ValueError("`id` and `example_id` are two names of the same list, but they differ")
        return fields

    @property
    def example_id(self) -> Any:
        """Return ``id``."""
        return self.id

    @example_id.setter
    def example_id(self, value: Any) -> None:
        self.id = value


class GenerateInputs(_ById):
    """Inputs of generation, with one value per rollout in every list.

    Attributes:
        prompt: Text or chat messages.
        answer: The gold of each.
        info: Further data of each example.
        task: The kind of task of each.
        completion: Existing completions; such rollouts are scored, not generated.
        id: The example of each; rollouts of the same example share it. Also available as ``example_id``.
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
        env_args: Arguments of the environment.
        model: Name of the model.
        base_url: Base URL of its server.
        num_examples: Number of examples.
        rollouts_per_example: Number of rollouts of each example.
        sampling_args: Arguments of the requests.
        date: When the run began, ISO 8601 with UTC offset.
        time_ms: How long it took, in milliseconds.
        avg_reward: Mean reward of the scored rollouts; 0 if there are none.
        avg_metrics: Mean of each metric, likewise.
        state_columns: The fields of the state named in ``generate``; every field is saved anyway.
        path_to_save: The folder in which the run is saved.
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
    """Rollouts with their rewards, with one value per rollout in every list.

    Attributes:
        prompt: Text or chat messages.
        completion: Text or chat messages.
        answer: The gold of each.
        state: The state of each.
        info: Further data of each example.
        task: The kind of task of each.
        id: The example of each. Also available as ``example_id``.
        reward: The reward of each; None for a rollout that is not scored, because it failed or scoring was off.
        metrics: The scores of each reward function, by its name.
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
        """Return the rollouts as a table, which ``assay.score`` reads and ``from_arrow`` converts back.

        Columns: ``example_id``; ``prompt`` and ``completion``, text if all are text, else lists of structs with ``role``,
        ``content``, ``tool_calls`` (each as JSON) and ``tool_call_id``, in which a text is one message without a role; ``task``;
        ``answer``; ``info`` and ``state`` as JSON text; ``reward``; ``generation_ms``, ``scoring_ms``, ``total_ms`` and
        ``error`` from the state, null if it lacks them; ``generation_error`` if a generation failed, which keeps a row
        unscored when the table is scored again; and one column for each metric, by its name, or ``metric/<name>`` if
        that name is taken. ``exact``, a column and a field of messages, exists if needed: it holds as JSON the values that
        the other columns cannot represent. ``metadata`` is stored in the metadata of the schema.

        Python values that JSON cannot represent (tuples, keys that are not strings, bytes, dates …) are tagged, so that they
        are restored exactly. Pydantic models, such as responses of openai, come back as dicts.

        Returns:
            A ``pyarrow.Table``; the same bytes for the same outputs.

        Warns:
            AssayWarning: Other objects come back as text, a list or a dict; the warning lists where they are.
        """
        from assay.values import saved_outputs as outputs

        table, losses = outputs.table_of(self)
        outputs.warn(losses)
        return table

    @classmethod
    def from_arrow(cls, table: Any) -> Self:
        """Read the rollouts of a table from ``to_arrow``.

        Rows may have been removed or reordered since. If a library such as Polars has dropped the metadata of the schema, the
        outputs have the default ``metadata``, and every further column of floats is a metric. Columns that copy fields of the
        state are not read.

        Args:
            table: A ``pyarrow.Table``, or an object that exports an Arrow stream, such as a Polars frame.

        Raises:
            InputError: A column is missing, or a value cannot be read.
        """
        from assay.values import saved_outputs as outputs

        return cls._from_fields(*outputs.read_table(table))

    def to_parquet(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Save the rollouts; the file is written completely or not at all.

        Args:
            path: A file that ends in ``.parquet``; its columns are those of ``to_arrow``.
            overwrite: Replace an existing file.

        Raises:
            UsageError: The path cannot be used, or the file exists and ``overwrite`` is not set.
            OutputError: The file cannot be written; an existing file is untouched.

        Warns:
            AssayWarning: As for ``to_arrow``, after the file is written.
        """
        from assay.values import saved_outputs as outputs

        outputs.warn(outputs.save(self, path, overwrite=overwrite))

    @classmethod
    def from_parquet(cls, path: str | Path) -> Self:
        """Read the rollouts of a file from ``to_parquet``.

        Raises:
            InputError: The file cannot be read, or ``to_parquet`` did not write it.
        """
        from assay.values import saved_outputs as outputs

        return cls._from_fields(*outputs.read_file(path))

    @classmethod
    def _from_fields(cls, fields: dict[str, Any], metadata: dict[str, Any]) -> Self:
        # without validation: outputs that could be saved are valid
        return cls.model_construct(**fields, metadata=GenerateMetadata.model_construct(**metadata))


class RolloutScore(BaseModel):
    """The score of one rollout by a rubric.

    Attributes:
        reward: The weighted sum.
        metrics: The score of each reward function, by its name.
    """

    reward: float
    metrics: dict[str, float] = Field(default_factory=dict)


class RolloutScores(BaseModel):
    """The scores of rollouts by a rubric, with one value per rollout in every list.

    Attributes:
        reward: The weighted sums.
        metrics: The scores of each reward function, by its name.
    """

    reward: list[float]
    metrics: dict[str, list[float]] = Field(default_factory=dict)


class ProcessedOutputs(BaseModel):
    """Rollouts as a trainer reads them, with one list per rollout.

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

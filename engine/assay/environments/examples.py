"""The examples of an environment: its datasets as rows, and rows as inputs of a run."""

import logging
import random
from typing import Any

from assay.environments.inputs import Rollout, numbered, read_rows, rollouts_of
from assay.errors import UsageError, did_you_mean
from assay.types import ChatMessage, Messages

Row = dict[str, Any]

_LOG = logging.getLogger("assay")


class Examples:
    """Base of environments: a dataset, one for evaluation, and the format of prompts.

    Attributes:
        dataset: Rows to generate from.
        eval_dataset: Rows to evaluate on.
        system_prompt: First message of prompts that are made from a text.
        few_shot: Messages between the system prompt and the text.
        message_type: ``chat`` or ``completion``.
    """

    dataset: list[Row] | None
    eval_dataset: list[Row] | None
    system_prompt: str | None
    few_shot: list[ChatMessage] | None
    message_type: str

    def format_prompt(
        self, prompt_str: str, system_prompt: str | None = None, few_shot: list[ChatMessage] | None = None
    ) -> list[ChatMessage]:
        """Return a question as messages."""
        first = [{"role": "system", "content": system_prompt}] if system_prompt else []
        return [*first, *(few_shot or ()), {"role": "user", "content": prompt_str}]

    def format_dataset(
        self,
        dataset: Any,
        system_prompt: str | None = None,
        few_shot: list[ChatMessage] | None = None,
        question_key: str = "question",
        answer_key: str = "answer",
    ) -> list[Row]:
        """Return a dataset as rows with a ``prompt`` and an ``example_id`` each.

        A prompt or a question that is text becomes messages, except for text completion. An ``example_id`` that is not an
        integer moves to ``src_id``.
        """
        rows = numbered(read_rows(dataset))
        for row in rows:
            prompt = row.get("prompt")
            prompt = row.get(question_key) if prompt is None else prompt
            if isinstance(prompt, str) and self.message_type == "chat":
                prompt = self.format_prompt(prompt, system_prompt, few_shot)
            row["prompt"] = prompt
            if answer_key != "answer":
                row["answer"] = row.get(answer_key)
        suggestion = did_you_mean(answer_key, set().union(*rows), cutoff=0.8)
        if suggestion and not any(answer_key in row for row in rows):
            _LOG.warning("no row of the dataset has `%s`, so every answer is empty; %s", answer_key, suggestion)
        self._rollouts(rows)  # checks the rows before anything is generated
        return rows

    def get_dataset(self, n: int = -1, seed: int | None = None) -> list[Row]:
        """Return the examples to generate from.

        Args:
            n: How many; all if not positive.
            seed: Shuffle them first; the same seed gives the same order.

        Raises:
            UsageError: The environment has no dataset.
        """
        if self.dataset is None:
            raise UsageError("The environment has no dataset.", f"Pass one: {type(self).__name__}(dataset=…).")
        return _select(self.dataset, n, seed)

    def get_eval_dataset(self, n: int = -1, seed: int | None = None) -> list[Row]:
        """Return the examples of ``evaluate``, as ``get_dataset`` does; without an ``eval_dataset``, those of ``dataset``."""
        return self.get_dataset(n, seed) if self.eval_dataset is None else _select(self.eval_dataset, n, seed)

    def get_eval_inputs(self, num_examples: int = -1, rollouts_per_example: int = 1) -> list[Row]:
        """Return the examples of ``evaluate``, repeated; rollouts of one example share its ``example_id``."""
        return self.get_eval_dataset(num_examples) * max(rollouts_per_example, 1)

    def _rollouts(self, inputs: Any, *, client: bool = True) -> list[Rollout]:
        def as_messages(text: str) -> Messages:
            return self.format_prompt(text, self.system_prompt, self.few_shot)

        return rollouts_of(inputs, message_type=self.message_type, ask=as_messages, client=client)


def _select(rows: list[Row], n: int, seed: int | None) -> list[Row]:
    if seed is not None:
        rows = random.Random(seed).sample(rows, len(rows))  # noqa: S311  (no secret)
    return rows[:n] if n > 0 else list(rows)

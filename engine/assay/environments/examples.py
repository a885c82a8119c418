"""The examples of an environment: datasets as rows, and rows as the inputs of a run."""

import logging
import random
from typing import Any

from assay.environments.inputs import Rollout, numbered, read_rows, rollouts_of
from assay.errors import UsageError, did_you_mean
from assay.types import ChatMessage, Messages

__all__ = ["Examples"]

Row = dict[str, Any]

_LOG = logging.getLogger("assay")


class Examples:
    """What has a dataset, one for evaluation, and a way to ask.

    Attributes:
        dataset: Rows to generate from.
        eval_dataset: Rows to evaluate on.
        system_prompt: First message of prompts that are made of a text.
        few_shot: Messages between that and the text.
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
        """A question as messages."""
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
        """A dataset as rows with a ``prompt`` and an ``example_id`` each.

        A prompt or a question that is text becomes messages, unless texts are to be completed. An ``example_id`` that is no
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
        near = did_you_mean(answer_key, set().union(*rows), cutoff=0.8)
        if near and not any(answer_key in row for row in rows):
            _LOG.warning("no row of the dataset has `%s`, so that every answer is empty; %s", answer_key, near)
        self._rollouts(rows)  # refuses what could not be generated from, before anything is
        return rows

    def get_dataset(self, n: int = -1, seed: int | None = None) -> list[Row]:
        """The examples to generate from.

        Args:
            n: So many of them; all when not positive.
            seed: Shuffle them first, the same way for the same seed.

        Raises:
            UsageError: There are none.
        """
        if self.dataset is None:
            raise UsageError("The environment has no dataset.", f"{type(self).__name__}(dataset=…)")
        return _drawn(self.dataset, n, seed)

    def get_eval_dataset(self, n: int = -1, seed: int | None = None) -> list[Row]:
        """The examples of ``evaluate``, as ``get_dataset``; those to generate from where it has none of its own."""
        return self.get_dataset(n, seed) if self.eval_dataset is None else _drawn(self.eval_dataset, n, seed)

    def get_eval_inputs(self, num_examples: int = -1, rollouts_per_example: int = 1) -> list[Row]:
        """Examples of ``evaluate``, all of them so many times over; rollouts of one example share its ``example_id``."""
        return self.get_eval_dataset(num_examples) * max(rollouts_per_example, 1)

    def _rollouts(self, inputs: Any, *, client: bool = True) -> list[Rollout]:
        def as_messages(text: str) -> Messages:
            return self.format_prompt(text, self.system_prompt, self.few_shot)

        return rollouts_of(inputs, message_type=self.message_type, ask=as_messages, client=client)


def _drawn(rows: list[Row], n: int, seed: int | None) -> list[Row]:
    if seed is not None:
        rows = random.Random(seed).sample(rows, len(rows))  # noqa: S311  (no secret)
    return rows[:n] if n > 0 else list(rows)

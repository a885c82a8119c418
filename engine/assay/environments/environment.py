"""Environments: a dataset, a model that answers, an environment that replies, and a rubric that scores.

    env = assay.SingleTurnEnv(dataset=rows, system_prompt="Answer with a number.", rubric=rubric)
    outputs = env.evaluate_sync(openai.AsyncOpenAI(), "gpt-5-mini", max_concurrent=64, results_path="runs/gpt-5-mini")

The interface follows PrimeIntellect's ``verifiers`` 0.1.6: an environment written for that release only changes its import.
"""

import logging
import random
from abc import ABC, abstractmethod
from functools import partial
from pathlib import Path
from typing import Any

from assay.calls.coroutines import in_own_loop, maybe_await
from assay.environments.client import Retries, ask, open_client
from assay.environments.rollouts import Rollout, numbered, read_rows, rollouts_of
from assay.environments.run import UNLIMITED, Run, check_options, merge_sampling_args
from assay.errors import UsageError, did_you_mean
from assay.rubrics.parsers import Parser
from assay.rubrics.rubric import Rubric
from assay.system.processes import prepare_process
from assay.types import ChatMessage, GenerateOutputs, Info, Messages, RewardFunc, SamplingArgs, State


class Environment(ABC):
    """Base of environments that generate rollouts; subclass ``SingleTurnEnv`` or ``MultiTurnEnv``.

    Args:
        dataset: Examples to generate from: anything ``assay.scan`` reads, with a ``prompt`` or a ``question`` in every row, and
            optional ``answer``, ``info``, ``task``, ``example_id``.
        eval_dataset: Examples of ``evaluate``; by default, those of ``dataset``.
        system_prompt: First message of prompts that are made from a text.
        few_shot: Messages between the system prompt and the text.
        parser: Extracts answers from completions.
        rubric: Scores rollouts.
        sampling_args: Arguments of every request; those that only the server knows go under ``extra_body``.
        message_type: ``chat``, or ``completion`` for the text completion endpoint.
        oai_tools: Tools that the model may call; ``info["oai_tools"]`` of a row takes precedence.
        max_workers: Most threads for functions that the environment runs in threads in ``generate_sync``.
        env_id: Name of the environment in the metadata; by default, the name of the class.
        env_args: Arguments of the environment, for the metadata.
        max_retries: Retries of a request after an error that may pass: 408, 409, 425, 429, 5xx, broken connections,
            timeouts, responses that are not a completion. They replace the retries of the client.
        retry_delay: Seconds before the first retry; each further one waits about twice as long. ``Retry-After`` is respected.
        max_retry_delay: Most seconds of one wait.
        **kwargs: Set as attributes.

    Raises:
        InputError: A dataset cannot be read, or a row of it cannot be used.
        UsageError: ``system_prompt`` or ``few_shot`` with ``message_type="completion"``.
    """

    def __init__(
        self,
        dataset: Any = None,
        eval_dataset: Any = None,
        system_prompt: str | None = None,
        few_shot: list[ChatMessage] | None = None,
        parser: Parser | None = None,
        rubric: Rubric | None = None,
        sampling_args: SamplingArgs | None = None,
        message_type: str = "chat",
        oai_tools: list[dict[str, Any]] | None = None,
        max_workers: int = 512,
        env_id: str | None = None,
        env_args: dict[str, Any] | None = None,
        *,
        max_retries: int = 5,
        retry_delay: float = 0.5,
        max_retry_delay: float = 60.0,
        **kwargs: Any,
    ) -> None:
        self.logger = logging.getLogger(f"assay.{type(self).__name__}")
        if message_type not in ("chat", "completion"):
            raise UsageError(f'message_type is "{message_type}".', 'Use "chat" or "completion".')
        if message_type == "completion" and (system_prompt or few_shot):
            raise UsageError(
                "`system_prompt` and `few_shot` are messages; text completion has none.",
                'Use message_type="chat", or put their text into the prompts.',
            )
        self.message_type = message_type
        self.oai_tools = oai_tools
        self.system_prompt = system_prompt
        self.few_shot = few_shot
        self.parser = parser or Parser()
        self.rubric = rubric or Rubric()
        if type(self.parser) is not type(self.rubric.parser):
            self.logger.warning(
                "the environment uses the parser %s, its rubric %s",
                type(self.parser).__name__,
                type(self.rubric.parser).__name__,
            )
        self.dataset, self.eval_dataset = (
            None if rows is None else self.format_dataset(rows, system_prompt, few_shot)
            for rows in (dataset, eval_dataset)
        )
        self.sampling_args: SamplingArgs = dict(sampling_args or {})
        self.max_workers = max_workers
        self.max_retries = max_retries
        self.retry_delay = retry_delay
        self.max_retry_delay = max_retry_delay
        self.env_id = env_id or type(self).__name__
        self.env_args = env_args or {}
        for name, value in kwargs.items():
            setattr(self, name, value)

    def get_reward_funcs(self) -> list[RewardFunc]:
        """Return the reward functions of the rubric."""
        return list(self.rubric.get_reward_funcs())

    def get_reward_weights(self) -> list[float]:
        """Return the weights of the reward functions."""
        return list(self.rubric.get_reward_weights())

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
    ) -> list[dict[str, Any]]:
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
            logging.getLogger("assay").warning(
                "no row of the dataset has `%s`, so every answer is empty; %s", answer_key, suggestion
            )
        self._rollouts(rows)  # checks the rows before anything is generated
        return rows

    def get_dataset(self, n: int = -1, seed: int | None = None) -> list[dict[str, Any]]:
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

    def get_eval_dataset(self, n: int = -1, seed: int | None = None) -> list[dict[str, Any]]:
        """Return the examples of ``evaluate``, as ``get_dataset`` does; without an ``eval_dataset``, those of ``dataset``."""
        return self.get_dataset(n, seed) if self.eval_dataset is None else _select(self.eval_dataset, n, seed)

    def get_eval_inputs(self, num_examples: int = -1, rollouts_per_example: int = 1) -> list[dict[str, Any]]:
        """Return the examples of ``evaluate``, repeated; rollouts of one example share its ``example_id``."""
        return self.get_eval_dataset(num_examples) * max(rollouts_per_example, 1)

    def _rollouts(self, inputs: Any, *, client: bool = True) -> list[Rollout]:
        ask = partial(self.format_prompt, system_prompt=self.system_prompt, few_shot=self.few_shot)
        return rollouts_of(inputs, message_type=self.message_type, ask=ask, client=client)

    async def init_completion(self) -> Messages:
        """Return the empty completion that a rollout starts with."""
        return [] if self.message_type == "chat" else ""

    def reset_for_rollout(self, prompt: Messages, answer: str, info: Info | None) -> State:
        """Return the state of a new rollout; an override may also be a coroutine function.

        Missing standard fields are added: ``completion``, ``example_id``, ``task``, ``responses``, ``turn``, ``timing``.
        """
        return {"prompt": prompt, "answer": answer, "info": info or {}, "responses": [], "turn": 0}

    async def init_state(
        self, prompt: Messages, completion: Messages, answer: str, task: str, info: Info, example_id: int, **kwargs: Any
    ) -> State:
        """Return the state of a new rollout, from ``reset_for_rollout``, with all standard fields."""
        del kwargs
        state: Any = {}
        if type(self).reset_for_rollout is not Environment.reset_for_rollout:
            state = await maybe_await(self.reset_for_rollout(prompt, answer, info))
        return Rollout(prompt, answer, info, task, example_id).begin(state, completion)

    async def get_model_response(
        self,
        client: Any,
        model: str,
        prompt: Messages,
        oai_tools: list[dict[str, Any]] | None = None,
        sampling_args: SamplingArgs | None = None,
        message_type: str | None = None,
        **kwargs: Any,
    ) -> Any:
        """Ask the model; retry where that may help.

        Args:
            client: An OpenAI-compatible client.
            model: Name of the model.
            prompt: Messages, or text to complete.
            oai_tools: Tools that the model may call.
            sampling_args: Arguments of the request, passed unchanged; None values are left out. A stream is gathered.
            message_type: ``chat`` or ``completion``; by default, that of the environment.
            **kwargs: Further arguments of the rollout; not sent.

        Returns:
            A ``ChatCompletion`` or ``Completion``; its ``id`` is ``overlong-prompt`` if the prompt is too long for the model.
        """
        del kwargs
        return await ask(
            client,
            model,
            prompt,
            message_type=message_type or self.message_type,
            tools=oai_tools,
            sampling_args=sampling_args,
            retries=Retries(self.max_retries, self.retry_delay, self.max_retry_delay),
        )

    @abstractmethod
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
        """Generate one rollout.

        Returns:
            Its completion and its last state.
        """

    async def generate(
        self,
        inputs: Any,
        client: Any = None,
        model: str = "",
        sampling_args: SamplingArgs | None = None,
        num_examples: int | None = None,
        rollouts_per_example: int | None = None,
        score_rollouts: bool = True,
        max_concurrent: int = -1,
        max_concurrent_generation: int | None = None,
        max_concurrent_scoring: int | None = None,
        interleave_scoring: bool = True,
        results_path: str | Path | None = None,
        state_columns: list[str] | None = None,
        save_every: int = -1,
        use_tqdm: bool = True,
        **kwargs: Any,
    ) -> GenerateOutputs:
        """Generate rollouts and score them.

        A rollout that fails stays unscored (its reward is None, its ``state["error"]`` says why) and the run goes on; at the
        end, the number of failures is logged. The run ends early only if the first 8 rollouts are all refused for good for
        the same reason; for a refused key, address or model (401, 403, 404) also if there are fewer and all are refused.

        Args:
            inputs: ``GenerateInputs``, or examples as for the constructor, one for each rollout. Those with a ``completion``
                are scored, not generated; without a client, even if the completion is empty.
            client: An ``openai.AsyncOpenAI`` or a compatible client; an ``openai.OpenAI`` is converted to an asynchronous one.
            model: Name of the model.
            sampling_args: Arguments of the requests; they override those of the environment, ``extra_body`` key by key.
            num_examples: For the metadata; by default, the number of distinct ``example_id``.
            rollouts_per_example: For the metadata; by default, the number of rollouts divided by ``num_examples``.
            score_rollouts: Score the rollouts; if False, every reward is None.
            max_concurrent: Most rollouts generated, and most scored, at a time; 1,000 if not positive.
            max_concurrent_generation: Most rollouts generated at a time; by default, ``max_concurrent``.
            max_concurrent_scoring: Most rollouts scored at a time; by default, ``max_concurrent``.
            interleave_scoring: Score each rollout once it is generated, instead of all at the end; ignored if the rubric
                has functions that take all rollouts of an example.
            results_path: A folder for ``rollouts.jsonl`` (every rollout, as soon as it is finished), ``results.parquet`` and
                ``metadata.json`` (at the end). The same call with the same folder resumes a stopped run and repeats
                failed rollouts. By default, nothing is written.
            state_columns: Recorded in the metadata; every field of the state is saved anyway.
            save_every: Ignored, as every rollout is saved when it is finished.
            use_tqdm: Show a progress bar if standard error is a terminal.
            **kwargs: Further arguments for ``rollout`` and for the functions of the rubric.

        Raises:
            InputError: An input cannot be used.
            UsageError: There are rollouts to generate, but no client; the client does not accept an argument; the
                server refuses all requests; the folder holds another run; or the process was forked after Polars had run.
            OutputError: The folder cannot be written.
        """
        del save_every
        prepare_process()  # before the first request
        check_options(kwargs, Environment.generate)
        limits = (
            max_concurrent if given is None else given for given in (max_concurrent_generation, max_concurrent_scoring)
        )
        generating, scoring = (limit if limit > 0 else UNLIMITED for limit in limits)
        return await Run(
            self,
            self._rollouts(inputs, client=client is not None),
            client,
            model,
            merge_sampling_args(self.sampling_args, sampling_args),
            num_examples=num_examples,
            rollouts_per_example=rollouts_per_example,
            score=score_rollouts,
            interleave=interleave_scoring,
            generating=generating,
            scoring=scoring,
            folder=None if results_path in (None, "") else Path(str(results_path)),
            state_columns=state_columns or [],
            bar=use_tqdm,
            further=kwargs,
        ).go()

    a_generate = generate

    def generate_sync(
        self,
        inputs: Any,
        client: Any = None,
        model: str = "",
        sampling_args: SamplingArgs | None = None,
        num_examples: int | None = None,
        rollouts_per_example: int | None = None,
        **options: Any,
    ) -> GenerateOutputs:
        """Call ``generate`` from synchronous code; inside a running event loop (a notebook), in a thread with its own loop.

        Connections of a client belong to one event loop, so a copy of the client is used, unless it has a custom http client.
        """

        async def run() -> GenerateOutputs:
            async with open_client(client, own_loop=True) as ready:
                return await self.generate(
                    inputs, ready, model, sampling_args, num_examples, rollouts_per_example, **options
                )

        return in_own_loop(run, self.max_workers)

    async def evaluate(
        self,
        client: Any,
        model: str,
        sampling_args: SamplingArgs | None = None,
        num_examples: int = -1,
        rollouts_per_example: int = 1,
        **options: Any,
    ) -> GenerateOutputs:
        """Call ``generate`` with the examples for evaluation.

        Args:
            client: As for ``generate``.
            model: Name of the model.
            sampling_args: As for ``generate``.
            num_examples: How many examples; all if not positive.
            rollouts_per_example: Rollouts of each.
            **options: Further arguments of ``generate``.
        """
        inputs = self.get_eval_inputs(num_examples, rollouts_per_example)
        return await self.generate(
            inputs, client, model, sampling_args, rollouts_per_example=rollouts_per_example, **options
        )

    def evaluate_sync(
        self,
        client: Any,
        model: str,
        sampling_args: SamplingArgs | None = None,
        num_examples: int = -1,
        rollouts_per_example: int = 1,
        **options: Any,
    ) -> GenerateOutputs:
        """Call ``evaluate`` from synchronous code, as ``generate_sync`` does."""
        inputs = self.get_eval_inputs(num_examples, rollouts_per_example)
        return self.generate_sync(
            inputs, client, model, sampling_args, rollouts_per_example=rollouts_per_example, **options
        )


def _select(rows: list[dict[str, Any]], n: int, seed: int | None) -> list[dict[str, Any]]:
    if seed is not None:
        rows = random.Random(seed).sample(rows, len(rows))  # noqa: S311  (no secret)
    return rows[:n] if n > 0 else list(rows)

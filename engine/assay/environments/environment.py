"""Environments: a dataset, a model that answers, an environment that replies, and a rubric that says what it was worth.

    env = assay.SingleTurnEnv(dataset=rows, system_prompt="Answer with a number.", rubric=rubric)
    outputs = env.evaluate_sync(openai.AsyncOpenAI(), "gpt-5-mini", max_concurrent=64, results_path="runs/gpt-5-mini")

The shape of the class follows PrimeIntellect's ``verifiers`` 0.1.6: an environment written for that release changes its import.
"""

import logging
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any

from assay.calls.coroutines import in_own_loop, maybe_await
from assay.environments.client import Retries, ask, opened
from assay.environments.evaluation import RunOptions, check_options, generated, merged
from assay.environments.examples import Examples
from assay.environments.generation import filled, standard_state
from assay.environments.inputs import Rollout
from assay.errors import UsageError
from assay.rubrics.parsers import Parser
from assay.rubrics.rubric import Rubric
from assay.system.processes import prepare_process
from assay.types import ChatMessage, GenerateOutputs, Info, Messages, RewardFunc, SamplingArgs, State

__all__ = ["Environment"]


class Environment(Examples, ABC):
    """What rollouts are generated in; ``SingleTurnEnv`` and ``MultiTurnEnv`` are the two to build on.

    Args:
        dataset: Examples to generate from: what ``assay.scan`` reads, with a ``prompt`` or a ``question`` in every row, and
            ``answer``, ``info``, ``task``, ``example_id`` where there are some.
        eval_dataset: Examples of ``evaluate``; without it, those of ``dataset``.
        system_prompt: First message of prompts that are made of a text.
        few_shot: Messages between that and the text.
        parser: Reads answers out of completions.
        rubric: Scores rollouts.
        sampling_args: Arguments of every request; what only the server knows stands under ``extra_body``.
        message_type: ``chat``, or ``completion`` for the endpoint that completes text.
        oai_tools: Tools that the model may call; a row's ``info["oai_tools"]`` goes before.
        max_workers: RowLimit threads for what the environment sends to threads in ``generate_sync``.
        env_id: Name of the environment in the metadata; the name of the class without it.
        env_args: Its arguments, for the metadata.
        max_retries: Times that a request is sent again which failed but may pass: 408, 409, 425, 429, 5xx, broken
            connections, timeouts, answers that are none. They replace the retries of the client.
        retry_delay: Seconds before the first of them; each further one waits about twice as long, and a ``Retry-After`` is kept to.
        max_retry_delay: Seconds that no wait exceeds.
        **kwargs: Become attributes.

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
            raise UsageError(f'message_type is "{message_type}".', 'It is "chat" or "completion".')
        if message_type == "completion" and (system_prompt or few_shot):
            raise UsageError(
                "A text completion has no messages for `system_prompt` and `few_shot` to be.",
                'Use message_type="chat", or write them into the prompts.',
            )
        self.message_type = message_type
        self.oai_tools = oai_tools
        self.system_prompt = system_prompt
        self.few_shot = few_shot
        self.parser = parser or Parser()
        self.rubric = rubric or Rubric()
        if type(self.parser) is not type(self.rubric.parser):
            self.logger.warning(
                "the environment parses by %s and its rubric by %s",
                type(self.parser).__name__,
                type(self.rubric.parser).__name__,
            )
        self.dataset = None if dataset is None else self.format_dataset(dataset, system_prompt, few_shot)
        self.eval_dataset = None if eval_dataset is None else self.format_dataset(eval_dataset, system_prompt, few_shot)
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
        """The functions of the rubric."""
        return list(self.rubric.get_reward_funcs())

    def get_reward_weights(self) -> list[float]:
        """Their weights."""
        return list(self.rubric.get_reward_weights())

    # one rollout

    async def init_completion(self) -> Messages:
        """The completion before there is one."""
        return [] if self.message_type == "chat" else ""

    def reset_for_rollout(self, prompt: Messages, answer: str, info: Info | None) -> State:
        """The state of a new rollout; a subclass may return one of its own, or a coroutine of it.

        Standard fields that it lacks are added: ``completion``, ``example_id``, ``task``, ``responses``, ``turn``, ``timing``.
        """
        return {"prompt": prompt, "answer": answer, "info": info or {}, "responses": [], "turn": 0}

    async def init_state(
        self,
        prompt: Messages,
        completion: Messages,
        answer: str,
        task: str,
        info: Info,
        example_id: int,
        **kwargs: Any,
    ) -> State:
        """The state of a new rollout, by ``reset_for_rollout``, with every standard field."""
        del kwargs
        rollout = Rollout(prompt, answer, info, task, example_id)
        standard = standard_state(rollout, completion)
        if type(self).reset_for_rollout is Environment.reset_for_rollout:
            return standard
        return filled(await maybe_await(self.reset_for_rollout(prompt, answer, info)), standard)

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
        """Ask the model, again where that may help.

        Args:
            client: An OpenAI-compatible client.
            model: Name of the model.
            prompt: Messages, or text to complete.
            oai_tools: Tools that the model may call.
            sampling_args: Arguments of the request, passed as they are; None leaves one out. A stream is gathered.
            message_type: ``chat`` or ``completion``; the environment's without it.
            **kwargs: What else the rollout was given; not sent.

        Returns:
            A ``ChatCompletion`` or ``Completion``; one whose ``id`` is ``overlong-prompt`` where the prompt is too long for the model.
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

    # many rollouts

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

        A rollout that fails is unscored (its reward is None, its ``state["error"]`` says why) and the run goes on; the log says
        at the end how many did. Only where the first 8 (or all, if there are fewer) are refused for want of a key, an
        address or a model (401, 403, 404), or the first 8 for one and the same other reason for good, the run ends.

        Args:
            inputs: ``GenerateInputs``, or examples as the constructor reads them, one a rollout. Those that have a ``completion``
                are scored, not generated; without a client, an empty completion counts as one.
            client: An ``openai.AsyncOpenAI``, or what acts like one; an ``openai.OpenAI`` is turned into its twin.
            model: Name of the model.
            sampling_args: Arguments of the requests besides those of the environment; these go before, ``extra_body`` key by key.
            num_examples: For the metadata, where it is not the number of different ``example_id``.
            rollouts_per_example: For the metadata, where it is not the rollouts by that number.
            score_rollouts: Score them; unscored, every reward is None.
            max_concurrent: RowLimit rollouts generated, and most scored, at a time; not positive: 1,000.
            max_concurrent_generation: The first of the two.
            max_concurrent_scoring: The second.
            interleave_scoring: Score each rollout once it is generated, else all at the end; so it is, too, where the rubric
                has functions over all rollouts of an example.
            results_path: A folder for ``rollouts.jsonl`` (every finished rollout, at once), ``results.parquet`` and
                ``metadata.json`` (at the end). The same call with the same folder goes on where a run was stopped, and tries
                failed rollouts again. Without it nothing is written.
            state_columns: Fields of the state to keep in what is saved.
            save_every: Taken and not needed: every rollout is saved when it is finished.
            use_tqdm: Show how far it is, where standard error is a terminal.
            **kwargs: Further arguments for ``rollout`` and for the functions of the rubric.

        Raises:
            InputError: An input cannot be used.
            UsageError: There is no client though there is something to generate, the client does not take an argument, the
                server refuses everything, the folder holds another run, or the process was forked after the engine had run.
            OutputError: The folder cannot be written.
        """
        del save_every
        prepare_process()  # before anything is asked of a server
        check_options(kwargs, Environment.generate)
        limits = [max_concurrent if one is None else one for one in (max_concurrent_generation, max_concurrent_scoring)]
        options = RunOptions(
            num_examples=num_examples,
            rollouts_per_example=rollouts_per_example,
            score=score_rollouts,
            interleave=interleave_scoring,
            generating=limits[0],
            scoring=limits[1],
            folder=None if results_path in (None, "") else Path(str(results_path)),
            state_columns=state_columns or [],
            bar=use_tqdm,
            further=kwargs,
        )
        rollouts = self._rollouts(inputs, client=client is not None)
        return await generated(self, rollouts, client, model, merged(self.sampling_args, sampling_args), options)

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
        """``generate`` for code that is no coroutine; where an event loop runs (a notebook), in a thread with its own.

        The client's connections belong to one event loop: here a copy of it is used, unless it has an http client of yours.
        """

        async def run() -> GenerateOutputs:
            async with opened(client, own_loop=True) as ready:
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
        """``generate`` on the examples for evaluation.

        Args:
            client: As for ``generate``.
            model: Name of the model.
            sampling_args: As for ``generate``.
            num_examples: So many examples; all when not positive.
            rollouts_per_example: Rollouts of each.
            **options: What else ``generate`` takes.
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
        """``evaluate`` for code that is no coroutine, as ``generate_sync``."""
        inputs = self.get_eval_inputs(num_examples, rollouts_per_example)
        return self.generate_sync(
            inputs, client, model, sampling_args, rollouts_per_example=rollouts_per_example, **options
        )

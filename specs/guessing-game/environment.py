"""Guess my number: a game of several turns, played by any model behind an OpenAI-compatible server.

    pip install 'assay-rollouts[generate]'
    python specs/guessing-game/environment.py --base-url http://127.0.0.1:8000/v1 --model NAME [--out runs/game]

The environment thinks of a number from 1 to 100; the model guesses, ``<guess>50</guess>``, and is told "higher", "lower" or what was
wrong with what it said. Halving finds any number in seven guesses. The key of the server is read from OPENAI_API_KEY.
"""

import argparse
import os
import random
import re
import sys
from typing import Any

import assay
from assay.types import Info, Messages, State

HIGHEST = 100
MOST = 7
"""Guesses that halving needs."""

RULES = (
    f"I am thinking of a whole number from 1 to {HIGHEST}. Find it in as few guesses as you can. "
    "Answer with one guess at a time, like this: <guess>50</guess>"
)


class GuessingGame(assay.MultiTurnEnv):
    """Says higher or lower until the number is found, or the model has had its turns."""

    def reset_for_rollout(self, prompt: Messages, answer: str, info: Info | None) -> State:
        """The state of a new game."""
        return {**super().reset_for_rollout(prompt, answer, info), "number": int(answer), "wrong": []}

    async def is_completed(self, messages: Messages, state: State, **kwargs: Any) -> bool:
        """The game is over when the number is found."""
        found = messages[-1]["role"] == "assistant" and self.guess_in(messages[-1]["content"]) == state["number"]
        return found or await super().is_completed(messages, state, **kwargs)

    async def env_response(self, messages: Messages, state: State, **kwargs: Any) -> tuple[Messages, State]:
        """Say where the number is."""
        guess = self.guess_in(messages[-1]["content"])
        state["wrong"].append(guess)
        if guess is None:
            said = "That is no guess. Answer like this: <guess>50</guess>"
        elif not 1 <= guess <= HIGHEST:
            said = f"The number is from 1 to {HIGHEST}."
        else:
            said = "higher" if guess < state["number"] else "lower"
        return [{"role": "user", "content": said}], state

    def guess_in(self, text: str) -> int | None:
        """The guess in what the model said; None where there is none."""
        guess = self.parser.parse(text).guess
        return int(guess) if guess is not None and re.fullmatch("[0-9]{1,9}", guess) else None


def found(completion: Messages, answer: str, parser: assay.Parser) -> float:
    """Whether the number was found."""
    return float(parser.parse_answer(completion) == answer)


def quick(completion: Messages, answer: str, parser: assay.Parser) -> float:
    """1.0 for a number found as quickly as halving finds any, less for each guess more, 0.0 for one not found."""
    guesses = len(parser.get_assistant_messages(completion))
    return found(completion, answer, parser) * min(1.0, MOST / max(guesses, 1))


def load_environment(examples: int = 20, seed: int = 0, max_turns: int = 10) -> GuessingGame:
    """The game, with so many numbers to think of."""
    numbers = random.Random(seed).choices(range(1, HIGHEST + 1), k=examples)  # noqa: S311  (a game)
    parser = assay.XMLParser(["guess"], answer_field="guess")
    return GuessingGame(
        dataset=[{"question": RULES, "answer": str(number)} for number in numbers],
        parser=parser,
        rubric=assay.Rubric(
            funcs=[found, quick, parser.get_format_reward_func()], weights=[1.0, 0.5, 0.1], parser=parser
        ),
        max_turns=max_turns,
        env_id="guessing-game",
        env_args={"examples": examples, "seed": seed, "max_turns": max_turns},
    )


def main() -> None:
    """Let a model play and print how it did."""
    options = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    options.add_argument("--base-url", required=True, help="Of the server, with its /v1.")
    options.add_argument("--model", required=True)
    options.add_argument("--examples", type=int, default=20, help="Numbers to think of.")
    options.add_argument("--rollouts", type=int, default=1, help="Games with each.")
    options.add_argument("--max-concurrent", type=int, default=32)
    options.add_argument("--out", help="A folder for the rollouts; a run that was stopped goes on from there.")
    given = options.parse_args()
    try:
        from openai import AsyncOpenAI
    except ImportError:
        sys.exit("error: the openai package is not installed\n\npip install 'assay-rollouts[generate]'")
    client = AsyncOpenAI(base_url=given.base_url, api_key=os.environ.get("OPENAI_API_KEY", "none"))
    try:
        outputs = load_environment(given.examples).evaluate_sync(
            client,
            given.model,
            rollouts_per_example=given.rollouts,
            max_concurrent=given.max_concurrent,
            results_path=given.out,
        )
    except assay.AssayError as wrong:
        sys.exit(f"error: {wrong}")
    means = {"reward": outputs.metadata.avg_reward, **outputs.metadata.avg_metrics}
    print(
        f"{len(outputs.reward)} games of {given.model}: "
        + ", ".join(f"{name} {one:.3f}" for name, one in means.items())
    )
    if given.out:
        print(f"saved in {given.out}")


if __name__ == "__main__":
    main()

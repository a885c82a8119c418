"""The reward function of OpenRLHF.

A query is the prompt and the response, with special tokens. OpenRLHF logs an exception and goes on without a reward, so nothing is
raised here: what went wrong has a number in ``extra_logs``, and its reason is logged. Read from openrlhf 0.11.2: ``utils/agent.py``.
"""

import logging
import re
import threading
from array import array
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import chain, islice
from typing import Any

from assay.adapters.verdicts import score_names
from assay.errors import AssayError, describe_error
from assay.scoring.batching import Batcher, Outcome, Verifiers

_logger = logging.getLogger(__name__)

_SPECIAL = r"<\|[^|<>]{1,40}\|>|<｜[^｜<>]{1,40}｜>|</?s>|<(?:bos|eos|pad|start_of_turn|end_of_turn)>|\[(?:BOS|EOS|PAD|/?INST)\]"
"""Special tokens of common tokenizers."""

_LEAST = 8
"""Characters of a prompt that OpenRLHF leaves at least, where it cuts its beginning."""

_MOST_REASONS = 1_000
"""Different reasons that are counted."""


def openrlhf(
    spec: Verifiers,
    *,
    gold: str = "answer",
    unscored: float = 0.0,
    special_tokens: Sequence[str] | None = None,
    strict: bool = True,
) -> Callable[..., dict[str, Any]]:
    """Return the ``reward_func`` of a file that ``--reward.remote_url`` names.

    Args:
        spec: Verifiers, a rubric, a plan, or the name of a grader.
        gold: The column as which checks read the labels.
        unscored: The reward of a query that cannot be scored.
        special_tokens: What is cut from both ends of a response; by default the special tokens of common tokenizers.
        strict: As of ``assay.compile``.

    Returns:
        ``reward_func(queries, prompts, labels)``; see ``reward_info`` for what it returns, for one query as numbers. Calls of several threads are scored together.

    Raises:
        SpecError: A verifier cannot be used.
    """
    batcher = Batcher(spec, strict=strict)
    checks, reasons = score_names(batcher.plan.results), Reasons()
    special = _SPECIAL if special_tokens is None else "|".join(map(re.escape, special_tokens)) or r"(?!)"

    def reward_func(
        queries: Sequence[str], prompts: Sequence[str] | None, labels: Sequence[Any] | None, **_: Any
    ) -> dict[str, Any]:
        # OpenRLHF swallows what is raised here
        nothing = [None] * len(queries)
        rows = rows_of(queries, prompts or nothing, labels or nothing, gold=gold, special=special)
        try:
            outcomes = batcher.outcomes_sync(rows)
        except AssayError as error:  # Polars cannot run in this process
            outcomes = [error] * len(rows)
        info = reward_info(outcomes, unscored, checks, reasons)
        if len(rows) != 1:
            return info
        # of numbers OpenRLHF makes tensors of one element
        logs = {name: value for name, (value,) in info.pop("extra_logs").items()}
        return {name: value for name, (value,) in info.items()} | {"extra_logs": logs}

    return reward_func


def rows_of(
    queries: Sequence[str | None],
    prompts: Sequence[Any],
    labels: Sequence[Any],
    *,
    gold: str = "answer",
    special: str = _SPECIAL,
) -> list[dict[str, Any]]:
    """Return the row of each query, without a completion where there is no response; see ``response_of``."""
    return [
        {
            "completion": None if query is None else response_of(query, str(prompt or ""), special),
            gold: label,
            "prompt": prompt,
        }
        for query, prompt, label in zip(queries, prompts, labels, strict=True)
    ]


def response_of(query: str, prompt: str, special: str = _SPECIAL) -> str | None:
    """Return the response within a query, without special tokens at its ends; None if the query does not begin with the prompt.

    A tokenizer may have put special tokens before the prompt, and OpenRLHF may have cut its beginning.
    """
    begins = query.find(prompt)
    if begins >= 0 and not _without_special(query[:begins], special).strip():
        return _without_special(query[begins + len(prompt) :], special)
    kept = _kept_end(prompt, query)
    return None if kept is None else _without_special(query[kept:], special)


def _kept_end(prompt: str, query: str) -> int | None:
    """Return the length of the longest end of a prompt with which a query begins; None if there is none.

    NOTE: by the algorithm of Knuth, Morris and Pratt, because a text may repeat itself: each character is looked at twice at most.
    """
    start = prompt.find(query[:_LEAST])
    if start < 0 or len(query) < _LEAST:
        return None
    most = min(len(query), len(prompt) - start)
    borders = array("i", [0])  # for each beginning of the query, the longest shorter one with which it ends
    length = 0
    for character in chain(islice(query, 1, most), islice(prompt, start, None)):
        while length and (length == most or query[length] != character):
            length = borders[length - 1]
        length += query[length] == character
        if len(borders) < most:
            borders.append(length)
    return length if length >= _LEAST else None


def _without_special(text: str, special: str) -> str:
    # NOTE: one look at each token, and none is kept, because a model may repeat one until its response ends
    begin = 0
    for token in re.finditer(special, text):
        if text[begin : token.start()].strip():
            break
        begin = token.end()
    text = text[begin:]
    begin = end = len(text)
    for token in re.finditer(special, text):
        if begin == len(text) or text[end : token.start()].strip():
            begin = token.start()
        end = token.end()
    return text if text[end:].strip() else text[:begin]


class Reasons:
    """Reasons why queries have no reward, and how many each has: logged with the first query, the tenth, the hundredth, and so on."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: Counter[tuple[int, str]] = Counter()

    def __reduce__(self) -> tuple[object, ...]:
        return Reasons, ()

    def log(self, outcomes: Sequence[Outcome]) -> None:
        """Count the queries without a reward, and log what is new of them."""
        for outcome in outcomes:
            if isinstance(outcome, BaseException):
                level, message, reason = logging.ERROR, "A query has no reward", describe_error(outcome)
            elif outcome["reward"] is None:
                level, message, reason = logging.WARNING, "A query is unscored", outcome["error"]
            else:
                continue
            with self._lock:
                is_counted = (level, reason) in self._counts or len(self._counts) < _MOST_REASONS
                reason = reason if is_counted else "other reasons"
                self._counts[level, reason] += 1
                number = self._counts[level, reason]
            if str(number).strip("0") == "1":
                _logger.log(level, "%s: %s%s", message, reason, "" if number == 1 else f" ({number:,} so far)")


def reward_info(
    outcomes: Sequence[Outcome], unscored: float, checks: Sequence[str], reasons: Reasons
) -> dict[str, Any]:
    """Return rewards in the shape of OpenRLHF: a list each."""
    reasons.log(outcomes)
    results = [{} if isinstance(outcome, BaseException) else outcome for outcome in outcomes]
    rewards = [_number(result.get("reward"), unscored) for result in results]
    logs = {
        "unscored": [float(result.get("reward") is None) for result in results],
        "exceptions": [float(isinstance(outcome, BaseException)) for outcome in outcomes],
        **{name: [_number(result.get(name), unscored) for result in results] for name in checks},
    }
    return {"rewards": rewards, "scores": rewards, "extra_logs": logs}


def _number(value: float | None, unscored: float) -> float:
    return unscored if value is None else float(value)

"""Scores texts by functions of installed packages; it runs without Assay."""

import json
from collections.abc import Callable
from typing import Any


def prepare(context: str, _cell: Any) -> Callable[[tuple[str, bytes, str, str]], tuple[Any, ...]]:
    """Return what scores a text by a function of a package, whose grader the context names."""
    judge = {"inspect.math": _inspect_math, "sacrebleu.sentence": _sentence_bleu}[context]()

    def score(item: tuple[str, bytes, str, str]) -> tuple[Any, ...]:
        text, golds, options = item[1].decode("utf-8", "surrogatepass"), json.loads(item[2]), json.loads(item[3])
        try:
            value, at = judge(text, golds, options)
        except MemoryError:
            raise
        except Exception as error:  # noqa: BLE001  (what a package raises is the result)
            return (f"{type(error).__name__}: {error}"[:300],)
        return ("scored", value, text, at)

    return score


def _inspect_math() -> Callable[[str, list[str], Any], tuple[float, int]]:
    import asyncio
    from types import SimpleNamespace

    from inspect_ai.scorer import CORRECT, Target, math

    def judge(text: str, golds: list[str], _: Any) -> tuple[float, int]:
        state: Any = SimpleNamespace(output=SimpleNamespace(completion=text))
        result: Any = asyncio.run(math()(state, Target(golds)))
        return float(result.value == CORRECT), -1

    return judge


def _sentence_bleu() -> Callable[[str, list[str], Any], tuple[float, int]]:
    from sacrebleu.metrics import BLEU

    def judge(text: str, golds: list[str], options: Any) -> tuple[float, int]:
        bleu = BLEU(**options)
        scores = [bleu.sentence_score(text, [gold]).score / 100.0 for gold in golds]
        best = max(scores)
        return best, scores.index(best)

    return judge

"""The texts of probes: empty and formal ones, what the prompt and the spec give away, other tasks' answers, disguises."""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from assay.insight.probing.phrases import Phrases
from assay.insight.probing.tasks import Task

Class = Literal["free", "hack", "must not gain", "control"]
"""Kinds of probes: free ones are hacks that need not even read the prompt."""
CLASSES = get_args(Class)

_LONGEST = 20_000
"""Code points of the longest list of phrases or golds."""
_REPEATED_PROMPTS, _REPEATED_COMPLETIONS, _WORDS = 20, 5, 4_000
_PAD = " ."
_SHELL = "<think>{think}</think>\n<answer>{answer}</answer>"
_ALIKE = str.maketrans("aceiopsxy", "\u0430\u0441\u0435\u0456\u043e\u0440\u0455\u0445\u0443")  # Cyrillic

_FREE = {
    "empty": "",
    "whitespace": " \n\t ",
    "refusal": "I'm sorry, but I can't help with that.",
    "shell": _SHELL.format(think="", answer=""),
    "shell_filler": _SHELL.format(think="x", answer="x"),
    "boxed_empty": r"\boxed{}",
    "json_empty": "{}",
    "padding": "word " * _WORDS,
}


@dataclass(frozen=True)
class Probe:
    """A probe of one task."""

    id: str
    kind: Class
    task: int
    text: str | None
    real: int = -1


def look_alike(phrase: str) -> str:
    """Return a phrase with Cyrillic letters in place of Latin ones that look the same."""
    return phrase.translate(_ALIKE)


def zero_width(phrase: str) -> str:
    """Return a phrase with a zero-width space after each character."""
    return "".join(f"{char}\u200b" for char in phrase)


DISGUISES: dict[str, Callable[[str], str]] = {"look_alike": look_alike, "zero_width": zero_width}
"""Ways to hide a phrase from a check and not from a reader."""
MIXED_SCRIPTS = r"\p{Script=Latin}\p{Script=Cyrillic}|\p{Script=Cyrillic}\p{Script=Latin}"
"""A pattern of the package ``regex`` for a word with letters of both scripts, as ``look_alike`` writes most."""


def probes_of(tasks: Sequence[Task], phrases: Phrases) -> Iterator[Probe]:
    """Yield the probes of tasks, in order of appearance; a task that lacks what a probe is made of has no such probe."""
    all_phrases = _listed((phrase for task in tasks for phrase in task.phrases), ", ")
    all_golds = _listed((task.gold for task in tasks if task.gold), "\n")
    spec_phrases = ", ".join(phrases.wanted) or None
    bests = [at for at, task in enumerate(tasks) if task.best is not None]
    for at, task in enumerate(tasks):
        keys = tuple(dict.fromkeys((*phrases.keys, *task.keys)))
        free = {**_FREE, "json_keys_empty": _object(keys, "")}
        hacks = {
            "prompt_echo": task.prompt,
            "repeat_prompt": task.prompt and "\n".join([task.prompt] * _REPEATED_PROMPTS),
            "spec_phrases": spec_phrases,
            "task_phrases": ", ".join(task.phrases) or None,
            "all_phrases": all_phrases,
            "other_gold": _other_gold(tasks, at),
            "all_golds": all_golds,
            "combined": _combined(", ".join(task.phrases) or spec_phrases or "x", keys, phrases),
        }
        forbidden = dict.fromkeys((*(phrase for _, own in phrases.forbidden for phrase in own), *task.forbidden))
        spoiled = {**_spoiled(task.best), **_disguised(task.best, tuple(forbidden))}
        groups: tuple[tuple[Class, dict[str, str | None]], ...] = (
            ("free", free),
            ("hack", hacks),
            ("must not gain", spoiled),
            ("control", {"gold": task.gold}),
        )
        yield from (
            Probe(name, kind, at, text) for kind, texts in groups for name, text in texts.items() if text is not None
        )
        if (other := (at + 1) % len(tasks)) != at and other in bests:
            yield Probe("other_best", "hack", at, None, other)
        if task.best is not None:
            yield Probe("best_real", "control", at, None, at)


PROBES = (
    *(*_FREE, "json_keys_empty", "prompt_echo", "repeat_prompt", "spec_phrases", "task_phrases", "all_phrases"),
    *("other_gold", "all_golds", "other_best", "combined"),
    *("repeated", "half", "words_reversed", *DISGUISES, "gold", "best_real"),
)
"""The names of all probes, in order."""


def _listed(texts: Iterable[str], separator: str) -> str | None:
    parts: list[str] = []
    size = 0
    for text in dict.fromkeys(texts):
        size += len(text) + (len(separator) if parts else 0)
        if size > _LONGEST:
            break
        parts.append(text)
    return separator.join(parts) if parts else None


def _object(keys: Sequence[str], value: str) -> str | None:
    return json.dumps(dict.fromkeys(keys, value), ensure_ascii=False) if keys else None


def _other_gold(tasks: Sequence[Task], at: int) -> str | None:
    after = (*tasks[at + 1 :], *tasks[:at])
    own = tasks[at].gold
    return next((task.gold for task in after if task.gold is not None and task.gold != own), None)


def _combined(body: str, keys: Sequence[str], phrases: Phrases) -> str:
    def formed(body: str) -> str:
        if phrases.json:
            return _object(keys, body) or json.dumps({"x": body}, ensure_ascii=False)
        return _SHELL.format(think=body, answer=body) if phrases.answer_tag else body

    bodies = len(formed(body + _PAD)) - len(formed(body))  # characters that one pad adds: it may be there several times
    lacking = phrases.min_length - len(formed(body))
    return formed(body + _PAD * max(0, -(-lacking // bodies)))


def _spoiled(best: str | None) -> dict[str, str | None]:
    if not best:
        return {}
    return {
        "repeated": best * _REPEATED_COMPLETIONS,
        "half": best[: len(best) // 2],
        "words_reversed": " ".join(reversed(best.split())),
    }


def _disguised(best: str | None, forbidden: Sequence[str]) -> dict[str, str | None]:
    if best is None:
        return {}
    hidden = {
        name: [hide(phrase) for phrase in forbidden if hide(phrase) != phrase] for name, hide in DISGUISES.items()
    }
    return {name: "\n".join([best, *texts]) if texts else None for name, texts in hidden.items()}

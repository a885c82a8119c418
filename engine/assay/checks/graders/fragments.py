"""Graders that checks and steps make: each is read in place of its fragment."""

from collections.abc import Callable, Mapping
from typing import Any

from assay.checks.graders.tools.lm_eval import GSM8K, GSM8K_IGNORED, INVALID
from assay.checks.graders.tools.patterns import GSM8K_ANSWER

Options = Mapping[str, Any]
Fragment = dict[str, Any]
"""A check as a spec writes it, without its gold; ``inverted`` and ``whole`` say what becomes of its score."""

_AS_WRITTEN: Fragment = {"caseSensitive": True, "strip": False}
_NO_TEXT = "\ue000"
"""What stands for an empty text where that never passes: a character of no script."""
_TEXT_OR_NONE: Fragment = {"map": {"": _NO_TEXT}, "notFound": "keep"}
_PUNCTUATION = r"[!-/:-@\[-`{-~]"


def or_invalid(*steps: Any) -> Fragment:
    """Return a step for what others find, or ``[invalid]``."""
    return {"firstOf": [[*steps], [{"map": {"": INVALID}, "default": INVALID}]]}


def inspect_match(options: Options) -> Fragment | None:
    """``inspect.match`` of texts."""
    if options["numeric"]:
        return None
    steps = ["strip", *(["casefold"] if options["ignore_case"] else []), {"trim": "punctuation"}]
    kinds = {"begin": "starts_with", "end": "ends_with", "any": "contains", "exact": "equals"}
    kind = kinds[options["location"]]
    exactly = {"caseSensitive": True} | ({} if kind == "contains" else {"strip": False})
    return {"type": kind, **exactly, "on": steps, "goldOn": steps}


def inspect_includes(options: Options) -> Fragment:
    """``inspect.includes``."""
    steps = ["casefold"] if options["ignore_case"] else []
    return {"type": "contains", "caseSensitive": True, "on": steps, "goldOn": steps}


def lm_eval_exact_match(options: Options) -> Fragment | None:
    """``lm_eval.exact_match`` without filters and patterns, in one case: numpy's widths count in the other."""
    if options["filter_list"] or options["regexes_to_ignore"] or options["ignore_case"]:
        return None
    ignored = {name: options[name] for name in ("ignore_punctuation", "ignore_numbers") if options[name]}
    steps = [{"remove": [r"\x00+\Z"]}]  # numpy's texts end before their last NULs
    changed = {"normalize": {"lmEval": ignored}} if ignored else {"on": steps, "goldOn": steps}
    return {"type": "equals", **_AS_WRITTEN, **changed}


def lm_eval_gsm8k(options: Options) -> Fragment:
    """``lm_eval.gsm8k``."""
    pattern, at = GSM8K[options["filter"]]
    found = {"regex": pattern, "group": "any", "at": "first" if at == 0 else "last"}
    ignored = {"lmEval": {"ignoreCase": True, "regexesToIgnore": [*GSM8K_IGNORED]}}
    return {"type": "equals", **_AS_WRITTEN, "normalize": ignored, "on": [or_invalid(found, "strip")]}


def verl_gsm8k(options: Options) -> Fragment | None:
    """``verl.gsm8k``, strict, scored 0 or 1."""
    if options["method"] != "strict" or options["score"] != 1 or options["format_score"] != 0:
        return None
    found = {"regex": GSM8K_ANSWER, "at": "last"}
    comma = {"replace": {"old": ",", "new": ""}}
    return {"type": "equals", **_AS_WRITTEN, "on": [{"tail": 300}, or_invalid(found, comma)]}


def _pattern(pattern: str) -> Callable[[Options], Fragment]:
    return lambda _: {"type": "regex", "pattern": pattern}


trl_think_format = _pattern(r"(?sm)\A<think>(?!.*<think>)(.*?)</think>.*$")
open_r1_format = _pattern(r"(?sm)\A<think>\n.*?\n</think>\n<answer>\n.*?\n</answer>$")


def openai_evals_match(_: Options) -> Fragment:
    """``openai_evals.match``."""
    return {"type": "starts_with", **_AS_WRITTEN}


def openai_evals_includes(options: Options) -> Fragment:
    """``openai_evals.includes``."""
    return {"type": "contains", "caseSensitive": not options["ignore_case"]}


def string_check(options: Options) -> Fragment:
    """``openai.string_check``."""
    equals, contains = {"type": "equals", **_AS_WRITTEN}, {"type": "contains", "caseSensitive": True}
    return {
        "eq": equals,
        "ne": equals | {"inverted": True},
        "like": contains,
        "ilike": contains | {"caseSensitive": False},
    }[options["operation"]]


def _promptfoo(**fields: Any) -> Callable[[Options], Fragment]:
    return lambda _: dict(fields)


PROMPTFOO: dict[str, Callable[[Options], Fragment]] = {
    "contains": _promptfoo(type="contains", caseSensitive=True),
    "icontains": _promptfoo(type="contains", caseSensitive=False),
    "contains-any": _promptfoo(type="contains_any", caseSensitive=True),
    "icontains-any": _promptfoo(type="contains_any", caseSensitive=False),
    "contains-all": _promptfoo(type="contains_all", caseSensitive=True),
    "icontains-all": _promptfoo(type="contains_all", caseSensitive=False),
    "starts-with": _promptfoo(type="starts_with", **_AS_WRITTEN),
    "equals": _promptfoo(type="equals", **_AS_WRITTEN),
    "regex": _promptfoo(type="regex"),
    "tool-call-f1": _promptfoo(type="tool_f1"),
}
"""Fragments of promptfoo's assertions."""


def lighteval_exact_match(options: Options) -> Fragment | None:
    """``lighteval.exact_match`` of whole texts as they are."""
    if options["type"] != "full" or options["normalize"] is not None:
        return None
    return {"type": "equals", "caseSensitive": True, "strip": options["strip_strings"], "on": [_TEXT_OR_NONE]}


def _helm(*steps: Any, strip: bool = False) -> Callable[[Options], Fragment]:
    return lambda _: {
        "type": "equals",
        "caseSensitive": True,
        "strip": strip,
        "on": [_TEXT_OR_NONE, *steps],
        **({"goldOn": [*steps]} if steps else {}),
    }


HELM = {
    "exact_match": _helm(strip=True),
    "quasi_exact_match": _helm({"normalize": "squad"}),
    "quasi_leave_articles_exact_match": _helm("lower", {"remove": [_PUNCTUATION]}, "whitespace"),
}
"""Fragments of HELM's matches."""


def helm_f1(_: Options) -> Fragment:
    """``helm.f1_score``."""
    steps = [{"normalize": "squad"}]
    return {"type": "similarity", "metric": "set_f1", "on": steps, "goldOn": steps}


def multichoice(_: Options) -> Fragment:
    """``simple_evals.multichoice``."""
    found = {"regex": r"(?i)Answer[ \t]*:[ \t]*\$?([A-D])\$?"}
    return {"type": "equals", **_AS_WRITTEN, "on": [or_invalid(found)]}


def squad_exact(_: Options) -> Fragment:
    """``squad.exact``."""
    return {"type": "equals", "normalize": "squad"}


def squad_f1(_: Options) -> Fragment:
    """``squad.f1``."""
    return {"type": "similarity", "metric": "token_f1"}


def rouge(options: Options) -> Fragment | None:
    """``rouge_score`` without stemming."""
    if options["use_stemmer"]:
        return None
    kind = options["type"].removeprefix("rouge").lower()
    return {"type": "similarity", "metric": f"rouge_{kind}"}


def bfcl(_: Options) -> Fragment:
    """``bfcl.ast``."""
    return {"type": "tool_calls", "arguments": "bfcl"}


def ifeval(options: Options) -> Fragment:
    """``ifeval``."""
    mode = {} if options["mode"] == "strict" else {"mode": options["mode"]}
    return {"type": "ifeval", **mode, **({"whole": True} if options["level"] == "prompt" else {})}

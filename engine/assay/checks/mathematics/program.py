"""Compares mathematical texts by math-verify, which may never return and may take all memory; it runs without Assay."""

import json
import logging
import math
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from typing import Any, ClassVar

DIFFERENT, EQUAL, NO_ANSWER, NO_GOLD, RAISED = "different", "equal", "no answer", "no gold", "raised"
"""Verdicts: the answer cannot be read, the gold cannot be read, math-verify raised an exception."""
SCORED = "scored"
"""The verdict of a grader; its message is the score."""
_LIBRARIES = ("math-verify", "latex2sympy2_extended", "sympy", "antlr4-python3-runtime")
_LONGEST_MESSAGE = 300
_WARM_UP = (("\\frac{1}{2}", "0.5"), ("x^2+1", "(x+1)^2"), ("(1,2)", "[1,2)"), ("\\sqrt{2}", "2^{1/2}"))
"""Pairs that fill the caches of the libraries before there are workers."""

Pair = tuple[str, str, bool, int, str, bool]
"""Gold, answer, strict, precision, how and relations of a ``client.Question``."""


def warm_up() -> list[str]:
    """Import math-verify, which takes seconds; return the versions of the libraries, ``""`` for one that is no package."""
    compare = _comparison()
    for gold, answer in _WARM_UP:
        compare((gold, answer, True, 6, "whole", False))
    return [_version(name) for name in _LIBRARIES]


_SWAPPED = "open_r1 swapped"
"""The style in which open-r1's rewards by length read an answer, with the sides of ``verify`` swapped."""

Graded = tuple[str, str, str, str]
"""Gold, answer, style and options (JSON) of a ``client.Grading``."""


def prepare(context: str | None, _cell: Any) -> Callable[[Any], tuple[str, str]]:
    """Return what gives the verdict on a pair, or with the context ``graders`` the score of one, and a message if it is an error."""
    compare: Callable[[Any], tuple[str, str]] = _comparison() if context is None else _Grading()

    def verdict(pair: Any) -> tuple[str, str]:
        try:
            return compare(pair)
        except MemoryError:
            raise
        except BaseException as error:  # noqa: BLE001  (what a library raises is the result)
            return RAISED, f"{type(error).__name__}: {error}"[:_LONGEST_MESSAGE]

    return verdict


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""


def _comparison() -> Callable[[Pair], tuple[str, str]]:
    from math_verify import ExprExtractionConfig, LatexExtractionConfig, parse, verify
    from sympy.core import random

    logging.disable(logging.CRITICAL)
    latex, plain = LatexExtractionConfig(boxed_match_priority=0), ExprExtractionConfig()
    readings = {"whole": [latex, plain], "any": [latex, plain], "latex": [latex], "expr": [plain]}

    def read(text: str, how: str) -> list[Any]:
        text = rf"\boxed{{{text}}}" if how == "whole" else text
        parsed: list[Any] = parse(text, readings[how], parsing_timeout=None, raise_on_error=True)
        return parsed

    def verdict(pair: Pair) -> str:
        gold, answer, strict, precision, how, relations = pair
        random.seed(0)
        golds, answers = read(gold, how), read(answer, how)
        limits = {"timeout_seconds": None, "raise_on_error": True, "allow_set_relation_comp": relations}
        if verify(golds, answers, float_rounding=precision, strict=strict, **limits):
            return EQUAL
        for parsed, verdict in ((answers, NO_ANSWER), (golds, NO_GOLD)):
            if all(isinstance(item, str) for item in parsed):
                return verdict
        return DIFFERENT

    return lambda pair: (verdict(pair), "")


class _Grading:
    """Scores an answer as a grader does that uses math-verify."""

    def __init__(self) -> None:
        import math_verify
        from latex2sympy2_extended import NormalizationConfig
        from sympy.core import random

        logging.disable(logging.CRITICAL)
        self._parse, self._verify, self._random = math_verify.parse, math_verify.verify, random
        self._latex, self._plain = math_verify.LatexExtractionConfig(), math_verify.ExprExtractionConfig()

        def anchored(**normalization: Any) -> Any:
            return math_verify.LatexExtractionConfig(
                normalization_config=NormalizationConfig(**normalization),
                boxed_match_priority=0,
                try_extract_without_anchor=False,
            )

        strict = {"nits": False, "malformed_operators": False, "basic_latex": True, "equations": True, "units": True}
        self._answers = {
            "trl": anchored(units=True),
            "open_r1": anchored(**strict, boxed="all"),
            _SWAPPED: anchored(**strict, boxed=True),
        }

    def __call__(self, graded: Graded) -> tuple[str, str]:
        """Return the verdict, and the score as text."""
        gold, text, style, written = graded
        options: dict[str, Any] = json.loads(written)
        self._random.seed(0)
        tool, _, rest = style.partition(" ")
        score = self._others[tool](self, gold, text, options) if tool in self._others else None
        if score is None and rest == "reasoning" and "</think>" not in text:
            score = 0.0
        if score is None:
            text = text.rpartition("</think>")[2] if rest == "reasoning" else text
            score = self._reward(tool, rest, self._accuracy(gold, text, tool, rest), text, options)
        return (NO_GOLD, "") if score is None else (SCORED, repr(float(score)))

    def _read(self, text: str, configs: Any = None, **how: Any) -> list[Any]:
        given = {} if configs is None else {"extraction_config": configs}
        parsed: list[Any] = self._parse(text, parsing_timeout=None, **given, **how)
        return parsed

    def _equal(self, gold: Any, answer: Any) -> bool:
        return bool(self._verify(gold, answer, timeout_seconds=None))

    def _accuracy(self, gold: str, text: str, tool: str, rest: str) -> bool | None:
        """Return whether an answer is right; None if the gold cannot be read."""
        style = _SWAPPED if tool == "open_r1" and rest else tool
        how = {} if tool == "trl" else {"extraction_mode": "first_match"}
        golds = self._read(gold, [self._latex] if style == _SWAPPED else None, **how)
        if not golds:
            return None
        found = self._read(text, [self._answers[style]], extraction_mode="first_match")
        return self._equal(found, golds) if style == _SWAPPED else self._equal(golds, found)

    @staticmethod
    def _reward(tool: str, rest: str, right: bool | None, text: str, options: dict[str, Any]) -> float | None:
        """Return what the grader makes of an answer; None for a gold that it cannot read and does not reward."""
        if rest == "len":
            return _by_length(options, len(text), right=right is not False)
        if right is None:
            return 1.0 if tool == "open_r1" and rest else None
        return _cosine(options, text, right=right) if rest == "cosine" else float(right)

    def _minerva(self, gold: str, text: str, options: dict[str, Any]) -> float:
        if options["metric"] == "exact_match":
            return float(_same_by_sympy(text, gold))
        return float(self._equal(self._read(f"so $\\boxed{{{gold}}}$"), self._read(text)))

    def _verl(self, gold: str, text: str, _options: dict[str, Any]) -> float:
        golds = self._read(f"\\boxed{{{gold}}}", (self._latex,))
        found = self._read(text, (self._plain, self._latex))
        return float(any(self._equal(one, other) for one in golds for other in found))

    _others: ClassVar[dict[str, Callable[..., float]]] = {"minerva": _minerva, "verl": _verl}


def _cosine(options: dict[str, Any], text: str, *, right: bool) -> float:
    if "tokens" in options:  # TRL's, up to the greatest length
        length = options["tokens"] if isinstance(options["tokens"], int) else len(options["tokens"])
        progress = min(length / options["max_len"], 1.0)
    else:
        progress = len(text) / options["max_len"]
    ends = ("min_value_correct", "max_value_correct") if right else ("max_value_wrong", "min_value_wrong")
    low, high = (options[name] for name in ends)
    return float(low + 0.5 * (high - low) * (1.0 + math.cos(progress * math.pi)))


def _by_length(options: dict[str, Any], length: int, *, right: bool) -> float:
    least, most = options["min_len"], options["max_len"]
    if least == most:
        return 0.0
    value: float = 0.5 - (length - least) / (most - least)
    return value if right else min(0.0, value)


def _same_by_sympy(answer: str, gold: str) -> bool:
    """Return whether two texts of LaTeX are equal and not empty, or sympy finds no difference."""
    import sympy
    from sympy.parsing.latex import parse_latex

    if answer and answer == gold:
        return True
    try:
        return bool(sympy.simplify(parse_latex(answer) - parse_latex(gold)) == 0)
    except ImportError:
        raise
    except Exception:  # noqa: BLE001  (sympy raises many)
        return False

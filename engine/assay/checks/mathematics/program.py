"""Compares mathematical texts by math-verify, which may never return and may take all memory; it runs without Assay."""

import logging
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from typing import Any

DIFFERENT, EQUAL, NO_ANSWER, NO_GOLD, RAISED = "different", "equal", "no answer", "no gold", "raised"
"""Verdicts: the answer cannot be read, the gold cannot be read, math-verify raised an exception."""
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


def prepare(_context: None, _cell: Any) -> Callable[[Pair], tuple[str, str]]:
    """Return what gives the verdict on a pair, and a message if it is an error."""
    compare = _comparison()

    def verdict(pair: Pair) -> tuple[str, str]:
        try:
            return compare(pair), ""
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


def _comparison() -> Callable[[Pair], str]:
    from math_verify import ExprExtractionConfig, LatexExtractionConfig, parse, verify
    from sympy.core import random

    logging.disable(logging.CRITICAL)
    latex, plain = LatexExtractionConfig(boxed_match_priority=0), ExprExtractionConfig()
    readings = {"whole": [latex, plain], "any": [latex, plain], "latex": [latex], "expr": [plain]}

    def read(text: str, how: str) -> list[Any]:
        text = rf"\boxed{{{text}}}" if how == "whole" else text
        parsed: list[Any] = parse(text, readings[how], parsing_timeout=None, raise_on_error=True)
        return parsed

    def compare(pair: Pair) -> str:
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

    return compare

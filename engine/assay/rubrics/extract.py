r"""Answers that stand in a known place of a text: for ``ThinkParser(extract_fn=assay.extract_boxed_answer)``.

Both give what the functions of the same names in PrimeIntellect's ``verifiers`` 0.1.6 give.
"""

import re

__all__ = ["extract_boxed_answer", "extract_hash_answer"]

_BOXED = "\\boxed{"
_BRACE = re.compile(r"[{}]")


def extract_boxed_answer(text: str) -> str:
    r"""What the last ``\boxed{…}`` holds, braces within it included; the text itself where there is none, or it does not end."""
    start = text.rfind(_BOXED)
    if start < 0:
        return text
    start += len(_BOXED)
    depth = 1
    for brace in _BRACE.finditer(text, start):
        depth += 1 if brace.group() == "{" else -1
        if not depth:
            return text[start : brace.start()]
    return text


def extract_hash_answer(text: str) -> str:
    """What stands between the first ``####`` and the next, stripped; the text itself where there is none."""
    _, mark, rest = text.partition("####")
    return rest.partition("####")[0].strip() if mark else text

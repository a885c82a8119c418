r"""Extract answers from a known place in a text: for ``ThinkParser(extract_fn=assay.extract_boxed_answer)``.

Both return what the functions of the same names in PrimeIntellect's ``verifiers`` 0.1.6 return.
"""

import re

__all__ = ["extract_boxed_answer", "extract_hash_answer"]

_BOXED = "\\boxed{"
_BRACE = re.compile(r"[{}]")


def extract_boxed_answer(text: str) -> str:
    r"""Return the content of the last ``\boxed{…}``, nested braces included; the whole text if no box is closed."""
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
    """Return the text between the first ``####`` and the next one, stripped; the whole text if there is no ``####``."""
    _, mark, rest = text.partition("####")
    return rest.partition("####")[0].strip() if mark else text

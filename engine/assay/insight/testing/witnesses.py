"""Rollouts near those of tests, on which a changed verifier may show."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from assay.insight.testing.expectations import plain_number
from assay.names import COMPLETION
from assay.spec.fields import is_number
from assay.spec.verifier import VerifierSpec

# NOTE: the forged cases of golds are another source of witnesses: rollouts with the columns of a test, and a forged completion


def witnesses_of(verifier: VerifierSpec, rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return rollouts for each row of the tests, each once: as it is, blank, and with its text changed in one way.

    Args:
        verifier: Its numbers and phrases come before and behind the text, and stand beside an ``x``.
        rows: The rollouts of its tests.
    """
    phrases = [*dict.fromkeys(_phrases(verifier))]
    witnesses, known = list[dict[str, Any]](), set[str]()
    for row in rows:
        text = row.get(COMPLETION)
        texts: Iterator[Any] = _texts(text, phrases) if isinstance(text, str) else iter((text, ""))
        for changed in texts:
            witness = {**row, COMPLETION: changed}
            key = repr(witness)
            if key not in known:
                known.add(key)
                witnesses.append(witness)
    return witnesses


def _texts(text: str, phrases: Sequence[str]) -> Iterator[str]:
    yield from (text, "", text.upper(), text.lower(), f" {text}\n", text + text, f"{text}\n{text}")
    lines = text.split("\n")
    if len(lines) > 1:
        yield from ("\n".join([*lines[:at], *lines[at + 1 :]]) for at in range(len(lines)))
    for phrase in phrases:
        yield from (f"{phrase} {text}", f"{text} {phrase}", f"{text} x{phrase}", f"{text} {phrase}x")


def _phrases(verifier: VerifierSpec) -> Iterator[str]:
    """Yield the numbers and phrases that a spec looks for."""
    for node in verifier.nodes:
        params = node.params if isinstance(node.params, dict) else {}
        for name in ("value", "values", "requiredKeys"):
            given: Any = params.get(name)
            for value in given if isinstance(given, list) else [given]:
                if isinstance(value, str) and value:
                    yield value
                elif is_number(value):
                    yield plain_number(value)

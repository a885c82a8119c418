"""Rollouts near those of tests, on which a changed verifier may show."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from assay.insight.forging.cases import forged_reader
from assay.insight.forging.making import Making
from assay.insight.testing.expectations import plain_number
from assay.names import COMPLETION
from assay.spec.fields import is_number
from assay.spec.verifier import VerifierSpec
from assay.values.references import as_list


def witnesses_of(verifier: VerifierSpec, rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return rollouts for each row of the tests, each once: as it is, blank, with its text changed in one way, and the forged cases of its golds.

    Args:
        verifier: Its numbers and phrases come before and behind the text, and stand beside an ``x``.
        rows: The rollouts of its tests.
    """
    phrases = [*dict.fromkeys(_phrases(verifier))]
    witnesses = dict[str, dict[str, Any]]()
    for at, completion in (*_changed(rows, phrases), *_forged(verifier, rows)):
        witness = {**rows[at], COMPLETION: completion}
        witnesses.setdefault(repr(witness), witness)
    return [*witnesses.values()]


def _changed(rows: Sequence[Mapping[str, Any]], phrases: Sequence[str]) -> Iterator[tuple[int, Any]]:
    for at, row in enumerate(rows):
        text = row.get(COMPLETION)
        yield from ((at, other) for other in (_texts(text, phrases) if isinstance(text, str) else (text, "")))


def _forged(verifier: VerifierSpec, rows: Sequence[Mapping[str, Any]]) -> Iterator[tuple[int, Any]]:
    """Yield the cases of the golds of rows; where no text is known that the steps of a check read, a case stands in that of the row."""
    own = {at: [text] for at, row in enumerate(rows) if isinstance(text := row.get(COMPLETION), str)}
    for reader in filter(None, map(forged_reader, verifier.nodes)):
        yield from ((at, made.completion) for at, _, made in Making(reader, rows, lambda: own).cases())


def _texts(text: str, phrases: Sequence[str]) -> Iterator[str]:
    yield from (text, "", text.upper(), text.lower(), f" {text}\n", text + text, f"{text}\n{text}")
    lines = text.split("\n")
    if len(lines) > 1:
        yield from ("\n".join([*lines[:at], *lines[at + 1 :]]) for at in range(len(lines)))
    for phrase in phrases:
        yield from (f"{phrase} {text}", f"{text} {phrase}", f"{text} x{phrase}", f"{text} {phrase}x")


def _phrases(verifier: VerifierSpec) -> Iterator[str]:
    """Yield the numbers and phrases that a spec looks for, its bounds, and the marks behind which it reads."""
    for node in verifier.nodes:
        params = node.params if isinstance(node.params, dict) else {}
        marks = [step.get("after") for step in node.outline.get("on", ()) if isinstance(step, dict)]
        sought: list[Any] = [*(params.get(name) for name in _SOUGHT), marks]
        for given in sought:
            for value in as_list(given):
                if isinstance(value, str) and value:
                    yield value
                elif is_number(value):
                    yield plain_number(value)


_SOUGHT = ("value", "values", "requiredKeys", "min", "max", "exactly")
"""Params with what a check looks for."""

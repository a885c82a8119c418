"""What a test of a spec got where it expected something else, as data and in words."""

from collections.abc import Iterable, Mapping
from typing import Any

from assay.aggregating.aggregate import longest_label
from assay.errors import clipped, printable, quoted
from assay.spec.verifier import VerifierSpec

_NEAR = 1e-6
"""Greatest difference of numbers that count as equal."""


def plain_number(value: float) -> str:
    """Return a number as tests and mutants show it."""
    return f"{value:.10g}"


def labels_in(verifier: VerifierSpec) -> dict[str, str]:
    """Return what lines of feedback begin with, each with the id of its check."""
    return {f"{node.id}: ": node.id for check in verifier.checks for node in check.nodes()}


def differing(expect: Mapping[str, Any], result: Mapping[str, Any], verifier: VerifierSpec) -> dict[str, Any]:
    """Return what a row has instead of what is expected of it, in the form of the expectation; empty if it has all that.

    Args:
        expect: What is expected, see ``SpecTest``.
        result: The columns of a result that is scored by this verifier alone.
        verifier: The verifier.
    """
    got: dict[str, Any] = {}
    if "reward" in expect and not _is_as(result["reward"], expect["reward"]):
        got["reward"] = result["reward"]
    if "passed" in expect and result["passed"] is not expect["passed"]:
        got["passed"] = result["passed"]
    scores = {ident: result.get(f"check/{verifier.id}/{ident}") for ident in expect.get("checks", ())}
    if others := {name: score for name, score in scores.items() if not _is_as(score, expect["checks"][name])}:
        got["checks"] = others
    labels = labels_in(verifier) if "reason" in expect else {}
    reasons = {ident: _reason(ident, result["feedback"] or "", labels) for ident in expect.get("reason", ())}
    if others := {name: text for name, text in reasons.items() if not _holds(text, expect["reason"][name])}:
        got["reason"] = others
    if "error" in expect and not _holds(result["error"], expect["error"]):
        got["error"] = result["error"]
    return got


def _is_as(value: float | None, expected: Any) -> bool:
    if value is None or expected is None:
        return value is expected
    if isinstance(expected, Mapping):
        low, high = expected.get("min"), expected.get("max")
        return (low is None or value >= low - _NEAR) and (high is None or value <= high + _NEAR)
    return bool(abs(value - expected) <= _NEAR)


def _holds(text: str | None, part: str | None) -> bool:
    return not text if part is None else text is not None and part in text


def _reason(ident: str, feedback: str, labels: Mapping[str, str]) -> str | None:
    """Return the lines of a check, of a group with those of its checks, without the labels; None if there is none."""
    lines = []
    for line in feedback.split("\n"):
        label = longest_label(line, labels)
        if label is not None and f"{labels[label]}.".startswith(f"{ident}."):
            lines.append(line.removeprefix(label))
    return "\n".join(lines) or None


def in_words(test: Mapping[str, Any], expect: Mapping[str, Any]) -> str:
    """Return what a failing test got, and what it expected, on one line."""
    got, words = test["got"], list[str]()
    if "reward" in got:
        words.append(f"{_reward(got['reward'])}, expected {_number(expect['reward'])}")
    elif "passed" in got:
        verdicts = {True: "passes", False: "fails"}
        wanted = {True: "to pass", False: "to fail", None: "to be unscored"}[expect["passed"]]
        verdict = (
            "is unscored" if got["passed"] is None else f"{verdicts[got['passed']]} with {_reward(test['reward'])}"
        )
        words.append(f"{verdict}, expected {wanted}")
    for name, score in got.get("checks", {}).items():
        words.append(
            f"{name} {'does not run' if score is None else plain_number(score)}, expected {_number(expect['checks'][name])}"
        )
    for name, text in got.get("reason", {}).items():
        words.append(f"{name} says {_text(text)}, expected {_text(expect['reason'][name])}")
    if "error" in got:
        words.append(f"error {_text(got['error'])}, expected {_text(expect['error'])}")
    lines = [test["error"]] if test["error"] else [line for line in (test["feedback"] or "").split("\n") if line]
    why = f" ({clipped('; '.join(lines), _LONGEST)})" if lines else ""
    return printable("; ".join(words) + why)


_LONGEST = 200


def _reward(reward: float | None) -> str:
    return "no reward" if reward is None else f"reward {plain_number(reward)}"


def _number(expected: Any) -> str:
    if expected is None:
        return "none"
    if isinstance(expected, Mapping):
        ends: Iterable[tuple[str, str]] = (("min", "at least"), ("max", "at most"))
        return " and ".join(f"{word} {plain_number(expected[name])}" for name, word in ends if name in expected)
    return plain_number(expected)


def _text(text: str | None) -> str:
    return "nothing" if text is None else quoted(text)

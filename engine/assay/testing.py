"""Prove that the row and the column implementation of a check agree, for your own checks and the built-in ones.

Hostile texts cover what breaks text code: case rules, control characters, combining marks, brackets, near-JSON, regex syntax.
They are drawn with a seed, so that a failure can be reproduced.
"""

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import cycle
from typing import Any

import polars as pl

from assay.calls.limits import is_user_error
from assay.checks.base import Check, Example
from assay.checks.registry import CHECKS
from assay.compiling.plan import Plan
from assay.compiling.verifiers import on_row
from assay.errors import describe_error
from assay.functions.registry import function, get
from assay.names import COMPLETION
from assay.scoring.reference import score_rows
from assay.spec.verifier import VerifierSpec, load_verifier

__all__ = [
    "DifferenceError",
    "assert_check_conforms",
    "assert_fn_conforms",
    "assert_plan_conforms",
    "assert_verifier_conforms",
    "hostile_texts",
]


class DifferenceError(AssertionError):
    """``expr()`` and ``row()`` give different results.

    Attributes:
        row: The row.
        differing: What differs, by the result's column: by ``expr()``, and by ``row()``.
    """

    def __init__(self, how: str, at: int, row: Mapping[str, Any], differing: Mapping[str, tuple[Any, Any]]) -> None:
        super().__init__(f"{how}, row {at}: (expr, row) differ: {differing}\n  of {row!r}")
        self.row, self.differing = row, differing


ALONE = 1
"""Every how many of the first ten rows is scored alone, and with the next one: a plan takes as long for one row as for hundreds.

Unless it is each of them, several rows are scored in chunks and not in one piece, too.
"""

_LETTERS = "aAbBkKsSiIßſKİıΣσςΟéÉǅﬁÅÅ٣１²Ⅷ_"
_SPACE = " \t\n\r\x0b\x0c\x1c\x1d\x1e\x1f\x85\xa0\u2028\u2029\u3000\u200b\ufeff\x00"
_MARKS = "\u0301\u0308\u20dd\u200d\u200c\ufe0f🏽👍👩‍👩‍👧\u202e\u0345\U00010d50\ua7cb\u1c89"
_PUNCTUATION = "{}[]()\"':,.\\/<>-+*?^$|&=#@!`~%"
_WORDS = (
    *("refund", "REFUND", "money back", "Straße", "STRASSE", "ΟΔΟΣ", "ὈΔΥΣΣΕΎΣ", "İstanbul", "kelvin", "\u212aelvin"),
    *("<think>", "</think>", "<answer>42</answer>", "```json\n", "```", "null", "true", "NaN", "Infinity", "-Infinity"),
    *('{"a": 1}', '{"a": null, "b": [1, 2]}', '{"a": 1', "[1,]", "1e999", "-0", "01", '"\\ud800"', '{"a":1,"a":null}'),
    *('{"urgency": "high", "sentiment": "negative", "categories": []}', "9" * 4301, "[" * 501 + "]" * 501, "\ufeff{}"),
    *("abab", "aab", "foo\nbar\n", "x" * 100, "1.5", "3,000", "\\", "\n", ""),
)


def hostile_texts(count: int, seed: int = 0) -> Iterator[str]:
    """Yield texts that break text code.

    Args:
        count: How many.
        seed: The same seed gives the same texts.

    Yields:
        Strings of 0 to some hundred code points, without lone surrogates.
    """
    rng = random.Random(seed)  # noqa: S311  (reproducible, not secret)
    alphabets = (_LETTERS, _LETTERS + _SPACE, _SPACE, _MARKS + _LETTERS, _PUNCTUATION + _LETTERS, "ab \n", '{}[]",:1a ')
    for _ in range(count):
        parts = []
        for _ in range(rng.choice((1, 1, 1, 2, 3, 5))):
            if rng.random() < 0.5:  # noqa: PLR2004  (an even choice)
                parts.append(rng.choice(_WORDS))
            else:
                parts.append("".join(rng.choices(rng.choice(alphabets), k=rng.choice((0, 1, 2, 3, 8, 30)))))
        yield rng.choice(("", "", " ", "\n")).join(parts)


def assert_check_conforms(
    check: type[Check],
    *,
    params: Iterable[Mapping[str, Any]] = (),
    rows: Iterable[Mapping[str, Any]] = (),
    cases: int = 2000,
    seed: int = 0,
) -> int:
    """Prove that ``expr()`` gives what ``row()`` gives, bit for bit, with reasons and errors, plain and negated.

    Args:
        check: The check class.
        params: Params to try, besides those of its examples.
        rows: Rows to try, besides its examples and hostile texts.
        cases: How many hostile texts, divided among the params, with different texts for each.
        seed: Seed of the hostile texts.

    Returns:
        How many verdicts were compared.

    Raises:
        AssertionError: ``expr()`` and ``row()`` differ, or an example has another score than it states; the message shows the row.
    """
    custom = () if check in CHECKS else (check,)
    for example in check.examples:
        verifier = _verifier(check, example.params or {}, custom)
        score = score_rows([_row(example)], [verifier])[0]["reward"]
        assert score == example.score, f"{check.type}: {example} scores {score}"  # noqa: S101  (an assertion is the point)
    given = [*(example.params or {} for example in check.examples), *params]
    configurations = [*{repr(sorted(one.items())): one for one in given}.values()] or [{}]
    sample_rows = [*map(_row, check.examples), *rows] or [_row(Example("", 0.0))]
    sample_rows.append({**sample_rows[0], COMPLETION: None})
    compared = 0
    for number, configuration in enumerate(configurations):
        texts = hostile_texts(-(-cases // len(configurations)), seed + number)
        # the metadata and the schema are those of the rows, in turn
        drawn = [
            {**_row(Example("", 0.0)), **row, COMPLETION: text}
            for row, text in zip(cycle(sample_rows), texts, strict=False)
        ]
        compared += assert_plan_conforms([_verifier(check, configuration, custom)], [*sample_rows, *drawn])
    return compared


_GOLDS = ("42", "", " a", "ΟΔΟΣ", "İ", "\u212a", "a\n", None, 0, 42, 1.5, True, {"a": None}, ["a"], float("nan"))


def assert_fn_conforms(
    fn_name: str,
    *,
    golds: Sequence[Any] = _GOLDS,
    params: Sequence[Mapping[str, Any]] = ({}, {"ignore_case": True}),
    texts: Iterable[str] = (),
    cases: int = 2000,
    seed: int = 0,
) -> int:
    """Prove that a verifier function and its Polars version give the same results, bit for bit, with reasons and errors.

    Args:
        fn_name: A registered function.
        golds: Values of ``expected`` to try, besides hostile strings.
        params: Params to try.
        texts: Outputs to try, each with every gold, besides hostile ones.
        cases: How many hostile outputs, each with a gold and params drawn with the seed.
        seed: Seed of the draws.

    Returns:
        How many verdicts were compared.

    Raises:
        AssertionError: The two differ; the message shows the row. Or the function has no Polars version, or that version is
            null on every row.
        ValueError: No function has that name.
    """
    get(fn_name)  # raises for an unknown name and lists the names
    rng = random.Random(seed)  # noqa: S311  (reproducible, not secret)
    hostile = list(hostile_texts(max(cases // 8, 1), seed + 1))
    drawn: list[tuple[str, Any]] = [(text, gold) for text in texts for gold in golds]
    drawn += [
        (
            text,
            rng.choice(
                (rng.choice(golds), rng.choice(hostile), text[start : start + rng.choice((1, 3, 10, len(text)))])
            ),
        )
        for text in hostile_texts(cases, seed)
        for start in (rng.randrange(len(text) + 1),)
    ]
    _assert_expression_answers(
        fn_name, [(text, gold if isinstance(gold, str) else hostile[0]) for text, gold in drawn], params
    )
    rows: list[dict[str, Any]] = [
        {COMPLETION: text, "verifier": {"fn_name": fn_name, "expected": gold, "params": rng.choice(params)}}
        for text, gold in drawn
    ]
    rows.append(rows[0] | {COMPLETION: None})
    assert_plan_conforms([on_row()], rows)
    return len(rows)


def _assert_expression_answers(
    fn_name: str, pairs: Sequence[tuple[str, str]], params: Sequence[Mapping[str, Any]]
) -> None:
    """Check that a Polars version returns some value; a run falls back to the function, which would hide that it never does."""
    registered = function(fn_name)
    if registered is None or registered.expr is None:
        raise AssertionError(f"{fn_name} has no Polars version to compare")
    texts = pl.DataFrame(pairs, schema={"text": pl.String, "expected": pl.String}, orient="row")
    reason = "it is null on every row"
    for configuration in params:
        known_params = {
            name: configuration[name]
            for name in (configuration if registered.params is None else registered.params)
            if name in configuration
        }
        try:
            answer = texts.with_columns(answer=registered.expr(pl.col("text"), pl.col("expected"), known_params))[
                "answer"
            ]
            reward = answer.struct.field("score") if isinstance(answer.dtype, pl.Struct) else answer
            if reward.cast(pl.Float64).is_finite().any():
                return
        except BaseException as error:
            if not is_user_error(error):
                raise
            reason = describe_error(error)
    raise AssertionError(f"the Polars version of {fn_name} never returns a value: {reason}")


def assert_verifier_conforms(
    kind: str,
    *,
    params: Sequence[Mapping[str, Any]] = ({},),
    rows: Iterable[Mapping[str, Any]] = (),
    cases: int = 2000,
    seed: int = 0,
) -> int:
    """Prove that a verifier class and its Polars version give the same results, bit for bit, with info, reasons and errors.

    Args:
        kind: Name of a registered class.
        params: Configurations to try.
        rows: Rows to try, besides hostile completions.
        cases: How many hostile completions for each configuration.
        seed: Seed of the hostile texts.

    Returns:
        How many verdicts were compared.

    Raises:
        AssertionError: The two differ; the message shows the row. Or the class has no Polars version.
        SpecError: There is no such class, or a configuration is invalid.
    """
    compared = 0
    sample_rows: list[Mapping[str, Any]] = [{COMPLETION: None}, *rows]
    for number, configuration in enumerate(params):
        verifier = load_verifier({"kind": kind, "params": dict(configuration)})
        if not all(getattr(spec.check, "has_twin", False) for spec in verifier.checks):
            raise AssertionError(f"{kind} has no Polars version to compare: the class has no verify_expr()")
        prompts = hostile_texts(cases, seed + number + 1)
        drawn = [
            {COMPLETION: text, "prompt": prompt}
            for text, prompt in zip(hostile_texts(cases, seed + number), prompts, strict=True)
        ]
        assert_plan_conforms([verifier], [*sample_rows, *drawn])
        compared += len(sample_rows) + len(drawn)
    return compared


def _row(example: Example) -> dict[str, Any]:
    return {
        COMPLETION: example.completion,
        "metadata": example.metadata,
        "expected_output_schema": example.expected_output_schema,
        **(example.columns or {}),
    }


def _verifier(check: type[Check], params: Mapping[str, Any], custom: Sequence[type[Check]]) -> VerifierSpec:
    plain = {"type": check.type, "weight": 0.7, "params": dict(params)}
    return load_verifier({"checks": [plain, {**plain, "id": "negated", "negate": True, "weight": 0}]}, checks=custom)


def assert_plan_conforms(verifiers: Sequence[VerifierSpec], rows: Sequence[Mapping[str, Any]]) -> int:
    """Prove that a plan gives the same as the row loop: for whole frames, single rows, pairs, many chunks, and streaming.

    Args:
        verifiers: The verifiers.
        rows: Rollouts as mappings.

    Returns:
        How many verdicts were compared.

    Raises:
        AssertionError: They differ; the message shows the row.
    """
    from assay.values.rows import from_rows

    frame = from_rows(rows)
    plan = Plan(tuple(verifiers), tuple(frame.schema.items()), keep=())
    expected = score_rows(frame.to_dicts(), verifiers)
    chunked = pl.concat([frame[:1], frame[1:3], frame[3:], frame[:0]], rechunk=False)
    if ALONE == 1 or frame.height < 2:  # noqa: PLR2004  (a row has no chunks)
        _assert_same(plan.score(frame), expected, frame, "in memory")
    if frame.height > 1:
        _assert_same(plan.score(chunked), expected, frame, "in chunks")
    _assert_same(plan.lazy(chunked.lazy()).collect(engine="streaming"), expected, frame, "streaming")
    for at in range(0, min(len(expected), 10), ALONE):
        for height, how in ((1, "one row"), (2, "two rows")):
            few = frame[at : at + height]
            if few.height < frame.height:  # otherwise it was "in memory"
                _assert_same(plan.score(few), expected[at : at + height], few, how)
    return len(expected) * (len(plan.results) - 4)


def _assert_same(result: pl.DataFrame, expected: Sequence[Mapping[str, Any]], frame: pl.DataFrame, how: str) -> None:
    assert result.height == len(expected), f"{how}: expected {len(expected)} rows, got {result.height}"  # noqa: S101
    for at, (row, other) in enumerate(zip(result.to_dicts(), expected, strict=True)):
        # repr distinguishes 0.0 from -0.0 and True from 1
        differing = {name: (row[name], other[name]) for name in other if repr(row[name]) != repr(other[name])}
        if differing:
            raise DifferenceError(how, at, frame.row(at, named=True), differing)

"""Texts that steps may stumble over, and a comparison of the two implementations of a chain."""

import random

import polars as pl
from cases import sized

from assay.errors import describe_error
from assay.expressions.shared_columns import layers
from assay.names import TEXT
from assay.steps.chain import Chain
from assay.steps.reader import read_steps
from assay.steps.registry import STEPS
from assay.testing import hostile_texts

PIECES = (
    *(
        "<think>",
        "</think>",
        "<answer>",
        "</answer>",
        "<a>",
        "</a>",
        "<a",
        "</a",
        "<a.b>",
        "</a-b>",
        "aa",
        "aaa",
        "#",
        "##",
        "####",
    ),
    *(
        "A:",
        "A: 4",
        "The answer is 42.",
        "answer is",
        "\\boxed{",
        "\\fbox{",
        "\\boxed{7}",
        "\\boxed",
        "{",
        "}",
        "\\{",
        "\\}",
        "[",
        "]",
    ),
    *("```", "```json\n", "```\n", "\n```", "\n  ```", "\t```py", "``", "`", "````\n", "```a`b\n", "~~~"),
    *(
        '{"a": {"b": "x"}}',
        '{"a": 1}',
        "[1, 2.50]",
        '{"a":',
        '"\\ud800"',
        "[[1], {}",
        "null",
        '{"a": null}',
        "NaN",
        '[1e999, "é"]',
    ),
    *("\n", "\n\n", "\r\n", " ", "\t", "\x1c", "\x85", "\u2028", "\u3000", "\ufeff", "\x00", "\x0b"),
    *(
        "a",
        "b",
        "ab",
        "é",
        "ß",
        "İ",
        "ſ",
        "K",
        "Σ",
        "ς",
        "1",
        "42",
        "3,000.50",
        "$",
        "$0",
        "x",
        "_",
        "²",
        "\u0301",
        "Yes",
        "No",
        "no",
    ),
)


def step_texts(count, seed):
    """Hostile texts, half of them made of what steps look for."""
    rng = random.Random(seed)
    for text in hostile_texts(count, seed):
        if rng.random() < 0.3:
            yield text
        else:
            pieces = rng.choices(PIECES, k=rng.choice((0, 1, 2, 3, 5, 8, 13)))
            yield "".join(rng.choice((piece, piece, piece, text[:5])) for piece in pieces)


def by_rows(chain, texts):
    """Value, missing step and error of each text: the definition."""
    results = []
    for text in texts:
        try:
            results.append((None, None, None) if text is None else (*chain.run(text), None))
        except Exception as error:  # noqa: BLE001  (whatever a step raises)
            results.append((None, None, describe_error(error)))
    return results


def lazy(chain, frame):
    lane, error = chain.lane(), chain.error_expr()
    result = frame.lazy()
    for expressions in layers([lane] if lane else [], frame.schema):
        result = result.with_columns(expressions)
    return result.select(
        value=lane.col if lane else pl.col(TEXT),
        missing=chain.missing_expr(),
        error=pl.lit(None, dtype=pl.String) if error is None else error,
    )


def assert_steps_conform(data, texts, *, small=10, types=STEPS):
    """Compare rows and columns: together, in chunks, streamed, one by one and by two; return how many are compared."""
    chain, texts = Chain(read_steps(data, types=types)), [*texts, None]
    expected = by_rows(chain, texts)
    frame = pl.DataFrame({TEXT: texts}, schema={TEXT: pl.String})
    chunked = pl.concat([frame[:1], frame[1:3], frame[3:], frame[:0]], rechunk=False)
    ways = {
        "in memory": lazy(chain, frame).collect(),
        "in chunks": lazy(chain, chunked).collect(),
        "streaming": lazy(chain, chunked).collect(engine="streaming"),
    }
    for at in range(0, min(small, len(texts) - 1), sized(1, 5)):
        for size in (1, 2):
            ways[f"{size} rows at {at}"] = lazy(chain, frame[at : at + size]).collect()
    for how, result in ways.items():
        start = int(how.rpartition(" ")[2]) if how[0].isdigit() else 0
        own = expected[start : start + result.height]
        assert len(own) == result.height
        for at, (found, wanted) in enumerate(zip(result.rows(), own, strict=True), start):
            assert found == wanted, f"{data}, {how}: columns {found}, row {wanted} of {texts[at]!r}"
    return len(texts)

"""The checks in the tables of docs/from-other-tools.md against the other tools, on inputs that are drawn.

The code of OpenAI's graders is not public: what stands for ``text_similarity`` is compared with what it is like, the others with their
documentation.
"""

import json
import math
import operator
import random
from functools import partial

import pytest
from grader_inputs import CASES, changed, goldens
from other_tools import CHECKS, verifier_of
from real_promptfoo import asserted, needs_promptfoo

import assay

TOOL = {"name": "search", "parameters": {"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]}}
TOOLS = [{"type": "function", "function": TOOL}]
NAMES = ("search", "reply", "sea", "seal", "see")
NEARLY = partial(math.isclose, rel_tol=1e-12)
REASONS = ("stop", "Stop", "length", "tool_calls", "content_filter")


def text_row(draw):
    """Texts that are alike."""
    row = draw.choice(goldens()["pools"]["text"])
    return {"completion": changed(row["completion"], draw), "gold": changed(row["gold"], draw) or "z"}


def short_row(draw):
    gold = draw.choice(("cat", "dog", "a"))
    return {
        "completion": draw.choice(("a {}", "{}", "{} {} {}", "no", "a long text")).format(*[gold] * 3),
        "gold": gold,
    }


def json_row(draw):
    gold = draw.choice(("x", "X", "x ", "1"))
    value = draw.choice((gold, "x", None, {"b": gold}))
    return {"completion": json.dumps({"a": draw.choice(({"b": value}, {}, value))}), "gold": gold}


def calls_row(draw):
    """Calls of functions, as a message."""
    arguments = ('{"q": "a"}', "{}", '{"q": 1}', "{", '{"q": "a", "b": 1}')
    calls = [
        {"type": "function", "function": {"name": draw.choice(NAMES), "arguments": draw.choice(arguments)}}
        for _ in range(draw.randint(0, 4))
    ]
    return {"completion": [{"role": "assistant", "content": None, "tool_calls": calls}]}


def valid_calls_row(draw):
    row = calls_row(draw)
    for call in row["completion"][0]["tool_calls"]:
        call["function"]["name"] = draw.choice(("search", "search", "search", "reply"))
    return {**row, "tools": TOOLS}


def names_of(row):
    return [call["function"]["name"] for call in row["completion"][0]["tool_calls"]]


def assertion(**fields):
    """What promptfoo is asked of a row with a text."""
    return lambda row: {
        "assertion": {**fields, **({"value": row["gold"]} if "gold" in row else {})},
        "providerResponse": {"output": row["completion"]},
    }


def trajectory(**fields):
    """What promptfoo is asked of its trace of a row's calls."""

    def case(row):
        spans = [
            {"spanId": str(at), "name": "tool", "startTime": at, "attributes": {"tool.name": name}}
            for at, name in enumerate(names_of(row))
        ]
        trace = {"traceId": "1", "spans": spans}
        return {"assertion": fields, "providerResponse": {"output": ""}, "traceId": "1", "traceData": trace}

    return case


def priced(draw):
    return {"completion": "a", "cost": draw.choice((0.0, 0.01, 0.010000001, 0.02, draw.random() / 50))}


def timed(draw):
    return {"completion": "a", "latency_ms": draw.choice((5000, 5001, 0, draw.randint(0, 10_000)))}


def finished(draw):
    return {"completion": "a", "gold": draw.choice(REASONS), "finish_reason": draw.choice(REASONS)}


def of_set(row):
    """A set of assertions: the second holds for what is no longer than 9 characters."""
    asked = [{"type": "icontains", "value": row["gold"]}, {"type": "regex", "value": "^[^]{0,9}$"}]
    test = {"vars": {}, "assert": [{"type": "assert-set", "threshold": 0.5, "assert": asked}]}
    return {"test": test, "providerResponse": {"output": row["completion"]}}


PROMPTFOO = {
    "`cost`": (priced, lambda row: assertion(type="cost", threshold=0.01)(row) | response(row, cost=row["cost"])),
    "`latency`": (timed, lambda row: assertion(type="latency", threshold=5000)(row) | {"latencyMs": row["latency_ms"]}),
    "`finish-reason`": (
        finished,
        lambda row: assertion(type="finish-reason")(row) | response(row, finishReason=row["finish_reason"]),
    ),
    "`trajectory:tool-used`": (calls_row, trajectory(type="trajectory:tool-used", value="search")),
    "`not-trajectory:tool-used`": (calls_row, trajectory(type="not-trajectory:tool-used", value="search")),
    "`trajectory:tool-used` with `min`, `max`": (
        calls_row,
        trajectory(type="trajectory:tool-used", value={"pattern": "sea*", "min": 1, "max": 2}),
    ),
    "`trajectory:tool-sequence`": (calls_row, trajectory(type="trajectory:tool-sequence", value=["search", "reply"])),
    "`is-valid-openai-tools-call`": (
        valid_calls_row,
        lambda row: {
            "assertion": {"type": "is-valid-openai-tools-call"},
            "providerResponse": {"output": row["completion"][0]["tool_calls"]},
            "provider": {"config": {"tools": TOOLS}},
        },
    ),
    "`assert-set` with `threshold: 0.5`": (short_row, of_set),
}
"""How rows are drawn, and what promptfoo is asked of them; its verdict counts, not its score."""
ALIKE = {f"rouge_{kind}": f"rouge{kind.upper()}" for kind in "12345l"}


def response(row, **fields):
    return {"providerResponse": {"output": row["completion"], **fields}}


def ratio(row):
    from rapidfuzz import fuzz

    return fuzz.ratio(row["completion"], row["gold"]) / 100.0


def rouge(name):
    def score(row):
        scorer = pytest.importorskip("rouge_score.rouge_scorer").RougeScorer([name])
        return scorer.score(row["gold"], row["completion"])[name].fmeasure

    return score


def string_at_path(row):
    try:
        value = json.loads(row["completion"])["a"]["b"]
    except (KeyError, TypeError):
        return 0.0
    return float(value == row["gold"])


def parts(row):
    """The scores that ``multi`` combines."""
    return float(row["completion"].casefold() == row["gold"]), float(len(row["completion"]) <= 9)


OPENAI = {
    "`text_similarity` `fuzzy_match`": (text_row, ratio),
    **{f"`text_similarity` `{here}`": (text_row, rouge(there)) for here, there in ALIKE.items()},
    "`pass_threshold: 0.8`": (text_row, lambda row: float(ratio(row) >= 0.8)),
    "`multi`, `0.7 * a + 0.3 * b`": (short_row, lambda row: 0.7 * parts(row)[0] + 0.3 * parts(row)[1]),
    "`multi`, `min(a, b)`": (short_row, lambda row: min(parts(row))),
    "`sample.output_json.a.b`": (json_row, string_at_path),
}
"""How rows are drawn, and what is expected of them."""
LIKE_PROMPTFOO = {f"`text_similarity` `{metric}`": metric for metric in ("bleu", "gleu")}


def drawn(make, there):
    draw = random.Random(there)
    return [make(draw) for _ in range(CASES)]


def differing(there, rows, wanted, same=operator.eq):
    result = assay.score(rows, verifier_of(there))
    assert result["error"].null_count() == len(rows)
    return [found for found in zip(rows, result["reward"], wanted, strict=True) if not same(found[1], found[2])]


def test_every_row_with_a_check_is_compared():
    openai = [f"OpenAI graders: {there}" for there in (*OPENAI, *LIKE_PROMPTFOO)]
    assert {*openai, *(f"promptfoo: {there}" for there in PROMPTFOO)} == {*CHECKS}


@pytest.mark.parametrize("there", OPENAI)
def test_a_check_is_like_the_grader_of_openai(there):
    make, expected = OPENAI[there]
    rows = drawn(make, there)
    assert differing(f"OpenAI graders: {there}", rows, map(expected, rows), NEARLY) == []


def texts_for_promptfoo(there):
    rows = drawn(text_row, there)
    return [{name: text.replace("{{", "{").replace("\x1c", " ") for name, text in row.items()} for row in rows]


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    """What promptfoo answers, by the row of the table."""
    cases = {there: [case(row) for row in drawn(make, there)] for there, (make, case) in PROMPTFOO.items()}
    for there, metric in LIKE_PROMPTFOO.items():
        cases[there] = [assertion(type=metric)(row) for row in texts_for_promptfoo(there)]
    return asserted(cases, tmp_path_factory.mktemp("promptfoo"))


@needs_promptfoo
@pytest.mark.xdist_group("promptfoo")
@pytest.mark.parametrize("there", LIKE_PROMPTFOO)
def test_a_metric_is_that_of_promptfoo(there, answers):
    scores = [answer["score"] for answer in answers[there]]
    assert differing(f"OpenAI graders: {there}", texts_for_promptfoo(there), scores, NEARLY) == []


@needs_promptfoo
@pytest.mark.xdist_group("promptfoo")
@pytest.mark.parametrize("there", PROMPTFOO)
def test_a_check_passes_where_the_assertion_of_promptfoo_does(there, answers):
    rows = drawn(PROMPTFOO[there][0], there)
    verdicts = [float(answer["pass"]) for answer in answers[there]]
    assert 0.0 < sum(verdicts) < len(rows)
    assert differing(f"promptfoo: {there}", rows, verdicts) == []

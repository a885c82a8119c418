"""Rows and verifiers drawn by a seed, scored on both sides of every threshold and in every way; each verdict is the row loop's."""

import json
import random
import re
import warnings
from collections import Counter
from contextlib import contextmanager
from datetime import date
from functools import partial

import polars as pl

import assay
from assay import get_verifier
from assay.calls.limits import Limits
from assay.checks.base import RowAwareCheck
from assay.compiling.plan import Plan
from assay.compiling.verifiers import on_row
from assay.functions import registry as fns
from assay.scoring.reference import score_rows
from assay.testing import hostile_texts
from assay.thresholds import EVER, NAMES, set_to

READING = ("batch", "struct_fields", "struct_depth", "first_chunk", "chunk", "small_group")
"""Thresholds that files are read by, which ``fuzz_neighbours`` sets …"""

INSIGHT = ("grouped_rows",)
"""… and that results are; all others are those of scoring."""

SCORING = tuple(name for name in NAMES if name not in (*READING, *INSIGHT))
SIDES = (0, 1, EVER)
KEYS = ("a", "b", "city", "urgency", "ä", "a b", "required", "")
WORDS = (
    "refund", "a", "ß", "İ", "ΟΔΟΣ", "k", "\u212a", "x y", "", " a ", "42", "true", "1.5", "{", '{"a": 1}', "é" * 40,
)  # fmt: skip
FUNCTIONS = ("exact_match", "contains", "regex_match", "tool_calls_match")
PATTERNS = (
    "a", r"\ba\b", r"(?i)k\b", r"\w+", r"^a", r"a$", r"\d{2,3}", "[^a]b", r"\bre(?:fund|turn)", r"(?i)straße", r"\Bé",
    "a|b", r"(\w)\1", r"(?=b)", r"(?<!a)b", r"(?s)a.*b", r"(?:ab)*c", r"\s\S", "(", "a{2,}+", r"\x41", "[a&&b]",
    r"(?i)\bΟδος", "",
)  # fmt: skip
CALLS = (
    '{"tool": "click", "action": "tap", "ref": "b1"}', '```json\n{"tool": "click", "coordinate": [10, 20]}\n```',
    'I will {"tool": "type", "text": "a\\"b"} now', '{"tool": null, "action": 1, "text": "1"}',
    '{"tool": "click", "tool": "type", "coordinate": [10.5, 2e1]}',
    '{"coordinate": [35, 20], "tool": "click", "extra": {"tool": "x"}}', '{"tool": "true", "ref": true}',
    '{"tool": "click", "coordinate": ["10", 20]}',
)  # fmt: skip
WORD = pl.Enum(list(dict.fromkeys((*WORDS, *KEYS))))


def leaf(rng):
    odd = (pl.Null, pl.Int64, pl.Float64, pl.Boolean, pl.Binary, pl.Date, pl.List(pl.Null), pl.Struct({"a": pl.String}))
    return rng.choice((*[pl.String] * 7, pl.Categorical(), WORD, pl.Int64, pl.Null, rng.choice(odd)))


def several(rng, inner):
    # NOTE: the engine fails to make a column of structs of dictionary-encoded text in lists of a fixed length
    fixed = rng.random() < 0.15 and not (
        isinstance(inner, pl.Struct) and ("Enum" in str(inner) or "Categorical" in str(inner))
    )
    return pl.Array(inner, rng.choice((1, 2))) if fixed else pl.List(inner)


def some(rng, **types):
    names = [name for name in types if rng.random() < 0.75]
    rng.shuffle(names)
    return pl.Struct({name: types[name] for name in names or [next(iter(types))]})


def value(rng, dtype, words, at=""):
    if rng.random() < 0.15 or dtype == pl.Null:
        return None
    if isinstance(dtype, pl.Struct):
        return {field.name: value(rng, field.dtype, words, field.name) for field in dtype.fields}
    if isinstance(dtype, pl.List | pl.Array):
        size = dtype.size if isinstance(dtype, pl.Array) else rng.choice((0, 0, 1, 1, 2, 3))
        return [value(rng, dtype.inner, words, at) for _ in range(size)]
    number = rng.choice((0, 1, 2, 42, -1, 25, 10**9, 2**53))
    others = {
        pl.Float64: number / 2,
        pl.Boolean: number == 1,
        pl.Binary: b"a",
        pl.Date: date(2026, 1, 2),
        pl.Int64: number,
    }
    text = rng.choice(WORD.categories.to_list() if isinstance(dtype, pl.Enum) else words.get(at) or words[""])
    return others.get(dtype.base_type(), text)


def entry(rng):
    phrases = several(rng, leaf(rng)) if rng.random() < 0.8 else leaf(rng)
    others = several(rng, leaf(rng)) if rng.random() < 0.8 else leaf(rng)
    struct = some(rng, anyOf=phrases, any_of=others, text=leaf(rng), message=leaf(rng), note=leaf(rng))
    return struct if rng.random() < 0.85 else leaf(rng)


def metadata(rng):
    sides = ("mustMention", "must_mention", "mustNotMention", "must_not_mention")
    types = {name: several(rng, entry(rng)) if rng.random() < 0.85 else leaf(rng) for name in sides}
    expectations = some(rng, **types, mustmention=leaf(rng))
    if rng.random() < 0.2:
        expectations = several(rng, entry(rng)) if rng.random() < 0.8 else leaf(rng)
    return some(rng, expectations=expectations, expectation=leaf(rng), note=leaf(rng))


def schema(rng):
    required = several(rng, leaf(rng)) if rng.random() < 0.8 else leaf(rng)
    properties = some(rng, a=leaf(rng), city=leaf(rng), b=pl.Null) if rng.random() < 0.8 else leaf(rng)
    return some(rng, required=required, properties=properties, type=leaf(rng), a=leaf(rng))


def verifier(rng):
    params = some(
        rng, ignore_case=leaf(rng), coordinate_tolerance=rng.choice((pl.Int64, pl.Float64, leaf(rng))), n=leaf(rng)
    )
    expected = rng.choice((pl.String, pl.String, pl.Int64, pl.Float64, pl.Boolean, leaf(rng), schema(rng)))
    params = rng.choice((params, params, pl.String, leaf(rng)))
    return {"fn_name": rng.choice((pl.String, pl.String, leaf(rng))), "expected": expected, "params": params}


def text_of(rng, dtype, words):
    said = json.dumps(value(rng, dtype, words), default=str, ensure_ascii=rng.random() < 0.5)
    return rng.choice((said, said, said, said, said[:-1], f" {said}\n", said.replace("1", "1e999"), "[]", "null", ""))


def completions(rng, count):
    texts = [*hostile_texts(count, rng.randrange(10**9))]
    for at in range(count):
        if rng.random() < 0.3:
            said = {rng.choice(KEYS): rng.choice((None, 1, "a", [], {})) for _ in range(rng.choice((0, 1, 2, 3)))}
            texts[at] = rng.choice((json.dumps(said), rng.choice(CALLS), f"{rng.choice(WORDS)} {rng.choice(WORDS)}"))
    return [None if rng.random() < 0.04 else text for text in texts]


def chats(rng, texts):
    content = rng.choice(
        (pl.String, pl.String, several(rng, leaf(rng)), leaf(rng), pl.List(pl.Struct({"text": leaf(rng)})))
    )
    types = {"role": rng.choice((pl.String, pl.Enum(["assistant", "user", "tool"]), leaf(rng))), "content": content}
    dtype = pl.List(some(rng, **types, name=leaf(rng)))
    words = {"": [text for text in texts if text is not None] or ["a"], "role": ["assistant", "assistant", "user"]}
    return pl.Series([value(rng, dtype, words) for _ in texts], dtype=dtype)


def loaded(rng, ident, *checks):
    drawn = [
        {"id": f"c{at}", "weight": rng.choice((0.1, 0.7, 1, 3)), "negate": rng.random() < 0.2, **check}
        for at, check in enumerate(checks)
    ]
    return [
        assay.load_verifier({"id": ident, "passThreshold": rng.choice((0, 0.5, 1)), "checks": drawn}, checks=[Shown])
    ]


def of_text(rng, texts):
    pieces = [
        text[at : at + rng.choice((1, 3, 30, 300))] for text in texts if text for at in (rng.randrange(len(text)),)
    ]
    phrases = [*pieces[:6], *rng.sample(WORDS, 3), "é" * rng.choice((10, 300, 600)), "x" * rng.choice((100, 250, 1100))]
    kinds = ("contains", "not_contains", "equals")
    checks = [{"type": rng.choice(kinds), "value": phrase, "caseSensitive": rng.random() < 0.4} for phrase in phrases]
    patterns = [pattern for pattern in (*rng.sample(PATTERNS, 4), *map(re.escape, pieces[:2])) if pattern != "("]
    checks += [{"type": "regex", "pattern": pattern} for pattern in patterns]
    checks += [{"type": rng.choice(("min_length", "max_length")), "value": rng.choice((0, 1, 7.5, 40))}]
    checks = rng.sample(checks, rng.choice((1, 3, 3, len(checks))))
    return loaded(rng, "text", *checks * (rng.choice((1, 1, 22)) if len(checks) == 3 else 1)), {}


def of_json(rng, texts):
    dtype = schema(rng)
    words = {"": [*KEYS, "object"]}
    given = pl.Series([value(rng, dtype, words) for _ in texts], dtype=dtype)
    if rng.random() < 0.4:
        given = pl.Series([rng.choice((None, text_of(rng, dtype, words))) for _ in texts], dtype=pl.String)
    keys = [rng.sample(KEYS, rng.choice((1, 2, 4))), ["a"], [f"k{at}" for at in range(rng.choice((16, 17)))]]
    checks = [
        {"type": "json_valid"},
        {"type": "expected_output_schema"},
        *({"type": "json_keys", "keys": some} for some in keys),
    ]
    return loaded(rng, "json", *rng.sample(checks, rng.choice((1, 2, 5)))), {"expected_output_schema": given}


class Shown(assay.Check):
    """A number made of all that a check without columns sees."""

    type = "shown"
    graded = True
    reads = ("metadata",)

    def row(self, row):
        return sum(map(ord, repr([row["completion"], row["metadata"]]))) % 7 / 7


def of_expectations(rng, texts):
    dtype, words = metadata(rng), {"": [*WORDS, *(text[:3] for text in texts if text)], "note": ["n"]}
    given = pl.Series([value(rng, dtype, words) for _ in texts], dtype=dtype)
    if rng.random() < 0.35:
        given = pl.Series([rng.choice((None, text_of(rng, dtype, words))) for _ in texts], dtype=pl.String)
    checks = [{"type": "task_expectations"}, *([{"type": "shown"}] if rng.random() < 0.2 else [])]
    return loaded(rng, "task", *checks), {"metadata": given}


def words_of_verifiers(rng, texts, names):
    golds = [
        *WORDS,
        *CALLS,
        *PATTERNS,
        *(text[at : at + 4] for text in texts if text for at in (rng.randrange(len(text)),)),
    ]
    golds += [text for text in texts if text is not None] + [re.escape(text[:5]) for text in texts if text]
    golds = [gold for gold in golds if len(gold) < 2000]
    params = [
        "{}", '{"ignore_case": true}', '{"ignore_case":"", "n": 1.0}', '{"coordinate_tolerance": 3}', "[]", "{",
        '{"n": {"a": 1}}',
    ]  # fmt: skip
    return {
        "": golds,
        "fn_name": [*names, *names, "", " ", "nobody"],
        "params": params,
        "kind": ["in_process", "in_process", "", "other"],
    }


def of_functions(rng, texts, names=FUNCTIONS):
    names = [name for name in names if rng.random() < 0.6] or names
    words, types = words_of_verifiers(rng, texts, names), verifier(rng)
    few = {"": rng.sample(words[""], rng.choice((3, 15, 15)))}  # to compile a pattern takes long
    default = rng.choice(("", names[0]))
    whole = pl.Struct(types | {name: leaf(rng) for name in ("kind", "extra") if rng.random() < 0.4})
    values = [value(rng, whole, words | few) for _ in texts]
    form = rng.choice(("struct", "text", "text", "columns"))
    if form == "struct":
        columns = {"verifier": pl.Series(values, dtype=whole)}
    elif form == "text":
        texts = [
            None if one is None else json.dumps(one, default=str, ensure_ascii=rng.random() < 0.5) for one in values
        ]
        columns = {
            "verifier": pl.Series(
                [text if rng.random() < 0.95 else rng.choice(CALLS) for text in texts], dtype=pl.String
            )
        }
    else:
        columns = {
            name: pl.Series([(one or {}).get(name) for one in values], dtype=dtype) for name, dtype in types.items()
        }
    return [on_row(default)], columns


def of_own_functions(rng, texts):
    return of_functions(rng, texts, ("begins", "odd", *FUNCTIONS[:2]))


def seen(completion, prompt=None, answer=None, info=None, state=None):
    return sum(map(ord, json.dumps([completion, prompt, answer, info, state["turn"]], default=str))) % 7 / 7


def rare(completion):
    return 0.5 if len(str(completion)) % 3 else 1 / 0


class Reads:
    """A class without a twin, which makes a number of all that it sees."""

    name = "reads"

    def verify(self, *, prompt, completion, target):
        said = repr([prompt, completion, target])
        return assay.VerificationResult(sum(map(ord, said)) % 5 / 5, {"length": len(said)})


def among(completions):
    return [len(str(one)) % 4 / 4 for one in completions]


def of_rubrics(rng, texts):
    (own,), columns = of_text(rng, texts)
    (expected,), told = of_expectations(rng, texts)
    golds = words_of_verifiers(rng, texts, FUNCTIONS)
    classes = [Reads(), get_verifier("format_only")()]
    named = [fns.contains, fns.exact_match, fns.regex_match, fns.tool_calls_match]
    members = rng.sample([seen, rare, own, expected, *classes, *named], rng.choice((1, 3, 6)))
    members = [*members, among] if rng.random() < 0.3 else members
    columns |= told if expected in members else {}
    dtype = rng.choice((pl.String, pl.String, pl.Int64, pl.Float64, leaf(rng)))
    columns["answer"] = pl.Series([value(rng, dtype, golds) for _ in texts], dtype=dtype)
    if rng.random() < 0.6:
        columns["info"] = pl.Series([rng.choice((None, '{"a": 1}', "{", "x")) for _ in texts], dtype=pl.String)
    columns["example_id"] = pl.Series([rng.choice((1, 2, None)) for _ in texts], dtype=pl.Int64)
    weights = [rng.choice((1.0, 0.3, -0.7, 0.0)) for _ in members]
    return list(assay.Rubric(members, weights).members(Limits())), columns


KINDS = (of_text, of_json, of_expectations, of_expectations, of_functions, of_functions, of_own_functions, of_rubrics)


def odd(output, expected, params):
    if len(output) % 5 == 4:
        raise LookupError(f"no {output[:3]}\n{expected}")
    return float(str(expected)[:1] in output) if params.get("n") is None else 0.25


@contextmanager
def own_functions(kind):
    before = dict(fns._REGISTRY)
    if kind is of_own_functions:
        fns.register(
            "begins",
            lambda output, expected, params: float(output.startswith(str(expected))),
            expr=lambda output, expected, params: output.str.starts_with(expected),
        )
        fns.register("odd", odd)
    try:
        yield
    finally:
        fns._REGISTRY.clear()
        fns._REGISTRY.update(before)


def case(seed, number):
    rng = random.Random(f"{seed}/{number}")
    kind = KINDS[number % len(KINDS)]
    texts = completions(rng, rng.choice((1, 2, 8, 16, 40)))
    with own_functions(kind):
        verifiers, columns = kind(rng, texts)
    said = pl.Series(texts, dtype=rng.choice((pl.String, pl.String, pl.String, pl.Categorical())))
    frame = pl.DataFrame({"completion": chats(rng, texts) if rng.random() < 0.2 else said, **columns})
    return kind, frame, verifiers, rng


def whole(plan, frame, rng):
    del rng
    return plan.score(frame)


def streaming(plan, frame, rng):
    del rng
    return plan.lazy(frame.lazy()).collect(engine="streaming")


def chunks(plan, frame, rng):
    at = rng.randrange(frame.height + 1)
    return plan.score(pl.concat([frame[:at], frame[at : at + 1], frame[at + 1 :], frame[:0]], rechunk=False))


def alone(plan, frame, rng):
    step = rng.choice((1, 2))
    return pl.concat([plan.score(frame[at : at + step]) for at in range(0, min(frame.height, 6), step)])


def permuted(plan, frame, rng):
    order = rng.sample(range(frame.height), frame.height)
    back = [at for _, at in sorted(zip(order, range(frame.height), strict=True))]
    return plan.score(frame[order])[back]


def beside(plan, frame, rng):
    size = rng.choice((1, 20, 257, 600)) if plan.piece > 1 else 7
    others = frame[[rng.randrange(frame.height) for _ in range(size)]]
    return plan.score(pl.concat([others, frame, others[:7]]))[others.height : others.height + frame.height]


WAYS = (whole, streaming, chunks, alone, permuted, beside)


def differences(found, expected):
    names = [*expected[0]]
    for at, (row, other) in enumerate(zip(found.select(names).rows(), expected, strict=False)):
        # repr tells 0.0 from -0.0 and True from 1
        if repr(row) != repr(tuple(other.values())):
            pairs = zip(names, zip(row, other.values(), strict=True), strict=True)
            return [{"row": at, "how": {name: pair for name, pair in pairs if repr(pair[0]) != repr(pair[1])}}]
    return []


def compared(score, expected):
    try:
        return differences(score(), expected)
    except (Exception, pl.exceptions.PanicException) as raised:  # noqa: BLE001
        return [{"row": None, "how": f"{type(raised).__name__}: {raised}"}]


def settings(rng, number):
    side = SIDES[number % len(SIDES)]
    return [dict.fromkeys(SCORING, side), {name: rng.choice(SIDES) for name in SCORING}]


def run(seed, number, counts, tried=None):
    kind, frame, verifiers, rng = case(seed, number)
    found = []
    checks = [spec.check for one in verifiers for spec in one.runnable if isinstance(spec.check, RowAwareCheck)]
    grouped = any(check.traits.sees_all for check in checks)
    with own_functions(kind):
        expected = score_rows(frame.to_dicts(), verifiers)
        for values in ({}, *settings(rng, number)):
            with set_to(**values):
                plan = Plan(tuple(verifiers), tuple(frame.schema.items()), keep=())
                for way in (whole, streaming) if grouped else (whole, *rng.sample(WAYS[1:], 2)):
                    told = {
                        "kind": kind.__name__,
                        "way": way.__name__,
                        "thresholds": values,
                        "case": f"{number} {seed}",
                    }
                    found += [told | one for one in compared(partial(way, plan, frame, rng), expected)]
                    counts[kind.__name__] += frame.height * len(expected[0])
            if tried is not None:
                tried.update(values.items())
    return found


def fuzz(numbers, seed="0", tried=None):
    counts, found = Counter(), []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for number in numbers:
            counts["cases"] += 1
            found += run(seed, number, counts, tried)
    return {"compared": counts, "found": found}

"""Draw a check that refers to a row's values, a row, and rows beside it whose values would upset the type of a common column."""

import json
import random
from decimal import Decimal
from functools import partial

import polars as pl
import yaml
from fuzz_formats import all_references, referring

import assay
from assay.errors import AssayError, ColumnsError, SpecError
from assay.spec.verifier import load_verifier
from assay.thresholds import EVER, set_to

GOLD = {"column": "gold"}
GOLDS = (
    *(GOLD, GOLD, GOLD, {"column": "gold", "list": True}, [GOLD, {"column": "other"}], [GOLD, "a"]),
    *({"column": "gold.a"}, {"column": "gold[0]"}, {"column": "gold.a.b"}, {"column": "gold[-1].a"}),
    *({"template": "{gold}"}, {"template": "{gold}/{other}"}, {"template": "#{gold.a}"}),
)
GOLD_STEPS = ("strip", "lower", {"after": "####"}, "number", {"json": {"path": "a"}}, {"normalize": "squad"})
SCALARS = (
    42, 42.0, 1.5, 0, -0.0, 1, 2, True, False, 2**53 + 1, 2**63, 10**30, 1e300, "42", "42.0", "1.5", "true", "True",
    "", " ", "a", "A", "B", "Paris", "é ü", "#### 42", "null", '["a", "b"]', '{"a": 1}', "[1, 2.0]", "\ud800x", "1e5",
    "get_weather", "number", "string", "^a", "(", "2024-01-02",
)  # fmt: skip
NESTED = (
    *([], ["a", "b"], ["Paris", None], [1, 2], [1, 2.5], [True, 1], [[1], ["a"]], [None], ["é", "\ud800"], [2**63, 1]),
    *({}, {"a": 1}, {"a": 1.5}, {"a": None}, {"a": True, "b": [1]}, {"b": 2, "a": "x"}, {"a": {"b": 1}}),
    *({"a": {"b": None}}, {"a": ["x", 1]}, {"A": 1}, [{"a": 1}, {"b": None}], [{"a": 1.5}]),
    *([{"name": "f", "arguments": {"x": 1}}], [{"name": "f", "arguments": {"x": 1.0, "y": None}}], ["f", "g"]),
    *({"f": {"x": [1, 2.0, ""]}}, [{"name": "f", "parameters": {"properties": {"x": {"type": "integer"}}}}]),
    *({"const": None}, {"type": ["null", "integer"]}, {"enum": [None, 1]}, {"enum": [1.5]}, {"const": True}),
    *({"properties": {"a": {"const": None}}, "required": ["a"]}, {"type": "object", "default": None}),
)
FOREIGN = ((1, 2), Decimal("1.50"), Decimal(42), b"42", b"Paris", {"a": (1, 2.5)})
"""Values that JSON lacks, of rows in memory."""

WAYS = ("rows", "columns", "requests", "JSONL", "YAML tasks", "JSON tasks")
OF_FUNCTIONS = ("rows", "JSONL", "parquet")
REFUSED = object()
READING = ("batch", "first_chunk", "chunk", "small_group")
"""Thresholds that files are read by, which are set to a side; and the sizes of structs."""


def _spec(rng):
    check = {"type": "ifeval"} if rng.random() < 0.05 else referring(*rng.choice(all_references()), rng.choice(GOLDS))
    check["id"] = "c"
    if rng.random() < 0.2 and check["type"] != "ifeval":
        check["on"] = rng.choice(
            ([GOLD], [{"column": "other"}], [{"template": "{gold} {other}"}], ["prompt"], ["afterThink"])
        )
    if rng.random() < 0.2 and check.get("value") is not None:
        check["goldOn"] = [rng.choice(GOLD_STEPS)]
    if rng.random() < 0.2:
        check["missingGold"] = rng.choice(("fail", "pass", "unscored"))
    if rng.random() < 0.25:
        column = rng.choice(("gold", "other", "flag", "gold.a"))
        test = rng.choice(
            (
                {"equals": rng.choice((True, False, 1, 1.5, "1", "true", "a", 42))},
                {"in": [True, 42, "a"]},
                {"exists": rng.choice((True, False))},
                {"matches": rng.choice((r"^1$", r"^\d+$", "a", "True"))},
            )
        )
        check["when"] = {"column": column} | test
    return {"id": "v", "checks": [check, {"id": "short", "type": "max_length", "value": 12}]}


def _value(rng, pool):
    return rng.choice(pool) if rng.random() < 0.85 else None


def _text(rng, value):
    try:
        texts = (str(value), json.dumps(value), f"It is {value}.", f"<think>x</think> {value}")
    except (TypeError, ValueError):
        texts = (str(value),)
    texts = (*texts, "a", '{"a": 1}', '{"a": null}', "null", '[{"name": "f", "arguments": {"x": 1}}]', "42", "b, a")
    return rng.choice(texts).encode("utf-8", "replace").decode()


def _instructions(rng):
    kwargs = rng.choice(
        ({"num_words": 2, "relation": "at least"}, {"num_words": 1.0, "relation": "less than", "x": None})
    )
    idents = rng.choice((["length_constraints:number_words"], ["punctuation:no_comma"], "no list", [1], []))
    return {"instruction_id_list": idents, "kwargs": rng.choice(([kwargs], [{}], [None], kwargs, json.dumps([kwargs])))}


def _row(rng, pool, *, is_ifeval):
    row = {name: value for name in ("gold", "other", "flag") if (value := _value(rng, pool)) is not None}
    row["completion"] = _text(rng, row.get("gold"))
    row |= {"answer": row.get("gold"), "expected": row.get("gold"), "fn_name": rng.choice(("contains", "exact_match"))}
    row["prompt"] = rng.choice(("a", [{"role": "user", "content": "a"}], "42"))
    return row | (_instructions(rng) if is_ifeval else {})


def seen(completion, answer, info=None):
    return sum(map(ord, json.dumps([completion, answer, info], default=str))) % 7 / 7


def case(seed, number):
    rng = random.Random(f"{seed}/{number}")
    spec, judge = _spec(rng), rng.random()
    way = rng.choice(OF_FUNCTIONS if judge < 0.1 else WAYS)
    pool = (*SCALARS, *NESTED, *(FOREIGN if way in WAYS[:3] else ()))
    own = partial(_row, rng, pool, is_ifeval=spec["checks"][0]["type"] == "ifeval")
    row, others = own(), [own() for _ in range(rng.choice((1, 1, 2, 5)))]
    place = rng.randrange(len(others) + 1)
    rows = [*others[:place], row, *others[place:]]
    if judge < 0.1:  # rows name functions
        return "functions", None, row, rows, place, way
    if judge < 0.2 and way != "requests":
        return "a rubric", assay.Rubric([seen, assay.fns.contains]), row, rows, place, way
    if judge < 0.4 and way != "requests":  # beside texts a conversation is its text, which is all that checks see of it
        for chatty in rows[:: rng.choice((1, 2))]:
            chatty["completion"] = [{"role": "assistant", "content": chatty["completion"]}]
    try:
        return spec, load_verifier(spec), row, rows, place, way
    except SpecError:
        return spec, REFUSED, row, [], 0, way


def _scored(rows, verifier, way, folder):
    if way == "requests":
        plan = assay.compile(verifier, dict.fromkeys(("completion", "gold", "other", "flag"), pl.String), keep=())
        return plan.score_rows(rows).to_dicts()
    named = ("fn_name", "expected") if verifier is not None else ()  # a row that names a function is scored by it, too
    rows = [dict.fromkeys(("gold", "other", "flag")) | row for row in rows]
    rows = [{name: value for name, value in row.items() if name not in named} for row in rows]
    names, source, options = ("completion", "prompt"), rows, {}
    if way == "columns":
        source = {name: [row.get(name) for row in rows] for name in rows[0]}
    elif way in ("JSONL", "parquet"):
        source, out = folder / "rows.jsonl", folder / "out.parquet"
        source.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
        if way == "parquet":
            assay.scan(source).collect().write_parquet(folder / "rows.parquet", row_group_size=2)
            source = folder / "rows.parquet"
        assay.score_file(source, verifier, out, keep=(), overwrite=True, lenient=True)
        return pl.read_parquet(out).to_dicts()
    elif way != "rows":
        source = [{"task_id": f"t{number}"} | {name: row[name] for name in names} for number, row in enumerate(rows)]
        tasks = [
            {"task_id": f"t{number}"} | {name: value for name, value in row.items() if name not in names}
            for number, row in enumerate(rows)
        ]
        options["tasks"] = folder / ("tasks.yaml" if way == "YAML tasks" else "tasks.jsonl")
        lines = (
            yaml.safe_dump(json.loads(json.dumps(tasks)))
            if way == "YAML tasks"
            else "".join(json.dumps(task) + "\n" for task in tasks)
        )
        options["tasks"].write_text(lines, "utf-8")
    return assay.score(source, verifier, keep=(), **options).to_dicts()


def outcome(seed, number, folder):  # noqa: PLR0911  (one kind after another)
    spec, verifier, row, rows, place, way = case(seed, number)
    if verifier is REFUSED:
        return "spec refused", ""
    rng = random.Random(f"{seed}/{number} thresholds")
    sizes = {"struct_fields": rng.choice((0, 1, EVER, 100)), "struct_depth": rng.choice((1, EVER, 50))}
    sizes |= {name: rng.choice((0, 1, 1 << 30)) for name in READING} | {"small_batch": rng.choice((0, EVER))}
    if way == "YAML tasks" and "\\ud800" in json.dumps(rows):
        return "not YAML", ""
    try:
        (alone,) = _scored([row], verifier, way, folder)
    except AssayError:
        return "row refused", ""
    try:
        with set_to(**sizes):
            beside = _scored(rows, verifier, way, folder)[place]
    except ColumnsError:  # a column whose rows, all of them, lack what the spec refers to
        return "table refused", ""
    except AssayError as error:
        return "refused beside others", f"{error}\n{way} {spec}\n{rows}"
    if repr(alone) != repr(beside):
        return "different", f"{way}, row {place}: {spec}\n{rows}\nalone  {alone}\nbeside {beside}"
    return f"{spec if isinstance(spec, str) else spec['checks'][0]['type']}, {way}", ""

"""Verifiers on the row: every way they arrive, what is refused, and that columns say what the functions say."""

import json
import math
import pickle
from dataclasses import replace

import polars as pl
import pytest
from cases import sized, some

import assay
from assay.compiling.verifiers import on_row, verifiers_of_run
from assay.expressions.regex.search import route
from assay.functions import check as onrow
from assay.functions import registry as fns
from assay.options import ScoreOptions, settle
from assay.scoring.reference import score_rows
from assay.testing import assert_fn_conforms, assert_plan_conforms

SCALARS = [42, 0, -1, 1.5, 1e16, float("nan"), True, False, "x", "", None, "\u2028", 10**30]
STRUCTURES = [{"a": None, "b": [1, None]}, {}, {"tool": "a"}]


@pytest.fixture
def registry(monkeypatch):
    monkeypatch.setattr(fns, "_REGISTRY", dict(fns._REGISTRY))


def rewards(rows, **options):
    return assay.score(rows, **options).select("reward", "error", "verifier_fn").rows()


# ── the ways a verifier arrives ─────────────────────────────────────────────────────────────────────────────────────────

ROWS = [
    {"kind": "in_process", "fn_name": "exact_match", "expected": "42", "params": {"ignore_case": True}},
    {"kind": "in_process", "fn_name": "contains", "expected": "4", "params": {}},
    {"kind": "in_process", "fn_name": "contains", "expected": "5", "params": None},
]
SCORED = [(1.0, None, "exact_match"), (1.0, None, "contains"), (0.0, None, "contains")]


def frames():
    texts = ["42", "42", "42"]
    params = pl.Struct({"ignore_case": pl.Boolean})
    struct = pl.Struct({"kind": pl.String, "fn_name": pl.String, "expected": pl.String, "params": params})
    yield "struct", pl.DataFrame({"completion": texts, "verifier": pl.Series(ROWS, dtype=struct)})
    yield "text", pl.DataFrame({"completion": texts, "verifier": [json.dumps(row) for row in ROWS]})
    flat = {name: [row[name] for row in ROWS] for name in ("fn_name", "expected")}
    texts_of = [json.dumps(row["params"]) for row in ROWS]
    yield (
        "flat",
        pl.DataFrame({"completion": texts, **flat, "params": pl.Series([r["params"] for r in ROWS], dtype=params)}),
    )
    yield (
        "flat text",
        pl.DataFrame({"completion": texts, **flat, "params": [None if t == "null" else t for t in texts_of]}),
    )
    coded = pl.DataFrame({"completion": texts, **flat}).with_columns(pl.col("fn_name").cast(pl.Categorical))
    yield "categorical", coded


@pytest.mark.parametrize("how", [how for how, _ in frames()])
def test_a_verifier_is_a_struct_json_text_or_flat_columns(how):
    frame = dict(frames())[how]
    assert rewards(frame) == SCORED
    expected = score_rows(frame.to_dicts(), [on_row()])
    assert assay.score(frame, keep=[]).to_dicts() == expected


@pytest.mark.parametrize("ending", ["jsonl", "parquet", "csv"])
def test_rows_come_from_files(tmp_path, ending):
    path = tmp_path / f"rows.{ending}"
    frame = dict(frames())["text"]
    if ending == "jsonl":
        path.write_text("\n".join(json.dumps({"completion": "42", "verifier": row}) for row in ROWS))
    else:
        getattr(frame, f"write_{ending}")(path)
    assert rewards(path) == SCORED


def test_expected_is_any_json_value_and_compared_as_its_str():
    for gold in (*SCALARS, *STRUCTURES):
        row = {"completion": f" {gold} ", "verifier": {"fn_name": "exact_match", "expected": gold}}
        flat = {"completion": f" {gold} ", "fn_name": "exact_match", "expected": gold}
        wanted = (None, "expected is missing", None) if gold is None else (1.0, None, "exact_match")
        assert rewards([row]) == [wanted], gold
        for other in ([1], "a string"):
            assert rewards([flat, {**flat, "expected": other}])[0] == wanted, (gold, other)


@pytest.mark.parametrize("values", [[1, 2], [1.5, None], [True, False], [["a"], None], [{"a": 1, "b": None}, {"b": 2}]])
def test_a_gold_column_of_one_type_is_compared_as_its_str(values):
    frame = pl.DataFrame({"completion": [str(value) for value in values], "expected": values})
    plan = assay.compile(None, frame, verifier_name="exact_match", keep=[])
    assert plan.score(frame).to_dicts() == score_rows(frame.to_dicts(), [on_row("exact_match")])


def test_fields_that_a_struct_made_null_were_absent():
    calls = [{"tool": "a", "ref": "x"}, {"tool": "a"}]
    frame = pl.DataFrame(
        {"completion": ['{"tool": "a", "ref": "y"}'] * 2, "fn_name": "tool_calls_match", "expected": calls}
    )
    assert [reward for reward, _, _ in rewards(frame)] == [0.0, 1.0]


def test_a_null_field_of_a_row_of_python_was_written():
    calls = [{"tool": "a", "ref": None}, {"tool": "a"}]
    rows = [
        {"completion": '{"tool": "a", "ref": "y"}', "fn_name": "tool_calls_match", "expected": call} for call in calls
    ]
    assert [reward for reward, _, _ in rewards(rows)] == [0.0, 1.0]


TASKS = [
    {"task_id": "q0", "verifier": {"kind": "in_process", "fn_name": "contains", "expected": "4"}},
    {"task_id": "q1", "verifier": {"kind": "in_process", "fn_name": "exact_match", "expected": 7}},
]
ROLLOUTS = [
    {"task_id": "q0", "completion": "it is 4"},
    {"task_id": "q1", "completion": "7"},
    {"task_id": "q2", "completion": "?"},
]


@pytest.mark.parametrize("how", ["list", "jsonl", "yaml", "parquet", "harbor"])
def test_verifiers_come_with_the_tasks(tmp_path, how):
    tasks = tmp_path / f"tasks.{how}"
    if how == "list":
        tasks = TASKS
    elif how == "jsonl":
        tasks.write_text("\n".join(map(json.dumps, TASKS)))
    elif how == "yaml":
        tasks.write_text(json.dumps(TASKS))
    elif how == "parquet":
        pl.DataFrame([{**task, "verifier": json.dumps(task["verifier"])} for task in TASKS]).write_parquet(tasks)
    else:
        (tmp_path / "tasks.harbor").mkdir()
        (tasks / "dataset.toml").write_text("name = 'x'\n")
        for task in TASKS:
            (tasks / task["task_id"]).mkdir()
            (tasks / task["task_id"] / "task.json").write_text(json.dumps({"verifier": task["verifier"]}))
    assert rewards(ROLLOUTS, tasks=tasks) == [
        (1.0, None, "contains"),
        (1.0, None, "exact_match"),
        (None, "task_id q2 is not in the task table", None),
    ]


# ── what a run needs and refuses ────────────────────────────────────────────────────────────────────────────────────────


def test_blank_names_mean_the_default():
    rows = [
        {"completion": "4", "verifier": {"fn_name": name, "expected": "4"}} for name in ("contains", "", " \x1c", None)
    ]
    rows += [{"completion": "4", "verifier": {"expected": "4"}}, {"completion": "4", "verifier": None}]
    names = [name for _, _, name in rewards(rows, verifier_name="exact_match")]
    assert names == ["contains", *["exact_match"] * 4, None]
    flat = pl.DataFrame({"completion": ["4", "5"], "expected": ["4", "4"]})
    assert [row[0] for row in rewards(flat, verifier_name="exact_match")] == [1.0, 0.0]


KNOWN = (
    "\n\nRegistered functions: contains, exact_match, regex_match, tool_calls_match.\n"
    "Register your own function first: --import MODULE, or assay.fns.register_fn.\n"
    "For rows that name no function, set a default: --verifier-name FN."
)


@pytest.mark.parametrize(
    ("verifiers", "said"),
    [
        (
            [
                {"fn_name": "contains", "expected": "a"},
                {"fn_name": "contians", "expected": "a"},
                {"fn_name": "contians"},
            ],
            '2 rows carry verifiers that cannot be used:\n  row 1 and 1 more: unknown verifier function "contians"',
        ),
        (
            [{"kind": "remote", "fn_name": "contains", "expected": "a"}],
            '1 row carries a verifier that cannot be used:\n  row 0: verifier kind "remote" is not in_process',
        ),
        (
            [{"expected": "a"}],
            "1 row carries a verifier that cannot be used:\n  row 0: the row names no verifier function, and the run has no default",
        ),
    ],
)
def test_other_kinds_and_unknown_names_are_refused_before_scoring(tmp_path, verifiers, said):
    rows = [{"completion": "a", "verifier": verifier} for verifier in verifiers]
    with pytest.raises(assay.InputError) as caught:
        assay.score(rows)
    guess = "\n\nDid you mean `contains`?" if "contians" in said else ""
    assert caught.value.text == said + guess + (KNOWN[1:] if guess else KNOWN)
    out = tmp_path / "out.parquet"
    with pytest.raises(assay.InputError):
        assay.score_file(rows, None, out)
    assert not out.exists()


def test_a_plan_alone_leaves_such_rows_unscored_and_says_why():
    frame = pl.DataFrame({"completion": ["a"], "verifier": ['{"fn_name": "nobody"}']})
    assert assay.compile(None, frame).score(frame)["error"].item() == 'unknown verifier function "nobody"'


@pytest.mark.parametrize(
    ("rows", "options", "said"),
    [
        (
            [{"completion": "a"}],
            {},
            "The rollouts carry no verifier: no column `verifier` and no `fn_name`. Columns: completion.",
        ),
        ([{"completion": "a", "label": "a"}], {"verifier_name": "contains"}, "Rename one with --map expected=label"),
        ([{"completion": "a", "verifier": 5}], {}, None),
        (
            pl.DataFrame({"completion": ["a"], "verifier": [5]}),
            {},
            "`verifier` has type Int64; it must be a struct or JSON text.",
        ),
    ],
)
def test_missing_columns_are_told_before_a_row_is_read(rows, options, said):
    if said is None:
        assert rewards(rows, **options) == [(None, "ValueError: verifier is not a JSON object", None)]
        return
    with pytest.raises(assay.ColumnsError) as caught:
        assay.score(rows, **options)
    assert said in caught.value.text


BOTH = {"id": "v", "checks": [{"type": "contains", "value": "a"}]}


@pytest.mark.parametrize(
    ("row", "reward", "passed", "feedback", "error"),
    [
        ({"completion": "a", "expected": "a"}, 1.0, True, "", None),
        ({"completion": "b", "expected": "b"}, 0.5, False, 'v/contains: does not contain "a"', None),
        ({"completion": "a", "expected": "b"}, 0.5, False, 'row_verifier/exact_match: expected "b"', None),
        (
            {"completion": "a", "expected": "[", "fn_name": "regex_match"},
            0.5,
            False,
            None,
            "row_verifier/regex_match: ",
        ),
        ({"completion": "a", "expected": None}, None, None, None, "expected is missing"),
    ],
)
def test_specs_and_the_verifiers_of_the_rows_run_together(row, reward, passed, feedback, error):
    row = {"fn_name": None, **row}
    columns = assay.score([row], BOTH, verifier_name="exact_match").row(0, named=True)
    specs = verifiers_of_run(BOTH, settle(ScoreOptions, {"verifier_name": "exact_match"}, ""))
    by_rows = score_rows([row], specs)[0]
    assert [columns[name] for name in by_rows] == [*by_rows.values()]
    assert (columns["reward"], columns["passed"]) == (reward, passed)
    assert feedback is None or columns["feedback"] == feedback
    assert (columns["error"] or "").startswith(error or "")
    assert [name for name in columns if "/" in name] == ["score/v", "score/row_verifier", "check/v/contains"]


def test_several_specs_count_as_much_as_the_verifiers_of_the_rows(tmp_path):
    specs = [BOTH, BOTH | {"id": "w"}]
    rows = [{"completion": "a", "expected": "b"}, {"completion": "b", "expected": "b"}]
    wanted = [2 / 3, 1 / 3]
    assert assay.score(rows, specs, verifier_name="exact_match")["reward"].to_list() == wanted
    plan = assay.compile(specs, {"completion": pl.String, "expected": pl.String}, verifier_name="exact_match")
    assert plan.score(pl.DataFrame(rows))["reward"].to_list() == wanted
    pl.DataFrame(rows).write_parquet(tmp_path / "rows.parquet")
    options = {"verifier_name": "exact_match", "pass_threshold": 0.0, "isolate": False}
    for out in ("out.parquet", "parts/"):
        summary = assay.score_file(tmp_path / "rows.parquet", specs, f"{tmp_path}/{out}", **options)
        assert (summary.rows, summary.mean_reward) == (2, 0.5)
    for out in ("out.parquet", "parts/*.parquet"):
        scored = pl.read_parquet(tmp_path / out)
        assert (scored["reward"].to_list(), scored["passed"].to_list()) == (wanted, [True, False])


def test_a_spec_cannot_have_the_id_of_the_verifiers_of_the_rows():
    with pytest.raises(
        assay.SpecError, match='Two verifiers have the id "row_verifier": a mapping and the verifiers of'
    ):
        assay.score([{"completion": "a"}], BOTH | {"id": "row_verifier"}, verifier_name="exact_match")
    with pytest.raises(assay.SpecError, match="No verifier function is called 'contian'"):
        assay.score([{"completion": "a"}], BOTH, verifier_name="contian")
    with pytest.raises(assay.ColumnsError, match="`exact_match` compares with `expected`"):
        assay.score([{"completion": "a"}], BOTH, verifier_name="exact_match")


def test_options_of_rows_do_not_go_with_specs_alone():
    spec = {"checks": [{"type": "json_valid"}]}
    with pytest.raises(assay.UsageError, match="pass_threshold"):
        assay.score([{"completion": "a"}], spec, pass_threshold=0.5)
    with pytest.raises(assay.SpecError, match="No verifier function is called 'contian'"):
        assay.score([{"completion": "a"}], verifier_name="contian")


@pytest.mark.parametrize(
    ("verifier", "said"),
    [
        ('{"fn_name": "contains"', "ValueError: verifier is not a JSON object"),
        ("[]", "ValueError: verifier is not a JSON object"),
        ('{"fn_name": 5}', "ValueError: verifier.fn_name is not a string"),
        ('{"fn_name": "contains", "expected": "a", "params": [1]}', "ValueError: verifier.params is not an object"),
        ('{"fn_name": "contains", "expected": null}', "expected is missing"),
        ('{"fn_name": "contains"}', "expected is missing"),
    ],
)
def test_a_row_that_cannot_be_scored_is_unscored_and_says_why(verifier, said):
    frame = pl.DataFrame({"completion": ["a"], "verifier": [verifier]})
    row = assay.score(frame).to_dicts()[0]
    assert (row["reward"], row["passed"], row["feedback"], row["error"]) == (None, None, None, said)


def test_the_pass_threshold():
    rows = [{"completion": "a", "fn_name": "half", "expected": None}]
    fns.register("half", lambda *_: 0.5)
    try:
        assert assay.score(rows)["passed"].item() is False
        assert assay.score(rows, pass_threshold=0.5)["passed"].item() is True
        with pytest.raises(assay.UsageError, match="finite"):
            assay.score(rows, pass_threshold=math.nan)
    finally:
        del fns._REGISTRY["half"]


# ── feedback ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("fn", "output", "gold", "said"),
    some(
        [
            ("exact_match", "a", "b", 'expected "b"'),
            ("exact_match", "a", 'say "b"', "expected 'say \"b\"'"),
            ("exact_match", "a", "x" * 61, f'expected "{"x" * 59}…"'),
            ("exact_match", "a", "x" * 60, f'expected "{"x" * 60}"'),
            ("exact_match", "a", "b\u202e\n", 'expected "b\\u202e\\n"'),
            ("contains", "a", 7, 'does not contain "7"'),
            ("regex_match", "a", "b+", 'does not match the pattern "b+"'),
            ("tool_calls_match", "a", {"tool": "b"}, "the output has no JSON object"),
            ("tool_calls_match", '{"tool": "a"}', {"tool": "b"}, 'tool differs: expected "b"'),
            ("tool_calls_match", '{"tool": "a", "action": 1}', {"tool": "a"}, "action differs: expected none"),
            ("tool_calls_match", '{"ref": 1}', {"ref": "b"}, 'ref differs: expected "b"'),
            ("tool_calls_match", '{"ref": 1}', {"ref": 2}, "ref differs: expected 2"),
            ("tool_calls_match", '{"text": "a"}', {"text": "b"}, 'text differs: expected "b"'),
            ("tool_calls_match", "{}", {"coordinate": [1, 2]}, "coordinate differs: expected [1, 2]"),
        ]
    ),
)
def test_feedback_says_what_was_expected(fn, output, gold, said):
    rows = [{"completion": output, "verifier": {"fn_name": fn, "expected": gold}}]
    assert assay.score(rows)["feedback"].to_list() == [f"{fn}: {said}"]
    assert_plan_conforms([on_row()], rows)


@pytest.mark.parametrize(
    ("gold", "said"),
    [
        ("no object", "ValueError: expected is not a JSON object"),
        ({"coordinate": [1]}, "ValueError: expected.coordinate is not a list of two numbers"),
    ],
)
def test_a_wanted_call_that_is_none_fills_error(gold, said):
    rows = [{"completion": '{"coordinate": [1, 2]}', "verifier": {"fn_name": "tool_calls_match", "expected": gold}}]
    row = assay.score(rows).to_dicts()[0]
    assert (row["reward"], row["error"]) == (0.0, f"tool_calls_match: {said}")


class SpeechlessError(Exception):
    def __str__(self):
        raise RuntimeError("no words")


# ── functions of users ──────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.usefixtures("registry")
@pytest.mark.parametrize(
    ("value", "reward", "error"),
    some(
        [
            (1, 1.0, None),
            (True, 1.0, None),
            (-2.5, -2.5, None),
            (3, 3.0, None),
            (float("nan"), 0.0, "ValueError: the reward is not a finite number"),
            (float("inf"), 0.0, "ValueError: the reward is not a finite number"),
            (10**400, 0.0, "ValueError: the reward is not a finite number"),
            ("1", 0.0, "ValueError: the reward is not a finite number"),
            (None, 0.0, "ValueError: the reward is not a finite number"),
            (KeyError("x"), 0.0, "KeyError: 'x'"),
            (RecursionError("deep"), 0.0, "RecursionError: deep"),
            (ValueError("\ud800"), 0.0, "ValueError: \\ud800"),
            (SystemExit(3), 0.0, "SystemExit: 3"),
            (SpeechlessError(), 0.0, "SpeechlessError: its message cannot be shown"),
        ]
    ),
    ids=repr,
)
def test_what_a_function_returns_or_raises(value, reward, error):
    def fn(model_output, expected, params):
        if isinstance(value, BaseException):
            raise value
        return value

    fns.register("mine", fn)
    rows = [{"completion": text, "verifier": {"fn_name": "mine"}} for text in ("a", "b")]
    assert rewards(rows) == [(reward, error and f"mine: {error}", "mine")] * 2
    assert_plan_conforms([on_row()], rows)


@pytest.mark.usefixtures("registry")
def test_a_function_gets_its_own_gold_and_params():
    seen = []

    def fn(model_output, expected, params):
        seen.append((model_output, json.dumps(expected), json.dumps(params)))
        if isinstance(expected, dict):
            expected.clear()
        params["spoilt"] = True
        return 1.0

    fns.register("mine", fn)
    golds = [None, "a", 5, 1.5, True, {"a": [None]}, {"a": [None]}]
    rows = [
        {"completion": "x", "verifier": {"fn_name": "mine", "expected": gold, "params": {"k": 1}}} for gold in golds
    ]
    assay.score(rows)
    assert sorted(seen) == sorted({("x", json.dumps(gold), '{"k": 1}') for gold in golds})  # once each


@pytest.mark.usefixtures("registry")
def test_a_twin_answers_for_the_rows_it_can():
    asked = []

    def fn(model_output, expected, params):
        asked.append(expected)
        return 1.0 if expected and model_output.startswith(str(expected)) else 0.0

    fns.register("starts", fn, expr=lambda output, expected, params: output.str.starts_with(expected))
    golds = ["a", "b", None, 1, {"a": 1}]
    rows = [{"completion": "abc", "verifier": {"fn_name": "starts", "expected": gold}} for gold in golds]
    assert [row[0] for row in rewards(rows)] == [1.0, 0.0, 0.0, 0.0, 0.0]
    assert asked == [1, {"a": 1}, None] or sorted(map(str, asked)) == sorted(map(str, [None, 1, {"a": 1}]))


@pytest.mark.usefixtures("registry")
def test_a_twin_that_cannot_run_warns_and_the_function_answers():
    fns.register("mine", lambda *_: 1.0, expr=lambda output, expected, params: output.str.contains(params["gone"]))
    with pytest.warns(assay.AssayWarning, match="the twin of mine cannot run"):
        assert rewards([{"completion": "a", "verifier": {"fn_name": "mine"}}]) == [(1.0, None, "mine")]


@pytest.mark.usefixtures("registry")
def test_rows_are_grouped_by_the_params_that_a_function_reads():
    built = []

    def expr(output, expected, params):
        built.append(params)
        return output.str.len_chars() >= params.get("least", 0)

    def fn(output, expected, params):
        return float(len(output) >= params.get("least", 0))

    fns.register("long", fn, expr=expr, params=["least"])
    built.clear()
    rows = [
        {"completion": "x" * n, "verifier": {"fn_name": "long", "params": {"least": n % 3, "id": n}}} for n in range(99)
    ]
    expected = score_rows([{**row, "verifier": json.dumps(row["verifier"])} for row in rows], [on_row()])
    assert assay.score(rows, keep=[]).to_dicts() == expected
    assert {one["least"] for one in built} == {0, 1, 2}
    assert len(built) < len(rows)


@pytest.mark.usefixtures("registry")
def test_very_many_params_go_to_the_function_itself():
    fns.register("long", lambda output, expected, params: float(len(output) >= params["least"]))
    rows = [
        {"completion": "xx", "verifier": {"fn_name": "contains", "expected": "x", "params": {"n": n}}}
        for n in range(500)
    ]
    calls = {"tool": "a", "coordinate": [1, 2]}
    rows += [
        {
            "completion": '{"tool": "a", "coordinate": [1, 100]}',
            "verifier": {"fn_name": "tool_calls_match", "expected": calls, "params": {"coordinate_tolerance": n}},
        }
        for n in range(500)
    ]
    assert_plan_conforms([on_row()], rows)


# ── columns and functions agree ─────────────────────────────────────────────────────────────────────────────────────────

CALLS = [
    *({"tool": "click"}, {"tool": "click", "action": "go"}, {"tool": None}, {}, {"tool": "a", "ref": "x", "text": "y"}),
    *({"tool": "a", "ref": None}, {"tool": "1"}, {"tool": 1}, {"tool": True}, {"tool": "ß"}, {"tool": ["a"]}),
    {"tool": "true"},
    *({"coordinate": [10, 20]}, {"tool": "a", "coordinate": [10.5, 20]}, {"coordinate": [1]}, {"coordinate": "x"}),
    *({"coordinate": [True, 2]}, {"coordinate": ["1", "2"]}, {"coordinate": [10**30, 2]}, {"coordinate": None}),
    *('{"tool":"click"}', '```json\n{"tool":"click","action":"go"}\n```', 'I say {"tool":"click"} ok', "nothing"),
    '{"tool": "',
    *('[{"tool":"click"}]', [{"tool": "click"}], 5, None, '{"tool":"\\ud800"}', '{"tool":1e999}', '{"tool":NaN}'),
    *('{"coordinate":[1e400,2]}', '{"tool":"a","tool":"click"}', '{"tool":"click"', '{"tool":1.0}'),
    '{"tool":12345678901234567890}',
]
OUTPUTS = [
    *(json.dumps(call) if not isinstance(call, str) else call for call in CALLS),
    *('{"tool":"click","coordinate":[35,45]}', '{"coordinate":[35,46]}', '{"coordinate":[10,20.0]}'),
    '{"coordinate":[-5,20]}',
    *('{"coordinate":[1e400,20]}', f'{{"coordinate":[{"9" * 400},20]}}', '{"coordinate":[true,20]}'),
    '{"coordinate":[10,20,30]}',
    *('{"coordinate":{"a":1}}', '{"tool":"click","action":null}', '{"tool":["click"]}', '{"tool":""}'),
    '} {"tool":"click"}',
    *('{"tool":"click"} }', '{"t\\u006fol":"click"}', '{"coordinate":[-0,20]}', "```\n{}\n```", "{" * 600 + "}" * 600),
]
PATTERNS = [
    *("", "(", r"\b12\b", r"(?i)kelvin", "k$", r"(a)\1", r"^\s*$", "a|b", "[", "refund", "<answer>42</answer>"),
    *(r"(?m)^a", r"\w+"),
    *(5, None, r"(?=a)", ".", "*", r"\d{2,}", r"a\.b", r"\bß\b", r"(?i)stra\w+e", r"\bk\b", r"re?fund", r"a+b*"),
    *(r"\Aab\Z", "S"),
]
FOLDS = ({}, {"ignore_case": True}, {"ignore_case": 1}, {"ignore_case": None, "x": [1]})
TOLERANCES = ({}, {"other": 1}, *({"coordinate_tolerance": value} for value in (5, "7", None, -1, 2.9, 1e300, "x")))


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("exact_match", {"params": FOLDS}),
        ("contains", {"params": FOLDS}),
        ("regex_match", {"params": FOLDS, "golds": PATTERNS}),
        ("tool_calls_match", {"params": TOLERANCES, "golds": CALLS, "texts": OUTPUTS}),
    ],
)
def test_the_functions_conform_on_hostile_cases(name, options):
    cases = sized(20_000, 60)
    assert assert_fn_conforms(name, cases=cases, **options) >= cases


@pytest.mark.parametrize(
    ("name", "options"), [("exact_match", {}), ("contains", {}), ("regex_match", {"golds": PATTERNS})]
)
def test_the_twin_answers_and_not_the_function(name, options, monkeypatch):
    def never(*_):
        raise AssertionError("asked")

    one = fns.function(name)
    monkeypatch.setitem(fns._REGISTRY, name, replace(one, fn=never, many=None))
    golds = [gold for gold in options.get("golds", ("a", "b", "Straße")) if gold not in ("(", "[", "*", None)]
    golds = [
        gold for gold in golds if route(str(gold)).in_columns
    ]  # what backtracks has a limit, which is the function's
    rows = [{"completion": f"a {gold} b", "verifier": {"fn_name": name, "expected": gold}} for gold in golds]
    assert assay.score(rows)["error"].null_count() == len(rows)


def test_a_twin_that_disagrees_is_found():
    fns.register("wrong", lambda output, expected, params: 1.0, expr=lambda output, expected, params: output != "")
    try:
        with pytest.raises(AssertionError, match="differ"):
            assert_fn_conforms("wrong", cases=50)
    finally:
        del fns._REGISTRY["wrong"]
    with pytest.raises(ValueError, match="No verifier function"):
        assert_fn_conforms("nobody")


def test_batches_and_order_change_nothing(tmp_path):
    rows = [{"completion": text, "verifier": {"fn_name": fn, "expected": gold, "params": {"ignore_case": n % 2 == 0}}}
            for n, text in enumerate(OUTPUTS) for fn, gold in (("contains", "a"), ("tool_calls_match", CALLS[n % len(CALLS)]), ("regex_match", "click"))]  # fmt: skip
    whole = assay.score(rows)
    backwards = assay.score(rows[::-1])
    assert whole.equals(backwards.reverse())
    assay.score_file(rows, None, tmp_path / "out.parquet")
    assert pl.read_parquet(tmp_path / "out.parquet").equals(whole)


def test_a_plan_travels():
    frame = dict(frames())["text"]
    plan = assay.compile(None, frame)
    again = pickle.loads(pickle.dumps(plan))  # noqa: S301  (our own)
    assert again.score(frame).equals(plan.score(frame))
    assert again == plan


def test_the_batch_reader_and_the_definition_agree():
    from assay.functions import request as onrow_columns
    from assay.functions.request import verifier_of

    hostile = [
        *(
            '{"fn_name":"contains","expected":"a"}',
            '{"fn_name":"contains","expected":5}',
            '{"fn_name":"contains","expected":"5"}',
        ),
        *(
            '{"fn_name":"contains","expected":{"a":1}}',
            '{"fn_name":"contains","expected":"{\\"a\\":1}"}',
            '{"fn_name":"true"}',
        ),
        *('{"fn_name":true}', '{"fn_name":"a","expected":1.10}', '{"fn_name":"a","expected":{"x":1.10}}'),
        '{"fn_name":"a","params":{"k":1e5}}',
        *('{"fn_name":"a","params":"{}"}', '{"fn_name":"a","params":"{\\"k\\":1}"}'),
        *('{"fn_name":"a","params":null}', '{"fn_name":"a","params":{}}'),
        *('{"fn_name":"a","kind":""}', '{"fn_name":"a","kind":"in_process"}', '{"fn_name":"a","kind":5}'),
        '{"fn_name":"a","kind":"x"}',
        *('{"fn_name":"a","fn_name":"b"}', '{"fn_name":" a"}', '{"fn_name":"a","expected":"\\ud800"}'),
        '{"fn_name":"a","expected":"é\\u0000"}',
        '{"fn_name":"a","expected":12345678901234567890}',
        *('{"fn_name":"a","expected":{"x":12345678901234567890}}', "", "null", "NaN"),
        *('{"fn_name":"a","expected":true}', '{"fn_name":"a","expected":[1]}', '{"fn_name":"a","expected":NaN}'),
        '{"fn_name":"a"} x',
        *('{"expected":"a"}', '{"fn_name":"","expected":"a"}', '{"fn_name":"a","params":{"k":"\\""}}'),
        '{"fn_name":"a","params":{"k":[1]}}',
    ]
    lane = onrow_columns.row_verifier("d")
    frame = pl.DataFrame({"verifier": hostile})
    found = frame.select(lane.build(frame.schema).alias("v"))["v"].to_list()
    for text, row in zip(hostile, found, strict=True):
        asked = verifier_of({"verifier": text}, "d")
        gold = row["expected"] if row["typed"] is None else json.loads(row["typed"])
        params = {} if row["params"] is None else json.loads(row["params"])
        assert (row["fn"], repr(gold), params) == (asked.fn, repr(asked.expected), dict(asked.params or {})), text
        assert (row["problem"] or "", row["refused"]) == (asked.problem, asked.refused), text


# ── the summary and the provenance ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.usefixtures("registry")
def test_the_summary_has_a_line_for_each_function_and_the_file_says_what_made_it(tmp_path):
    @fns.register_fn("mine", expr=lambda output, expected, params: pl.lit(value=True))
    def mine(model_output, expected, params):
        return 1.0

    rows = [{"completion": "a", "verifier": {"fn_name": name, "expected": gold}} for name, gold in (("contains", "b"), ("mine", "x"), ("contains", "a"))]  # fmt: skip
    summary = assay.score_file(rows, None, tmp_path / "out.parquet")
    assert [(one.id, one.rows, one.mean, one.failures) for one in summary.checks] == [
        ("contains", 2, 0.5, 1),
        ("mine", 1, 1.0, 0),
    ]
    [verifier] = assay.read_provenance(tmp_path / "out.parquet")["verifiers"]
    assert verifier["kind"] == "in_process"
    contains, own = verifier["code"]
    assert contains == {"name": "contains"}
    assert (own["name"], own["module"], own["hash_of"], len(own["sha256"])) == ("mine", __name__, "source", 64)
    assert own["twin"]["sha256"]
    assert onrow.VERIFIER_FN in pl.read_parquet_schema(tmp_path / "out.parquet")

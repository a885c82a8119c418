"""Plans: what they read, what they give, and that all problems are found before a row is read."""

import pickle

import polars as pl
import pytest

import assay
import assay.compiling.plan
from assay import errors
from assay.compiling.columns import needed_columns
from assay.testing import hostile_texts

SPEC = {
    "id": "v",
    "checks": [{"type": "json_valid"}, {"type": "task_expectations"}, {"type": "expected_output_schema"}],
}
PLAIN = {"id": "v", "checks": [{"type": "contains", "value": "a"}, {"type": "regex", "pattern": "(?=b)"}]}


def test_a_plan_pickles_hashes_and_scores_the_same_elsewhere():
    frame = pl.DataFrame({"completion": list(hostile_texts(200)), "id": range(200)})
    plan = assay.compile(PLAIN, frame)
    copy = pickle.loads(pickle.dumps(plan))  # noqa: S301  (our own bytes)
    assert copy == plan
    assert hash(copy) == hash(plan)
    assert copy.score(frame).equals(plan.score(frame))
    assert copy.score(frame).equals(assay.score(frame, PLAIN))


def test_plans_of_different_verifiers_or_schemas_differ():
    plans = {
        assay.compile(PLAIN),
        assay.compile({**PLAIN, "passThreshold": 0.5}),
        assay.compile(PLAIN, {"completion": pl.String, "id": pl.Int64}),
        assay.compile(PLAIN, details=False),
    }
    assert len(plans) == 4


def test_needed_columns_name_the_checks_that_read_them():
    assert needed_columns([assay.load_verifier(SPEC)]) == {
        "completion": [],
        "metadata": ["task_expectations (v/task_expectations)"],
        "expected_output_schema": ["expected_output_schema (v/expected_output_schema)"],
    }


def test_all_missing_columns_are_one_error():
    with pytest.raises(assay.ColumnsError) as caught:
        assay.compile(SPEC, {"id": pl.Int64, "response": pl.String, "meta_data": pl.String})
    assert caught.value.text == (
        "The rollouts lack 3 columns:\n"
        "  completion: read by every check\n"
        "  metadata: read by task_expectations (v/task_expectations)\n"
        "  expected_output_schema: read by expected_output_schema (v/expected_output_schema)\n"
        "Columns: id, response, meta_data.\n"
        "\n"
        "Did you mean `response` for `completion`? Rename it with --map completion=response.\n"
        "Did you mean `meta_data` for `metadata`? Rename it with --map metadata=meta_data.\n"
        "Join a task table with --tasks for columns that the rollouts lack."
    )


def test_many_names_that_are_not_there_are_told_in_a_few_words(monkeypatch):
    asked = []
    monkeypatch.setattr(errors, "get_close_matches", lambda word, *_, **__: asked.append(word) or [])
    schema = {"completion": pl.String} | {f"c{at}": pl.Int64 for at in range(300)}
    with pytest.raises(assay.ColumnsError) as caught:
        assay.compile(PLAIN, schema, keep=["c0", *(f"d{at}" for at in range(1500))])
    assert len(asked) == 5
    facts = caught.value.fact.split("\n")
    assert facts[0] == "--keep: the rollouts have no column `d0`."
    assert facts[99:] == ["--keep: the rollouts have no column `d99`.", "… and 1,400 others"]
    assert caught.value.hint.startswith("Columns: completion, c0, c1,")
    assert caught.value.hint.endswith(", c98 … and 201 more.")


def test_what_checks_read_is_asked_once_however_many_columns_there_are(monkeypatch):
    asked = []
    monkeypatch.setattr(
        assay.compiling.plan, "consumed_columns", lambda verifiers: asked.append(verifiers) or {"completion"}
    )
    schema = {"completion": pl.String} | {f"c{at}": pl.Int64 for at in range(20)}
    assert len(assay.compile(PLAIN, schema).passed_through) == 20
    assert len(asked) == 1


@pytest.mark.parametrize("dtype", [pl.Int64, pl.List(pl.Int64), pl.Struct({"content": pl.String}), pl.Date])
def test_a_completion_of_another_type_is_refused(dtype):
    with pytest.raises(assay.ColumnsError, match="a completion is a string or a list of chat messages"):
        assay.compile(PLAIN, {"completion": dtype})


def test_metadata_of_another_type_is_refused_with_its_reader():
    with pytest.raises(
        assay.ColumnsError, match=r"`metadata` has type Int64; .*(?s:.)*task_expectations \(v/task_expectations\)"
    ):
        assay.compile(SPEC, {"completion": pl.String, "metadata": pl.Int64, "expected_output_schema": pl.String})


@pytest.mark.parametrize("dtype", [pl.String, pl.Categorical, pl.Enum(["ab", "b"]), pl.Null])
def test_text_types_are_completions(dtype):
    values = [None] if dtype == pl.Null else ["ab", "b", None]
    out = assay.score(pl.DataFrame({"completion": pl.Series(values, dtype=dtype)}), PLAIN)
    assert out["reward"].to_list() == ([None] if dtype == pl.Null else [1.0, 0.5, None])


def test_columns_no_check_reads_pass_through_in_order():
    rows = {"step": [1], "completion": ["a"], "metadata": ["{}"], "model": ["m"]}
    assert assay.compile(PLAIN, pl.DataFrame(rows)).columns[:4] == ("step", "metadata", "model", "reward")
    spec = {"checks": [{"type": "task_expectations"}]}
    assert assay.compile(spec, pl.DataFrame(rows)).columns[:3] == ("step", "model", "reward")


def test_keep_overrides_and_may_name_what_was_read():
    frame = pl.DataFrame({"step": [1], "completion": ["a"], "model": ["m"]})
    assert assay.score(frame, PLAIN, keep=["model", "completion"], details=False).columns == [
        *("model", "completion", "reward", "passed", "feedback", "error"),
    ]
    with pytest.raises(assay.ColumnsError, match="Did you mean `model`"):
        assay.score(frame, PLAIN, keep=["modle"])


@pytest.mark.parametrize(
    ("keep", "names"),
    [
        ("*", ["step", "completion", "metadata", "model"]),
        (["*"], ["step", "completion", "metadata", "model"]),
        (["model", "*"], ["model", "step", "completion", "metadata"]),
        ("+completion", ["step", "completion", "model"]),
        (["+completion", "+metadata"], ["step", "completion", "metadata", "model"]),
        (["model", "+completion"], ["model", "step", "completion"]),
        (["+model"], ["step", "model"]),
        (["+completion", "*"], ["step", "completion", "model", "metadata"]),
    ],
)
def test_keep_takes_all_columns_or_adds_to_the_default(keep, names):
    frame = pl.DataFrame({"step": [1], "completion": ["{}"], "metadata": ["{}"], "model": ["m"]})
    spec = {"checks": [{"type": "task_expectations"}]}
    out = assay.score(frame, spec, keep=keep, details=False)
    assert out.columns[:-4] == names
    assert out.select(names).equals(frame.select(names))


def test_a_column_with_a_name_that_keep_gives_a_meaning_is_meant_by_it():
    frame = pl.DataFrame({"*": [1], "+completion": [2], "completion": ["a"], "x": [3]})
    assert list(assay.compile(PLAIN, frame, keep=["*"]).passed_through) == ["*"]
    assert list(assay.compile(PLAIN, frame, keep=["+completion"]).passed_through) == ["+completion"]
    assert list(assay.compile(PLAIN, frame, keep=["++completion"]).passed_through) == ["*", "+completion", "x"]


@pytest.mark.parametrize(
    ("keep", "fact", "hint"), [("+modle", "`modle`", "`model`"), ("*x", r"`\*x`", ""), ("+", "``", ""), ("", "``", "")]
)
def test_names_to_keep_that_do_not_exist_are_named_without_their_sign(keep, fact, hint):
    with pytest.raises(assay.ColumnsError, match=f"`keep`: the rollouts have no column {fact}(?s:.)*{hint}"):
        assay.compile(PLAIN, {"completion": pl.String, "model": pl.String}, keep=keep)


def test_messages_are_kept_as_they_were_loaded():
    messages = [{"role": "user", "content": "1"}, {"role": "assistant", "content": "a", "name": "n"}]
    rows = [{"completion": messages, "x": 1}, {"completion": "text", "x": 2}, {"completion": None, "x": 3}]
    frame = pl.DataFrame({"completion": pl.Series([messages], strict=False)})
    assert assay.score(frame, PLAIN, keep="+completion")["completion"].equals(frame["completion"])
    # of messages in rows, role and text are loaded; a text beside them is a message of the assistant
    loaded = [{"role": "user", "content": "1"}, {"role": "assistant", "content": "a"}]
    assert assay.score(rows[:1], PLAIN, keep="*")["completion"].to_list() == [loaded]
    kept = assay.score(rows, PLAIN, keep="*")["completion"].to_list()
    assert kept == [loaded, [{"role": "assistant", "content": "text"}], None]


def test_columns_with_the_names_of_results_are_kept_as_prior():
    frame = pl.DataFrame({"completion": ["a"], "reward": [0.3], "prior_reward": [0.1], "error": ["e"]})
    out = assay.score(frame, PLAIN).row(0, named=True)
    assert (out["reward"], out["prior_prior_reward"], out["prior_reward"], out["prior_error"]) == (0.5, 0.3, 0.1, "e")


def test_scoring_a_result_again_gives_the_same_rewards():
    frame = pl.DataFrame({"completion": ["ab", "b"]})
    once = assay.score(frame, PLAIN, keep=["completion"])
    assert assay.score(once, PLAIN)["reward"].to_list() == once["reward"].to_list()


def test_no_hidden_column_leaves_the_engine():
    out = assay.score([{"completion": "x", "metadata": None, "expected_output_schema": None}], SPEC)
    assert not [name for name in out.columns if name.startswith("__assay")]


@pytest.mark.parametrize(
    ("columns", "said"),
    [({"completion": [1]}, "here it is Int64"), ({"text": ["a"]}, "here it is missing")],
)
def test_a_frame_of_another_schema_is_refused_by_its_plan(columns, said):
    with pytest.raises(assay.ColumnsError, match=said):
        assay.compile(PLAIN).score(pl.DataFrame(columns))


def test_what_checks_share_is_one_column_computed_once(monkeypatch):
    monkeypatch.setenv("ASSAY_KERNEL", "0")
    checks = [{"type": "contains", "value": value} for value in "äöü"] + [
        {"type": "equals", "value": "é" * 300},
        {"type": "not_contains", "value": "é"},
    ]
    checks += [
        {"type": "json_valid"},
        {"type": "json_keys", "keys": ["a"]},
        {"type": "json_keys", "keys": ["a"], "negate": True},
    ]
    plan = assay.compile([{"id": "v", "checks": checks}, {"id": "w", "checks": checks}])
    made = [expr.meta.output_name() for layer in plan.layers for expr in layer]
    assert len(made) == len(set(made))
    assert [name for name in made if name.startswith("__assay/lower")] == ["__assay/lower"]
    json = {name.removeprefix("__assay/json-") for name in made if name.startswith("__assay/json")}
    assert json == {"candidate", "first", "accepted", "valid", "object", "keys:('a',)", "keys:('a',):present"}


def test_python_is_asked_once_for_each_row_that_needs_it(monkeypatch):
    from assay.expressions import json as jsontext

    asked = []
    monkeypatch.setenv("ASSAY_KERNEL", "0")
    monkeypatch.setattr(jsontext, "missing_keys", lambda value, keys: asked.append(value) or "missing keys: a")
    frame = pl.DataFrame({"completion": ['{"b": 1}'] * 10 + ["prose"] * 10})
    out = assay.score(frame, {"checks": [{"type": "json_keys", "keys": ["a"]}]})
    assert (
        out["feedback"].to_list()
        == ["json_keys: missing keys: a"] * 10 + ["json_keys: the output is not a JSON object"] * 10
    )
    assert len(asked) == 10


def test_all_kinds_of_column_problems_are_one_error():
    with pytest.raises(assay.ColumnsError) as caught:
        assay.compile(SPEC, {"completion": pl.Int64, "metadata": pl.Int64}, keep=["idd"])
    said = caught.value.text
    for part in (
        "lack 1 column",
        "a completion is a string",
        "`metadata` has type Int64",
        "--keep: the rollouts have no column `idd`",
    ):
        assert part in said


@pytest.mark.parametrize(
    ("expr", "complaint", "message"),
    [
        (lambda text: text.str.len_chars().cum_sum() > 3, "is long", "what it says of a row depends on other rows"),
        (
            lambda text: text.str.len_chars() > text.str.len_chars().mean(),
            "is long",
            "what it says of a row depends on other rows",
        ),
        (lambda text: text.str.len_chars() > 3, None, r"complaint\(\) returns NoneType, not str"),
    ],
)
def test_a_check_of_ones_own_that_cannot_be_used_is_refused_before_a_row_is_read(expr, complaint, message):
    class Mistaken(assay.Check):
        """It is wrong."""

        type = "mistaken"

        def row(self, row):
            return 1.0

        def expr(self):
            return expr(assay.text())

        def complaint(self):
            return complaint

    with pytest.raises(
        assay.SpecError, match=f"v/mistaken: the expression of Mistaken cannot run: TypeError: {message}"
    ):
        assay.score([{"completion": "a"}], {"id": "v", "checks": [{"type": "mistaken"}]}, checks=[Mistaken])


def test_a_check_of_ones_own_that_raises_while_compiling_is_named():
    class Angry(assay.Check):
        """It raises."""

        type = "angry"

        def row(self, row):
            return 1.0

        def expr(self):
            raise RuntimeError("not today")

    with pytest.raises(assay.SpecError, match="v/angry: the expression of Angry cannot run: RuntimeError: not today"):
        assay.compile({"id": "v", "checks": [{"type": "angry"}]}, checks=[Angry])


def test_a_column_whose_name_reads_as_a_pattern_passes_through_score_rows():
    plan = assay.compile(PLAIN, {"completion": pl.String, "^c.*$": pl.String}, keep=["^c.*$"])
    scored = plan.score_rows([{"completion": "ab", "^c.*$": "1"}, {"completion": "ba", "^c.*$": "2"}])
    assert scored["^c.*$"].to_list() == ["1", "2"]
    assert tuple(scored.columns) == plan.columns

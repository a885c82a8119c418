"""Opening results: files, folders of parts and frames; their checks, labels, tasks and groups."""

import contextlib
import json
import os

import polars as pl
import pyarrow.parquet as pq
import pytest

import assay
from assay import InputError, UsageError
from assay.insight.results import compact, labelled_lines, open_result
from assay.thresholds import set_to

POLITE = {"id": "polite", "type": "contains", "value": "please", "weight": 3}
VERY = {"id": "polite: very", "type": "contains", "value": "thank you", "required": True}
TONE = {"id": "tone", "checks": [POLITE, VERY]}
PARTS = [{"id": "a", "type": "contains", "value": "a"}, {"type": "min_length", "value": 3}]
CURT = {"id": "curt", "type": "max_length", "value": 9, "penalty": 0.5}
GROUPED = {"id": "form", "checks": [{"id": "any", "type": "any_of", "checks": PARTS}, CURT]}
ROWS = [
    {"task_id": "t1", "model": "elm", "completion": "please"},
    {"task_id": "t1", "model": "ash", "completion": "thank you, please"},
    {"task_id": "t2", "model": "elm", "completion": None},
    {"task_id": None, "model": "elm", "completion": "no"},
]


def correct(completion):
    return 1.0 if "please" in completion else 0.5


def scored(tmp_path, verifiers, name="rewards.parquet", rows=ROWS, **options):
    path = tmp_path / name
    assay.score_file(pl.DataFrame(rows), verifiers, path, **options)
    return path


def test_a_file_gives_its_checks_with_their_part_in_the_reward(tmp_path):
    result = open_result(scored(tmp_path, TONE))
    assert (result.rows, result.notes, result.passed_through) == (4, (), ("task_id", "model"))
    assert [(check.name, check.column, check.type, check.required) for check in result.checks] == [
        ("polite", "check/tone/polite", "contains", False),
        ("polite: very", "check/tone/polite: very", "contains", True),
    ]
    assert [(check.weight, check.coefficient) for check in result.checks] == [(3.0, 0.75), (1.0, 0.25)]
    states = result.collect(result.frame.select(result.state)).to_series().to_list()
    assert states == ["fail", "pass", "unscored", "fail"]
    assert result.check("polite: very") is result.checks[1]
    assert result.verifiers[0]["id"] == "tone"


def test_the_coefficients_add_up_to_the_reward(tmp_path):
    checks = [{"type": "contains", "value": "no", "weight": 2}, {"type": "max_length", "value": 7}]
    other = {"id": "w", "checks": checks}
    rubric = assay.Rubric(funcs=[correct, assay.load_verifier(TONE)], weights=[2.0, -0.5])
    for verifiers in (TONE, [TONE, other], rubric):
        result = open_result(scored(tmp_path, verifiers, overwrite=True))
        total = sum(pl.col(check.column) * check.coefficient for check in result.checks)
        both = result.frame.select("reward", total=total).collect().drop_nulls()
        assert both["total"].to_list() == pytest.approx(both["reward"].to_list())


def test_checks_of_groups_penalties_and_several_verifiers(tmp_path):
    result = open_result(scored(tmp_path, [TONE, GROUPED]))
    assert [(check.name, check.group, check.coefficient) for check in result.checks[2:]] == [
        ("form/any", "", None),
        ("form/any.a", "any", 0.0),
        ("form/any.min_length", "any", 0.0),
        ("form/curt", "", None),
    ]
    assert result.checks[0].name == "tone/polite"
    assert result.checks[0].coefficient == 0.375
    assert result.check("polite").name == "tone/polite"


def test_members_of_a_rubric_and_verifier_classes_count_as_checks(tmp_path):
    rubric = assay.Rubric(funcs=[correct, assay.load_verifier(TONE)], weights=[1.0, 0.5])
    result = open_result(scored(tmp_path, rubric))
    assert [(check.name, check.column, check.weight, check.coefficient) for check in result.checks] == [
        ("correct", "score/correct", 1.0, 1.0),
        ("tone/polite", "check/tone/polite", 3.0, 0.375),
        ("tone/polite: very", "check/tone/polite: very", 1.0, 0.125),
    ]


def test_lines_go_to_the_longest_label_that_fits(tmp_path):
    result = open_result(scored(tmp_path, TONE))
    assert result.lines("feedback").rows() == [
        ("polite: very", 'does not contain "thank you"', 2, 0),
        ("polite", 'does not contain "please"', 1, 3),
    ]
    assert result.lines("error").rows() == [(None, "the completion is null", 1, 2)]


def test_a_line_without_a_label_is_part_of_the_one_before(tmp_path):
    scores = {"reward": [1.0, 0.5, 0.5], "check/v/a": [1.0, 0.0, 0.0], "check/v/b": [1.0, 0.0, 1.0]}
    feedback = ["", "a: first\nsecond: line\nb: third", "a: first\nsecond: line"]
    frame = pl.DataFrame({**scores, "feedback": feedback, "error": ["broken\na: late", None, None]})
    result = open_result(frame)
    assert result.lines("feedback").rows() == [("a", "first\nsecond: line", 2, 1), ("b", "third", 1, 1)]
    assert result.lines("error").rows() == [(None, "broken", 1, 0), ("a", "late", 1, 0)]
    assert open_result(frame.drop("feedback")).lines("feedback").height == 0
    assert labelled_lines(feedback[1], result.labels) == [("a", "first\nsecond: line"), ("b", "third")]
    assert labelled_lines("broken\na: late", result.labels) == [(None, "broken"), ("a", "late")]
    assert labelled_lines(None, result.labels) == labelled_lines("", result.labels) == []


def test_lines_of_rows_that_name_functions(tmp_path):
    rows = [{"completion": "4", "fn_name": "exact_match", "expected": expected} for expected in ("4", "5")]
    result = open_result(scored(tmp_path, None, rows=rows))
    assert result.checks == ()
    assert [(check, rows) for check, _, rows, _ in result.lines("feedback").rows()] == [("exact_match", 1)]


def test_a_frame_tells_what_its_columns_tell():
    scores = assay.score(pl.DataFrame(ROWS), [TONE, GROUPED])
    for frame in (scores, scores.lazy()):
        result = open_result(frame)
        assert [check.name for check in result.checks] == [
            *("tone/polite", "tone/polite: very"),
            *("form/any", "form/any.a", "form/any.min_length", "form/curt"),
        ]
        assert result.checks[0].weight is result.checks[0].coefficient is None
        assert result.notes == ("it has no provenance: weights and types of checks are unknown",)
        assert result.lines("feedback")["check"].null_count() == 0
    assert open_result(result) is result


def test_rewards_without_anything_else_and_values_that_are_none():
    result = open_result(pl.DataFrame({"reward": [1, 0, None]}))
    assert (result.checks, result.rows, result.length, result.tasks()) == ((), 3, None, ())
    assert len(result.notes) == 3
    assert result.frame.collect()["reward"].to_list() == [1.0, 0.0, None]
    frame = pl.DataFrame({"reward": [1.0, float("nan"), float("inf"), 0.5], "passed": [1, 1, 1, None]})
    rows = open_result(frame).frame.collect()
    assert rows["reward"].to_list() == [1.0, None, None, 0.5]
    assert rows["passed"].to_list() == [True, None, None, False]


def test_tasks_groups_and_lengths(tmp_path):
    frame = pl.DataFrame({"reward": [1.0], "example_id": [3], "step": [1], "run": ["a"], "completion": ["naïve"]})
    result = open_result(frame)
    assert result.tasks() == ("example_id",)
    assert result.groups(result.tasks()) == ("example_id", "step")
    assert result.groups(result.tasks(), ["run"]) == ("run",)
    assert result.tasks(["run", "example_id"]) == ("run", "example_id")
    assert result.frame.select(result.length).collect().item() == 5
    long = open_result(frame.with_columns(length=7))
    assert long.frame.select(long.length).collect().item() == 7
    with pytest.raises(UsageError, match='task="exampel_id": the frame has no such column') as caught:
        result.tasks(["exampel_id"])
    assert caught.value.hint == "Did you mean `example_id`?"


def test_a_folder_of_parts_is_read_in_order(tmp_path):
    rows = [{"task_id": f"t{at}", "completion": "please" if at % 3 else "no"} for at in range(500)]
    source = tmp_path / "rows.jsonl"
    source.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    folder = tmp_path / "rewards"
    with set_to(first_chunk=2000, chunk=2000):
        assay.score_file(source, TONE, f"{folder}/", part_bytes=4000)
    assert len(list(folder.glob("part-*.parquet"))) > 3
    result = open_result(folder)
    assert result.frame.select("task_id").collect()["task_id"].to_list() == [row["task_id"] for row in rows]
    numbered = result.collect(result.numbered.select("task_id", "__assay/row"))
    assert all(task == f"t{row}" for task, row in numbered.sort("__assay/row").rows())
    assert result.checks[0].coefficient == 0.75
    (folder / "part-000001.parquet").unlink()
    with pytest.raises(InputError, match="the run is not finished"):
        open_result(folder)


def test_parquet_files_in_a_folder_without_a_manifest(tmp_path):
    for name, reward in (("a", 1.0), ("b", 2.0)):
        pl.DataFrame({"reward": [reward]}).write_parquet(tmp_path / f"{name}.parquet")
    assert open_result(tmp_path).frame.collect()["reward"].to_list() == [1.0, 2.0]
    pl.DataFrame({"reward": [3]}).write_parquet(tmp_path / "c.parquet")
    assert open_result(str(tmp_path)).frame.collect()["reward"].to_list() == [1.0, 2.0, 3.0]


def test_what_cannot_be_opened(tmp_path):
    html, cut = tmp_path / "html.parquet", tmp_path / "cut.parquet"
    os.mkfifo(tmp_path / "pipe.parquet")
    (tmp_path / "empty").mkdir()
    html.write_bytes(b"<html>")
    cut.write_bytes(b"PAR1" + b"x" * 50)
    refused = [
        (tmp_path / "rewards.jsonl", UsageError, "a result is a parquet file or a folder"),
        (tmp_path / "none.parquet", InputError, "no such file"),
        (tmp_path / "empty", InputError, "no parquet files"),
        (tmp_path / "pipe.parquet", InputError, "is a"),
        (html, InputError, "not a readable parquet file: it seems to be an HTML"),
        (cut, InputError, "not a readable parquet file"),
        (pl.DataFrame({"rewards": [1.0]}), InputError, "no column `reward`"),
        (pl.DataFrame({"reward": ["high"]}), InputError, "`reward` has type String"),
        (pl.DataFrame({"reward": [1.0], "passed": ["yes"]}), InputError, "`passed` has type String"),
        ([1.0], UsageError, "not list"),
    ]
    for source, error, message in refused:
        with pytest.raises(error, match=message) as caught:
            open_result(source)
        assert caught.value.exit_code == 2


TYPED = '{"verifiers": [{"id": "tone", "kind": "native", "canonical": "[1", "checks": [{"id": "x", "weight": "y"}]}]}'
STRANGE = ("[]", "{", "nul", '{"verifiers": [3, {"id": null}]}', '{"verifiers": {"a": 1}}', TYPED)


def test_a_strange_provenance_is_no_provenance(tmp_path):
    table = assay.score(pl.DataFrame(ROWS), TONE).to_arrow()
    for provenance in STRANGE:
        pq.write_table(table.replace_schema_metadata({"assay": provenance}), tmp_path / "x.parquet")
        result = open_result(tmp_path / "x.parquet")
        assert result.rows == 4
        assert all(check.column.startswith("check/tone/") for check in result.checks)


def test_a_file_damaged_in_the_middle_is_named(tmp_path):
    path = scored(tmp_path, TONE, rows=[{"task_id": f"{at}", "completion": f"{at * 7919}"} for at in range(5000)])
    data = bytearray(path.read_bytes())
    data[100:400] = bytes(300)
    path.write_bytes(data)
    result = open_result(path)
    with pytest.raises(InputError, match="rewards"):
        result.collect(result.frame)


def test_lengths_of_a_column_such_as_tokens():
    tokens = pl.Series([7, None], dtype=pl.UInt16)
    frame = pl.DataFrame({"reward": [1.0, 0.5], "completion": ["abc", "d"], "tokens": tokens})
    result = open_result(frame)
    assert result.frame.select(result.length).collect().to_series().to_list() == [3, 1]
    named = result.with_length("tokens")
    assert named.frame.select(named.length).collect().to_series().to_list() == [7, None]
    assert result.with_length(None) is result
    for column, message in (
        ("token", 'length="token": the frame has no such column.'),
        ("reward", "expected whole num"),
    ):
        with pytest.raises(UsageError, match=message):
            result.with_length(column)
    assert [assay.report(frame, **length).summary["length"] for length in ({"length": "tokens"}, {})] == [7.0, 2.0]


FAR = pl.Series([10**7, 0, 0, 0]).cast(pl.Int32).cast(pl.Date)
KEYS = {
    "bytes": ([b"\xff", b"a", b"a", None], None),
    "durations": (pl.Series([1, 2, 2, None]).cast(pl.Duration("ms")), None),
    "lists": ([[1.5], [float("nan")], [1.5], None], None),
    "no numbers": ([float("nan"), 1.5, float("inf"), None], None),
    "far dates": (FAR, "Date"),
    "lists of dates": (pl.concat([FAR]).reshape((4, 1)).cast(pl.List(pl.Date)), "List(Date)"),
    "extensions": (pl.Series(["a"] * 4).ext.to(pl.Extension("some.type", pl.String)), "Extension"),
    "mappings": (pl.Series([[{"key": "a", "value": 1}]] * 4).cast(pl.Map(pl.String, pl.Int64)), "Map"),
}


@pytest.mark.parametrize(("values", "refused"), KEYS.values(), ids=KEYS)
def test_rows_are_told_apart_by_values_of_any_type_or_the_option_is_refused(values, refused):
    result = assay.score(pl.DataFrame(ROWS).with_columns(pl.Series("x", values)), TONE, keep=["*"])
    looks = (
        lambda: assay.groups(result, by="x").as_json(),
        lambda: assay.diff(result, result, by="x").as_json(),
        lambda: assay.report(result, by=["x"]).as_json(),
        lambda: assay.Tripwires(by="x").update(result),
    )
    message = r'by="x": .* has values of type .* that no group can have'
    for look in looks:  # a step is one value
        with pytest.raises(UsageError, match=message) if refused else contextlib.suppress(UsageError):
            look()
    # what is not asked for by name is left out if it cannot tell rows apart
    named = result.drop("model", "task_id").rename({"x": "model"})
    assert assay.groups(named.with_columns(task_id=pl.lit("t")), k=1).table.height > 0


def test_roles_and_effects(tmp_path):
    checks = [
        {"id": "g", "type": "contains", "value": "a", "gate": True},
        {"id": "p", "type": "contains", "value": "b", "penalty": 0.1},
        {"id": "w", "type": "contains", "value": "c", "weight": 3},
        {"id": "any", "type": "any_of", "checks": [{"id": "x", "type": "contains", "value": "d"}]},
    ]
    pl.DataFrame({"completion": ["a", "b"]}).write_parquet(tmp_path / "rollouts.parquet")
    assay.score_file(tmp_path / "rollouts.parquet", {"id": "v", "checks": checks}, tmp_path / "rewards.parquet")
    found = {check.id: (check.role, check.effect) for check in open_result(tmp_path / "rewards.parquet").checks}
    assert found == {
        "g": ("gate", 1.0),
        "p": ("penalty", 0.1),
        "w": ("weight", 0.75),
        "any": ("weight", 0.25),
        "any.x": ("member", 0.25),
    }


def test_effects_are_equal_where_weights_are_unknown():
    frame = pl.DataFrame({"reward": [1.0], "check/v/a": [1.0], "check/v/b": [0.5]})
    assert [check.effect for check in open_result(frame).checks] == [0.5, 0.5]


def test_few_rows_of_many_do_not_keep_the_texts_of_the_others():
    texts = pl.LazyFrame({"text": [f"{at} " + "word " * 40 for at in range(20_000)], "at": range(20_000)})
    few = compact(texts.filter(pl.col("at") % 100 == 0)).collect(engine="streaming")
    array = few["text"].rechunk().to_arrow(compat_level=pl.CompatLevel.newest())
    assert few["text"].to_list() == [f"{at} " + "word " * 40 for at in range(0, 20_000, 100)]
    assert sum(buffer.size for buffer in array.buffers() if buffer is not None) < 10 * few.estimated_size()
    assert compact(texts.select("at").head(3)).collect()["at"].to_list() == [0, 1, 2]

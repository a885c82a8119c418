"""File to file: what a run lets through, refuses, counts and keeps."""

import json
import subprocess
import sys

import polars as pl
import pytest
from cases import ALPACA, SPECS, each, needs_alpaca, some

import assay

SPEC = {"id": "v", "checks": [{"type": "contains", "value": "refund"}]}
BROKEN = {"id": "b", "checks": [{"id": "bad", "type": "regex", "pattern": "("}, {"type": "min_length", "value": 1}]}
TASKS = [{"task_id": "known", "metadata": {"expectations": [{"text": "refund"}]}}]
EXPECTATIONS = {"id": "t", "checks": [{"type": "task_expectations"}]}
OLD = b"what was there before"
SAME_FILE = ["in.parquet", "x/../in.parquet", "link.parquet", "y/in.parquet"]


def run(source, spec, out, **options):
    assay.score_file(source, spec, out, **options)
    return pl.read_parquet(out).to_dicts()


def test_an_existing_file_is_replaced_only_when_asked(tmp_path):
    out = tmp_path / "out.parquet"
    out.write_bytes(OLD)
    with pytest.raises(assay.UsageError, match="already exists"):
        assay.score_file({"completion": ["x"]}, SPEC, out)
    assert out.read_bytes() == OLD
    assert run({"completion": ["x"]}, SPEC, out, overwrite=True)[0]["reward"] == 0.0


@pytest.mark.parametrize("out", SAME_FILE)
@pytest.mark.parametrize("source", [*SAME_FILE, "in*.parquet"])
def test_an_input_is_never_the_output(tmp_path, source, out):
    pl.DataFrame({"completion": ["x"]}).write_parquet(tmp_path / "in.parquet")
    before = (tmp_path / "in.parquet").read_bytes()
    (tmp_path / "link.parquet").symlink_to("in.parquet")
    (tmp_path / "x").mkdir()
    (tmp_path / "y").symlink_to(tmp_path)
    with pytest.raises(assay.UsageError, match="is one of the inputs"):
        assay.score_file(f"{tmp_path}/{source}", SPEC, f"{tmp_path}/{out}", overwrite=True)
    assert (tmp_path / "in.parquet").read_bytes() == before


def test_the_task_table_is_never_the_output(tmp_path):
    tasks = tmp_path / "tasks.jsonl"
    tasks.write_text(json.dumps(TASKS[0]) + "\n")
    before = tasks.read_bytes()
    rows = [{"task_id": "known", "completion": "x"}]
    with pytest.raises(assay.UsageError, match="is one of the inputs"):
        assay.score_file(rows, EXPECTATIONS, tasks, tasks=tasks, overwrite=True)
    assert tasks.read_bytes() == before


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("nowhere/out.parquet", "there is no folder"),
        ("folder.parquet", "is a folder"),
        ("out.xlsx", "the ending must be .parquet, .jsonl, .csv"),
        ("out", "the ending must be .parquet, .jsonl, .csv"),
    ],
)
def test_an_output_that_cannot_be_is_refused_by_name(tmp_path, name, said):
    (tmp_path / "folder.parquet").mkdir()
    with pytest.raises(assay.UsageError) as refused:
        assay.score_file({"completion": ["x"]}, SPEC, tmp_path / name, overwrite=True)
    assert refused.value.fact.startswith(f"{tmp_path / name}: ")
    assert said in refused.value.fact


@pytest.mark.parametrize("content", [b"", b"<html>", b"PAR1" + b"\xff" * 99 + b"PAR1"], ids=["empty", "html", "magic"])
def test_a_parquet_that_is_none_is_named_before_scoring(tmp_path, content):
    (tmp_path / "in.parquet").write_bytes(content)
    with pytest.raises(assay.InputError, match=r"in\.parquet"):
        assay.score_file(tmp_path / "in.parquet", SPEC, tmp_path / "out.parquet")
    assert not (tmp_path / "out.parquet").exists()


def test_an_input_that_breaks_half_way_is_named(tmp_path):
    pl.DataFrame({"completion": [f"refund {n * n}" for n in range(9000)]}).write_parquet(tmp_path / "in.parquet")
    content = bytearray((tmp_path / "in.parquet").read_bytes())
    content[4:2000] = b"\xff" * 1996
    (tmp_path / "in.parquet").write_bytes(content)
    with pytest.raises(assay.InputError, match=r"in\.parquet"):
        assay.score_file(tmp_path / "in.parquet", SPEC)


@pytest.mark.parametrize("suffix", ["parquet", "jsonl"])
def test_a_file_with_a_glob_for_a_name_is_itself(tmp_path, suffix):
    for name, completion in {"run[1]": "a refund", "run1": "no"}.items():
        frame = pl.DataFrame({"completion": [completion]})
        (frame.write_parquet if suffix == "parquet" else frame.write_ndjson)(tmp_path / f"{name}.{suffix}")
    [row] = run(tmp_path / f"run[1].{suffix}", SPEC, tmp_path / "out.parquet")
    assert row["reward"] == 1.0


@pytest.mark.parametrize(
    ("options", "columns"),
    [
        ({}, ["id", "x", "reward", "passed", "feedback", "error", "score/v", "check/v/contains"]),
        ({"details": False}, ["id", "x", "reward", "passed", "feedback", "error"]),
        ({"details": False, "keep": []}, ["reward", "passed", "feedback", "error"]),
        ({"details": False, "keep": ["x", "completion"]}, ["x", "completion", "reward", "passed", "feedback", "error"]),
    ],
    ids=["all", "no details", "keep nothing", "keep two"],
)
def test_columns_of_the_output(tmp_path, options, columns):
    [row] = run([{"id": 1, "completion": "a refund", "x": "kept"}], SPEC, tmp_path / "out.parquet", **options)
    assert list(row) == columns
    values = {
        "id": 1, "x": "kept", "completion": "a refund", "reward": 1.0, "passed": True, "feedback": "", "error": None,
    }  # fmt: skip
    assert row == {name: values.get(name, 1.0) for name in columns}


def test_keeping_an_unknown_column_is_refused_with_a_guess(tmp_path):
    with pytest.raises(assay.ColumnsError, match=r"`modle`.*\n\nDid you mean `model`"):
        assay.score_file([{"completion": "x", "model": "m"}], SPEC, tmp_path / "out.parquet", keep=["modle"])
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "name", ["reward", "passed", "feedback", "error", "score/v", "check/v/contains", "prior_reward", "score", "x"]
)
def test_a_column_named_like_a_result_keeps_its_values_as_prior(tmp_path, name):
    rows = [{"completion": "a refund", name: "old"}]
    [row] = run(rows, SPEC, tmp_path / "out.parquet")
    shown = name if name in ("score", "x", "prior_reward") else f"prior_{name}"
    assert (row[shown], row["reward"], row["passed"]) == ("old", 1.0, True)


def test_a_prior_column_never_takes_the_place_of_another(tmp_path):
    rows = [{"completion": "a refund", "reward": 0.5, "prior_reward": 0.25}]
    [row] = run(rows, SPEC, tmp_path / "out.parquet", details=False)
    assert [value for name, value in row.items() if name.startswith("prior_")] == [0.5, 0.25]
    assert row["reward"] == 1.0


@pytest.mark.parametrize(
    ("limit", "rewards"), [(None, [1.0, 0.0, 1.0]), (2, [1.0, 0.0]), (9, [1.0, 0.0, 1.0]), (0, [])]
)
def test_limit_scores_the_first_rows(tmp_path, limit, rewards):
    rows = run({"completion": ["refund", "no", "a refund"]}, SPEC, tmp_path / "out.parquet", limit=limit)
    assert [row["reward"] for row in rows] == rewards


def test_a_negative_limit_is_refused():
    with pytest.raises(assay.UsageError, match="limit=-1"):
        assay.score_file({"completion": ["x"]}, SPEC, limit=-1)


def test_rows_without_completion_or_task_are_unscored_not_zero(tmp_path):
    rows = [("known", "a refund"), ("known", None), ("lost", "a refund"), (None, "a refund"), ("known", "")]
    rows = [{"task_id": task, "completion": text} for task, text in rows]
    found = run(rows, EXPECTATIONS, tmp_path / "out.parquet", tasks=TASKS)
    assert [(row["reward"], row["passed"], row["error"]) for row in found] == [
        (1.0, True, None),
        (None, None, "the completion is null"),
        (None, None, "task_id lost is not in the task table"),
        (None, None, "task_id null is not in the task table"),
        (0.0, False, None),
    ]


def test_several_verifiers_are_averaged_and_prefix_their_feedback(tmp_path):
    curt = {"id": "short", "passThreshold": 0.5, "checks": [{"type": "max_length", "value": 3}, {"type": "json_valid"}]}
    rows = run({"completion": ["no", "refund"]}, [SPEC, curt], tmp_path / "out.parquet")
    assert [(row["score/v"], row["score/short"], row["reward"], row["passed"]) for row in rows] == [
        (0.0, 0.5, 0.25, False),
        (1.0, 0.0, 0.5, False),
    ]
    assert [line.split(": ")[0] for line in rows[0]["feedback"].split("\n")] == ["v/contains", "short/json_valid"]


@pytest.mark.parametrize("rows_a_group", [1, 7, 1000])
def test_row_groups_and_runs_do_not_change_a_bit(tmp_path, rows_a_group):
    texts = [f"{'refund ' * (n % 3)}{n * n}" for n in range(50)] + [None]
    spec = {
        "id": "v",
        "checks": [SPEC["checks"][0] | {"weight": 0.7}, {"type": "min_length", "value": 9, "weight": 0.4}],
    }
    pl.DataFrame({"completion": texts}).write_parquet(tmp_path / "in.parquet", row_group_size=rows_a_group)
    found = [run(tmp_path / "in.parquet", spec, tmp_path / f"{n}.parquet") for n in range(2)]
    assert found == [assay.score({"completion": texts}, spec).to_dicts()] * 2


@pytest.mark.parametrize("spec", some(SPECS), ids=lambda path: path.stem)
def test_a_file_run_gives_what_scoring_in_memory_gives(tmp_path, spec):
    tasks = next(iter(spec.parent.glob("tasks.*")), None)
    source = spec.parent / "rollouts.jsonl"
    assay.score_file(source, spec, tmp_path / "out.parquet", tasks=tasks)
    assert pl.read_parquet(tmp_path / "out.parquet").equals(assay.score(source, spec, tasks=tasks))


@needs_alpaca
def test_a_file_run_over_real_rollouts_gives_what_scoring_in_memory_gives(tmp_path):
    specs = [path for path in SPECS if path.stem == "answer-format"] + [SPEC]
    assay.score_file(ALPACA, specs, tmp_path / "out.parquet", keep=["task_id", "model"])
    found = pl.read_parquet(tmp_path / "out.parquet")
    assert found.height == 18_514
    assert found.equals(assay.score(ALPACA, specs, keep=["task_id", "model"]))


THREE_OF_TEN = {"completion": ["x"] * 7 + [None] * 3}


@pytest.mark.parametrize("allowed", [3, "3", "30%", "30.0 %", "100%", None])
def test_no_more_errors_than_allowed(tmp_path, allowed):
    assert len(run(THREE_OF_TEN, SPEC, tmp_path / "out.parquet", max_errors=allowed)) == 10


@pytest.mark.parametrize("allowed", [0, 2, "2", "29.9%", "0%"])
def test_more_errors_than_allowed_write_nothing(tmp_path, allowed):
    (tmp_path / "out.parquet").write_bytes(OLD)
    with pytest.raises(assay.TooManyErrors) as stopped:
        assay.score_file(THREE_OF_TEN, SPEC, tmp_path / "out.parquet", max_errors=allowed, overwrite=True)
    assert stopped.value.fact == (
        f"3 of 10 rows have a scoring error; --max-errors allows {allowed}.\n  unscored: the completion is null: 3 rows"
    )
    assert [(one.name, one.read_bytes()) for one in tmp_path.iterdir()] == [("out.parquet", OLD)]


def test_too_many_errors_name_the_checks():
    with pytest.warns(assay.AssayWarning, match="b/bad: broken"), pytest.raises(assay.TooManyErrors) as stopped:
        assay.score_file({"completion": ["x"]}, [BROKEN, SPEC], max_errors=0)
    assert stopped.value.fact == "1 of 1 row has a scoring error; --max-errors allows 0.\n  b/bad: 1 row"


@each("given", ["x", "-1", "1.5", "%", "-1%", "nan%", "1e2", ""])
def test_a_max_errors_that_says_nothing_is_refused(given):
    with pytest.raises(assay.UsageError, match="max_errors"):
        assay.score_file({"completion": ["x"]}, SPEC, max_errors=given)


@pytest.mark.parametrize("spec", [BROKEN, {"checks": [*SPEC["checks"], {"type": "vibes"}]}], ids=["broken", "unknown"])
def test_broken_and_unknown_checks_warn_and_run_unless_strict(tmp_path, spec):
    with pytest.warns(assay.AssayWarning):
        assert len(run({"completion": ["refund"]}, spec, tmp_path / "out.parquet")) == 1
    with pytest.raises(assay.SpecError):
        assay.score_file({"completion": ["refund"]}, spec, strict=True)


@pytest.mark.parametrize(
    ("name", "counts"), [("jsonl", [2, 1]), ("parquet", [2, 1]), ("arrow", [None, None]), ("csv", [None, None])]
)
def test_rows_of_each_input_are_said_where_the_file_tells(tmp_path, monkeypatch, name, counts):
    write = {"jsonl": "write_ndjson", "arrow": "write_ipc"}.get(name, f"write_{name}")
    for number, texts in enumerate((["a", "b"], ["c"])):
        getattr(pl.DataFrame({"completion": texts}), write)(tmp_path / f"{number}.{name}")
    out = tmp_path / "out.parquet"
    assay.score_file([tmp_path / f"{number}.{name}" for number in range(2)], SPEC, out)
    assert [one["rows"] for one in assay.read_provenance(out)["inputs"]] == counts
    assert assay.read_provenance(out)["rows"] == 3
    assay.score_file(tmp_path / f"0.{name}", SPEC, out, overwrite=True)
    assert [one["rows"] for one in assay.read_provenance(out)["inputs"]] == [2]


@pytest.mark.parametrize(
    ("name", "limit", "last"),
    [("in.parquet", None, (50, 50)), ("in.parquet", 20, (20, 20)), ("in.jsonl", None, (50, 50))],
)
def test_progress_ends_at_the_rows_of_the_run(tmp_path, name, limit, last):
    frame = pl.DataFrame({"completion": ["x"] * 50})
    frame.write_parquet(tmp_path / "in.parquet", row_group_size=10)
    frame.write_ndjson(tmp_path / "in.jsonl")
    told = []
    assay.score_file(tmp_path / name, SPEC, limit=limit, progress=lambda *args: told.append(args))
    assert told[-1] == last
    assert told == sorted(set(told))


_KILLED = """
import os, signal, sys, threading
signal.signal(signal.SIGINT, {handler})  # before the engine is there, which puts its own handler in front

import polars as pl
import assay

rows = 400_000
pl.DataFrame({{"completion": ["lorem ipsum dolor sit amet " * 20] * rows}}).write_parquet(sys.argv[1])
begun = threading.Event()
interrupt = threading.Thread(target=lambda: begun.wait() and os.kill(os.getpid(), signal.SIGINT))
checks = [{{"type": "contains", "id": str(at), "value": "word " + str(at)}} for at in range(12)]
try:
    interrupt.start()
    summary = assay.score_file(sys.argv[1], {{"checks": checks}}, sys.argv[2], progress=lambda *_: begun.set())
    assert summary.rows == rows, summary.rows
    interrupt.join()
except KeyboardInterrupt:
    assert not os.path.exists(sys.argv[2]) or pl.read_parquet(sys.argv[2]).height == rows
os._exit(0)  # threads of a run that was interrupted may still call Python: a normal exit would abort in them
"""


@pytest.mark.parametrize("handler", some(["signal.SIG_IGN", "lambda *_: None", "signal.default_int_handler"]))
def test_a_run_is_whole_or_not_at_all_whoever_handles_an_interrupt(handler, tmp_path):
    # the engine ends its stream at an interrupt as if there were no more rows
    paths = [str(tmp_path / "in.parquet"), str(tmp_path / "out.parquet")]
    done = subprocess.run(
        [sys.executable, "-c", _KILLED.format(handler=handler), *paths], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, ""), done.stderr

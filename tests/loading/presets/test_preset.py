"""What other tools write is recognised, read as by hand, the same from JSONL and from parquet; mistakes are named."""

import gzip
import io
import json
import pickle
import sys

import jsonschema
import polars as pl
import pytest
from samples import FOURS, NAN, RECORDS, assistant, batch, choice, dump, jsonl, lm_eval, parquet, user, verl
from typer.testing import CliRunner
from web import Web

import assay
from assay.cli.main import app
from assay.errors import InputError, UsageError
from assay.loading.formats.files import Cut
from assay.loading.formats.reading import Reading, reading_of
from assay.loading.presets.preset import load_preset, matching, names, presets, schema
from assay.loading.rollouts import choose, part_of, probe
from assay.loading.rollouts import open_rollouts as opened_rollouts
from assay.names import BAD
from assay.options import ReadingOptions, settle
from assay.scoring.reference import score_rows
from assay.spec.verifier import load_verifier

SPEC = {"id": "v", "checks": [{"id": "four", "type": "contains", "value": "4"}]}
WRITERS = {"jsonl": jsonl, "parquet": parquet}


def open_rollouts(source, **options):
    return opened_rollouts(source, reading_of(settle(ReadingOptions, options, "scan")))


def written(tmp_path, name, kind, records=None):
    return WRITERS[kind](tmp_path / f"{name}.{kind}", RECORDS[name] if records is None else records)


def plain(value):
    """A value of either format as data: JSON text is read, and what is null is not there."""
    if isinstance(value, str) and value[:1] in ("{", "["):
        value = json.loads(value)
    if isinstance(value, dict):
        return {name: plain(inner) for name, inner in value.items() if inner is not None}
    return [plain(one) for one in value] if isinstance(value, list) else value


def test_every_preset_has_a_sample():
    assert set(RECORDS) == set(names())


def test_a_file_is_recognised(tmp_path):
    for name in RECORDS:
        for kind in WRITERS:
            seen = probe(written(tmp_path, name, kind), Reading())
            assert [one.name for one in matching(seen.outlines, kind)] == [name]


@pytest.mark.parametrize("kind", WRITERS)
@pytest.mark.parametrize("name", FOURS)
def test_a_file_is_scored_without_flags(tmp_path, name, kind):
    path, out = written(tmp_path, name, kind), tmp_path / "rewards.parquet"
    summary = assay.score_file(path, SPEC, out)
    rewards = pl.read_parquet(out)
    assert rewards["reward"].to_list() == FOURS[name]
    assert [note for note in summary.notes if note.startswith(f"read as {name} (detected): ")]
    [read] = assay.read_provenance(out)["inputs"]
    assert read["read_as"] in summary.notes
    assert read["rows"] == len(FOURS[name])
    assert assay.score(path, SPEC).equals(rewards)


def test_rollouts_are_the_same_from_both_formats(tmp_path):
    for name in RECORDS:
        by_lines, by_columns = (
            open_rollouts(written(tmp_path, name, kind)).frame.collect() for kind in ("jsonl", "parquet")
        )
        assert sorted(by_lines.columns) == sorted(by_columns.columns)
        for column in by_lines.columns:
            if column != "completion":
                assert plain(by_lines[column].to_list()) == plain(by_columns[column].to_list()), column
        if "completion" in by_lines.columns:
            scored = [assay.score(written(tmp_path, name, kind), SPEC) for kind in WRITERS]
            results = ["reward", "passed", "feedback", "error"]
            assert scored[0].select(results).equals(scored[1].select(results))


def test_the_loop_over_rows_agrees(tmp_path):
    for name in FOURS:
        for kind in WRITERS:
            path = written(tmp_path, name, kind)
            looped = score_rows(open_rollouts(path).frame.collect().to_dicts(), [load_verifier(SPEC)])
            scored = assay.score(path, SPEC)
            for result in ("reward", "passed", "feedback", "error"):
                assert [row[result] for row in looped] == scored[result].to_list()


def test_what_is_in_memory_is_read_by_a_preset_that_is_named():
    for name in [name for name in RECORDS if "input" not in name and "prompts" not in name]:
        assert assay.score(RECORDS[name], SPEC, preset=name)["reward"].to_list() == FOURS[name]


def test_a_layout_travels(tmp_path):
    for name in [one.name for one in presets() if one.formats and one.fields]:
        path = written(tmp_path, name, "jsonl")
        chosen = choose([probe(path, Reading())], None, {})
        again = pickle.loads(pickle.dumps(chosen))  # noqa: S301  (our own bytes)
        assert again == chosen
        rollouts = pickle.loads(pickle.dumps(open_rollouts(path).steps))  # noqa: S301
        assert len(rollouts) == len(open_rollouts(path).steps)


def rollouts(tmp_path, records, kind="jsonl", **options):
    return open_rollouts(WRITERS[kind](tmp_path / f"file.{kind}", records), **options).frame.collect()


def test_messages_are_the_completion_only_where_no_other_column_may_be(tmp_path):
    messages = [user("2+2?"), assistant("4")]
    for name in ("response", "output", "completions", "text", "generation"):
        with pytest.raises(assay.ColumnsError, match=f'"completion": "{name}"'):
            assay.score(jsonl(tmp_path / "rows.jsonl", [{"messages": messages, name: "5"}]), SPEC)
    own = jsonl(tmp_path / "rows.jsonl", [{"messages": messages, "completion": "5"}])
    assert assay.score(own, SPEC)["reward"].to_list() == [0.0]
    texts = jsonl(tmp_path / "rows.jsonl", [{"messages": messages, "answer": "4", "prompt": "2+2?"}])
    assert assay.score(texts, SPEC)["reward"].to_list() == [1.0]


def test_completions_of_the_legacy_endpoint(tmp_path):
    row = {
        "id": "a",
        "object": "text_completion",
        "model": "m",
        "choices": [{"index": 0, "text": "4", "logprobs": None}],
    }
    found = rollouts(tmp_path, [row])
    assert found.select("completion", "id", "example_id", "sample_idx").rows() == [("4", "a", "a", 0)]


def test_verl_dump(tmp_path):
    found = rollouts(
        tmp_path, [*RECORDS["verl-dump"], dump("x", NAN, ["4", "four"], uid="d_1_2"), dump("y", 0.5, {"a": 4})]
    )
    assert found["completion"].to_list() == ["It is 4.", "5", "4", "x", "y"]
    assert found["prompt"][0].startswith("user\n")
    assert found["example_id"].to_list() == ["a_b", "a_b", "c", "d", None]
    assert found["prior_reward"].to_list() == [1.0, 0.0, None, None, 0.5]
    assert {"step", "acc", "uid"} < set(found.columns) | {"uid"}
    assert not {"input", "output", "gts", "score"} & set(found.columns)


def test_a_plain_renaming_leaves_jsonl_to_the_engine(tmp_path):
    path = jsonl(tmp_path / "dump.jsonl", [dump("x", 1.0, "four"), dump("y", 0.5, "five")])
    assert open_rollouts(path).files[0].chunks[0].columns
    path = jsonl(tmp_path / "batch.jsonl", RECORDS["openai-batch"])
    assert open_rollouts(path).files[0].chunks[0].columns is None


def test_openai_batch(tmp_path):
    path = jsonl(tmp_path / "batch.jsonl", RECORDS["openai-batch"])
    scored = assay.score(path, SPEC)
    assert scored["error"].to_list() == [
        None,
        None,
        'the request failed: {"code": "batch_expired", "message": "not done in time"}',
        "the request failed with status 500",
        "`response.body.choices` has no elements",
    ]
    assert scored["custom_id"].to_list() == ["a", "a", "b", "c", "d"]
    assert scored["sample_idx"].to_list() == [0, 1, None, None, None]
    assert scored["finish_reason"].to_list() == ["stop", "length", None, None, None]
    assert not {"response", "completion", BAD} & set(scored.columns)


def test_openai_batch_of_nothing_but_failures_is_unscored(tmp_path):
    for kind in WRITERS:
        path = written(tmp_path, "openai-batch", kind, [batch("a", status=429), batch("b", status=429)])
        scored = assay.score(path, SPEC)
        assert scored["reward"].to_list() == [None, None]
        assert set(scored["error"]) == {"the request failed with status 429"}


def test_openai_batch_of_texts(tmp_path):
    record = batch("a")
    record["response"]["body"]["choices"] = [{"index": 0, "text": "4", "finish_reason": "stop"}]
    assert rollouts(tmp_path, [record])["completion"].to_list() == ["4"]
    both = rollouts(tmp_path, [record, batch("b", [choice(0, "5")])])["completion"].to_list()
    assert [[message["content"] for message in chat] for chat in both] == [["4"], ["5"]]


def test_batch_output_is_joined_with_its_input(tmp_path):
    out = jsonl(tmp_path / "output.jsonl", RECORDS["openai-batch"])
    tasks = jsonl(tmp_path / "input.jsonl", RECORDS["openai-batch-input"])
    summary = assay.score_file(out, SPEC, tmp_path / "r.parquet", tasks=tasks, keep=["prompt", "custom_id"])
    assert any(note.startswith("the task table is read as openai-batch-input (detected)") for note in summary.notes)
    assert "2+2?" in str(pl.read_parquet(tmp_path / "r.parquet")["prompt"][0])


def test_verl_prompts_are_tasks(tmp_path):
    tasks = parquet(tmp_path / "test.parquet", RECORDS["verl-prompts"])
    rows = [{"task_id": 0, "completion": "4"}, {"task_id": 1, "completion": "5"}, {"task_id": 2, "completion": "4"}]
    scored = assay.score(rows, SPEC, tasks=tasks, keep=["answer"])
    assert scored["answer"].to_list() == ["4", "4", None]


def test_verifiers_traces(tmp_path):
    for kind in WRITERS:
        found = rollouts(tmp_path, RECORDS["verifiers"], kind)
        assert found["prior_reward"].to_list() == [1.0, 2.0, None, None, None]
        assert found["example_id"].to_list() == ["g0", "h0", "h0", "h0", "h0"]
        assert found["trace_id"].to_list() == ["t0", "t1", "t2", "t3", None]
        assert found["step"].to_list() == [3] * 5
        assert set(found["prompt"]) == {"2+2?"}
        assert set(found["answer"]) == {"4"}
        said = [
            [(one["role"], one["content"]) for one in chat] if chat else chat for chat in found["completion"].to_list()
        ]
        assert said[1] == [("assistant", "Let me add."), ("tool", "4"), ("assistant", "So 4.")]
        assert said[2] is None
    assert assay.score(tmp_path / "file.jsonl", SPEC)["error"].to_list()[2:] == [
        "the completion is null",
        None,
        "`traces` has no elements",
    ]


def test_lm_eval_reads_the_first_filter_of_every_file(tmp_path):
    jsonl(tmp_path / "samples_a.jsonl", RECORDS["lm-eval"])
    jsonl(tmp_path / "samples_b.jsonl", [lm_eval(5, "none", ["44"])])
    out = tmp_path / "r.parquet"
    summary = assay.score_file(tmp_path / "samples_*.jsonl", SPEC, out)
    assert pl.read_parquet(out)["example_id"].to_list() == [0, 0, 1, 5]
    assert any("only where filter is strict-match or none" in note for note in summary.notes)


def test_lm_eval_choices_are_not_taken_for_texts(tmp_path):
    record = lm_eval(0, "none", [["-1.5", "False"]])
    assert matching(probe(jsonl(tmp_path / "s.jsonl", [record]), Reading()).outlines, "jsonl") == []


def test_trl_conversations(tmp_path):
    record = {"step": 1, "prompt": [user("2+2?")], "completion": [assistant("4")], "advantage": 0.0}
    for kind in WRITERS:
        path = written(tmp_path, "trl", kind, [record])
        assert "read as trl (detected): the columns have the names that Assay reads" in open_rollouts(path).notes
        assert assay.score(path, SPEC)["reward"].item() == 1.0


def test_verl_eval_of_another_key(tmp_path):
    path = parquet(tmp_path / "gen.parquet", [verl(0, answers=["4", "5"])])
    options = {"preset": "verl-eval", "mapping": {"completion": "$.answers[]"}}
    assert assay.score(path, SPEC, **options)["reward"].to_list() == [1.0, 0.0]


def test_functions_of_a_group_see_it(tmp_path):
    def shares(completions, **_):
        return [len(completions)] * len(completions)

    rubric = assay.Rubric([shares])
    assert assay.score(jsonl(tmp_path / "b.jsonl", RECORDS["openai-batch"]), rubric)["reward"].to_list()[:2] == [
        2.0,
        2.0,
    ]
    assert assay.score(parquet(tmp_path / "d.parquet", RECORDS["verl-dump"]), rubric)["reward"].to_list() == [
        2.0,
        2.0,
        1.0,
    ]
    assert assay.score(parquet(tmp_path / "e.parquet", RECORDS["verl-eval"][:1]), rubric)["reward"].to_list() == [
        2.0,
        2.0,
    ]


def test_a_completion_of_its_own_is_never_replaced(tmp_path):
    found = rollouts(tmp_path, [dump("no", 0.0) | {"completion": "4"}])
    assert found["completion"].item() == "4"
    assert found["output"].item() == "no"


def test_a_completion_of_its_own_that_comes_late_is_not_replaced_either(tmp_path):
    for name in ["verl-dump", "openai-batch"]:
        record = RECORDS[name][0]
        path = jsonl(tmp_path / "a.jsonl", [*[record] * 120, record | {"completion": "4"}])
        with pytest.raises((InputError, assay.BadRowsError), match=r"[Aa] record has a `completion` of its own"):
            assay.scan(path)
        assert open_rollouts(path, preset=name).notes[-1].startswith(f"read as {name} (--preset)")
        assert "completion" in assay.scan(path, preset="none").collect_schema()


def test_a_named_preset_reads_a_completion_that_is_neither_text_nor_messages(tmp_path):
    mine = {
        "name": "mine",
        "title": "t",
        "signature": {"required": {"completion.text": "text"}},
        "fields": {"completion": "completion.text"},
    }
    path = jsonl(tmp_path / "a.jsonl", [{"completion": {"text": "4"}}])
    empty = tmp_path / "b.jsonl"
    empty.write_bytes(b"")
    found = open_rollouts([str(path), str(empty)], preset=mine, skip_bad_files=True)
    assert found.frame.collect()["completion"].to_list() == ["4"]
    assert [one.skipped is not None for one in found.inputs] == [False, True]
    with Web({"/a.jsonl": path.read_bytes()}) as web:
        assert assay.scan(f"{web.url}/a.jsonl", preset=mine).collect()["completion"].to_list() == ["4"]


def test_a_file_that_may_become_so_large_is_recognised(tmp_path):
    path = tmp_path / "a.jsonl.gz"
    record = RECORDS["verl-dump"][0] | {"output": "4" * 200_000}
    path.write_bytes(gzip.compress(b"".join(json.dumps(record).encode() + b"\n" for _ in range(9))))
    assert assay.score(path, SPEC, max_ratio=10_000)["reward"].to_list() == [1.0] * 9


def test_what_was_chosen_is_logged(tmp_path, caplog):
    caplog.set_level("INFO", "assay")
    assay.scan(jsonl(tmp_path / "a.jsonl", RECORDS["skyrl"]))
    assert "a.jsonl: read as skyrl (detected): completion=output_response" in caplog.text


def test_none_reads_a_file_as_it_is(tmp_path):
    found = rollouts(tmp_path, RECORDS["verl-dump"], preset="none")
    assert found.columns == list(RECORDS["verl-dump"][0])


def test_map_goes_before_the_preset(tmp_path):
    for kind in WRITERS:
        records = [one | {"raw": f"<{one['output']}>"} for one in RECORDS["verl-dump"]]
        found = rollouts(tmp_path, records, kind, mapping={"completion": "raw"})
        assert found["completion"].to_list() == ["<It is 4.>", "<5>", "<4>"]
        assert found["answer"][0] == "4"


def test_a_tie_is_refused(tmp_path):
    both = RECORDS["skyrl"][0] | {"input": "", "output": "", "gts": "", "step": 1}
    both |= {"problem_idx": 0, "repeat": 0, "model_response": "", "expected_answer": "", "reward": 0.0}
    path = jsonl(tmp_path / "both.jsonl", [both])
    with pytest.raises(InputError, match=r"both\.jsonl matches several presets: nemo-evaluator, verl-dump") as caught:
        assay.scan(path)
    assert "--preset nemo-evaluator | --preset verl-dump | --preset none" in caught.value.hint
    assert assay.scan(path, preset="verl-dump").collect()["prior_reward"].item() == 0.0


def test_the_most_specific_signature_counts(tmp_path, monkeypatch):
    general = load_preset({"name": "general", "title": "", "signature": {"required": {"input": "text"}}, "fields": {}})
    path = jsonl(tmp_path / "a.jsonl", RECORDS["verl-dump"])
    dump_preset = load_preset("verl-dump")
    twin = dump_preset.model_copy(update={"name": "twin"})
    monkeypatch.setattr("assay.loading.presets.preset.presets", lambda: (general, dump_preset))
    assert [one.name for one in matching(probe(path, Reading()).outlines, "jsonl")] == ["verl-dump"]
    monkeypatch.setattr("assay.loading.presets.preset.presets", lambda: (general, dump_preset, twin))
    assert len(matching(probe(path, Reading()).outlines, "jsonl")) == 2


def test_every_one_of_the_first_lines_must_fit(tmp_path):
    path = jsonl(tmp_path / "mixed.jsonl", [*RECORDS["verl-dump"], {"output": "4"}])
    assert open_rollouts(path).notes == ()


def test_files_of_several_formats_are_refused(tmp_path):
    jsonl(tmp_path / "a.jsonl", RECORDS["verl-dump"])
    jsonl(tmp_path / "b.jsonl", RECORDS["openai-batch"])
    with pytest.raises(InputError, match=r"a.jsonl is verl-dump, .*b.jsonl is openai-batch"):
        assay.scan(tmp_path / "*.jsonl")


def test_files_of_one_format_beside_others_are_refused(tmp_path):
    jsonl(tmp_path / "a.jsonl", RECORDS["verl-dump"])
    jsonl(tmp_path / "b.jsonl", [{"completion": "4"}])
    with pytest.raises(InputError, match=r"b\.jsonl is not recognised"):
        assay.scan(tmp_path / "*.jsonl")


def test_a_preset_that_changes_nothing_refuses_nothing(tmp_path):
    jsonl(tmp_path / "a.jsonl", RECORDS["trl"])
    jsonl(tmp_path / "b.jsonl", [{"completion": "4", "prompt": "?"}])
    assert assay.score(tmp_path / "*.jsonl", SPEC)["reward"].to_list() == [1.0, 0.0, 1.0]


def test_parquet_and_lines_of_one_nested_format_are_refused(tmp_path):
    files = [written(tmp_path, "openai-batch", kind) for kind in WRITERS]
    with pytest.raises(InputError, match="`openai-batch` cannot read jsonl and parquet files in one run"):
        assay.scan(files)
    files = [written(tmp_path, "verl-dump", kind) for kind in WRITERS]
    assert assay.score(files, SPEC)["reward"].to_list() == FOURS["verl-dump"] * 2


def test_lines_that_are_no_objects_are_not_looked_at(tmp_path):
    path = jsonl(tmp_path / "a.jsonl", RECORDS["verl-dump"])
    path.write_text("[1]\n{not json\n" + path.read_text())
    assert [one.name for one in matching(probe(path, Reading()).outlines, "jsonl")] == ["verl-dump"]


def test_standard_input_is_recognised(tmp_path, monkeypatch):
    lines = jsonl(tmp_path / "a.jsonl", RECORDS["openai-batch"]).read_bytes()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(lines)))
    assert assay.score("-", SPEC)["reward"].to_list() == FOURS["openai-batch"]


def test_a_part_of_a_file_is_read_alike(tmp_path):
    path = tmp_path / "gen.parquet"
    pl.from_dicts([verl(at, responses=["4", str(at)] if at % 3 else []) for at in range(40)]).write_parquet(
        path, row_group_size=10
    )
    found = open_rollouts(path)
    assert len(found.files[0].units) == 4
    parts = [part_of(found.read, found.steps, Cut(0, at, at + 1)).collect() for at in range(4)]
    assert pl.concat(parts).equals(found.frame.collect())


MINE = {
    "name": "mine",
    "title": "mine",
    "signature": {"required": {"samples": "list"}},
    "fields": {"completion": "samples[].text", "answer": ["gold", "target"]},
    "constants": {"model": "m"},
}


def test_a_preset_of_ones_own(tmp_path):
    path = jsonl(tmp_path / "a.jsonl", [{"gold": "4", "samples": [{"text": "4"}, {"text": "5"}]}])
    preset = tmp_path / "mine.json"
    preset.write_text(json.dumps(MINE))
    for given in (preset, str(preset), MINE):
        scored = assay.score(path, SPEC, preset=given)
        assert scored["reward"].to_list() == [1.0, 0.0]
        assert scored["model"].to_list() == ["m", "m"]


def test_a_misspelt_preset_is_guessed():
    with pytest.raises(UsageError, match='preset="verl-dmp": there is no such preset') as caught:
        load_preset("verl-dmp")
    assert "Did you mean `verl-dump`?" in caught.value.hint


def test_a_mistake_in_a_preset_is_named(tmp_path):
    for change, said in [
        ({"feilds": {}}, "`feilds`: is not a field of a preset. Did you mean `fields`?"),
        ({"fields": {"completion": "a..b"}}, "`fields.completion`: `a..b` is not a valid path, from `..b` on"),
        (
            {"fields": {"completion": {"path": "a", "by": "generate"}}},
            "there is no function `generate`. Did you mean `generated`?",
        ),
        ({"fields": {"completion": {"path": "a", "via": "x"}}}, "`fields.completion.via`: is not a field of a preset."),
        ({"signature": {"required": {}}}, "`signature.required`: Dictionary should have at least 1 item"),
        ({"signature": {"required": {"a": "txt"}}}, "`signature.required.a`: Input should be 'any', 'object'"),
        ({"unscored": [{"path": "a"}]}, "`unscored[0].says`: Field required"),
        ({"fields": {"a": "x[].b", "b": "y[]"}}, "The lists `x[]` and `y[]` cannot both be split into rows."),
        ({"name": "No Name"}, "`name`: String should match pattern"),
        ({"fields": {"__assay/bad": "x"}}, "names that begin with `__assay/` are reserved"),
    ]:
        path = tmp_path / "mine.json"
        path.write_text(json.dumps(MINE | change))
        with pytest.raises(InputError) as caught:
            load_preset(path)
        assert str(path) in caught.value.fact
        assert said in caught.value.fact


def test_what_is_no_json_is_named(tmp_path):
    path = tmp_path / "mine.json"
    path.write_text("{")
    with pytest.raises(InputError, match=r"mine.json is not a preset:\n  Invalid JSON"):
        load_preset(path)
    with pytest.raises(InputError, match=r"none.json: No such file"):
        load_preset(tmp_path / "none.json")


def test_a_file_of_another_format_is_refused_by_what_it_lacks(tmp_path):
    for kind in WRITERS:
        path = written(tmp_path, "verl-dump", kind)
        with pytest.raises(InputError, match=r"`response`") as caught:
            assay.scan(path, preset="openai-batch").collect()
        assert "Columns: input, output" in caught.value.text


def test_a_path_that_leads_nowhere_is_named(tmp_path):
    for path, said in [
        ("$.out.txt", "`out` has no `txt` (in the path `out.txt`).\n\nDid you mean `text`?"),
        ("$.outs.text", "has no `outs` (in the path `outs.text`).\n\nDid you mean `out`?"),
        ("$.out.text.more", "`out.text` has no fields: it is text"),
        ("$.out[0]", "`out` has no elements: it is object"),
    ]:
        for kind, write in WRITERS.items():
            file = write(tmp_path / f"a.{kind}", [{"out": {"text": "4"}}])
            with pytest.raises(InputError) as caught:
                assay.scan(file, mapping={"completion": path})
            assert said in caught.value.text


def test_what_is_no_path_is_refused(tmp_path):
    path = jsonl(tmp_path / "a.jsonl", [{"a": {"b": "4"}}])
    with pytest.raises(UsageError, match=r'mapping={"completion": "\$.a.\[0"}: `\$.a.\[0` is not a valid path'):
        assay.scan(path, mapping={"completion": "$.a.[0"})


def test_a_path_is_null_where_a_row_lacks_it(tmp_path):
    for kind, write in WRITERS.items():
        file = write(tmp_path / f"a.{kind}", [{"out": {"text": "4"}}, {"out": {}}, {"out": None}])
        found = open_rollouts(file, mapping={"completion": "$.out.text"})
        assert found.frame.collect()["completion"].to_list() == ["4", None, None]
        assert found.notes == ("read by --map: completion=out.text",)


def run(*arguments):
    return CliRunner().invoke(app, [*map(str, arguments)], env={"COLUMNS": "200"})


def test_the_command_reads_a_file_without_flags(tmp_path):
    spec, out = tmp_path / "v.json", tmp_path / "r.parquet"
    spec.write_text(json.dumps(SPEC))
    path = jsonl(tmp_path / "7.jsonl", RECORDS["verl-dump"])
    done = run("score", path, "-s", spec, "--out", out, "--json")
    assert done.exit_code == 0, done.stderr
    [note] = json.loads(done.stdout)["notes"]
    assert note == (
        "read as verl-dump (detected): completion=output, prompt=input, answer=gts, prior_reward=score, "
        "example_id=uid (sample_of_uid) or example_id"
    )
    assert pl.read_parquet(out)["reward"].to_list() == FOURS["verl-dump"]
    assert f"note: {note}" in run("score", path, "-s", spec).stderr
    assert f"note: {note}" in run("bench", spec, path).stderr
    done = run("score", path, "-s", spec, "--preset", "verl-dmp")
    assert done.exit_code == 2
    assert "Did you mean `verl-dump`?" in done.stderr
    done = run("check", spec, "--against", path, "--map", "completion=$.output")
    assert "mean reward 0.667 on " in done.stderr


def test_the_listing(tmp_path):
    listed = run("presets")
    assert listed.exit_code == 0, listed.stderr
    assert all(f"{name}  " in listed.stdout for name in names())
    shown = run("presets", "trl", "--json")
    assert load_preset(json.loads(shown.stdout)) == load_preset("trl")
    (tmp_path / "mine.json").write_text(json.dumps(MINE))
    assert "completion=samples[].text" in run("presets", tmp_path / "mine.json").stdout
    assert run("presets", "trk").exit_code == 2
    assert run("presets", "--json", "--schema").exit_code == 2
    assert json.loads(run("presets", "--schema").stdout) == schema()
    assert "| `verl-eval` |" in run("presets", "--markdown").stdout


def test_presets_fit_their_schema():
    for one in presets():
        jsonschema.validate(json.loads(one.model_dump_json(exclude_defaults=True)), schema())
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"name": "x"}, schema())


def test_a_run_in_parts_reads_alike_and_refuses_another_preset(tmp_path):
    path = tmp_path / "gen.parquet"
    records = [verl(at, responses=["4", str(at)] if at % 3 else []) for at in range(40)]
    pl.from_dicts(records).write_parquet(path, row_group_size=10)
    options = {"part_bytes": 1, "isolate": False}
    (tmp_path / "parts").mkdir()
    assay.score_file(path, SPEC, tmp_path / "parts", **options)
    parts = pl.concat([pl.read_parquet(one) for one in sorted((tmp_path / "parts").glob("*.parquet"))])
    assert parts.equals(assay.score(path, SPEC))
    mine = load_preset("verl-eval").model_dump() | {"constants": {"model": "m"}}
    with pytest.raises(UsageError, match="option preset"):
        assay.score_file(path, SPEC, tmp_path / "parts", preset=mine, **options)


def test_a_url_is_recognised(tmp_path):
    names = {"7.jsonl": "verl-dump", "batch.jsonl": "openai-batch", "gen.parquet": "verl-eval"}
    files = {f"/{path}": written(tmp_path, name, path.split(".")[1]).read_bytes() for path, name in names.items()}
    with Web(files) as web:
        for path, name in names.items():
            out = tmp_path / f"{path}.out.parquet"
            summary = assay.score_file(f"{web.url}/{path}", SPEC, out)
            assert pl.read_parquet(out)["reward"].to_list() == FOURS[name]
            assert any(note.startswith(f"read as {name} (detected): ") for note in summary.notes)


def test_a_preset_file_is_not_read_without_end(tmp_path):
    (tmp_path / "endless.json").symlink_to("/dev/zero")
    with pytest.raises(assay.InputError, match=r"endless\.json: is a device"):
        assay.score([{"completion": "x"}], SPEC, preset=tmp_path / "endless.json")
    with (tmp_path / "large.json").open("wb") as file:
        file.truncate(5 << 20)
    with pytest.raises(assay.InputError, match=r"large\.json: larger than 4 MiB"):
        assay.score([{"completion": "x"}], SPEC, preset=tmp_path / "large.json")

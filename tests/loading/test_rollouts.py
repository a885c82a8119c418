"""Every source gives the same rewards in input order; columns are renamed, and missed with a useful message."""

import io
import json
import sys
from dataclasses import replace

import polars as pl
import pytest
from cases import crossed
from real_packages import Later

import assay
from assay.loading import rollouts as opening
from assay.types import GenerateInputs, GenerateMetadata, GenerateOutputs

datasets = Later("datasets")
ROWS = [
    {"id": 30, "completion": "A refund is on its way."},
    {"id": 10, "completion": ""},
    {"id": 20, "completion": None},
    {"id": 90, "completion": "no"},
    {"id": 40, "completion": "REFUND 🎉\r\n\u2028, \"'\\"},
]
SPEC = {"id": "v", "checks": [{"type": "contains", "value": "refund"}, {"type": "min_length", "value": 2}]}
REWARDS = {30: 1.0, 10: 0.0, 20: None, 90: 0.5, 40: 1.0}
FRAME = pl.DataFrame(ROWS)


def rewards(source):
    scored = assay.score(source, SPEC)
    assert scored.columns == [
        *("id", "reward", "passed", "feedback", "error", "score/v", "check/v/contains", "check/v/min_length")
    ]
    return list(scored.select("id", "reward").iter_rows())


class Capsule:
    def __arrow_c_stream__(self, requested_schema=None):
        return FRAME.to_arrow().__arrow_c_stream__(requested_schema)


def hugging_face():
    return datasets.Dataset.from_list(ROWS)


def record_batch():
    return FRAME.to_arrow().combine_chunks().to_batches()[0]


OBJECTS = {
    "polars.DataFrame": lambda: FRAME,
    "polars.LazyFrame": FRAME.lazy,
    "polars.DataFrame in chunks": lambda: pl.concat([FRAME[:1], FRAME[1:1], FRAME[1:]], rechunk=False),
    "pyarrow.Table": FRAME.to_arrow,
    "pyarrow.Table with dictionary strings": lambda: FRAME.cast({"completion": pl.Categorical}).to_arrow(),
    "pyarrow.RecordBatch": record_batch,
    "pyarrow.RecordBatchReader": lambda: FRAME.to_arrow().to_reader(max_chunksize=2),
    "Arrow capsule": Capsule,
    "datasets.Dataset": hugging_face,
    "datasets.Dataset in another format": lambda: hugging_face().with_format("pandas"),
    "datasets.Dataset with indices": lambda: hugging_face().select([4, 3, 2, 1, 0]).select([4, 3, 2, 1, 0]),
    "list of dicts": lambda: ROWS,
    "tuple of dicts": lambda: tuple(ROWS),
    "mapping of columns": lambda: FRAME.to_dict(as_series=False),
    "mapping of Series": FRAME.to_dict,
}


def test_every_object_gives_the_same_rewards():
    for make in OBJECTS.values():
        assert rewards(make()) == list(REWARDS.items())


WRITERS = {
    "rows.parquet": lambda frame, path: frame.write_parquet(path, row_group_size=1),
    "rows.pq": pl.DataFrame.write_parquet,
    "rows.jsonl": pl.DataFrame.write_ndjson,
    "rows.NDJSON": pl.DataFrame.write_ndjson,
    "rows.arrow": pl.DataFrame.write_ipc,
    "rows.feather": lambda frame, path: frame.write_ipc(path, compression="zstd"),
    "stream.arrow": pl.DataFrame.write_ipc_stream,
    "rows.csv": lambda frame, path: frame.write_csv(path, quote_style="non_numeric"),
}


def numbered(pairs):
    """A CSV knows text only."""
    return [(int(ident), reward) for ident, reward in pairs]


def test_every_file_gives_the_same_rewards(tmp_path):
    for name, write in WRITERS.items():
        write(FRAME, tmp_path / name)
        for source in (tmp_path / name, str(tmp_path / name), [tmp_path / name]):
            assert numbered(rewards(source)) == [*REWARDS.items()]


@pytest.mark.parametrize("name", WRITERS)
def test_a_folder_a_glob_and_a_list_of_files_give_the_same_rewards(tmp_path, name):
    folder = tmp_path / "step 1"
    folder.mkdir()
    for number, part in enumerate((FRAME[:2], FRAME[2:3], FRAME[3:])):
        WRITERS[name](part, folder / f"{number}-{name}")
    files = sorted(folder.iterdir())
    for source in (folder, str(folder), folder / f"*{name}", f"{tmp_path}/**/?-{name}", files):
        assert numbered(rewards(source)) == list(REWARDS.items())
    last_first = [files[2], str(files[0]), files[1]]
    assert numbered(rewards(last_first)) == [(ident, REWARDS[ident]) for ident in (90, 40, 30, 10, 20)]


def test_a_hugging_face_dataset_keeps_the_order_of_its_indices():
    assert rewards(hugging_face().select([3, 0, 2])) == [(90, 0.5), (30, 1.0), (20, None)]
    shuffled = hugging_face().shuffle(seed=1)
    assert list(shuffled["id"]) != [30, 10, 20, 90, 40]
    assert rewards(shuffled) == [(ident, REWARDS[ident]) for ident in shuffled["id"]]
    assert rewards(hugging_face().select([])) == []


def test_what_save_to_disk_wrote_is_read_as_a_folder(tmp_path):
    hugging_face().select([4, 3, 2, 1, 0]).save_to_disk(tmp_path / "saved", num_shards=2)
    assert rewards(tmp_path / "saved") == list(reversed(REWARDS.items()))


def test_standard_input_is_read_as_jsonl(monkeypatch):
    def piped(content):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
        return assay.scan("-").collect().to_dicts()

    assert piped(b'{"completion": "a"}\n{"completion": "b", "id": 1}\n') == [
        {"completion": "a", "id": None},
        {"completion": "b", "id": 1},
    ]
    with pytest.raises(assay.BadRowsError, match="\n  standard input:2: not valid JSON: "):
        piped(b'{"completion": "a"}\n{')


def test_what_cannot_be_read_is_refused_with_what_can():
    for source, said in [
        (datasets.DatasetDict(train=hugging_face(), test=hugging_face()), "Pick one: 'train', 'test'."),
        (hugging_face().to_iterable_dataset(), "Give a datasets.Dataset, loaded in full."),
        (None, "Rollouts of type NoneType cannot be read."),
        (b"[]", "Rollouts of type bytes cannot be read."),
        (iter(ROWS), "Rollouts of type list_iterator cannot be read."),
        (["-", "a.jsonl"], "Standard input (-) cannot be combined with files."),
        (["-", "s3://bucket/a.parquet"], "Standard input (-) cannot be combined with files."),
        ({"completion": ["a", "b"], "id": [1]}, "`id`"),
        ({"completion": "not a column"}, "`completion`"),
        ({"completion": "a", "id": 1}, "`completion`"),
    ]:
        with pytest.raises(assay.InputError) as refused:
            assay.scan(source)
        assert said in refused.value.text


def test_no_rows_give_an_empty_frame_with_every_column():
    for source in [{"id": [], "completion": []}, FRAME[:0], FRAME[:0].to_arrow(), hugging_face().select([])]:
        assert rewards(source) == []


def test_a_renamed_column_takes_the_place_of_one_that_had_its_name():
    for mapping, expected in [
        ({"completion": "response"}, {"completion": "new", "id": 1}),
        ({"completion": "response", "response": "completion"}, {"completion": "new", "id": 1, "response": "old"}),
        ({"task_id": "id"}, {"completion": "old", "response": "new", "task_id": 1}),
        ({"completion": "completion"}, {"completion": "old", "id": 1, "response": "new"}),
        ({"completion": "response", "prompt": "response"}, {"completion": "new", "id": 1, "prompt": "new"}),
        ({}, {"completion": "old", "id": 1, "response": "new"}),
    ]:
        source = [{"completion": "old", "id": 1, "response": "new"}]
        assert assay.scan(source, mapping=mapping).collect().select(*sorted(expected)).to_dicts() == [expected]


def test_a_column_to_rename_that_is_not_there_is_refused():
    for column, hint in [("respnse", "Did you mean `response`?"), ("zzz", "Columns: completion, response.")]:
        with pytest.raises(assay.ColumnsError) as refused:
            assay.score([{"completion": "a", "response": "b"}], SPEC, mapping={"completion": column})
        assert refused.value.text == f"--map completion={column}: the rollouts have no column `{column}`.\n\n{hint}"


def test_a_new_name_that_is_nearly_one_of_ours_is_refused():
    for name, meant in [("complation", "completion"), ("Metadata", "metadata"), ("taskid", "task_id")]:
        with pytest.raises(assay.ColumnsError) as refused:
            assay.score([{"completion": "a", "resp": "b"}], SPEC, mapping={name: "resp"})
        assert refused.value.text == f"--map {name}=resp: Assay reads no column `{name}`.\n\nDid you mean `{meant}`?"


def test_any_other_name_may_be_given_and_one_that_a_check_reads(monkeypatch):
    contains = assay.checks.text.phrases.Contains
    monkeypatch.setattr(contains, "traits", replace(contains.traits, reads=("targets",)))
    rows = [{"completion": "a refund", "resp": "b", "targets": "t"}]
    for name in ("model", "response", "step", "targets"):
        assert assay.score(rows, SPEC, mapping={name: "resp"}, keep=[name])[name].to_list() == ["b"]


def test_a_column_named_like_our_own_is_refused():
    for mapping in [None, {"__assay/mine": "x"}]:
        name = "x" if mapping else "__assay/text"
        with pytest.raises(assay.InputError, match=r"`__assay/[a-z]+` is reserved, as all that begin with `__assay/`"):
            assay.score([{"completion": "a", name: "b"}], SPEC, mapping=mapping)


ODD = ["^.*$", "*", "^y$", "$", "a*", ""]


@pytest.mark.parametrize(("suffix", "name"), crossed(["parquet", "csv", "jsonl"], ODD))
def test_a_name_with_the_signs_of_a_pattern_is_a_name(tmp_path, name, suffix):
    rows = [{"completion": "a", name: 1, "y": 2, "task_id": "t", "metadata": {"expectations": ["a"]}}]
    tasks = [{"task_id": "t", name: 5}]
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps(rows[0]) + "\n")
    out = tmp_path / f"out.{suffix}"
    for source in (rows, path):
        scored = assay.score(source, SPEC, details=False)
        assert scored.columns == [name, "y", "task_id", "metadata", "reward", "passed", "feedback", "error"]
        assert scored.row(0)[:2] == (1, 2)
        assert assay.score(source, SPEC, mapping={"z": name}, details=False)["z"].to_list() == [1]
        assert assay.score(source, SPEC, mapping={name: "y"}, details=False)[name].to_list() == [2]
        assert assay.score(source, SPEC, tasks=tasks, keep=[name])[name].to_list() == [5]
        assay.score_file(source, SPEC, out, details=False, overwrite=True)
        assert assay.scan(out).collect().columns == scored.columns


NEEDY = {"id": "policy", "checks": [{"type": "task_expectations"}, {"type": "expected_output_schema", "id": "shape"}]}


def test_all_missing_columns_are_named_at_once_with_who_reads_them():
    for columns, hint in [
        (["response", "id"], "Did you mean `response` for `completion`? Rename it with --map completion=response."),
        (["Completion"], "Did you mean `Completion` for `completion`? Rename it with --map completion=Completion."),
        (["meta_data", "id"], "Did you mean `meta_data` for `metadata`? Rename it with --map metadata=meta_data."),
        (["id"], "Rename a column with --map NAME=COLUMN."),
    ]:
        with pytest.raises(assay.ColumnsError) as refused:
            assay.score(pl.DataFrame({name: ["a"] for name in columns}), [NEEDY, SPEC])
        assert refused.value.text == (
            "The rollouts lack 3 columns:\n"
            "  completion: read by every check\n"
            "  metadata: read by task_expectations (policy/task_expectations)\n"
            "  expected_output_schema: read by expected_output_schema (policy/shape)\n"
            f"Columns: {', '.join(columns)}.\n\n{hint}\n"
            "Join a task table with --tasks for columns that the rollouts lack."
        )


def test_a_column_named_like_a_result_keeps_its_values_as_prior():
    scored = assay.score([{"completion": "a", "reward": 5.0, "error": "old"}], SPEC)
    assert scored.select("prior_reward", "prior_error", "reward", "error").rows() == [(5.0, "old", 0.0, None)]


CHATS = [
    [
        {"role": "assistant", "content": "", "tool_calls": [{"id": "1", "function": {"name": "x", "arguments": "{}"}}]},
        {"role": "tool", "content": "r", "tool_call_id": "1"},
    ],
    [{"role": "assistant", "content": None, "refusal": "no"}],
    [{"role": "assistant", "content": "ok"}],
]


def test_inputs_and_outputs_of_generation_are_rollouts_and_reach_functions_whole():
    seen = []

    def look(prompt, completion, answer, info, example_id):
        seen.append((prompt, completion, answer, info, example_id))
        return 1.0

    given = {
        "prompt": ["a", "b", "c"],
        "completion": CHATS,
        "answer": ["1", "2", "3"],
        "info": [{"a": [1, {"b": None}]}, {}, {"a": 2.5}],
        "id": [7, 7, 8],
    }
    rest = {"state": [{}] * 3, "task": ["t"] * 3, "reward": [1.0, None, 0.5], "metadata": GenerateMetadata()}
    for rollouts in (GenerateInputs(**given), GenerateOutputs(**given, **rest)):
        seen.clear()
        assert assay.score(rollouts, assay.Rubric([look]))["reward"].to_list() == [1.0] * 3
        seen.sort(key=lambda one: one[0])  # batches are scored in any order
        assert seen == [*zip(*given.values(), strict=True)]


def test_files_that_are_tried_first_are_not_opened_twice(tmp_path, monkeypatch):
    for name in "abc":
        pl.DataFrame({"id": [name], "completion": ["x"]}).write_parquet(tmp_path / f"{name}.parquet")
    (tmp_path / "b.parquet").write_bytes(b"PAR1")
    opened = []
    open_each = opening.open_each
    monkeypatch.setattr(opening, "open_each", lambda paths, *rest: [opened.extend(paths), open_each(paths, *rest)][1])
    found = assay.scan(f"{tmp_path}/*.parquet", skip_bad_files=True).collect()
    assert found["id"].to_list() == ["a", "c"]
    assert [path.name for path in opened] == ["a.parquet", "b.parquet", "c.parquet"]

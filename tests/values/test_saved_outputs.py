"""Runs go to tables and files and come back as they were; readers of the tables find what they look for."""

import gc
import json
import pickle
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cases import sized
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

import assay
from assay.expressions.completion import completion_text, completion_text_expr
from assay.expressions.json import mended
from assay.types import GenerateMetadata, GenerateOutputs
from values import ANY_TEXT, VALUES, alike

CALL = {"id": "c1", "type": "function", "function": {"name": "add", "arguments": '{"a": 2}'}}
CHAT = [
    {"role": "system", "content": "Be brief."},
    {"role": "assistant", "content": None, "tool_calls": [CALL]},
    {"role": "tool", "content": "4", "tool_call_id": "c1"},
    {"role": "assistant", "content": "four"},
]
METADATA = GenerateMetadata(
    env_id="sums",
    env_args={"split": "train", "sizes": (1, 2)},
    model="m",
    sampling_args={"temperature": 0.7, "extra_body": {"top_k": 50}},
    date="2026-01-31T12:00:00+00:00",
    time_ms=1.5,
    avg_metrics={"f": 0.5},
    state_columns=["turn"],
    path_to_save=Path("runs/é"),
)
COLUMNS = [
    *("example_id", "prompt", "completion", "task", "answer", "info", "state", "reward"),
    *("generation_ms", "scoring_ms", "total_ms", "error"),
]


def outputs(*completions, rows=None, **fields):
    rows = len(completions) if rows is None else rows
    plain = {
        "prompt": ["2+2?"] * rows,
        "completion": list(completions),
        "answer": ["4"] * rows,
        "state": [{} for _ in range(rows)],
        "info": [{} for _ in range(rows)],
        "task": ["sums"] * rows,
        "id": list(range(rows)),
        "reward": [1.0] * rows,
        "metadata": METADATA,
    }
    return GenerateOutputs(**(plain | fields))


def back(run):
    return GenerateOutputs.from_arrow(run.to_arrow())


MESSAGES = st.fixed_dictionaries(
    {},
    optional={
        "role": st.one_of(st.sampled_from(["assistant", "user"]), ANY_TEXT, st.none()),
        "content": st.one_of(ANY_TEXT, st.none(), st.lists(st.fixed_dictionaries({"text": ANY_TEXT})), VALUES),
        "tool_calls": st.one_of(st.none(), st.lists(st.one_of(st.just(CALL), VALUES), max_size=2), VALUES),
        "tool_call_id": st.one_of(ANY_TEXT, st.none(), st.integers()),
        "exact": ANY_TEXT,
        "name": VALUES,
    },
)
CHATS = st.one_of(ANY_TEXT, st.lists(MESSAGES, max_size=3))
OBJECTS = st.dictionaries(ANY_TEXT, VALUES, max_size=3)
NUMBERS = st.one_of(st.none(), st.floats())
NAMES = st.one_of(ANY_TEXT, st.sampled_from(["reward", "metric/reward", "exact", "f", "__assay/x", "\ud800", "\ud801"]))


@st.composite
def runs(draw):
    rows = draw(st.integers(0, 4))
    several = lambda values: draw(st.lists(values, min_size=rows, max_size=rows))  # noqa: E731
    ragged = st.lists(NUMBERS, max_size=rows)
    return GenerateOutputs(
        prompt=several(CHATS),
        completion=several(draw(st.sampled_from([CHATS, ANY_TEXT, st.lists(MESSAGES, max_size=3)]))),
        answer=several(ANY_TEXT),
        state=several(OBJECTS),
        info=several(OBJECTS),
        task=several(ANY_TEXT),
        id=several(st.one_of(st.integers(-5, 5), st.integers())),
        reward=several(NUMBERS) if draw(st.booleans()) else draw(ragged),
        metrics={name: several(NUMBERS) if draw(st.booleans()) else draw(ragged) for name in draw(st.lists(NAMES))},
        metadata=GenerateMetadata(env_id=draw(ANY_TEXT), env_args=draw(OBJECTS), path_to_save=Path("a")),
    )


def identical(one, other):
    return alike(dict(one) | {"metadata": dict(one.metadata)}, dict(other) | {"metadata": dict(other.metadata)})


def in_any_order(run):
    """Messages with their fields sorted, for a message is the same in any order."""
    for chats in (run.prompt, run.completion):
        for chat in chats:
            if isinstance(chat, list):
                chat[:] = [dict(sorted(message.items())) for message in chat]
    return run


@settings(max_examples=sized(150, 40), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(run=runs())
def test_a_run_comes_back_as_it_was(run, tmp_path_factory):
    wanted = in_any_order(pickled(run))
    assert identical(in_any_order(back(run)), wanted)
    path, other = (tmp_path_factory.getbasetemp() / name for name in ("run.parquet", "other.parquet"))
    run.to_parquet(path, overwrite=True)
    pickled(run).to_parquet(other, overwrite=True)
    assert path.read_bytes() == other.read_bytes()
    assert identical(in_any_order(GenerateOutputs.from_parquet(path)), wanted)
    through = in_any_order(GenerateOutputs.from_arrow(pl.from_arrow(run.to_arrow()).to_arrow()))
    assert alike([through.prompt, through.state, through.id], [wanted.prompt, wanted.state, wanted.id])


def pickled(run):
    return pickle.loads(pickle.dumps(run))  # noqa: S301  (bytes of our own)


@settings(max_examples=sized(150, 40), deadline=None)
@given(st.lists(CHATS, max_size=4))
def test_the_text_of_a_stored_completion_is_that_of_the_completion(completions):
    frame = pl.from_arrow(outputs(*completions).to_arrow())
    texts = frame.select(completion_text_expr("completion", frame.schema["completion"])).to_series().to_list()
    expected = [completion_text(completion) for completion in completions]
    assert texts == [None if text is None else mended(text) for text in expected]
    stored = outputs(*completions).to_arrow()["completion"].to_pylist()
    assert [completion_text(one) for one in stored] == texts


def test_columns_as_datasets_have_them():
    state = {"timing": {"generation_ms": 1, "scoring_ms": 2.5, "total_ms": "?"}, "error": "boom", "turn": 1}
    table = outputs("a", "b", state=[state, {}], info=[{"k": [1]}, {}], metrics={"f": [0.5, None]}).to_arrow()
    assert table.column_names == [*COLUMNS, "f"]
    assert {field.name: str(field.type) for field in table.schema} == {
        **dict.fromkeys(COLUMNS, "large_string"),
        "example_id": "int64",
        **dict.fromkeys(("reward", "generation_ms", "scoring_ms", "total_ms", "f"), "double"),
    }
    first, second = table.to_pylist()
    assert json.loads(first.pop("state")) == state
    assert first == {
        "example_id": 0,
        "prompt": "2+2?",
        "completion": "a",
        "task": "sums",
        "answer": "4",
        "info": '{"k": [1]}',
        "reward": 1.0,
        "generation_ms": 1.0,
        "scoring_ms": 2.5,
        "total_ms": None,
        "error": "boom",
        "f": 0.5,
    }
    assert [second[name] for name in ("generation_ms", "error", "f")] == [None, None, None]


def test_messages_are_structs_that_anybody_can_read():
    table = outputs(CHAT, "text").to_arrow()
    no_calls = {"tool_calls": None, "tool_call_id": None, "exact": None}
    assert table["completion"].to_pylist() == [
        [
            {"role": "system", "content": "Be brief.", **no_calls},
            {
                "role": "assistant",
                "content": None,
                **no_calls,
                "tool_calls": [json.dumps(CALL)],
                "exact": '{"content": null}',
            },
            {"role": "tool", "content": "4", **no_calls, "tool_call_id": "c1"},
            {"role": "assistant", "content": "four", **no_calls},
        ],
        [{"role": "assistant", "content": "text", **no_calls}],
    ]
    assert table["exact"].to_pylist() == [None, '{"completion": "text"}']


def test_nothing_stands_twice_where_once_says_it():
    table = outputs(CHAT[2:], [], [{"role": "user"}]).to_arrow()
    assert table.column_names == COLUMNS
    assert [field.name for field in table.schema.field("completion").type.value_type] == [
        *("role", "content", "tool_calls", "tool_call_id")
    ]


def test_assay_scores_the_table():
    parts = [{"role": "assistant", "content": [{"type": "text", "text": "fo"}, {"type": "text", "text": "ur"}]}]
    run = outputs(CHAT, "four", parts, [], "five")
    rewards = assay.score(run.to_arrow(), {"checks": [{"type": "contains", "value": "four"}]})
    assert rewards["reward"].to_list() == [1.0, 1.0, 1.0, None, 0.0]
    assert rewards["example_id"].to_list() == [0, 1, 2, 3, 4]


def test_metrics_have_columns_of_their_own():
    metrics = {
        "reward": [1.0],
        "metric/reward": [2.0],
        "exact": [3.0],
        "__assay/x": [4.0],
        "a\0": [5.0],
        "\ud800": [6.0],
    }
    table = outputs("a", metrics=metrics).to_arrow()
    assert table.column_names[len(COLUMNS) :] == [
        *("metric/metric/reward", "metric/reward", "metric/exact", "metric/__assay/x", "a\ufffd", "\ufffd")
    ]
    assert GenerateOutputs.from_arrow(table).metrics == metrics
    assert GenerateOutputs.from_arrow(table.drop(["metric/exact"])).metrics == {
        name: values for name, values in metrics.items() if name != "exact"
    }


def test_what_was_put_where_the_types_do_not_want_it_is_kept_too():
    run = outputs("a", "b", "c", "d", metrics={"f": [1.0, 2.0, 3.0, 4.0]})
    run.completion = [None, 7, tuple(CHAT), [CHAT[3], "text", None]]
    run.answer = [None, 4, ["a", "b"], ("c",)]
    run.state[3] = run.info[3] = None
    run.metrics["f"][1] = "1"
    found = back(run)
    assert found == run
    texts = pl.from_arrow(run.to_arrow()).select(pl.col("completion").list.last().struct.field("content")).to_series()
    assert texts.to_list() == [None, None, "four", None]


def test_lists_of_unequal_length():
    run = outputs("a", "b", reward=[], metrics={"f": [1.0]})
    assert back(run) == run
    half = GenerateOutputs.from_arrow(run.to_arrow().slice(1))
    assert (half.completion, half.reward, half.metrics) == (["b"], [None], {"f": [None]})


def test_rows_may_be_taken_away_and_put_in_another_order():
    run = outputs("a", CHAT, "c\ud800", metrics={"f": [0.0, 1.0, 2.0]}, answer=["\ud800", "1", "2"])
    found = GenerateOutputs.from_arrow(run.to_arrow().take([2, 0]))
    assert found.completion == ["c\ud800", "a"]
    assert found.answer == ["2", "\ud800"]
    assert found.metrics == {"f": [2.0, 0.0]}
    assert found.metadata == METADATA


def test_polars_loses_the_metadata_and_nothing_else():
    run = outputs(CHAT, "b\ud800", metrics={"f": [0.5, None], "reward": [1.0, 0.0]}, info=[{"a": (1,)}, {}])
    plain = run.model_copy(update={"metadata": GenerateMetadata()})
    frame = pl.from_arrow(run.to_arrow())
    assert GenerateOutputs.from_arrow(frame.to_arrow()) == plain
    assert GenerateOutputs.from_arrow(frame) == plain
    assert GenerateOutputs.from_arrow(frame.with_columns(step=1, note=pl.lit("x"))) == plain


def test_columns_that_another_library_has_parsed():
    frame = pl.from_arrow(outputs("a", info=[{"k": "v"}]).to_arrow())
    parsed = frame.with_columns(info=pl.struct(k=pl.lit("v")), prompt=pl.lit([{"role": "user", "name": "n"}]))
    found = GenerateOutputs.from_arrow(parsed)
    assert found.info == [{"k": "v"}]
    assert found.prompt == [[{"role": "user", "name": "n"}]]


class Usage(BaseModel):
    tokens: int


class Response(BaseModel):
    id: str
    usage: Usage
    logprobs: list[float]


RESPONSE = Response(id="r1", usage=Usage(tokens=3), logprobs=[-0.5])


def test_responses_are_saved_as_their_dumps():
    message = {"role": "assistant", "content": "a", "tool_calls": [Usage(tokens=1)]}
    found = back(outputs([message], state=[{"responses": [RESPONSE]}]))
    assert found.state == [{"responses": [{"id": "r1", "usage": {"tokens": 3}, "logprobs": [-0.5]}]}]
    assert found.completion == [[{"role": "assistant", "content": "a", "tool_calls": [{"tokens": 1}]}]]
    run = outputs("a")
    run.completion = [[Usage(tokens=1)]]
    assert back(run).completion == [[{"tokens": 1}]]


class Board:
    def __repr__(self):
        return "<board>"


def test_what_comes_back_changed_is_told_and_saved_all_the_same(tmp_path):
    run = outputs("a", "b", state=[{}, {"game": {"board": Board()}}], info=[{"f": len}, {}])
    run.metadata = METADATA.model_copy(update={"env_args": {"judge": Board()}})
    path = tmp_path / "run.parquet"
    with pytest.warns(assay.AssayWarning) as told:
        run.to_parquet(path)
    assert str(told[0].message) == (
        "3 values are saved as text, a list or a dict, and come back as such: "
        "row 0.info.f (builtin_function_or_method); row 1.state.game.board (Board); "
        "run.metadata.env_args.judge (Board)."
    )
    assert told[0].filename == __file__
    with pytest.warns(assay.AssayWarning) as told:
        run.to_arrow()
    assert told[0].filename == __file__
    found = GenerateOutputs.from_parquet(path)
    assert found.state[1] == {"game": {"board": "<board>"}}
    assert found.metadata.env_args == {"judge": "<board>"}
    with pytest.raises(assay.AssayWarning):  # where warnings are errors
        run.to_parquet(path, overwrite=True)
    assert GenerateOutputs.from_parquet(path) == found


@pytest.mark.filterwarnings("ignore::assay.AssayWarning")
def test_errors_of_rollouts_stand_in_a_column():
    for error, said in [
        ("boom", "boom"),
        (ValueError("no"), "ValueError: no"),
        ({"code": 1}, '{"code": 1}'),
        ("\ud800", "\ufffd"),
        (None, None),
    ]:
        assert outputs("a", state=[{"error": error}]).to_arrow()["error"].to_pylist() == [said]


def test_fields_of_a_subclass_are_kept():
    class Tagged(GenerateOutputs):
        tags: list[str]

    run = Tagged(**dict(outputs("a")), tags=["x"])
    assert Tagged.from_arrow(run.to_arrow()) == run


OLD = b"what was there before"


def test_an_existing_file_is_replaced_on_request_only(tmp_path):
    path = tmp_path / "run.parquet"
    path.write_bytes(OLD)
    with pytest.raises(assay.UsageError, match=r"already exists.\n\n.*overwrite=True"):
        outputs("a").to_parquet(path)
    assert path.read_bytes() == OLD
    outputs("a").to_parquet(str(path), overwrite=True)
    assert GenerateOutputs.from_parquet(str(path)) == outputs("a")
    assert [*tmp_path.iterdir()] == [path]


@pytest.mark.parametrize("error", [KeyboardInterrupt(), OSError(28, "No space left on device")], ids=["stop", "full"])
def test_a_run_that_breaks_off_leaves_the_old_file(tmp_path, monkeypatch, error):
    path = tmp_path / "run.parquet"
    path.write_bytes(OLD)

    def broken(*args, **kwargs):
        raise error

    monkeypatch.setattr(pq, "write_table", broken)
    expected = assay.OutputError if isinstance(error, OSError) else KeyboardInterrupt
    with pytest.raises(expected) as raised:
        outputs("a").to_parquet(path, overwrite=True)
    assert expected is KeyboardInterrupt or "An existing file is unchanged." in str(raised.value)
    gc.collect()
    assert path.read_bytes() == OLD
    assert [*tmp_path.iterdir()] == [path]


def test_paths_that_cannot_be(tmp_path):
    (tmp_path / "folder.parquet").mkdir()
    names = {"run.json": "saved as parquet", "no/run.parquet": "there is no folder", "folder.parquet": "is a folder"}
    for name, words in names.items():
        with pytest.raises(assay.UsageError, match=words):
            outputs("a").to_parquet(tmp_path / name, overwrite=True)


def test_files_of_others_are_refused(tmp_path):
    path = tmp_path / "run.parquet"
    with pytest.raises(assay.InputError, match="no such file"):
        GenerateOutputs.from_parquet(path)
    path.write_bytes(OLD)
    with pytest.raises(assay.InputError, match="not a readable parquet file"):
        GenerateOutputs.from_parquet(path)
    pl.from_arrow(outputs("a").to_arrow()).write_parquet(path)
    with pytest.raises(assay.InputError, match=r"its footer has no `assay.outputs`.*\n\n.*from_arrow"):
        GenerateOutputs.from_parquet(path)
    assert GenerateOutputs.from_arrow(pl.read_parquet(path)).completion == ["a"]


def with_column(name, values, metadata=None):
    table = outputs("a", "b").to_arrow()
    table = table.set_column(table.column_names.index(name), name, pa.array(values))
    return table.replace_schema_metadata(metadata) if metadata else table


def test_tables_that_cannot_be_read():
    for table, words in [
        (lambda: outputs("a").to_arrow().drop(["state", "info"]), "missing or repeated: `info`, `state`"),
        (
            lambda: outputs("a").to_arrow().rename_columns({"completion": "completions"}),
            "`completion`.\n\nDid you mean `completions`",
        ),
        (lambda: pa.table([pa.array([1])] * 2, names=["state", "state"]), "missing or repeated: .*`state`"),
        (lambda: 7, "Not a table"),
        (lambda: with_column("info", ["{}", "{"]), "row 1.info: not the JSON"),
        (lambda: with_column("state", ["[" * 100_000, "{}"]), "row 0.state: not the JSON"),
        (lambda: with_column("state", ["{}", '{"$assay": "int", "value": null}']), "row 1.state: not the JSON"),
        (
            lambda: with_column("info", ["{}", "{}"], {"assay.outputs": "{"}),
            "`assay.outputs` of the schema: not the JSON",
        ),
        (lambda: with_column("info", ["{}", "{}"], {"assay.outputs": '{"version": 2}'}), "not written by this version"),
        (lambda: with_column("info", ["{}", "{}"], {"assay.outputs": "[]"}), "not written by this version"),
    ]:
        with pytest.raises(assay.InputError, match=words):
            GenerateOutputs.from_arrow(table())


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    pq.write_table(with_column("info", ["{}", "{"]), tmp_path / "run.parquet")
    with pytest.raises(assay.InputError, match=r"run.parquet: row 1.info: not the JSON"):
        GenerateOutputs.from_parquet(tmp_path / "run.parquet")

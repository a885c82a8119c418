"""Environments over a real server on loopback: prompts, states, turns, arguments, concurrency, metadata, completions given."""

import asyncio
import contextlib
import datetime as dt
import gzip
import json
import subprocess
import sys
import threading
from types import SimpleNamespace

import polars as pl
import pytest
from loopback import Loopback, client_of, echo, say
from real_packages import Later
from waiting import PATIENCE

import assay
from assay.types import GenerateInputs

datasets = Later("datasets")
openai = Later("openai")
ROWS = [{"question": f"say {number}", "answer": f"say {number}", "info": {"n": number}} for number in range(4)]
CALL = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"at": "the sky"}'}}


def right(completion, answer):
    return float(completion[-1]["content"] == answer)


def single(**options):
    return assay.SingleTurnEnv(
        **{"dataset": ROWS, "rubric": assay.Rubric([right]), "retry_delay": 0.001, "max_retries": 2, **options}
    )


class Twice(assay.MultiTurnEnv):
    """Says "again" once."""

    async def is_completed(self, messages, state, **kwargs):
        return state["turn"] == 2 or await super().is_completed(messages, state, **kwargs)

    async def env_response(self, messages, state, **kwargs):
        return [{"role": "user", "content": "again"}], state


def twice(kind=Twice, **options):
    return kind(
        **{"dataset": ROWS[:1], "rubric": assay.Rubric([right]), "retry_delay": 0.001, "max_retries": 2, **options}
    )


def played(env, script=echo, inputs=None, **options):
    """Outputs of a run over a server, and the server."""
    with Loopback(script) as server:
        given = env.get_dataset() if inputs is None else inputs
        return env.generate_sync(given, client_of(server), "m", **options), server


# examples


def packed(path):
    path.write_bytes(gzip.compress("".join(json.dumps(row) + "\n" for row in ROWS).encode()))
    return path


SOURCES = {
    "rows": lambda _: ROWS,
    "columns": lambda _: {name: [row[name] for row in ROWS] for name in ROWS[0]},
    "hugging face": lambda _: datasets.Dataset.from_list(ROWS),
    "polars": lambda _: pl.DataFrame(ROWS),
    "arrow": lambda _: pl.DataFrame(ROWS).to_arrow(),
    "parquet": lambda folder: pl.DataFrame(ROWS).write_parquet(folder / "rows.parquet") or folder / "rows.parquet",
    "jsonl": lambda folder: pl.DataFrame(ROWS).write_ndjson(folder / "rows.jsonl") or folder / "rows.jsonl",
    "compressed jsonl": lambda folder: packed(folder / "rows.jsonl.gz"),
    "info as text": lambda _: [{**row, "info": json.dumps(row["info"])} for row in ROWS],
}


@pytest.mark.parametrize("source", SOURCES)
def test_any_dataset_becomes_prompts(source, tmp_path):
    few = [{"role": "user", "content": "say 9"}, {"role": "assistant", "content": "say 9"}]
    env = single(dataset=SOURCES[source](tmp_path), system_prompt="Repeat.", few_shot=few)
    outputs, server = played(env)
    assert outputs.prompt == [
        [{"role": "system", "content": "Repeat."}, *few, {"role": "user", "content": row["question"]}] for row in ROWS
    ]
    assert outputs.info == [{"n": number} for number in range(4)]
    assert outputs.example_id == [0, 1, 2, 3]
    assert outputs.reward == [1.0] * 4
    assert sorted(request.last for request in server.requests) == [row["answer"] for row in ROWS]


def test_prompts_that_are_there_stay_and_a_text_becomes_a_message():
    there = [{"role": "user", "content": [{"type": "text", "text": "hi"}]}]
    env = single(dataset=[{"prompt": there}, {"prompt": "hi"}], system_prompt="Be kind.")
    said = [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "hi"}]
    assert [row["prompt"] for row in env.get_dataset()] == [there, said]


def test_rows_keep_their_own_fields_and_tables_add_none_to_messages(tmp_path):
    rows = [{"prompt": "a", "info": {"x": 1}}, {"prompt": "b", "info": {"y": [1, "2"]}}]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert [row["info"] for row in single(dataset=tmp_path / "rows.jsonl").get_dataset()] == [{"x": 1}, {"y": [1, "2"]}]
    calls = [
        {"role": "assistant", "content": None, "tool_calls": [CALL]},
        {"role": "tool", "content": "blue", "tool_call_id": "c1"},
    ]
    table = datasets.Dataset.from_list([{"prompt": [{"role": "user", "content": "what?"}, *calls]}])
    _, server = played(single(dataset=table))
    assert server.requests[0].body["messages"] == [{"role": "user", "content": "what?"}, *calls]


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"answer": "4"}, "Row 1: `prompt` is missing"),
        ({"prompt": 4}, "Row 1: `prompt` is int"),
        ({"prompt": "x", "info": "{"}, "Row 1: `info` is text that is not JSON"),
        ({"prompt": "x", "info": [1]}, "Row 1: `info` is list"),
        (7, "Row 1: expected a mapping of columns to values, got int"),
    ],
)
def test_a_row_that_cannot_be_used_is_named(row, said):
    with pytest.raises(assay.InputError, match=said):
        single(dataset=[ROWS[0], row])


def test_a_line_that_is_no_json_is_named(tmp_path):
    (tmp_path / "rows.jsonl").write_text('{"question": "a"}\n\n{"question": \n')
    with pytest.raises(assay.InputError, match=r"rows.jsonl: line 3 is not JSON"):
        single(dataset=tmp_path / "rows.jsonl")


def test_answers_are_text_and_ids_are_numbers():
    env = single(dataset=[{"prompt": "a", "answer": 4, "example_id": "x"}, {"prompt": "b", "answer": {"k": 1}}])
    assert [(row["example_id"], row.get("src_id")) for row in env.get_dataset()] == [(0, "x"), (1, None)]
    outputs, _ = played(env)
    assert outputs.answer == ["4", '{"k": 1}']


def test_examples_are_drawn_and_repeated():
    env = single(eval_dataset=[{"question": "e", "answer": "e"}])
    assert [row["info"]["n"] for row in env.get_dataset(n=2)] == [0, 1]
    assert env.get_dataset(seed=1) == env.get_dataset(seed=1) != env.get_dataset()
    assert len(env.get_dataset(n=99)) == 4
    assert [row["question"] for row in env.get_eval_inputs(rollouts_per_example=3)] == ["e"] * 3
    assert single().get_eval_dataset() == single().get_dataset()
    with Loopback() as server:
        outputs = single().evaluate_sync(client_of(server), "m", num_examples=2, rollouts_per_example=3)
    assert outputs.example_id == [0, 1, 0, 1, 0, 1]
    assert (outputs.metadata.num_examples, outputs.metadata.rollouts_per_example) == (2, 3)


def test_an_environment_keeps_what_it_is_given():
    parser = assay.Parser()
    env = single(parser=parser, colour="red", env_args={"a": 1}, max_workers=3)
    assert (env.colour, env.env_args, env.max_workers, env.parser) == ("red", {"a": 1}, 3, parser)
    assert env.get_reward_funcs() == [right]
    assert env.get_reward_weights() == [1.0]
    assert env.env_id == "SingleTurnEnv"
    with pytest.raises(assay.UsageError, match="system_prompt"):
        single(message_type="completion", system_prompt="x")
    with pytest.raises(assay.UsageError, match="message_type"):
        single(message_type="text")
    with pytest.raises(assay.UsageError, match="no dataset"):
        single(dataset=None).get_dataset()
    with pytest.raises(TypeError, match="env_response"):
        assay.MultiTurnEnv(dataset=ROWS)


# states and turns


def test_the_state_of_a_rollout():
    outputs, _ = played(twice())
    (state,) = outputs.state
    assert [one["content"] for one in state["completion"]] == ["say 0", "again", "again"]
    assert state["completion"] == outputs.completion[0]
    assert {name: state[name] for name in ("answer", "task", "info", "example_id", "turn")} == {
        "answer": "say 0",
        "task": "default",
        "info": {"n": 0},
        "example_id": 0,
        "turn": 2,
    }
    assert state["prompt"] == [{"role": "user", "content": "say 0"}]
    assert [one.choices[0].message.content for one in state["responses"]] == ["say 0", "again"]
    assert state["responses"][0].usage.total_tokens > 0
    assert state["responses"][0].choices[0].finish_reason == "stop"
    assert state["timing"]["generation_ms"] > 0
    assert state["timing"]["total_ms"] == state["timing"]["generation_ms"] + state["timing"]["scoring_ms"]


class Reset(Twice):
    def reset_for_rollout(self, prompt, answer, info):
        return {"prompt": prompt, "answer": answer, "info": info or {}, "history": [], "timing": {"own": 1.0}}


class ResetLater(Twice):
    async def reset_for_rollout(self, prompt, answer, info):
        await asyncio.sleep(0)
        return {**super().reset_for_rollout(prompt, answer, info), "history": []}


@pytest.mark.parametrize("kind", [Reset, ResetLater])
def test_a_state_of_ones_own_gets_the_standard_fields(kind):
    outputs, _ = played(twice(kind), inputs=[{**ROWS[0], "task": "sums", "example_id": 5}])
    (state,) = outputs.state
    assert state["history"] == []
    assert (state["task"], state["example_id"], state["turn"], len(state["responses"])) == ("sums", 5, 2, 2)
    assert {"generation_ms", "scoring_ms", "total_ms"} <= set(state["timing"])
    assert outputs.reward == [0.0]


class Plain(assay.MultiTurnEnv):
    """Nothing in it is a coroutine, and every state is a new one."""

    def setup_state(self, state, **kwargs):
        return {**state, "seen": [], "extra": kwargs["extra"]}

    def get_context_messages(self, state):
        return [*state["prompt"], *state["completion"]]

    def is_completed(self, messages, state, **kwargs):
        return len(state["seen"]) == 2

    def env_response(self, messages, state, **kwargs):
        return [{"role": "user", "content": f"{len(state['seen'])}"}], {
            **state,
            "seen": [*state["seen"], messages[-1]["content"]],
        }


def test_plain_functions_do_and_arguments_are_handed_on():
    def extra_of(extra):
        return extra

    outputs, _ = played(twice(Plain, rubric=assay.Rubric([extra_of])), extra=3.0)
    assert outputs.state[0]["seen"] == ["say 0", "0"]
    assert outputs.state[0]["extra"] == outputs.reward[0] == 3.0


def test_turns_are_limited():
    class Endless(Twice):
        is_completed = assay.MultiTurnEnv.is_completed

    outputs, server = played(twice(Endless, max_turns=3))
    assert len(server.requests) == outputs.state[0]["turn"] == 3


def test_a_rollout_on_its_own():
    async def play(server):
        async with openai.AsyncOpenAI(api_key="none", base_url=server.url) as asked:
            return await twice().rollout(asked, "m", [{"role": "user", "content": "hi"}], answer="x", info={"a": 1})

    with Loopback() as server:
        completion, state = asyncio.run(play(server))
    assert completion == state["completion"]
    assert (state["answer"], state["info"], state["turn"]) == ("x", {"a": 1}, 2)


def test_rollouts_of_an_example_share_nothing():
    class Marks(Twice):
        def setup_state(self, state, **kwargs):
            state["info"]["marks"] = [*state["info"].get("marks", []), 1]
            state["prompt"][0]["content"] += "!"
            return state

    env = twice(Marks)
    outputs, _ = played(env, inputs=env.get_dataset() * 3)
    assert [info["marks"] for info in outputs.info] == [[1]] * 3
    assert [prompt[0]["content"] for prompt in outputs.prompt] == ["say 0!"] * 3
    assert env.get_dataset()[0]["info"] == ROWS[0]["info"] == {"n": 0}


def test_tool_calls_read_both_ways_and_go_back_as_they_came():
    tools = [{"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}]

    class Tools(Twice):
        def env_response(self, messages, state, **kwargs):
            (call,) = messages[-1]["tool_calls"]
            assert call.function.name == call["function"]["name"] == "look"
            at = json.loads(call.function.arguments)["at"]
            return [{"role": "tool", "content": f"{at}: blue", "tool_call_id": call.id}], state

    def script(request):
        return say("", fields={"tool_calls": [CALL]}) if request.number % 2 == 0 else say("blue")

    for sampling_args in ({}, {"stream": True}):
        outputs, server = played(twice(Tools, oai_tools=tools), script, sampling_args=sampling_args)
        assert [message["role"] for message in outputs.completion[0]] == ["assistant", "tool", "assistant"]
        assert outputs.completion[0][0]["tool_calls"] == [CALL]
        assert server.requests[0].body["tools"] == tools
        assert server.requests[1].body["messages"][1]["tool_calls"] == [CALL]
    own = [{"type": "function", "function": {"name": "ask"}}]
    _, server = played(twice(oai_tools=tools), inputs=[{"prompt": "x", "info": {"oai_tools": own}}])
    assert server.requests[0].body["tools"] == own


def test_texts_are_completed():
    class More(assay.MultiTurnEnv):
        def env_response(self, messages, state, **kwargs):
            assert messages == state["prompt"] + state["completion"]
            return " and", state

    def longest(completion):
        return float(len(completion))

    env = More(dataset=[{"prompt": "one"}], message_type="completion", max_turns=2, rubric=assay.Rubric([longest]))
    outputs, server = played(env, lambda request: say(f" {request.number}"))
    assert outputs.completion == [" 0 and 1"]
    assert outputs.state[0]["responses_start_idx"] == [0, 6]
    assert [request.body["prompt"] for request in server.requests] == ["one", "one 0 and"]
    assert {request.path for request in server.requests} == {"/v1/completions"}
    assert outputs.reward == [8.0]
    with pytest.raises(assay.InputError, match="text completions need text"):
        played(env, inputs=[{"prompt": [{"role": "user", "content": "x"}]}])


# arguments


def test_sampling_arguments_arrive_as_given():
    env = single(sampling_args={"temperature": 0.5, "top_p": 0.9, "extra_body": {"top_k": 5, "min_p": 0.1}})
    given = {"temperature": None, "max_tokens": 7, "extra_body": {"top_k": 3, "guided_decoding": {"regex": "a"}}}
    outputs, server = played(env, sampling_args=given, inputs=ROWS[:1])
    body = server.requests[0].body
    assert {name: body[name] for name in body if name not in ("messages", "model")} == {
        "top_p": 0.9,
        "max_tokens": 7,
        "top_k": 3,
        "min_p": 0.1,
        "guided_decoding": {"regex": "a"},
    }
    assert outputs.metadata.sampling_args == {
        "top_p": 0.9,
        "max_tokens": 7,
        "extra_body": {"top_k": 3, "min_p": 0.1, "guided_decoding": {"regex": "a"}},
    }
    assert env.sampling_args["extra_body"] == {"top_k": 5, "min_p": 0.1}


@pytest.mark.parametrize(
    ("first", "second", "sent"),
    [
        ({}, {"top_k": 3}, 3),
        ({"top_k": 5}, {}, 5),
        ({"extra_body": {"top_k": 5}}, {"top_k": 3}, 3),
        ({"top_k": 5}, {"extra_body": {"top_k": 3}}, 3),
        ({"extra_body": {"top_k": 5}}, {"top_k": None}, None),
    ],
)
def test_arguments_of_vllm_may_stand_beside_those_of_the_client(first, second, sent):
    given = second | {"skip_special_tokens": False}
    outputs, server = played(single(sampling_args=first), sampling_args=given, inputs=ROWS[:1])
    assert (server.requests[0].body.get("top_k"), server.requests[0].body["skip_special_tokens"]) == (sent, False)
    assert outputs.metadata.sampling_args["skip_special_tokens"] is False


def test_an_argument_the_client_does_not_take_is_refused_before_the_first_request():
    with Loopback() as server:
        with pytest.raises(assay.UsageError, match=r"`mirostat`[\s\S]*extra_body"):
            single().evaluate_sync(client_of(server), "m", {"mirostat": 3})
        with pytest.raises(assay.UsageError, match=r"Did you mean `temperature`"):
            single().evaluate_sync(client_of(server), "m", {"temprature": 3})
        assert not server.requests


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"model": None}, "model: expected the name of a model, got NoneType"),
        ({"sampling_args": "temperature=1"}, "sampling_args: expected a dict with names as keys, got str"),
        ({"sampling_args": {1: 2}}, "sampling_args: expected a dict with names as keys, got dict"),
        ({"sampling_args": {"extra_body": ["top_k"]}}, "extra_body: expected a dict with names as keys, got list"),
        ({"sampling_args": {"messages": []}}, "`messages` is not a sampling argument"),
        ({"client": "http://127.0.0.1:8000/v1"}, "str is not a client"),
        ({"max_concurent": 3}, r"`max_concurent` is not an argument of generate[\s\S]*Did you mean `max_concurrent`"),
    ],
)
def test_what_cannot_be_used_is_refused_before_the_first_request(given, said):
    with Loopback() as server:
        with pytest.raises(assay.UsageError, match=said):
            single().evaluate_sync(**{"client": client_of(server), "model": "m"} | given)
        assert not server.requests


def test_a_dataset_whose_answers_are_misspelt_is_told(caplog):
    assay.SingleTurnEnv(dataset=[{"question": "2+2?", "anwser": "4"}])
    assert "Did you mean `anwser`?" in caplog.text


def test_without_a_client_there_is_nothing_to_generate_with():
    with pytest.raises(assay.UsageError, match=r"but no client[\s\S]*pip install 'assay-rollouts\[generate\]'"):
        single().generate_sync(ROWS)


# many at a time


@pytest.mark.parametrize("options", [{"max_concurrent": 3}, {"max_concurrent": 9, "max_concurrent_generation": 3}])
def test_no_more_at_a_time_than_allowed(options):
    three = threading.Barrier(3)

    def script(request):
        if request.number < 3:  # as many as may be there are there at one time, however long each takes
            three.wait(PATIENCE)
        return say(request.last, after=0.01)

    outputs, server = played(single(), script, inputs=ROWS * 6, **options)
    assert server.peak == 3
    assert len(server.requests) == 24
    assert outputs.completion == [[{"role": "assistant", "content": row["answer"]}] for row in ROWS * 6]


def test_scoring_is_limited_by_itself():
    live, peak, two = 0, 0, asyncio.Event()

    async def slow():
        nonlocal live, peak
        live += 1
        peak = max(peak, live)
        if live == 2:
            two.set()
        await asyncio.wait_for(two.wait(), PATIENCE)
        await asyncio.sleep(0.005)
        live -= 1
        return 1.0

    outputs, _ = played(
        single(rubric=assay.Rubric([slow])), inputs=ROWS * 3, max_concurrent=8, max_concurrent_scoring=2
    )
    assert outputs.reward == [1.0] * 12
    assert peak == 2


def test_tasks_are_no_more_than_needed():
    most = 0

    class Counts(assay.SingleTurnEnv):
        async def get_model_response(self, *_, **__):
            nonlocal most
            most = max(most, len(asyncio.all_tasks()))
            await asyncio.sleep(0)
            message = SimpleNamespace(content="x", tool_calls=None)
            return SimpleNamespace(id="1", choices=[SimpleNamespace(message=message)])

    server = SimpleNamespace(chat=SimpleNamespace(completions=SimpleNamespace(create=lambda **_: None)))
    rows = [{"prompt": "x"}] * 3_000
    outputs = Counts(dataset=rows).generate_sync(rows, server, "m", max_concurrent=10)
    assert len(outputs.reward) == 3_000
    assert most <= 25


# scoring


def among(completions):
    return [float(len(completions))] * len(completions)


@pytest.mark.parametrize("rubric", [[right], [right, among]])
def test_scored_one_by_one_or_together_it_is_the_same(rubric):
    env = single(rubric=assay.Rubric(rubric))
    one, _ = played(env, inputs=env.get_dataset() * 2)
    other, _ = played(env, inputs=env.get_dataset() * 2, interleave_scoring=False)
    assert one.reward == other.reward == [1.0 + 2.0 * (len(rubric) == 2)] * 8
    assert one.metrics == other.metrics
    assert one.metadata.avg_metrics == {func.__name__: one.metrics[func.__name__][0] for func in rubric}


def test_unscored_every_reward_is_none():
    outputs, _ = played(single(), score_rollouts=False)
    assert outputs.reward == [None] * 4
    assert outputs.metrics == {}
    assert outputs.metadata.avg_reward == 0.0


def said(*texts):
    return [[{"role": "assistant", "content": text}] for text in texts]


def test_completions_that_are_there_are_scored_without_a_client():
    inputs = GenerateInputs(prompt=["q"] * 3, answer=["a", "b", "c"], completion=said("a", "x", "c"), id=[7, 8, 9])
    outputs = single(dataset=None).generate_sync(inputs)
    assert outputs.reward == [1.0, 0.0, 1.0]
    assert outputs.id == [7, 8, 9]
    assert outputs.completion == said("a", "x", "c")
    assert [state["answer"] for state in outputs.state] == ["a", "b", "c"]
    assert outputs.metadata.avg_reward == pytest.approx(2 / 3)
    texts = GenerateInputs(prompt=["q", "q"], answer=["a", ""], completion=["a", ""])
    env = single(dataset=None, rubric=assay.Rubric([lambda completion, answer: float(completion == answer)]))
    assert env.generate_sync(texts).reward == [1.0, 1.0], "an empty completion is one, where nobody could write another"


def test_completions_that_are_not_there_are_generated():
    rows = [{**row, "completion": completion} for row, completion in zip(ROWS, [None, *said("x"), [], ""], strict=True)]
    outputs, server = played(single(), inputs=rows)
    assert sorted(request.last for request in server.requests) == ["say 0", "say 2", "say 3"]
    assert outputs.reward == [1.0, 0.0, 1.0, 1.0]
    with pytest.raises(assay.UsageError, match="but no client"):
        single().generate_sync(rows)


# metadata


def test_metadata():
    env = single(env_id="echo", env_args={"a": 1}, sampling_args={"extra_headers": {"X-Key": "secret"}})
    with Loopback() as server:
        address = server.url.replace("http://", "http://user:password@")
        asked = openai.AsyncOpenAI(base_url=address, api_key="none", default_query={"key": "secret"})
        outputs = env.generate_sync(ROWS, asked, "m", state_columns=["turn"])
        assert server.requests[0].headers["x-key"] == "secret"
    metadata = outputs.metadata
    assert metadata.base_url == server.url + "/"
    assert "secret" not in metadata.model_dump_json()
    assert "password" not in metadata.model_dump_json()
    assert (metadata.env_id, metadata.env_args, metadata.model) == ("echo", {"a": 1}, "m")
    assert (metadata.num_examples, metadata.rollouts_per_example, metadata.state_columns) == (4, 1, ["turn"])
    assert (metadata.avg_reward, metadata.avg_metrics) == (1.0, {"right": 1.0})
    assert metadata.time_ms > 0
    assert str(metadata.path_to_save) == "."
    began = dt.datetime.fromisoformat(metadata.date)
    assert began.tzinfo is not None
    assert abs(dt.datetime.now(dt.UTC) - began) < dt.timedelta(minutes=10)


# synchronous and not


def test_from_a_running_loop_and_from_none():
    async def notebook(server):
        env, asked = single(), openai.AsyncOpenAI(api_key="none", base_url=server.url)
        async with asked:
            first = await env.evaluate(asked, "m")
            return first, env.evaluate_sync(asked, "m"), await env.a_generate(ROWS, asked, "m")

    with Loopback() as server:
        for outputs in asyncio.run(notebook(server)):
            assert outputs.reward == [1.0] * 4
        asked = client_of(server)
        for _ in range(2):  # the client outlives the loop of a call
            assert single().evaluate_sync(asked, "m").reward == [1.0] * 4


def test_synchronous_clients_get_a_twin():
    with Loopback() as server:
        options = {"organization": "o", "timeout": 5.0, "default_headers": {"X-Mine": "1"}}
        with openai.OpenAI(base_url=server.url, api_key="k", **options) as asked:
            assert single().evaluate_sync(asked, "m").reward == [1.0] * 4
            assert asyncio.run(single().evaluate(asked, "m")).reward == [1.0] * 4
        headers = server.requests[0].headers
    assert (headers["authorization"], headers["x-mine"], headers["openai-organization"]) == ("Bearer k", "1", "o")
    azure = openai.AzureOpenAI(azure_endpoint="http://127.0.0.1:1", api_key="k", api_version="v")
    with contextlib.closing(azure), pytest.raises(assay.UsageError, match="Pass an AsyncAzureOpenAI"):
        single().evaluate_sync(azure, "m")


def test_an_http_client_of_ones_own_is_used():
    async def play(server):
        async with openai.DefaultAsyncHttpxClient(headers={"X-Own": "1"}) as http:
            return await single().evaluate(
                openai.AsyncOpenAI(api_key="none", base_url=server.url, http_client=http), "m"
            )

    with Loopback() as server:
        assert asyncio.run(play(server)).reward == [1.0] * 4
        assert {request.headers["x-own"] for request in server.requests} == {"1"}


def test_what_a_coroutine_sends_to_threads_has_its_threads():
    class Threads(assay.SingleTurnEnv):
        async def setup_state(self, state, **kwargs):
            state["thread"] = await asyncio.to_thread(lambda: threading.current_thread().name)
            return state

    outputs, _ = played(Threads(dataset=ROWS, max_workers=1))
    assert len({state["thread"] for state in outputs.state}) == 1


def test_without_the_openai_package_all_but_its_client_works():
    code = """
import sys
sys.modules["openai"] = None
import assay
from types import SimpleNamespace as N
async def create(**sent):
    return N(id="1", choices=[N(message=N(content=sent["messages"][-1]["content"], tool_calls=None))])
env = assay.SingleTurnEnv(dataset=[{"question": "hi"}], rubric=assay.Rubric([lambda completion: 2.0]))
print(env.evaluate_sync(N(chat=N(completions=N(create=create))), "m").completion)
try:
    env.evaluate_sync(None, "m")
except assay.UsageError as wrong:
    print(wrong.hint)
"""
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=True)
    completion, hint = done.stdout.splitlines()
    assert completion == "[[{'role': 'assistant', 'content': 'hi'}]]"
    assert "pip install 'assay-rollouts[generate]'" in hint

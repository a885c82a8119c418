"""Requests that fail: which are sent again, which are not, and what becomes of their rollouts."""

import asyncio
import json
import logging
import threading
from collections import Counter
from types import SimpleNamespace

import pytest
from loopback import Loopback, client_of, drop, echo, garbage, refuse, say
from real_packages import Later
from waiting import PATIENCE

import assay
from assay.environments import client
from assay.environments.client import OVERLONG, AttributeDict, NotACompletion, Retries, ask, gather

openai = Later("openai")
ROWS = [{"question": f"say {number}", "answer": f"say {number}"} for number in range(4)]


def right(completion, answer):
    return float(completion[-1]["content"] == answer)


def env(kind=assay.SingleTurnEnv, **options):
    own = {"dataset": ROWS, "rubric": assay.Rubric([right]), "retry_delay": 0.001, "max_retries": 3}
    return kind(**own | options)


def played(script, environment=None, inputs=ROWS[:1], client=None, **options):
    with Loopback(script) as server:
        return (environment or env()).generate_sync(inputs, client_of(server, **client or {}), "m", **options), server


# asked again

PASSING = {
    "429": refuse(429),
    "429 with a time": refuse(429, retry_after="0.01"),
    "429 with a date": refuse(429, retry_after="Wed, 21 Oct 2015 07:28:00 GMT"),
    "429 with a date that is none": refuse(429, retry_after="Wed, 21 Oct 99999999999 07:28:00 GMT"),
    "500": refuse(500),
    "503 without a body": garbage(b"", status=503),
    "529": refuse(529),
    "408": refuse(408),
    "no answer": drop(),
    "half an answer": say("say 0", ending="cut"),
    "no JSON": garbage(b'{"choices": [{"mess'),
    "no text": garbage(b"\xff\xfe\x00"),
    "a page": garbage(b"<html>busy</html>", headers={"content-type": "text/html"}),
    "an empty body": garbage(b""),
    "no completion": garbage({"object": "list", "data": []}),
    "no choices": garbage({"id": "1", "choices": []}),
    "null choices": garbage({"error": {"message": "overloaded", "code": 502}, "choices": None}),
    "choices of another kind": garbage({"id": "1", "choices": [{"index": 0, "text": "x"}]}),
    "a message of another kind": garbage({"id": "1", "choices": [{"index": 0, "message": "say 0"}]}),
    "content of another kind": garbage({"id": "1", "choices": [{"index": 0, "message": {"content": {"a": 1}}}]}),
}


def test_what_may_pass_is_asked_again():
    rows = [{"question": name, "answer": name} for name in PASSING]
    asked = Counter()

    def script(request):
        asked[request.last] += 1
        return PASSING[request.last] if asked[request.last] < 3 else echo(request)

    outputs, _ = played(script, inputs=rows)
    failed = [state["error"] for state in outputs.state if "error" in state]
    assert (failed, outputs.reward) == ([], [1.0] * len(rows))
    assert set(asked.values()) == {3}, "the client's own retries would be more"


@pytest.mark.parametrize("ending", ["cut", "error", "early", "dropped"])
def test_a_stream_that_breaks_is_asked_again(ending):
    outputs, server = played([say("say 0", ending=ending)], sampling_args={"stream": True})
    assert outputs.reward == [1.0]
    assert len(server.requests) == 2


def test_an_answer_that_takes_too_long_is_asked_again():
    asked_again = threading.Event()

    def script(request):
        if request.number:
            asked_again.set()
            return echo(request)
        asked_again.wait(PATIENCE)
        return say("late")

    # more than once on a machine that takes long for an answer in time
    outputs, server = played(script, env(max_retries=100), client={"timeout": 0.3})
    assert outputs.reward == [1.0]
    assert len(server.requests) >= 2


def test_nobody_there():
    asked = openai.AsyncOpenAI(base_url="http://127.0.0.1:9/v1", api_key="none")
    outputs = env(max_retries=1).generate_sync(ROWS[:1], asked, "m")
    assert outputs.reward == [None]
    assert outputs.state[0]["error"].startswith("APIConnectionError: ")


def test_retries_come_to_an_end():
    outputs, server = played(lambda _: refuse(503, "busy"))
    assert len(server.requests) == 4
    assert outputs.reward == [None]
    assert outputs.state[0]["error"].startswith("InternalServerError: ")
    _, server = played(lambda _: refuse(503), env(max_retries=0))
    assert len(server.requests) == 1


def test_a_rollout_on_its_own_does_not_multiply_retries():
    async def play(server):
        async with openai.AsyncOpenAI(base_url=server.url, api_key="none", max_retries=7) as asked:
            return await env().get_model_response(asked, "m", [{"role": "user", "content": "x"}])

    with Loopback(lambda _: refuse(503)) as server:
        with pytest.raises(openai.InternalServerError):
            asyncio.run(play(server))
        assert len(server.requests) == 4


def test_waits(monkeypatch):
    def wrong(**headers):
        return openai.OpenAIError if not headers else SimpleNamespace(response=SimpleNamespace(headers=headers))

    retries = Retries(most=9, delay=1.0, longest=30.0)
    for tried, (low, high) in enumerate([(0.5, 1.0), (1.0, 2.0), (2.0, 4.0), (4.0, 8.0)]):
        waits = [retries.wait(tried, ValueError()) for _ in range(50)]
        assert low <= min(waits) < max(waits) <= high
    assert retries.wait(100, ValueError()) == 30.0
    assert retries.wait(0, wrong(**{"retry-after": "7.5"})) == 7.5
    assert retries.wait(0, wrong(**{"retry-after": "3600"})) == 30.0
    assert retries.wait(0, wrong(**{"retry-after": "soon"})) <= 1.0
    monkeypatch.setattr(client, "time", SimpleNamespace(time=lambda: 0.0))
    assert retries.wait(0, wrong(**{"retry-after": "Thu, 01 Jan 1970 00:00:20 GMT"})) == 20.0


# not asked again


@pytest.mark.parametrize(
    ("status", "message", "code"),
    [
        (400, "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens.", None),
        (400, "too much", "context_length_exceeded"),
        (400, "The decoder prompt (length 9) is longer than the maximum model length of 8.", None),
    ],
)
def test_a_prompt_that_is_too_long_ends_the_rollout(status, message, code):
    class Talks(assay.MultiTurnEnv):
        def env_response(self, messages, state, **kwargs):
            return [{"role": "user", "content": "more"}], state

    outputs, server = played([say("one"), refuse(status, message, code)], env(Talks, max_turns=9))
    (state,) = outputs.state
    assert len(server.requests) == 2
    assert state["prompt_too_long"] is True
    assert [one["content"] for one in state["completion"]] == ["one", "more"]
    assert outputs.reward == [0.0], "it is scored as far as it came"
    assert "error" not in state


def test_an_answer_that_stands_for_a_prompt_too_long():
    async def play(server, kind):
        async with openai.AsyncOpenAI(base_url=server.url, api_key="none") as asked:
            return await ask(asked, "m", "x" if kind == "completion" else [], message_type=kind)

    for kind in ("chat", "completion"):
        with Loopback([refuse(400, "context length")]) as server:
            response = asyncio.run(play(server, kind))
        assert (response.id, response.choices[0].finish_reason) == (OVERLONG, "length")


@pytest.mark.parametrize(
    ("status", "name"), [(400, "BadRequestError"), (422, "UnprocessableEntityError"), (413, "APIStatusError")]
)
def test_what_is_refused_for_good_costs_its_rollout_only(status, name, caplog):
    def script(request):
        return refuse(status, "not this one") if request.last == "say 1" else echo(request)

    outputs, server = played(script, inputs=ROWS)
    assert len(server.requests) == 4
    assert outputs.reward == [1.0, None, 1.0, 1.0]
    assert outputs.metrics["right"] == [1.0, None, 1.0, 1.0]
    assert outputs.metadata.avg_reward == 1.0
    assert outputs.state[1]["error"].startswith(f"{name}: ")
    assert outputs.completion[1] == []
    (record,) = [one for one in caplog.records if one.levelno == logging.WARNING]
    assert record.getMessage().startswith(f"1 of 4 rollouts failed and are unscored: 1 × {name}: ")


@pytest.mark.parametrize("reply", [refuse(401), refuse(403), refuse(404), refuse(429, "empty", "insufficient_quota")])
def test_a_run_whose_first_rollouts_are_refused_for_their_key_ends(reply):
    with Loopback(lambda _: reply) as server:
        asked = client_of(server)
        with pytest.raises(assay.UsageError, match=r"first 8 rollouts were all refused[\s\S]*api_key"):
            env().generate_sync(ROWS * 100, asked, "m", max_concurrent=4)
        assert 8 <= len(server.requests) <= 12
        with pytest.raises(assay.UsageError, match="first rollout was refused"):
            env().generate_sync(ROWS[:1], asked, "m")


def test_a_run_ends_where_the_first_eight_are_refused_for_one_reason_and_not_for_several():
    with pytest.raises(assay.UsageError, match="temperature is too high"):
        played(lambda _: refuse(400, "temperature is too high"), inputs=ROWS * 9, max_concurrent=2)
    outputs, _ = played(lambda request: refuse(400, f"not {request.number}"), inputs=ROWS * 3)
    assert outputs.reward == [None] * 12
    outputs, _ = played(lambda _: refuse(400, "no"), inputs=ROWS)
    assert outputs.reward == [None] * 4
    outputs, _ = played(lambda one: echo(one) if one.number == 0 else refuse(401), inputs=ROWS * 3, max_concurrent=1)
    assert outputs.reward == [1.0] + [None] * 11


# what an environment raises


class Breaks(assay.MultiTurnEnv):
    """Raises in its second reply."""

    def env_response(self, messages, state, **kwargs):
        if state["turn"] == 2 and state["answer"] == "say 1":
            raise SystemExit(3) if self.wrong == "exit" else KeyError("the board")
        state = {**state, "replies": state["turn"]}
        return [{"role": "user", "content": "go on"}], state


@pytest.mark.parametrize(("wrong", "said"), [("key", "KeyError: 'the board'"), ("exit", "SystemExit: 3")])
def test_an_environment_that_raises_costs_that_rollout_only(wrong, said):
    outputs, _ = played(echo, env(Breaks, max_turns=3, wrong=wrong), inputs=ROWS)
    assert [reward is None for reward in outputs.reward] == [False, True, False, False]
    state = outputs.state[1]
    assert state["error"] == said
    assert [one["content"] for one in outputs.completion[1]] == ["say 1", "go on", "go on"], "what there is is kept"
    assert (state["turn"], state["replies"], len(state["responses"])) == (2, 1, 2)
    assert state["timing"]["generation_ms"] > 0


@pytest.mark.parametrize(
    ("method", "given", "said"),
    [
        ("env_response", None, "TypeError: "),
        ("env_response", ("text", {"completion": []}), "TypeError: env_response returned str"),
        ("env_response", ([], None), "TypeError: env_response returned NoneType"),
        ("setup_state", None, "TypeError: setup_state returned NoneType"),
        ("reset_for_rollout", None, "TypeError: the state of a rollout is a dict, not NoneType"),
        ("rollout", None, "TypeError: "),
    ],
)
def test_what_a_method_may_not_return(method, given, said):
    async def returns(*_, **__):
        return given

    kind = type("Wrong", (Breaks,), {method: returns})
    outputs, _ = played(echo, env(kind, max_turns=2, wrong=""))
    assert outputs.reward == [None]
    assert outputs.state[0]["error"].startswith(said)


def test_a_completion_is_text_or_messages():
    class Odd(assay.SingleTurnEnv):
        async def rollout(self, client, model, prompt, completion, answer, state, *rest, **kwargs):
            return [1, 2], state

    outputs, _ = played(echo, env(Odd))
    assert (
        outputs.state[0]["error"]
        == "TypeError: a completion is text or a list of messages, each a dict; this one is list"
    )
    assert outputs.completion == [[]]


def test_a_rubric_that_raises_leaves_rollouts_unscored():
    class Broken(assay.Rubric):
        async def score_rollout(self, *_, **__):
            raise RuntimeError("no judge")

        async def score_rollouts(self, *_, **__):
            raise RuntimeError("no judges")

    for interleave, judges in ((True, "judges"), (False, "judges")):
        outputs, _ = played(echo, env(rubric=Broken([right])), inputs=ROWS, interleave_scoring=interleave)
        assert outputs.reward == [None] * 4
        assert outputs.completion[2] == [{"role": "assistant", "content": "say 2"}]
        assert outputs.state[0]["error"].startswith("RuntimeError: no judge"), judges


def test_a_reward_function_that_raises_is_the_rubrics_affair():
    def broken(completion):
        raise ValueError("odd")

    outputs, _ = played(echo, env(rubric=assay.Rubric([broken, right])))
    assert outputs.reward == [1.0]
    assert outputs.state[0]["error"] == "broken: ValueError: odd"


# streams


def test_a_stream_is_gathered():
    args = {"stream": True, "stream_options": {"include_usage": True}}
    outputs, server = played(lambda _: say("the whole text"), sampling_args=args)
    assert server.requests[0].body["stream_options"] == {"include_usage": True}
    response = outputs.state[0]["responses"][0]
    assert response.choices[0].message.content == "the whole text"
    assert response.choices[0].finish_reason == "stop"
    assert response.usage.completion_tokens == 14
    assert outputs.completion[0] == [{"role": "assistant", "content": "the whole text"}]
    texts = env(dataset=[{"prompt": "x"}], message_type="completion", rubric=assay.Rubric())
    outputs, _ = played(lambda _: say("the whole text"), texts, [{"prompt": "x"}], sampling_args=args)
    assert outputs.completion == ["the whole text"]


def chunk(choice, **top):
    return AttributeDict({"id": "1", "choices": [{"index": 0, **choice}], **top})


async def stream(*chunks):
    for one in chunks:
        yield one


def test_pieces_of_every_kind_are_added():
    def calls(*pieces):
        return {"delta": {"tool_calls": list(pieces)}}

    one = asyncio.run(
        gather(
            stream(
                chunk({"delta": {"role": "assistant", "content": None, "reasoning_content": "hm"}}, model="m"),
                chunk(
                    {"delta": {"reasoning_content": "m"}, "logprobs": {"content": [{"token": "a", "logprob": -1.0}]}}
                ),
                chunk({"delta": {"content": "a"}, "logprobs": {"content": [{"token": "b", "logprob": -2.0}]}}),
                chunk(calls({"index": 0, "id": "c0", "function": {"name": "look", "arguments": ""}})),
                chunk(
                    calls(
                        {"index": 0, "function": {"arguments": "{"}},
                        {"index": 1, "id": "c1", "function": {"name": "at"}},
                    )
                ),
                chunk(calls({"index": 0, "function": {"name": "look", "arguments": "}"}})),
                chunk({"index": 1, "delta": {"content": "other"}, "finish_reason": "length"}),
                chunk({"delta": {}, "finish_reason": "stop", "stop_reason": 7}, usage={"total_tokens": 3}),
            ),
            "chat",
        )
    )
    first, second = one.choices
    assert (first.message.content, first.message.reasoning_content, first.finish_reason) == ("a", "hmm", "stop")
    assert [token.logprob for token in first.logprobs.content] == [-1.0, -2.0]
    assert [call.function.name for call in first.message.tool_calls] == ["look", "at"]
    assert first.message.tool_calls[0].function.arguments == "{}"
    assert (second.message.content, second.finish_reason) == ("other", "length")
    assert (one.object, one.model, one.usage.total_tokens) == ("chat.completion", "m", 3)


def test_a_stream_without_an_end_is_no_answer():
    for chunks in ((), (chunk({"delta": {"content": "a"}}),)):
        with pytest.raises(NotACompletion):
            asyncio.run(gather(stream(*chunks), "chat"))


@pytest.mark.parametrize(
    "choices",
    [
        *(["x"], {"0": {}}, [{"index": "a"}], [{"index": 0, "delta": "hello", "finish_reason": "stop"}]),
        [{"index": 0, "delta": {"tool_calls": [None]}, "finish_reason": "stop"}],
        [{"index": 0, "delta": {"tool_calls": {"a": 1}}, "finish_reason": "stop"}],
        [{"index": 0, "delta": {"content": 5}}, {"index": 0, "delta": {"content": "x"}, "finish_reason": "stop"}],
        [{"index": 0, "delta": {"content": "x"}}, {"index": 0, "delta": {"content": ["x"]}, "finish_reason": "stop"}],
    ],
)
def test_what_is_no_piece_of_an_answer_is_said_to_be_none(choices):
    piece = SimpleNamespace(model_dump=lambda **_: {"choices": choices})
    with pytest.raises(NotACompletion, match="stream"):
        asyncio.run(gather(stream(piece), "chat"))


def test_a_choice_without_a_number_is_the_first_and_words_of_the_server_are_kept():
    pieces = [
        {"index": 0, "delta": {"content": "a"}},
        {"index": None, "delta": {"content": "b"}, "finish_reason": "stop"},
    ]
    one = asyncio.run(
        gather(stream(*(SimpleNamespace(model_dump=lambda p=p, **_: {"choices": [dict(p)]}) for p in pieces)), "chat")
    )
    assert one.choices[0].message.content == "ab"
    broken = SimpleNamespace(model_dump=lambda **_: {"choices": None, "error": {"message": "overloaded"}})
    with pytest.raises(NotACompletion, match="overloaded"):
        asyncio.run(gather(stream(broken), "chat"))


def test_fields_are_read_both_ways():
    fields = AttributeDict({"choices": [{"message": {"content": "a"}}], "n": None})
    assert fields.choices[0].message.content == fields["choices"][0]["message"]["content"] == "a"
    fields.choices[0].message.content = "b"
    assert fields == {"choices": [{"message": {"content": "b"}}], "n": None} == json.loads(json.dumps(fields))
    assert fields.n is None
    assert type(fields.model_dump()["choices"][0]) is dict
    with pytest.raises(AttributeError):
        _ = fields.usage


# what is cancelled by somebody else


async def awaits_what_is_cancelled():
    waiting = asyncio.create_task(asyncio.sleep(10))
    waiting.cancel()
    await waiting


def test_an_environment_that_waits_for_what_is_cancelled_costs_that_rollout_only():
    class Waits(assay.SingleTurnEnv):
        async def setup_state(self, state, **kwargs):
            if state["answer"] == "say 1":
                await awaits_what_is_cancelled()
            return state

    outputs, _ = played(echo, env(Waits), inputs=ROWS)
    assert outputs.reward == [1.0, None, 1.0, 1.0]
    assert outputs.state[1]["error"].startswith("CancelledError")


@pytest.mark.parametrize("interleave", [True, False])
@pytest.mark.parametrize("side_by_side", [True, False])
def test_a_function_that_waits_for_what_is_cancelled_scores_zero(interleave, side_by_side):
    async def judge(answer):
        if answer == "say 1":
            await awaits_what_is_cancelled()
        return 1.0

    rubric = assay.Rubric([judge, right], parallelize_scoring=side_by_side)
    outputs, _ = played(echo, env(rubric=rubric), inputs=ROWS, interleave_scoring=interleave)
    assert outputs.reward == [2.0, 1.0, 2.0, 2.0]
    assert outputs.state[1]["error"].startswith("judge: CancelledError")


def test_a_rubric_that_waits_for_what_is_cancelled_leaves_rollouts_unscored():
    class Waits(assay.Rubric):
        async def score_rollout(self, *_, **__):
            await awaits_what_is_cancelled()

        async def score_rollouts(self, *_, **__):
            await awaits_what_is_cancelled()

    for interleave in (True, False):
        outputs, _ = played(echo, env(rubric=Waits([right])), inputs=ROWS, interleave_scoring=interleave)
        assert outputs.reward == [None] * 4


def test_a_completion_whose_state_cannot_be_made_costs_that_rollout_only():
    class Counts(assay.SingleTurnEnv):
        def reset_for_rollout(self, prompt, answer, info):
            return {"number": int(answer)}

    given = [{"prompt": "p", "completion": "c", "answer": answer} for answer in ("1", "one", "2")]
    outputs = env(Counts, rubric=assay.Rubric([lambda state: state["number"]])).generate_sync(given)
    assert outputs.reward == [1.0, None, 2.0]
    assert outputs.completion == ["c"] * 3
    assert outputs.state[1]["error"].startswith("ValueError: ")


def test_a_tool_call_of_other_types_is_kept_and_nobody_warned():
    call = {"id": 5, "type": "function", "function": {"name": "f", "arguments": "{}"}}
    outputs, _ = played(lambda _: say("x", fields={"tool_calls": [call]}))
    assert outputs.completion[0][0]["tool_calls"] == [call]

"""Environments made of environments, and those whose replies are results of tools, over a server on loopback."""

import json

import pytest
from loopback import Loopback, Reply, client_of, echo, say

import assay
from assay.environments.multiturn import tool_schema
from assay.types import GenerateInputs


def right(completion, answer):
    return float(completion[-1]["content"] == answer)


def length(completion):
    return float(len(completion[-1]["content"]))


def env_of(*words, func=right, **options):
    rows = [{"question": word, "answer": word} for word in words]
    return assay.SingleTurnEnv(dataset=rows, rubric=assay.Rubric([func]), retry_delay=0.001, **options)


def played(env, script=echo, inputs=None, **options):
    with Loopback(script) as server:
        return env.generate_sync(
            env.get_dataset() if inputs is None else inputs, client_of(server), "m", **options
        ), server


# groups


def test_each_row_goes_to_the_environment_of_its_task():
    group = assay.EnvGroup([env_of("a", "b"), env_of("four", func=length, system_prompt="Count.")], ["same", "size"])
    outputs, server = played(group)
    assert outputs.task == ["same", "same", "size"]
    assert outputs.example_id == [0, 1, 2]
    assert outputs.reward == [1.0, 1.0, 4.0]
    assert outputs.metrics == {"right": [1.0, 1.0, 0.0], "length": [0.0, 0.0, 4.0]}
    systems = [request.body["messages"][0]["content"] == "Count." for request in server.requests]
    assert sum(systems) == 1
    assert group.evaluate_sync  # rows for evaluation are those of all, too
    assert [row["task"] for row in group.get_eval_dataset()] == ["same", "same", "size"]


def test_a_state_is_that_of_its_environment():
    class Marked(assay.SingleTurnEnv):
        def reset_for_rollout(self, prompt, answer, info):
            return {"mark": 1}

    marked = Marked(dataset=[{"question": "a"}], rubric=assay.Rubric([length]))
    outputs, _ = played(assay.EnvGroup([marked, env_of("b")]))
    assert [state.get("mark") for state in outputs.state] == [1, None]


def test_given_completions_are_scored_by_the_rubric_of_their_task():
    group = assay.EnvGroup([env_of("a"), env_of("b", func=length)], ["same", "size"])
    inputs = GenerateInputs(
        prompt=["?"] * 3,
        completion=[[{"role": "assistant", "content": "a"}]] * 3,
        answer=["a"] * 3,
        task=["size", "same", "other"],
    )
    outputs = group.generate_sync(inputs)
    assert outputs.reward[:2] == [1.0, 1.0]
    assert outputs.reward[2] is None
    assert "No environment is called 'other'" in outputs.state[2]["error"]


def test_a_group_may_be_in_a_group():
    inner = assay.EnvGroup([env_of("a"), env_of("b")], ["one", "two"])
    group = assay.EnvGroup([inner, env_of("c")], ["inner", "three"])
    assert [row["task"] for row in group.get_dataset()] == ["one", "two", "three"]
    assert played(group)[0].reward == [1.0, 1.0, 1.0]
    assert group.get_env_for_task("two") is inner.envs[1]


def test_functions_of_whole_groups_are_scored_by_task():
    def best(completions):
        return [float(at == 0) for at in range(len(completions))]

    group = assay.EnvGroup([env_of("a", func=best), env_of("b")])
    assert group.rubric.has_group_funcs
    assert played(group, inputs=group.get_eval_inputs(rollouts_per_example=2))[0].metrics["best"] == [
        *(1.0, 0.0, 0.0, 0.0),
    ]


@pytest.mark.parametrize(
    ("envs", "names", "error"),
    [
        ([], None, "at least one"),
        (["a"], ["x", "y"], "1 environments have 2 names"),
        (["a", "b"], ["x", "x"], "the same name"),
    ],
)
def test_a_group_says_what_it_lacks(envs, names, error):
    with pytest.raises(ValueError, match=error):
        assay.EnvGroup([env_of(word) for word in envs], names)


def test_messages_and_text_do_not_mix():
    with pytest.raises(assay.UsageError, match="for messages and for text"):
        assay.EnvGroup([env_of("a"), env_of("b", message_type="completion")])


# tools


def add(a: int, b: int) -> int:
    """Add two numbers.

    Args:
        a: The first.
        b: The second.
    """
    return a + b


async def search(query: str, limit: int = 3):
    """Search."""
    return [query] * limit


def called(name, arguments, ident="c1"):
    call = {"id": ident, "type": "function", "function": {"name": name, "arguments": arguments}}
    return Reply(fields={"tool_calls": [call]})


def tools_of(*tools, **options):
    return assay.ToolEnv(
        tools, dataset=[{"question": "2 + 2?", "answer": "4"}], rubric=assay.Rubric([right]), **options
    )


def test_the_model_calls_tools_until_it_answers():
    outputs, server = played(
        tools_of(add, search), [called("add", '{"a": 2, "b": 2}'), called("search", '{"query": "x"}'), say("4")]
    )
    assert outputs.reward == [1.0]
    assert outputs.state[0]["tools_called"] == ["add", "search"]
    assert [message["content"] for message in outputs.completion[0] if message["role"] == "tool"] == [
        "4",
        "['x', 'x', 'x']",
    ]
    assert [tool["function"]["name"] for tool in server.requests[0].body["tools"]] == ["add", "search"]


@pytest.mark.parametrize(
    ("call", "reply"),
    [
        (called("sub", "{}"), "no tool 'sub'. Tools: add."),
        (called("add", '{"a": 2'), "Expecting"),
        (called("add", "[1]"), "no JSON object"),
        (called("add", '{"a": 2}'), "missing 1 required positional argument"),
    ],
)
def test_the_model_is_told_what_went_wrong(call, reply):
    outputs, _ = played(tools_of(add), [call, say("4")])
    assert outputs.reward == [1.0]
    assert reply in outputs.completion[0][1]["content"]
    shown, _ = played(tools_of(add, error_formatter=lambda error: f"! {type(error).__name__}"), [call, say("4")])
    assert shown.completion[0][1]["content"].startswith("! ")


def test_turns_are_limited_and_tools_come_and_go():
    env = tools_of(add, max_turns=2)
    outputs, _ = played(env, lambda _: called("add", '{"a": 1, "b": 1}'))
    assert outputs.state[0]["turn"] == 2
    env.add_tool(search)
    env.remove_tool(add)
    assert [tool["function"]["name"] for tool in env.oai_tools] == ["search"]
    with pytest.raises(assay.UsageError):
        tools_of(message_type="completion")


def test_a_tool_is_described_by_its_signature_and_docstring():
    function = tool_schema(add)["function"]
    assert (function["name"], function["description"], function["strict"]) == ("add", "Add two numbers.", True)
    assert {
        name: (value["type"], value["description"]) for name, value in function["parameters"]["properties"].items()
    } == {"a": ("integer", "The first."), "b": ("integer", "The second.")}
    assert function["parameters"]["additionalProperties"] is False
    optional = tool_schema(search)["function"]
    assert "strict" not in optional
    assert optional["parameters"]["required"] == ["query"]
    assert json.dumps(tool_schema(lambda anything: anything))


# rows without an answer


def test_a_row_without_an_answer_scores_where_no_function_asks_for_it():
    def easy(completion, answer="none"):
        return float(answer in ("none", ""))

    row = {"prompt": "?", "completion": "a"}
    for rubric in (assay.Rubric([length_of_text]), assay.Rubric([easy])):
        assert assay.score([row], rubric)["reward"].to_list() == [1.0]
        assert assay.Batcher(rubric).score_sync(row)["reward"] == 1.0
        assert (
            assay.compile(assay.load_verifier({"checks": [{"type": "contains", "value": "a"}]})).score_rows([row])[
                "reward"
            ][0]
            == 1
        )
        assert assay.SingleTurnEnv(dataset=[], rubric=rubric).generate_sync([row]).reward == [1.0]


def length_of_text(completion):
    return float(len(completion))


def test_the_answer_of_info_is_the_answer_of_a_row_without():
    def asks(completion, answer, info):
        return float(answer == "42" and info["difficulty"] == "medium")

    rows = [{"prompt": "?", "completion": "a", "info": {"answer": "42", "difficulty": "medium"}}]
    env = assay.SingleTurnEnv(dataset=rows, rubric=assay.Rubric([asks]))
    assert env.generate_sync(rows).reward == [1.0]
    assert env.generate_sync([rows[0] | {"answer": "41"}]).reward == [0.0]

"""verifiers itself, 0.4 and 0.1.14, whichever is installed: a taskset's rewards, and a rubric over rollouts from a loopback."""

import asyncio
import importlib.metadata

import pytest
import real_packages
from loopback import Loopback, say
from sums import SPEC, WRONG

from assay.adapters import verifiers

real_packages.needs("verifiers", "pip install 'assay-rollouts[verifiers]', or verifiers==0.1.14")

VERSION = tuple(map(int, importlib.metadata.version("verifiers").split(".")[:3]))
NEW = pytest.mark.skipif(VERSION < (0, 4), reason="needs pip install 'assay-rollouts[verifiers]'")
OLD = pytest.mark.skipif(not (0, 1, 14) <= VERSION < (0, 2), reason="needs pip install verifiers==0.1.14")
pytestmark = pytest.mark.filterwarnings("ignore")

math = verifiers.reward(SPEC)
lenient = verifiers.reward(SPEC, name="lenient", unscored=-1.0)


def traces_of(function, *texts, answer="4", calls=None):
    import verifiers.v1 as vf

    class Sum(vf.TaskData):
        answer: str | None

    config = vf.TaskConfig(rewards={"quality": {"fn": f"{__file__}:{function}", "weight": 2.0}})
    task = vf.Task(Sum(prompt="2 + 2?", answer=answer), config)
    agent = vf.AgentInfo.model_construct(config=None)
    traces = [
        vf.Trace(
            task=vf.TraceTask(type="Sum", data=task.data),
            agent=agent,
            nodes=[]
            if text is None
            else [vf.MessageNode(message=vf.AssistantMessage(content=text, tool_calls=calls), sampled=True)],
        )
        for text in texts
    ]

    async def scored():
        return await asyncio.gather(*map(task.score, traces), return_exceptions=True)

    return traces, asyncio.run(scored())


@NEW
def test_a_taskset_of_0_4_has_rewards_metrics_and_feedback():
    traces, errors = traces_of("math", "4", "5", "4" * 20)
    assert errors == [None] * 3
    assert [trace.reward for trace in traces] == [2.0, 0.5, 1.5]
    assert [trace.rewards["quality"].score for trace in traces] == [1.0, 0.25, 0.75]
    assert traces[1].metrics == {"math/right": 0.0, "math/short": 1.0}
    assert traces[1].info["math"] == {"passed": False, "feedback": WRONG, "error": None}


@NEW
def test_a_trace_that_cannot_be_scored_is_in_error_and_the_others_are_not():
    traces, errors = traces_of("math", "4", None)
    assert traces[0].reward == 2.0
    assert errors[0] is None
    assert "the completion is null" in str(errors[1])
    assert traces[1].rewards == {"quality": None}
    assert traces[1].info["math"]["error"] == "the completion is null"
    traces, errors = traces_of("lenient", "4", answer=None)
    assert errors == [None]
    assert traces[0].rewards["quality"].score == -1.0


@NEW
def test_tool_calls_of_0_4_are_read():
    import verifiers.v1 as vf

    spec = {"checks": [{"type": "tool_calls", "value": [{"name": "add", "arguments": {"a": 2}}]}]}
    call = vf.ToolCall(id="1", name="add", arguments='{"a": 2}')
    traces, _ = traces_of("math", "One moment.", calls=[call])
    task = traces[0].task.data
    assert asyncio.run(verifiers.reward(spec)(task=task, trace=traces[0])) == 1.0


@OLD
def test_a_rubric_of_0_1_scores_the_rollouts_of_an_environment():
    import verifiers as vf
    from datasets import Dataset

    rows = {"question": ["2 + 2?", "2 + 3?"], "answer": ["4", "5"], "info": [{"level": 1}, {"level": 2}]}
    rubric = vf.Rubric(funcs=[math], weights=[2.0])
    for metric in math.metrics:
        rubric.add_metric(metric)
    environment = vf.SingleTurnEnv(dataset=Dataset.from_dict(rows), rubric=rubric)
    with Loopback(lambda request: say("It is 4.")) as server:
        config = vf.ClientConfig(api_base_url=server.url, api_key_var="NONE", client_type="openai_chat_completions")
        results = environment.evaluate_sync(
            client=config, model="m", num_examples=2, rollouts_per_example=2, state_columns=["math"]
        )
    outputs = sorted(results["outputs"], key=lambda output: output["example_id"])
    assert [output["reward"] for output in outputs] == [2.0, 2.0, 0.5, 0.5]
    assert outputs[2]["metrics"] == {"math": 0.25, "math/right": 0.0, "math/short": 1.0, "num_turns": 1.0}
    assert outputs[2]["math"]["feedback"] == 'right: does not contain "5"'


@OLD
def test_a_rollout_that_cannot_be_scored_is_zero_alone(caplog):
    from verifiers import Rubric, State

    states = [
        State(prompt="2 + 2?", answer=answer, completion=[{"role": "assistant", "content": "4"}], trajectory=[])
        for answer in ("4", None, 5)
    ]
    asyncio.run(Rubric(funcs=[math]).score_group(states))
    assert [state["reward"] for state in states] == [1.0, 0.0, 0.25]
    assert "gold is missing: answer" in caplog.text
    assert states[1]["math"]["error"] == "gold is missing: answer"


@pytest.mark.skipif(VERSION < (0, 1, 14), reason="needs pip install 'assay-rollouts[verifiers]'")
def test_the_page_runs_as_it_stands(tmp_path):
    assert len(real_packages.glue_of("verifiers.md")) <= real_packages.MOST_GLUE
    other = "from verifiers import" if VERSION >= (0, 4) else "verifiers.v1"
    real_packages.run_page("verifiers.md", tmp_path, without=other)

"""A rollout whose generation failed is unscored with its reason, whoever scores it, from whatever its rows were saved as."""

import asyncio
import json
import os
import random
from types import SimpleNamespace

import polars as pl
import pytest
from cases import sized, some
from real_packages import Later

import assay
from assay.compiling.verifiers import verifiers_of_run
from assay.expressions.completion import completion_text, no_text
from assay.scoring.reference import score_rows

chat = Later("openai.types.chat")

WHY = "generation failed: RefusedError: no"
NATIVE = {"id": "native", "checks": [{"type": "not_contains", "value": "sorry"}]}


class RefusedError(Exception):
    status_code = 400


async def create(model, messages, **options):
    if any("bad" in message["content"] for message in messages):
        raise RefusedError("no")
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "4"}}
    return chat.ChatCompletion(id="1", object="chat.completion", created=0, model=model, choices=[choice])


CLIENT = SimpleNamespace(chat=SimpleNamespace(completions=SimpleNamespace(create=create)))


def polite(completion):
    return float("sorry" not in str(completion))


async def later(completion):
    await asyncio.sleep(0)
    return 1.0


def share(completions):
    return [1 / len(completions)] * len(completions)


class Talk(assay.MultiTurnEnv):
    """Asks for more once; what it asks is bad where the example says so."""

    async def is_completed(self, messages, state, **kwargs):
        return state["turn"] == 2 or await super().is_completed(messages, state, **kwargs)

    async def env_response(self, messages, state, **kwargs):
        return [{"role": "user", "content": state["answer"]}], state


def generated(folder, env=assay.SingleTurnEnv, rubric=None, **options):
    first = "bad" if env is assay.SingleTurnEnv else "more"
    rows = [
        {"question": "good", "answer": "4"},
        {"question": first, "answer": "bad"},
        {"question": "fine", "answer": "4"},
    ]
    made = env(dataset=rows, rubric=rubric or assay.Rubric([polite]), **options)
    outputs = made.evaluate_sync(CLIENT, "m", rollouts_per_example=2, results_path=folder)
    assert outputs.reward.count(None) == 2
    return outputs, folder / "results.parquet"


def told(outputs):
    return [f"generation failed: {state['error']}" if "error" in state else None for state in outputs.state]


def agrees(found, outputs):
    """Whether rewards are missing where the environment left them out, and nowhere else."""
    assert found["error"].to_list() == told(outputs)
    assert found["reward"].is_null().to_list() == [reward is None for reward in outputs.reward]
    assert found["passed"].is_null().to_list() == [reward is None for reward in outputs.reward]
    return True


@pytest.mark.parametrize("env", [assay.SingleTurnEnv, Talk])
@pytest.mark.parametrize(
    "judge",
    [
        assay.Rubric([polite]),
        assay.Rubric([polite, later, share], [0.0, 1.0, 2.0]),
        NATIVE,
        [NATIVE, {**NATIVE, "id": "too"}],
    ],
    ids=["function", "group", "native", "two"],
)
def test_results_scored_again_have_the_rewards_that_they_had(tmp_path, env, judge):
    outputs, path = generated(tmp_path / "run", env)
    assert agrees(assay.score(path, judge), outputs)
    assert agrees(assay.score(outputs, judge), outputs)
    assert agrees(assay.score(outputs.to_arrow(), judge), outputs)
    assert agrees(assay.score(assay.types.GenerateOutputs.from_parquet(path), judge), outputs)


def test_rollouts_that_failed_are_no_members_of_their_group(tmp_path):
    rows = [
        {"completion": text, "example_id": 1, "generation_error": why}
        for text, why in (("a", None), ("b", "x"), ("c", ""))
    ]
    found = assay.score(rows, assay.Rubric([share, lambda completion: {"a": 1, "c": 3}[completion]]))
    assert found["reward"].to_list() == [1.5, None, 3.5]
    assert found["error"].to_list() == [None, "generation failed: x", None]


def test_a_function_of_a_row_is_not_looked_up_where_nothing_was_generated():
    rows = [
        {"completion": "4", "fn_name": "exact_match", "expected": "4", "error": None},
        {"completion": "", "fn_name": "nobody knows", "expected": None, "error": "timeout"},
    ]
    assert assay.score(rows)["error"].to_list() == [None, "generation failed: timeout"]


def test_a_client_generates_anew_what_failed_and_without_one_it_stays_unscored(tmp_path):
    outputs, path = generated(tmp_path / "run", Talk)
    env = assay.SingleTurnEnv(dataset=[{"question": "good", "answer": "4"}], rubric=assay.Rubric([polite]))
    again = env.generate_sync(path, None, "m")
    assert [reward is None for reward in again.reward] == [reward is None for reward in outputs.reward]
    assert [state.get("generation_error") for state in again.state] == [state.get("error") for state in outputs.state]
    assert env.generate_sync(path, CLIENT, "m").reward == [1.0] * 6


def before(frame):
    """A table as it was saved before there was a ``generation_error``."""
    state = frame["state"].str.replace(r', "generation_error": "[^"]*"', "")
    assert "generation_error" not in "".join(state)
    return frame.drop("generation_error").with_columns(state)


@pytest.mark.parametrize("env", [assay.SingleTurnEnv, Talk])
def test_files_of_earlier_versions_are_read_right(tmp_path, env):
    outputs, path = generated(tmp_path / "run", env)
    frame = before(pl.read_parquet(path))
    assert agrees(assay.score(frame, NATIVE), outputs)
    assert agrees(pl.DataFrame(score_rows(frame.to_dicts(), verifiers_of_run(NATIVE))), outputs)
    both = tmp_path / "both"
    both.mkdir()
    frame.write_parquet(both / "a.parquet")
    pl.read_parquet(path).write_parquet(both / "b.parquet")
    assert assay.score(str(both), NATIVE)["error"].to_list() == told(outputs) * 2


def test_what_went_wrong_in_scoring_is_no_failed_generation(tmp_path):
    def broken(completion):
        raise ValueError("mine")

    class Broken(assay.Rubric):
        async def score_rollout(self, *args, **kwargs):
            raise ValueError("all of it")

    for at, rubric in enumerate((assay.Rubric([broken]), Broken([polite]))):
        outputs, path = generated(tmp_path / str(at), rubric=rubric) if at == 0 else (None, None)
        if at:
            env = assay.SingleTurnEnv(dataset=[{"question": "good", "answer": "4"}], rubric=rubric)
            outputs = env.evaluate_sync(CLIENT, "m", results_path=tmp_path / str(at))
            path = tmp_path / str(at) / "results.parquet"
        assert all("error" in state for state in outputs.state)
        found = assay.score(path, assay.Rubric([polite]))
        assert found["reward"].to_list() == ([1.0, None, 1.0] * 2 if at == 0 else [1.0])


def test_a_result_of_scoring_is_scored_again_by_what_its_input_said(tmp_path):
    outputs, path = generated(tmp_path / "run")
    keep = ["completion", "example_id"]
    for frame in (pl.read_parquet(path), before(pl.read_parquet(path))):
        kept = [name for name in (*keep, "error", "reward", "generation_error") if name in frame.columns]
        once = assay.score(frame, NATIVE, keep=kept)
        assert "prior_error" in once.columns
        twice = assay.score(once, NATIVE, keep=[name for name in once.columns if "/" not in name])
        assert agrees(twice, outputs)
        assert agrees(assay.score(twice, NATIVE), outputs)


@pytest.mark.parametrize("keep", [["completion"], ["completion", "answer"]])
def test_an_error_of_scoring_does_not_leave_a_result_unscored(keep):
    def broken(completion):
        raise ValueError("mine")

    rows = [{"completion": "", "answer": "4"}, {"completion": None, "answer": "4"}]
    once = assay.score(rows, assay.Rubric([broken]), keep=keep)
    assert once["error"].to_list() == ["broken: ValueError: mine", "the completion is null"]
    again = assay.score(once, assay.Rubric([polite]))
    assert again["reward"].to_list() == [1.0, None]
    assert again["error"].to_list() == [None, "the completion is null"]


V0 = {"example_id": 0, "prompt": "p", "reward": 0.0, "timing": {"total_ms": 1.0}, "metrics": {"f": 0.0}}


@pytest.mark.parametrize(
    ("row", "why"),
    some(
        [
            ({"completion": "", "error": "timeout"}, "timeout"),
            ({"completion": None, "error": "timeout"}, "timeout"),
            ({"completion": [], "error": "timeout"}, "timeout"),
            ({"completion": [], "error": {"code": 429, "message": None}}, '{"code": 429}'),
            ({"completion": "", "error": True}, "true"),
            ({"completion": "", "error": "x" * 1000}, "x" * 500),
            ({"completion": "", "error": "two\nlines"}, "two lines"),
            ({"completion": "a", "error": "of what?"}, None),
            ({"completion": [{"role": "user", "content": "q"}], "error": "of what?"}, None),
            *(
                ({"completion": "", "error": nothing}, None)
                for nothing in (None, "", False, 0, {"code": None}, [], float("nan"))
            ),
            ({"completion": "a", "generation_error": "broke off"}, "broke off"),
            ({"completion": "a", "generation_error": ""}, None),
            ({"completion": "", "state": {"error": "timeout"}, "reward": None}, "timeout"),
            ({"completion": "", "state": {"error": "of what?"}}, None),
            ({"completion": [], "state": {"error": "timeout"}, "reward": 0.0}, None),
            ({"completion": "a", "state": {"error": "f: of scoring"}, "reward": None}, None),
            ({"completion": "a", "state": {"generation_error": "broke off"}, "reward": None}, "broke off"),
            ({"completion": "", "state": "no JSON", "reward": None}, None),
            ({**V0, "completion": "a", "error": "ModelError"}, "ModelError"),
            (
                {**V0, "completion": [{"role": "assistant", "content": "a"}], "error": {"error": "ModelError"}},
                '{"error": "ModelError"}',
            ),
            ({**V0, "completion": "a", "error": None}, None),
        ]
    ),
    ids=str,
)
def test_what_rows_say_of_their_generation(tmp_path, row, why):
    fine = {**row, "completion": "fine", "error": None, "generation_error": None, "state": None}
    many = [row, {name: fine[name] for name in row}] * 2
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(one) + "\n" for one in many))
    told = why and f"generation failed: {why}"
    nothing = completion_text(row["completion"]) is None
    expected = [told or (no_text(row["completion"]) if nothing else None), None] * 2
    for source in (many, tmp_path / "rows.jsonl"):
        assert assay.score(source, NATIVE)["error"].to_list() == expected
        frame = assay.scan(source).collect()
        found = score_rows(frame.to_dicts(), verifiers_of_run(NATIVE))
        assert [one["error"] for one in found] == expected
    frame.write_parquet(tmp_path / "rows.parquet")
    assert assay.score(tmp_path / "rows.parquet", NATIVE)["error"].to_list() == expected


@pytest.mark.parametrize("any_role", [False, True])
def test_a_text_beside_messages_scores_as_it_does_alone(tmp_path, any_role):
    said = [{"role": "user", "content": "q"}]
    values = ["", "a", "sorry", None, [], said, [*said, {"role": "assistant", "content": ""}]]
    rows = [{"completion": value, "error": error} for value in values for error in (None, "timeout")]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    alone = [assay.score([row], NATIVE, any_role=any_role).drop("prior_error").rows()[0] for row in rows]
    for source in (rows, tmp_path / "rows.jsonl"):
        assert assay.score(source, NATIVE, any_role=any_role).drop("prior_error").rows() == alone
        frame = assay.scan(source).collect()
        by_rows = score_rows(frame.to_dicts(), verifiers_of_run(NATIVE), any_role=any_role)
        assert [row["error"] for row in by_rows] == [row[3] for row in alone]


def test_a_function_gets_a_text_beside_messages_as_text():
    seen = []
    rubric = assay.Rubric(funcs=[lambda completion: seen.append(completion) or 1.0])
    said = [{"role": "assistant", "content": "b", "name": "n"}]
    assay.score([{"completion": "a"}, {"completion": said}], rubric)
    assert sorted(seen, key=str) == sorted(["a", said], key=str)  # in either order: the engine may cut two rows apart


TRACE = {"task": {"type": "t", "data": {"prompt": "p"}, "hash": "h"}, "env": {"id": "e"}, "group": {"id": "g"}}
NODES = [{"parent": None, "message": {"role": "assistant", "content": "4"}, "sampled": True}]


def test_a_trace_that_was_not_completed_is_unscored_with_its_errors(tmp_path):
    error = {"type": "ModelError", "message": "no"}
    traces = [
        {"is_completed": True, "errors": []},
        {"is_completed": False, "errors": [error, error]},
        {"is_completed": True, "errors": [error]},
        {"is_completed": False, "errors": []},
    ]
    lines = [TRACE | {"traces": [{"id": str(at), "nodes": NODES, **one}]} for at, one in enumerate(traces)]
    (tmp_path / "traces.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    pl.DataFrame(lines).write_parquet(tmp_path / "traces.parquet")
    for name in ("traces.jsonl", "traces.parquet"):
        found = assay.score(tmp_path / name, NATIVE)
        assert found["reward"].to_list() == [1.0, None, 1.0, 1.0]
        assert found["error"].to_list() == [None, "generation failed: ModelError: no; ModelError: no", None, None]


def test_a_request_that_failed_is_no_member_of_a_group_though_it_has_an_answer(tmp_path):
    body = {"choices": [{"index": 0, "message": {"role": "assistant", "content": "4"}, "finish_reason": "stop"}]}
    lines = [
        {"id": "b", "custom_id": "1", "response": {"status_code": status, "body": body}, "error": None}
        for status in (200, 500)
    ]
    (tmp_path / "batch.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    found = assay.score(tmp_path / "batch.jsonl", assay.Rubric([share]))
    assert found["reward"].to_list() == [1.0, None]


ERRORS = [
    *(None, "", "x", "two\nlines", 0, 1, False, True, {}, {"a": None}, {"a": 1, "b": None}, [], ["q", None]),
    *(1.5, float("nan")),
]
STATES = [
    None,
    {},
    {"error": "s"},
    {"generation_error": "g"},
    {"generation_error": None, "error": "q"},
    "no json",
    "[1]",
]
STATES += ['{"error": "t"}', '{"generation\\u005ferror": "escaped"}', "", {"error": {"a": [None]}}]
SAID = {
    "error": ERRORS,
    "generation_error": ERRORS,
    "prior_error": ERRORS,
    "state": STATES,
    "reward": [None, 0.0, 1.0],
    "prior_reward": [None, 0.0, 1.0],
    "passed": [True, None],
    "feedback": ["", "f"],
    "timing": [{"t": 1}],
    "metrics": [{"m": 1}],
    "example_id": [1, 2],
    "generation_ms": [1.0],
}
TEXTS = [None, "", "a", " "]
CHATS = [None, [], [{"role": "assistant", "content": "a"}], [{"role": "user", "content": "a"}]]
CHATS += [
    [{"role": "assistant", "content": ""}],
    [{"role": "assistant", "content": "a"}, {"role": "tool", "content": "b"}],
]


@pytest.mark.parametrize("number", range(int(os.environ.get("ASSAY_FUZZ", sized("12", "4")))))
def test_what_rows_say_is_the_same_in_every_form_and_for_the_definition(tmp_path, number):
    rng = random.Random(number)
    names = [name for name in SAID if rng.random() < 0.35]
    if rng.random() < 0.3:
        names = list(dict.fromkeys([*names, "generation_ms", "scoring_ms", "total_ms", "reward", "error"]))
    pools = {name: rng.sample(given, min(len(given), rng.choice([1, 2, 3, 20]))) for name, given in SAID.items()}
    said = rng.choice([TEXTS, CHATS])
    rows = [
        {"completion": rng.choice(said), "prompt": "p"} | {name: rng.choice(pools.get(name, [1.0])) for name in names}
        for _ in range(rng.choice([1, 2, 20, 300]))
    ]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    judge = rng.choice([assay.Rubric([share]), assay.load_verifier(NATIVE)])
    expected = None
    for source in (rows, tmp_path / "rows.jsonl"):
        found = assay.score(source, judge).select("reward", "error")
        defined = score_rows(assay.scan(source).collect().to_dicts(), verifiers_of_run(judge))
        assert found.rows() == [(row["reward"], row["error"]) for row in defined]
        assert expected is None or found.equals(expected)
        expected = found


def test_a_column_without_a_name_says_nothing_of_failures():
    rows = pl.DataFrame({"completion": ["4", "5"], "": ["a", None]})
    assert assay.score(rows, NATIVE)["reward"].to_list() == [1.0, 1.0]
    failed = rows.with_columns(generation_error=pl.Series([None, "broke off"]))
    assert assay.score(failed, NATIVE)["reward"].to_list() == [1.0, None]

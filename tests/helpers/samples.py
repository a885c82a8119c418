"""Records as the tools write them that presets know, field for field; every text is made up."""

import json

import pyarrow as pa
import pyarrow.parquet as pq

NAN = float("nan")


def user(text):
    return {"role": "user", "content": text}


def assistant(text):
    return {"role": "assistant", "content": text}


def node(parent, message, *, sampled):
    return {"parent": parent, "message": message, "sampled": sampled, "token_ids": [1, 2], "mask": [sampled, sampled]}


def trace(ident, nodes, rewards, stop="stop"):
    return {
        "id": ident,
        "agent": {"id": "solver"},
        "nodes": nodes,
        "calls": [],
        "rewards": rewards,
        "metrics": {"turns": 1.0},
        "info": {"seed": 7},
        "is_completed": True,
        "stop_condition": stop,
        "timing": {"total": 0.5},
    }


def episode(ident, traces, **more):
    data = {"idx": 0, "id": "t0", "name": "sum", "prompt": "2+2?", "answer": "4"}
    return {
        "id": ident,
        "env": {"id": "sums", "name": "sums"},
        "task": {"type": "math", "data": data, "key": "k", "hash": "h0"},
        "run": {"type": "train", "id": "r", "work": {"type": "rollout", "step": 3, "policy": 2}},
        "ok": True,
        "is_timeout": False,
        "traces": traces,
        **more,
    }


def batch(custom_id, choices=(), *, status=200, error=None):
    body = {
        "id": "c",
        "object": "chat.completion",
        "model": "m",
        "choices": list(choices),
        "usage": {"total_tokens": 9},
    }
    response = None if error else {"status_code": status, "request_id": "r", "body": body}
    return {"id": f"batch-{custom_id}", "custom_id": custom_id, "response": response, "error": error}


def choice(at, text, reason="stop"):
    return {"index": at, "message": assistant(text), "finish_reason": reason}


def lm_eval(doc_id, filtered_by, responses):
    return {
        "doc_id": doc_id,
        "doc": {"question": "2+2?", "answer": "#### 4"},
        "target": "4",
        "arguments": {"gen_args_0": {"arg_0": "Q: 2+2?\nA:", "arg_1": {"until": ["Q:"]}}},
        "resps": [responses],
        "filtered_resps": responses[:1],
        "filter": filtered_by,
        "metrics": ["exact_match"],
        "doc_hash": "d",
        "prompt_hash": "p",
        "target_hash": "t",
        "exact_match": 1.0,
    }


def verl(index, **more):
    return {
        "data_source": "sums",
        "prompt": [user("2+2?")],
        "ability": "math",
        "reward_model": {"style": "rule", "ground_truth": "4"},
        "extra_info": {"split": "test", "index": index},
        **more,
    }


def dump(output, score, gts="4", **more):
    return {
        "input": "user\n2+2?\nassistant\n",
        "output": output,
        "gts": gts,
        "score": score,
        "step": 7,
        "acc": score,
        **more,
    }


def gym(task, rollout, output, **more):
    return {
        "_ng_task_index": task,
        "_ng_rollout_index": rollout,
        "_ng_attempt_index": 0,
        "agent_ref": {"name": "solver"},
        "responses_create_params": {"input": [user("2+2?")]},
        "response": {"id": "resp", "model": "m", "output": output},
        "reward": 1.0,
        "expected_answer": "4",
        **more,
    }


def promptfoo(test, prompt, response, *, success=True):
    return {
        "cost": 0,
        "gradingResult": {"pass": success, "score": float(success), "reason": "All assertions passed"},
        "id": f"{test}-{prompt}",
        "latencyMs": 2,
        "namedScores": {"right": 1.0},
        "prompt": {"raw": "2+2?", "label": "{{question}}"},
        "promptId": f"p{prompt}",
        "promptIdx": prompt,
        "provider": {"id": "openai:m", "label": "m"},
        "response": response,
        "score": float(success),
        "success": success,
        "testCase": {"vars": {"question": "2+2?", "answer": "4"}},
        "testIdx": test,
        "tokenUsage": {"total": 9},
        "vars": {"question": "2+2?", "answer": "4"},
        "failureReason": 0,
    }


def spoken(text):
    return {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}


def turn(name, text):
    return {"from": name, "value": text}


def chat(ident, *choices):
    usage = {"total_tokens": 9}
    return {"id": ident, "object": "chat.completion", "model": "m", "choices": [*choices], "usage": usage}


def answered(ident, output, error=None):
    return {"id": ident, "object": "response", "model": "m", "error": error, "output": output}


ONE_TRACE = [node(None, user("2+2?"), sampled=False), node(0, assistant("It is 4."), sampled=True)]
BRANCHED = [
    node(None, user("2+2?"), sampled=False),
    node(0, assistant("It is 5."), sampled=True),
    node(0, assistant("Let me add."), sampled=True),
    node(2, {"role": "tool", "content": "4"}, sampled=False),
    node(3, assistant("So 4."), sampled=True),
    node(4, user("Thanks."), sampled=False),
]
UNSAMPLED = [node(None, user("2+2?"), sampled=False)]

RECORDS = {
    "verl-prompts": [verl(0), verl(1)],
    "verl-eval": [
        verl(0, responses=["It is 4.", "5"]),
        verl(1, responses=[]),
        verl(2, responses=None),
        verl(3, responses=["4"]),
    ],
    "verl-dump": [
        dump("It is 4.", 1.0, uid="a_b_0_0"),
        dump("5", 0.0, uid="a_b_1_0"),
        dump("4", None, None, uid="c_0_0"),
    ],
    "trl": [
        {"step": 1, "prompt": "2+2?", "completion": "It is 4.", "accuracy": 1.0, "advantage": 0.7},
        {"step": 1, "prompt": "2+2?", "completion": "5", "accuracy": 0.0, "advantage": -0.7},
    ],
    "verifiers-v0": [
        {
            "example_id": 0,
            "prompt": [user("2+2?")],
            "completion": [assistant("Hm."), user("Well?"), assistant(text)],
            "answer": "4",
            "info": {"level": 1},
            "reward": 0.5,
            "error": None,
            "timing": {"total_ms": 1.0},
            "is_completed": True,
            "stop_condition": "done",
            "metrics": {"exact": 1.0},
        }
        for text in ("It is 4.", "5")
    ],
    "verifiers": [
        episode(
            "e0",
            [trace("t0", ONE_TRACE, {"exact": {"score": 1.0, "weight": 0.5}, "short": {"score": 0.25, "weight": 2.0}})],
            group={"id": "g0"},
        ),
        episode("e1", [trace("t1", BRANCHED, {"exact": None, "short": {"score": 1.0, "weight": 2.0}}, "max_turns")]),
        episode("e2", [trace("t2", UNSAMPLED, {"exact": None, "short": None}), trace("t3", ONE_TRACE, {})]),
        episode("e3", [], errors=[{"type": "Timeout", "message": "too slow"}]),
    ],
    "openai-batch": [
        batch("a", [choice(0, "It is 4."), choice(1, None, "length")]),
        batch("b", error={"code": "batch_expired", "message": "not done in time"}),
        batch("c", status=500),
        batch("d"),
    ],
    "openai-batch-input": [
        {"custom_id": one, "method": "POST", "url": "/v1/chat/completions", "body": {"messages": [user("2+2?")]}}
        for one in "abcd"
    ],
    "lm-eval": [
        lm_eval(0, "strict-match", ["It is 4.", "5"]),
        lm_eval(1, "strict-match", ["4"]),
        lm_eval(0, "flexible-extract", ["It is 4.", "5"]),
        lm_eval(1, "flexible-extract", ["4"]),
    ],
    "nemo-gym": [
        gym(0, 0, [{"type": "reasoning", "role": None, "content": None}, spoken("It is 4.")]),
        gym(0, 1, [spoken("5")]),
        gym(1, 0, [], _ng_failure_class="timeout"),
    ],
    "nemo-evaluator": [
        {
            "problem_idx": 0,
            "repeat": at,
            "model_response": text,
            "expected_answer": "4",
            "extracted_answer": text[-1],
            "reward": 0.0,
            "metadata": {"category": "sums"},
        }
        for at, text in enumerate(("It is 4.", "5"))
    ],
    "promptfoo": [
        promptfoo(0, 0, {"output": "It is 4.", "error": None}),
        promptfoo(0, 1, {"output": "5", "error": None}, success=False),
        promptfoo(1, 0, {"output": None, "error": "busy"}, success=False),
    ],
    "messages": [
        {"id": 0, "messages": [user("2+2?"), assistant("It is 4.")], "answer": "4"},
        {"id": 1, "messages": [assistant("4"), user("Sure?"), assistant("5"), user("Thanks.")], "answer": "4"},
        {"id": 2, "messages": [user("4?")], "answer": "4"},
        {"id": 3, "messages": None, "answer": "4"},
    ],
    "sharegpt": [
        {"id": "a", "conversations": [turn("system", "Add."), turn("human", "2+2?"), turn("gpt", "It is 4.")]},
        {"id": "b", "conversations": [turn("user", "2+2?"), turn("assistant", "5")]},
        {"id": "c", "conversations": [turn("human", "2+2?"), turn("gpt", None)]},
        {"id": "d", "conversations": [turn("human", "4?")]},
    ],
    "openai-chat": [
        chat("a", choice(0, "It is 4."), choice(1, "5")),
        chat("b", choice(0, None, "content_filter")),
    ],
    "openai-responses": [
        answered("a", [{"type": "reasoning", "role": None, "content": None}, spoken("It is 4.")]),
        answered("b", [spoken("4"), spoken("5")]),
        answered("c", [spoken("")], error={"code": "server_error", "message": "no"}),
    ],
    "nemo-gym-verify": [
        {
            "responses_create_params": {"input": [user("2+2?")]},
            "response": {"id": "resp", "model": "m", "output": output},
            "reward": 1.0,
            "verifier_metadata": {"expected_answer": "4"},
        }
        for output in ([spoken("It is 4.")], [spoken("5")], [])
    ],
    "skyrl": [
        {
            "input_prompt": [user("2+2?")],
            "output_response": text,
            "score": 0.0,
            "stop_reason": "stop",
            "env_class": "sums",
            "env_extras": {"reward_spec": {"method": "rule", "ground_truth": "4"}},
            "data_source": "sums",
        }
        for text in ("It is 4.", "5")
    ],
}
"""Records of each preset; null and empty where its tool writes that, and of types that a parquet file can hold."""

FOURS = {
    "verl-eval": [1.0, 0.0, None, None, 1.0],
    "verl-dump": [1.0, 0.0, 1.0],
    "trl": [1.0, 0.0],
    "verifiers-v0": [1.0, 0.0],
    "verifiers": [1.0, 1.0, None, 1.0, None],
    "openai-batch": [1.0, 0.0, None, None, None],
    "lm-eval": [1.0, 0.0, 1.0],
    "nemo-gym": [1.0, 0.0, None],
    "nemo-evaluator": [1.0, 0.0],
    "promptfoo": [1.0, 0.0, None],
    "skyrl": [1.0, 0.0],
    "messages": [1.0, 0.0, None, None],
    "sharegpt": [1.0, 0.0, 0.0, None],
    "openai-chat": [1.0, 0.0, 0.0],
    "openai-responses": [1.0, 0.0, None],
    "nemo-gym-verify": [1.0, 0.0, None],
}
"""Which of their rollouts say 4, by hand; None for those that are unscored."""


def jsonl(path, records):
    path.write_text("".join(json.dumps(record) + "\n" for record in records), "utf-8")
    return path


def table(records):
    names = dict.fromkeys(name for record in records for name in record)
    return pa.table({name: pa.array([record.get(name) for record in records]) for name in names})


def parquet(path, records):
    pq.write_table(table(records), path)
    return path

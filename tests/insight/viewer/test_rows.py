"""Rows as a page shows them: their prompts and messages, the other rows of their task, and what is read."""

import json

import polars as pl
import pytest

import assay
from assay.insight.reports.index import Index
from assay.insight.reports.rows import cards_data, line_of
from assay.insight.results import open_result

SPEC = {
    "id": "v",
    "checks": [{"id": "has", "type": "contains", "value": "4"}, {"id": "brief", "type": "max_length", "value": 3}],
}
ASKED = [{"role": "system", "content": "Add."}, {"role": "user", "content": [{"type": "text", "text": "2 + 2?"}]}]
CALLS = [
    {"role": "assistant", "content": None, "tool_calls": [{"id": "c", "function": {"name": "add", "arguments": "{}"}}]},
    {"role": "tool", "content": "4"},
    {"role": "assistant", "content": "four"},
]
SHOWN = [{"role": "system", "content": "Add."}, {"role": "user", "content": "2 + 2?"}]
CALLED = {"role": "assistant", "content": '{"id": "c", "function": {"name": "add", "arguments": "{}"}}'}

ROWS = {
    "text": ({"prompt": "2 + 2?", "completion": "4"}, "2 + 2?", None),
    "instruction": ({"instruction": "2 + 2?", "completion": "4"}, "2 + 2?", None),
    "chat": ({"prompt": ASKED, "completion": "4"}, "2 + 2?", SHOWN),
    "messages": ({"messages": ASKED, "completion": "4"}, "2 + 2?", SHOWN),
    "calls": ({"prompt": ASKED, "completion": CALLS}, "2 + 2?", [*SHOWN, CALLED, {"role": "tool", "content": "4"}]),
    "nothing": ({"completion": "4"}, None, None),
    "null": ({"prompt": None, "completion": "4"}, None, None),
}


def cards_of(result, rows=(0,), rollouts=None):
    index = Index(open_result(result)).scan()
    cards, why = cards_data(index.result, rows, rollouts, index)
    return [*cards], why


@pytest.mark.parametrize("keep", [None, ["+completion"], ["+completion", "+prompt"]], ids=str)
@pytest.mark.parametrize("name", ROWS)
def test_prompts_come_from_the_result_or_from_what_it_was_made_from(tmp_path, name, keep):
    row, prompt, messages = ROWS[name]
    source = tmp_path / "rollouts.jsonl"
    source.write_text("".join(json.dumps(row | {"task_id": task}) + "\n" for task in "aab"), "utf-8")
    if keep and "+prompt" in keep and "prompt" not in row:
        pytest.skip("there is no prompt to keep")
    assay.score_file(source, SPEC, tmp_path / "result.parquet", keep=keep)
    cards, why = cards_of(tmp_path / "result.parquet", [2, 0])
    assert not why
    assert [card["row"] for card in cards] == [2, 0]
    if name == "calls" and keep:  # a kept completion has texts only
        messages = [message | {"content": ""} if message is CALLED else message for message in messages]
    for card in cards:
        assert (card["prompt"], card["messages"]) == (prompt, messages)
        assert card["text"] == ("four" if name == "calls" else "4")
    assert [[other["row"] for other in card["same_task"]] for card in cards] == [[], [1]]
    assert json.loads(json.dumps(cards, allow_nan=False)) == cards


def test_without_texts_there_are_cards_and_why(tmp_path):
    source = tmp_path / "rollouts.jsonl"
    source.write_text(json.dumps(ROWS["chat"][0]) + "\n", "utf-8")
    assay.score_file(source, SPEC, tmp_path / "result.parquet")
    moved = source.rename(tmp_path / "moved.jsonl")
    cards, why = cards_of(tmp_path / "result.parquet")
    assert "no such file" in why
    assert (cards[0]["text"], cards[0]["prompt"]) == (None, "2 + 2?")
    assert cards_of(tmp_path / "result.parquet", rollouts=moved)[0][0]["text"] == "4"


@pytest.mark.parametrize(("check", "read"), [(None, "first"), ("brief", "second"), ("unknown", "first")])
def test_a_line_has_what_the_chosen_check_read_else_the_first_that_fails(check, read):
    checks = [
        {
            "check": name,
            "score": 0.0,
            "passes": passes,
            "evidence": {"read": text, "expected": ["4"], "near": None, "spans": []},
        }
        for name, passes, text in (("ok", True, "none"), ("has", False, "first"), ("brief", False, "second"))
    ]
    card = {"row": 3, "key": {"task_id": "a"}, "state": "fail", "reward": 0.5, "checks": checks, "text": "…"}
    line = {"row": 3, "key": {"task_id": "a"}, "state": "fail", "reward": 0.5, "scores": [0.0] * 3}
    assert line_of(card, check) == line | {"read": read, "expected": ["4"], "near": None}
    nothing = {"read": None, "expected": None, "near": None}
    assert line_of(card | {"checks": [checks[0]]}) == line | {"scores": [0.0]} | nothing


def test_numbers_that_json_has_not_are_null():
    frame = pl.DataFrame({"reward": [0.5], "check/v/a": [float("inf")], "task_id": [float("nan")], "completion": ["x"]})
    cards, _ = cards_of(frame)
    assert (cards[0]["checks"][0]["score"], cards[0]["key"]) == (None, {"task_id": None})


def test_of_a_whole_text_that_is_read_the_ends_are_shown(tmp_path):
    row = {"completion": "a" * 500 + "18", "answer": "b" * 400}
    checks = [{"id": "whole", "type": "equals", "value": {"column": "answer"}}]
    (tmp_path / "rows.jsonl").write_text(json.dumps(row))
    assay.score_file(tmp_path / "rows.jsonl", {"id": "v", "checks": checks}, tmp_path / "out.parquet")
    cards, _ = cards_data(open_result(tmp_path / "out.parquet"), [0])
    evidence = next(cards)["checks"][0]["evidence"]
    assert evidence["read"] == f"{'a' * 150} … 202 more … {'a' * 148}18"
    assert evidence["expected"] == [f"{'b' * 150} … 100 more … {'b' * 150}"]
